// Convolutional classifiers.
#include <fmt/format.h>

#include "support/error.hpp"
#include "workloads/generate/kinds/kinds.hpp"

namespace assay::workloads::generate {
namespace {

/// Gain of a residual branch's last convolution: the stream's variance grows by a quarter a block and stays of order 1.
constexpr double kBranchGain = 0.5;

void classify(Net& net, const Value& features, const Dimensions& d) {
    net.output(net.linear("fc", net.flatten(net.global_average_pool(features)), d.classes, 2), "logits");
}

/// Blocks of the four stages by depth (He et al. 2016, table 1).
Ints stages_of(std::int64_t layers, bool bottleneck) {
    if (bottleneck && layers == 50) return {3, 4, 6, 3};
    if (bottleneck && layers == 101) return {3, 4, 23, 3};
    if (bottleneck && layers == 152) return {3, 8, 36, 3};
    if (!bottleneck && layers == 18) return {2, 2, 2, 2};
    if (!bottleneck && layers == 34) return {3, 4, 6, 3};
    throw Error(ErrorKind::usage, fmt::format("workload make: --layers {}: a residual network of this kind has {} layers", layers, bottleneck ? "50, 101 or 152" : "18 or 34"));
}

Value shortcut(Net& net, const Value& x, std::int64_t out, std::int64_t stride) {
    if (x.dim(1) == out && stride == 1) return x;
    return net.conv_bn("downsample", x, {.out = out, .stride = stride});
}

Value basic_block(Net& net, const Value& x, std::int64_t width, std::int64_t stride) {
    Value y = net.relu(net.conv_bn("conv1", x, {.out = width, .kernel = 3, .stride = stride, .pad = 1}));
    y = net.conv_bn("conv2", y, {.out = width, .kernel = 3, .pad = 1, .gain = kBranchGain});
    return net.relu(net.add(y, shortcut(net, x, width, stride)));
}

/// The stride is in the 3x3, as all published weights have it since 2016 (ResNet v1.5).
Value bottleneck_block(Net& net, const Value& x, std::int64_t width, std::int64_t stride) {
    Value y = net.relu(net.conv_bn("conv1", x, {.out = width}));
    y = net.relu(net.conv_bn("conv2", y, {.out = width, .kernel = 3, .stride = stride, .pad = 1}));
    y = net.conv_bn("conv3", y, {.out = 4 * width, .gain = kBranchGain});
    return net.relu(net.add(y, shortcut(net, x, 4 * width, stride)));
}

using Block = Value (*)(Net&, const Value&, std::int64_t, std::int64_t);

void build_resnet(Net& net, const Dimensions& d, const Ints& stages, Block block) {
    Value x = net.relu(net.conv_bn("conv1", image_input(net, d), {.out = scaled_channels(64, d.width_percent), .kernel = 7, .stride = 2, .pad = 3}));
    x = net.max_pool(x, {.kernel = 3, .stride = 2, .pad = 1});
    for (std::size_t stage = 0; stage < stages.size(); ++stage)
        for (std::int64_t i = 0; i < stages[stage]; ++i) {
            const auto inside = net.scope(fmt::format("layer{}.{}", stage + 1, i));
            x = block(net, x, scaled_channels(64 << stage, d.width_percent), stage > 0 && i == 0 ? 2 : 1);
        }
    classify(net, x, d);
}

}  // namespace

std::int64_t scaled_channels(std::int64_t channels, std::int64_t width_percent) {
    if (width_percent == 100) return channels;
    const std::int64_t wanted = channels * width_percent, rounded = std::max<std::int64_t>(8, (wanted + 400) / 800 * 8);
    return rounded * 1000 < wanted * 9 ? rounded + 8 : rounded;
}

void build_resnet_basic(Net& net, const Dimensions& d) { build_resnet(net, d, stages_of(d.layers, false), basic_block); }
void build_resnet_bottleneck(Net& net, const Dimensions& d) { build_resnet(net, d, stages_of(d.layers, true), bottleneck_block); }

void build_vgg(Net& net, const Dimensions& d) {
    Value x = image_input(net, d);
    const Ints depth{2, 2, 3, 3, 3};
    for (std::size_t stage = 0; stage < depth.size(); ++stage) {
        for (std::int64_t i = 0; i < depth[stage]; ++i)
            x = net.relu(net.conv(fmt::format("conv{}_{}", stage + 1, i + 1), x,
                                  {.out = scaled_channels(std::min<std::int64_t>(64 << stage, 512), d.width_percent), .kernel = 3, .pad = 1}));
        x = net.max_pool(x, {});
    }
    x = net.relu(net.linear("fc6", net.flatten(x), d.hidden));
    x = net.relu(net.linear("fc7", x, d.hidden));
    net.output(net.linear("fc8", x, d.classes, 2), "logits");
}

/// DenseNet-121 (Huang et al. 2017): growth 32, BatchNormalization before each convolution. The first one of a layer cannot be folded
/// into a convolution before it, since its input is a concatenation: it is a node of its own under either --bn.
void build_densenet(Net& net, const Dimensions& d) {
    Value x = net.relu(net.conv_bn("conv0", image_input(net, d), {.out = 64, .kernel = 7, .stride = 2, .pad = 3}));
    x = net.max_pool(x, {.kernel = 3, .stride = 2, .pad = 1});
    const Ints depth{6, 12, 24, 16};
    for (std::size_t block = 0; block < depth.size(); ++block) {
        for (std::int64_t i = 0; i < depth[block]; ++i) {
            const auto inside = net.scope(fmt::format("denseblock{}.layer{}", block + 1, i + 1));
            Value y = net.relu(net.batch_norm("norm1", x));
            y = net.relu(net.conv_bn("conv1", y, {.out = 128}));
            x = net.concat({x, net.conv("conv2", y, {.out = 32, .kernel = 3, .pad = 1, .bias = false})}, 1);
        }
        if (block + 1 == depth.size()) break;
        const auto inside = net.scope(fmt::format("transition{}", block + 1));
        x = net.conv("conv", net.relu(net.batch_norm("norm", x)), {.out = x.dim(1) / 2, .bias = false});
        x = net.average_pool(x, {});
    }
    classify(net, net.relu(net.batch_norm("norm5", x)), d);
}

/// GoogLeNet (Szegedy et al. 2015, table 1) without its training heads: parallel branches joined by Concat.
void build_googlenet(Net& net, const Dimensions& d) {
    Value x = net.relu(net.conv("conv1", image_input(net, d), {.out = 64, .kernel = 7, .stride = 2, .pad = 3}));
    x = net.max_pool(x, {.kernel = 3, .stride = 2, .pad = 1});
    x = net.relu(net.conv("conv2", x, {.out = 64}));
    x = net.relu(net.conv("conv3", x, {.out = 192, .kernel = 3, .pad = 1}));
    x = net.max_pool(x, {.kernel = 3, .stride = 2, .pad = 1});
    struct Inception {
        const char* name;
        std::int64_t one, reduce3, three, reduce5, five, pool;
    };
    constexpr Inception kTable[] = {{"3a", 64, 96, 128, 16, 32, 32},     {"3b", 128, 128, 192, 32, 96, 64},   {"4a", 192, 96, 208, 16, 48, 64},
                                    {"4b", 160, 112, 224, 24, 64, 64},   {"4c", 128, 128, 256, 24, 64, 64},   {"4d", 112, 144, 288, 32, 64, 64},
                                    {"4e", 256, 160, 320, 32, 128, 128}, {"5a", 256, 160, 320, 32, 128, 128}, {"5b", 384, 192, 384, 48, 128, 128}};
    for (const Inception& row : kTable) {
        const std::string name = row.name;
        if (name == "4a" || name == "5a") x = net.max_pool(x, {.kernel = 3, .stride = 2, .pad = 1});
        const auto inside = net.scope(fmt::format("inception{}", name));
        const Value one = net.relu(net.conv("branch1", x, {.out = row.one}));
        const Value three = net.relu(net.conv("branch2.1", net.relu(net.conv("branch2.0", x, {.out = row.reduce3})), {.out = row.three, .kernel = 3, .pad = 1}));
        const Value five = net.relu(net.conv("branch3.1", net.relu(net.conv("branch3.0", x, {.out = row.reduce5})), {.out = row.five, .kernel = 5, .pad = 2}));
        const Value pool = net.relu(net.conv("branch4", net.max_pool(x, {.kernel = 3, .stride = 1, .pad = 1}), {.out = row.pool}));
        x = net.concat({one, three, five, pool}, 1);
    }
    classify(net, x, d);
}

}  // namespace assay::workloads::generate
