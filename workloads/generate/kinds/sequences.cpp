// Recurrent and convolutional sequence models: frames of features in, classes a frame out.
#include <cmath>

#include <fmt/format.h>

#include "workloads/generate/kinds/kinds.hpp"

namespace assay::workloads::generate {
namespace {

/// One LSTM-7/14/22 or GRU-7/14/22 of a direction over x [T,B,I]; y [T,B,H]. Weights uniform in ±1/√H, as PyTorch starts them, times 2
/// so that the gates move.
Value recurrent(Net& net, const std::string& op, const Value& x, std::int64_t hidden, const Attributes& extra) {
    const std::int64_t gates = op == "LSTM" ? 4 : 3, time = x.dim(0), batch = x.dim(1), in = x.dim(2);
    const double bound = 2 / std::sqrt(static_cast<double>(hidden)), in_bound = bound * std::sqrt(static_cast<double>(hidden) / static_cast<double>(in) / std::max(x.second_moment(), 0.1) / 2);
    const Value w = net.weight("w", {1, gates * hidden, in}, Fill::uniform(-in_bound, in_bound));
    const Value r = net.weight("r", {1, gates * hidden, hidden}, Fill::uniform(-bound, bound));
    const Value b = net.weight("b", {1, 2 * gates * hidden}, Fill::uniform(-0.1, 0.1));
    Attributes attributes{{"hidden_size", hidden}};
    attributes.insert(attributes.end(), extra.begin(), extra.end());
    net.count_macs(static_cast<std::uint64_t>(time * batch * gates * hidden) * static_cast<std::uint64_t>(in + hidden));
    const Value y = net.nodes(op, "", {x, w, r, b}, {{time, 1, batch, hidden}}, {x.type}, attributes).at(0);
    return net.squeeze(y, 1).with(0, 0.2);
}

void build_recurrent(Net& net, const Dimensions& d, const std::string& op, const Attributes& extra) {
    Value x = net.input("frames", {d.seq, d.batch, d.channels}, net.float_type(), Fill::normal(0, 1)).with(0, 1);
    for (std::int64_t i = 0; i < d.layers; ++i) {
        const auto inside = net.scope(fmt::format("rnn.{}", i));
        x = recurrent(net, op, x, d.hidden, extra);
    }
    net.output(net.linear("head", x, d.classes, 2), "logits");
}

}  // namespace

void build_lstm(Net& net, const Dimensions& d) { build_recurrent(net, d, "LSTM", {}); }
/// linear_before_reset is PyTorch's and cuDNN's form of the gate.
void build_gru(Net& net, const Dimensions& d) { build_recurrent(net, d, "GRU", {{"linear_before_reset", std::int64_t{1}}}); }

/// Bai et al. 2018: causal convolutions of doubling dilation, two a block, with a residual.
void build_tcn(Net& net, const Dimensions& d) {
    Value x = net.input("frames", {d.batch, d.channels, d.seq}, net.float_type(), Fill::normal(0, 1)).with(0, 1);
    for (std::int64_t i = 0; i < d.layers; ++i) {
        const auto inside = net.scope(fmt::format("blocks.{}", i));
        const std::int64_t dilation = std::int64_t{1} << std::min<std::int64_t>(i, 12), left = (d.kernel - 1) * dilation;
        Value y = net.relu(net.conv1d("conv1", x, {.out = d.hidden, .kernel = d.kernel, .dilation = dilation}, left));
        y = net.relu(net.conv1d("conv2", y, {.out = d.hidden, .kernel = d.kernel, .dilation = dilation, .gain = 0.7}, left));
        const Value skip = x.dim(1) == d.hidden ? x : net.conv1d("skip", x, {.out = d.hidden}, 0);
        x = net.relu(net.add(y, skip));
    }
    net.output(net.conv1d("head", x, {.out = d.classes, .gain = 2}, 0), "logits");
}

}  // namespace assay::workloads::generate
