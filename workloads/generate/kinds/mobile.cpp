// Networks of inverted residuals: expand, depthwise, project.
#include <fmt/format.h>

#include "workloads/generate/kinds/kinds.hpp"

namespace assay::workloads::generate {
namespace {

enum class Act { relu, relu6, hard_swish };

Value activate(Net& net, const Value& x, Act act) {
    switch (act) {
        case Act::relu: return net.relu(x);
        case Act::relu6: return net.relu6(x);
        case Act::hard_swish: return net.hard_swish(x);
    }
    return x;
}

/// Squeeze-and-excite as MobileNetV3 has it: a gate of a hard sigmoid a channel.
Value squeeze_excite(Net& net, const Value& x, std::int64_t squeezed) {
    const auto inside = net.scope("se");
    Value gate = net.relu(net.conv("reduce", net.global_average_pool(x), {.out = squeezed}));
    gate = net.hard_sigmoid(net.conv("expand", gate, {.out = x.dim(1), .gain = 0.7}));
    return net.mul(x, gate);
}

struct Inverted {
    std::int64_t expanded, out, kernel, stride, squeezed = 0;
    Act act = Act::relu6;
};

Value inverted_residual(Net& net, const Value& x, const Inverted& b) {
    Value y = x;
    if (b.expanded != x.dim(1)) y = activate(net, net.conv_bn("expand", y, {.out = b.expanded}), b.act);
    y = activate(net, net.conv_bn("depthwise", y, {.out = b.expanded, .kernel = b.kernel, .stride = b.stride, .pad = b.kernel / 2, .groups = b.expanded}), b.act);
    if (b.squeezed > 0) y = squeeze_excite(net, y, b.squeezed);
    const bool residual = b.stride == 1 && x.dim(1) == b.out;
    y = net.conv_bn("project", y, {.out = b.out, .gain = residual ? 0.5 : 1.0});
    return residual ? net.add(x, y) : y;
}

/// Stages of (expansion, channels, repeats, stride, kernel).
struct Stage {
    std::int64_t expansion, channels, repeats, stride, kernel;
};

Value stages(Net& net, Value x, const std::vector<Stage>& table, std::int64_t width_percent) {
    int number = 0;
    for (const Stage& stage : table)
        for (std::int64_t i = 0; i < stage.repeats; ++i) {
            const auto inside = net.scope(fmt::format("blocks.{}", number++));
            x = inverted_residual(net, x, {.expanded = stage.expansion * x.dim(1), .out = scaled_channels(stage.channels, width_percent), .kernel = stage.kernel,
                                           .stride = i == 0 ? stage.stride : 1});
        }
    return x;
}

void classify(Net& net, const Value& features, const Dimensions& d) {
    net.output(net.linear("classifier", net.flatten(net.global_average_pool(features)), d.classes, 2), "logits");
}

}  // namespace

/// Sandler et al. 2018, table 2.
void build_mobilenet_v2(Net& net, const Dimensions& d) {
    Value x = net.relu6(net.conv_bn("stem", image_input(net, d), {.out = scaled_channels(32, d.width_percent), .kernel = 3, .stride = 2, .pad = 1}));
    x = stages(net, x, {{1, 16, 1, 1, 3}, {6, 24, 2, 2, 3}, {6, 32, 3, 2, 3}, {6, 64, 4, 2, 3}, {6, 96, 3, 1, 3}, {6, 160, 3, 2, 3}, {6, 320, 1, 1, 3}}, d.width_percent);
    x = net.relu6(net.conv_bn("head", x, {.out = std::max<std::int64_t>(1280, scaled_channels(1280, d.width_percent))}));
    classify(net, x, d);
}

/// Tan and Le 2019, table 1, without squeeze-and-excite and with ReLU6 (the "lite" variant).
void build_efficientnet_lite(Net& net, const Dimensions& d) {
    Value x = net.relu6(net.conv_bn("stem", image_input(net, d), {.out = 32, .kernel = 3, .stride = 2, .pad = 1}));
    x = stages(net, x, {{1, 16, 1, 1, 3}, {6, 24, 2, 2, 3}, {6, 40, 2, 2, 5}, {6, 80, 3, 2, 3}, {6, 112, 3, 1, 5}, {6, 192, 4, 2, 5}, {6, 320, 1, 1, 3}}, d.width_percent);
    classify(net, net.relu6(net.conv_bn("head", x, {.out = 1280})), d);
}

/// Howard et al. 2019, table 1 (large).
void build_mobilenet_v3(Net& net, const Dimensions& d) {
    const auto c = [&](std::int64_t channels) { return scaled_channels(channels, d.width_percent); };
    Value x = net.hard_swish(net.conv_bn("stem", image_input(net, d), {.out = c(16), .kernel = 3, .stride = 2, .pad = 1}));
    const Inverted table[] = {{16, 16, 3, 1, 0, Act::relu},         {64, 24, 3, 2, 0, Act::relu},          {72, 24, 3, 1, 0, Act::relu},
                              {72, 40, 5, 2, 24, Act::relu},        {120, 40, 5, 1, 32, Act::relu},        {120, 40, 5, 1, 32, Act::relu},
                              {240, 80, 3, 2, 0, Act::hard_swish},  {200, 80, 3, 1, 0, Act::hard_swish},   {184, 80, 3, 1, 0, Act::hard_swish},
                              {184, 80, 3, 1, 0, Act::hard_swish},  {480, 112, 3, 1, 120, Act::hard_swish}, {672, 112, 3, 1, 168, Act::hard_swish},
                              {672, 160, 5, 2, 168, Act::hard_swish}, {960, 160, 5, 1, 240, Act::hard_swish}, {960, 160, 5, 1, 240, Act::hard_swish}};
    int number = 0;
    for (Inverted block : table) {
        const auto inside = net.scope(fmt::format("blocks.{}", number++));
        block.expanded = c(block.expanded);
        block.out = c(block.out);
        if (block.squeezed > 0) block.squeezed = c(block.squeezed);
        x = inverted_residual(net, x, block);
    }
    x = net.global_average_pool(net.hard_swish(net.conv_bn("head", x, {.out = c(960)})));
    x = net.hard_swish(net.linear("fc1", net.flatten(x), 1280));
    net.output(net.linear("fc2", x, d.classes, 2), "logits");
}

}  // namespace assay::workloads::generate
