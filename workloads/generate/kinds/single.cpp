// Recommendation, and single layers for studies of one shape.
#include <cmath>

#include <fmt/format.h>

#include "workloads/generate/kinds/kinds.hpp"

namespace assay::workloads::generate {
namespace {

Value mlp(Net& net, const std::string& name, Value x, const Ints& widths) {
    const auto inside = net.scope(name);
    for (std::size_t i = 0; i < widths.size(); ++i) x = net.relu(net.linear(fmt::format("{}", i), x, widths[i]));
    return x;
}

}  // namespace

/// Naumov et al. 2019 in the sizes of MLPerf: dense features and embeddings, their pairwise products below the diagonal, two perceptrons.
void build_dlrm(Net& net, const Dimensions& d) {
    const Value dense = net.input("dense", {d.batch, 13}, net.float_type(), Fill::normal(0, 1)).with(0, 1);
    const Value indices = net.input("indices", {d.batch, d.tables}, DType::i64, Fill::integers(0, d.vocab - 1));
    const Value bottom = mlp(net, "bottom", dense, {512, 256, d.hidden});
    std::vector<Value> features{net.unsqueeze(bottom, 1)};
    for (std::int64_t t = 0; t < d.tables; ++t) {
        const auto inside = net.scope(fmt::format("tables.{}", t));
        features.push_back(net.embedding("embedding", net.slice(indices, 1, t, t + 1), d.vocab, d.hidden, 0.3));
    }
    const Value all = net.concat(features, 1);
    const Value products = net.matmul(all, net.transpose(all, {0, 2, 1}));
    const std::int64_t count = d.tables + 1;
    Ints pairs;
    for (std::int64_t i = 0; i < count; ++i)
        for (std::int64_t j = 0; j < i; ++j) pairs.push_back(i * count + j);
    const Value index = net.table("pairs", {static_cast<std::int64_t>(pairs.size())}, DType::i64, Fill::values(pairs));
    const Value interactions = net.gather(net.reshape(products, {d.batch, count * count}), index, 1);
    const Value top = mlp(net, "top", net.concat({bottom, interactions}, 1), {1024, 1024, 512, 256});
    net.output(net.sigmoid(net.linear("top.out", top, 1)), "probability");
}

/// A [m,k] by weights [k,n].
void build_gemm(Net& net, const Dimensions& d) {
    const Value a = net.input("a", {d.m, d.k}, net.float_type(), Fill::normal(0, 1)).with(0, 1);
    const double variance = 1 / static_cast<double>(d.k);
    const Value b = net.weight("b", {d.k, d.n}, Fill::normal(0, std::sqrt(variance))).with(0, variance);
    net.output(net.matmul(a, b), "c");
}

/// One convolution, padded to keep its size at stride 1.
void build_conv(Net& net, const Dimensions& d) {
    net.output(net.conv("conv", image_input(net, d), {.out = d.hidden, .kernel = d.kernel, .stride = d.stride, .pad = d.kernel / 2}), "y");
}

}  // namespace assay::workloads::generate
