// Networks that write images.
#include <fmt/format.h>

#include "support/error.hpp"
#include "workloads/generate/kinds/kinds.hpp"

namespace assay::workloads::generate {
namespace {

Value double_conv(Net& net, Value x, std::int64_t channels) {
    x = net.relu(net.conv_bn("conv1", x, {.out = channels, .kernel = 3, .pad = 1}));
    return net.relu(net.conv_bn("conv2", x, {.out = channels, .kernel = 3, .pad = 1}));
}

}  // namespace

/// U-Net (Ronneberger et al. 2015) with padded convolutions: `layers` halvings, `hidden` channels at the top, skips joined by Concat.
void build_unet(Net& net, const Dimensions& d) {
    if (d.layers > 8 || d.image % (std::int64_t{1} << d.layers) != 0)
        throw Error(ErrorKind::usage, fmt::format("workload make: unet: --image {} must be a multiple of 2^layers (--layers {}, at most 8)", d.image, d.layers));
    std::vector<Value> skips;
    Value x = image_input(net, d);
    for (std::int64_t level = 0; level < d.layers; ++level) {
        const auto inside = net.scope(fmt::format("down{}", level));
        skips.push_back(double_conv(net, x, d.hidden << level));
        x = net.max_pool(skips.back(), {});
    }
    {
        const auto inside = net.scope("bottom");
        x = double_conv(net, x, d.hidden << d.layers);
    }
    for (std::int64_t level = d.layers - 1; level >= 0; --level) {
        const auto inside = net.scope(fmt::format("up{}", level));
        x = net.conv_transpose("up", x, {.out = d.hidden << level, .kernel = 2, .stride = 2});
        x = double_conv(net, net.concat({skips[static_cast<std::size_t>(level)], x}, 1), d.hidden << level);
    }
    net.output(net.conv("head", x, {.out = d.classes}), "mask");
}

/// Generator of DCGAN's shape (Radford et al. 2016): a latent vector to an image by transposed convolutions of 4x4, stride 2.
void build_decoder(Net& net, const Dimensions& d) {
    std::int64_t steps = 0;
    while (d.image >> (steps + 1) >= 4) ++steps;
    if (steps < 1 || (std::int64_t{4} << steps) != d.image)
        throw Error(ErrorKind::usage, fmt::format("workload make: decoder: --image {} must be 8, 16, 32, … (4 doubled)", d.image));
    const Value latent = net.input("latent", {d.batch, d.hidden}, net.float_type(), Fill::normal(0, 1));
    std::int64_t channels = d.channels << (steps - 1);
    Value x = net.relu(net.linear("project", latent, channels * 16));
    x = net.reshape(x, {d.batch, channels, 4, 4});
    for (std::int64_t step = 0; step + 1 < steps; ++step) {
        channels /= 2;
        x = net.leaky_relu(net.conv_transpose(fmt::format("up{}", step), x, {.out = channels, .kernel = 4, .stride = 2, .pad = 1}), 0.2f);
    }
    net.output(net.tanh(net.conv_transpose("to_rgb", x, {.out = 3, .kernel = 4, .stride = 2, .pad = 1})), "image");
}

}  // namespace assay::workloads::generate
