// BatchNormalization-7 to 15, inference only.
#include <cmath>

#include <fmt/format.h>

#include "golden/reference/ops/kernels.hpp"

namespace assay::golden::ops {

Outputs batch_normalization(const Node& node) {
    const Value& x = node.real(0);
    if (x.rank() < 2) node.fail(fmt::format("input of shape {} needs N and C", to_string(x.shape)));
    const std::int64_t channels = x.shape[1];
    for (std::size_t i = 1; i < 5; ++i)
        if (node.real(i).count() != channels)
            node.fail(fmt::format("input {} has {} elements, the input has {} channels", i, node.in(i).count(), channels));
    node.require("spatial", 1);
    node.require("training_mode", 0);
    node.real("momentum", 0.9f);  // only training uses it
    const double epsilon = node.real("epsilon", 1e-5f);
    if (node.output_count() > 1) node.fail("training outputs are not supported");
    const std::int64_t plane = element_count(Shape(x.shape.begin() + 2, x.shape.end()));
    const Numerics& num = node.numerics();
    Value y(x.dtype, x.shape);
    if (node.bounds()) y.err.resize(y.f.size());
    for (std::int64_t i = 0; i < y.count(); ++i) {
        const std::int64_t c = i / plane % channels;
        // The chip holds one scale and one shift a channel, computed in double and rounded to fp32, and does one fused multiply-add.
        const double scale = node.in(1).at(c) / std::sqrt(node.in(4).at(c) + epsilon);
        const double shift = node.in(2).at(c) - node.in(3).at(c) * scale;
        const double r = num.round(x.at(i) * num.round(scale) + num.round(shift));
        y.f[static_cast<std::size_t>(i)] = r;
        if (node.bounds())
            y.err[static_cast<std::size_t>(i)] =
                std::fabs(scale) * x.error(i) + rounding(scale * (std::fabs(x.at(i)) + x.error(i))) + rounding(shift) + rounding(r);
    }
    return {std::move(y)};
}

}  // namespace assay::golden::ops
