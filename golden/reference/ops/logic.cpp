// Rounding to integers, signs, classes of numbers, logic and bits: exact results, doubtful only where an operand's error reaches
// over a step.
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "golden/reference/ops/map.hpp"
#include "support/error.hpp"

namespace assay::golden::ops {
namespace {

template <class F>
Outputs step(const Node& node, F f) {
    return map_bounded(node, [&](const Functions&, Bounded x) {
        const double y = f(x.v);
        return Bounded{y, x.e > 0 ? std::fmax(std::fabs(f(x.v + x.e) - y), std::fabs(y - f(x.v - x.e))) : 0.0};
    });
}

/// Booleans from a float tensor.
template <class F>
Outputs classify(const Node& node, F holds) {
    const Value& x = node.real(0);
    Value y(DType::boolean, x.shape);
    for (std::size_t i = 0; i < y.n.size(); ++i) y.n[i] = holds(x.f[i]);
    return {std::move(y)};
}

/// Two integer or bool tensors, broadcast; `allowed` says which types the operator takes.
template <class F>
Outputs combine_bits(const Node& node, bool booleans, F f) {
    const Value &a = node.in(0), &b = node.in(1);
    if (a.dtype != b.dtype || a.floating() || (a.dtype == DType::boolean) != booleans)
        node.fail(fmt::format("operands are {} and {}, must both be {}", name_of(a.dtype), name_of(b.dtype),
                              booleans ? "bool" : "of one integer type"));
    Value y(a.dtype, broadcast(a.shape, b.shape));
    const auto ia = broadcast_index(a.shape, y.shape), ib = broadcast_index(b.shape, y.shape);
    const bool errors = !a.err.empty() || !b.err.empty();
    if (errors) y.err.assign(y.n.size(), 0.0);
    for (std::size_t i = 0; i < y.n.size(); ++i) {
        y.n[i] = wrap(y.dtype, f(a.n[static_cast<std::size_t>(ia[i])], b.n[static_cast<std::size_t>(ib[i])]));
        // A doubtful bit makes the result doubtful by all that its type holds.
        if (errors && a.error(ia[i]) + b.error(ib[i]) > 0) y.err[i] = booleans ? 1.0 : HUGE_VAL;
    }
    return {std::move(y)};
}

std::uint64_t bits_of(DType type, std::int64_t v) {
    const auto width = 8 * size_of(type);
    return static_cast<std::uint64_t>(v) & (width >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1);
}

}  // namespace

Outputs ceil(const Node& node) {
    return step(node, [](double v) { return std::ceil(v); });
}
Outputs round(const Node& node) {
    return step(node, [](double v) { return std::nearbyint(v); });  // half to even
}

Outputs sign(const Node& node) {
    if (node.in(0).floating()) return step(node, [](double v) { return std::isnan(v) ? v : static_cast<double>((v > 0) - (v < 0)); });
    Value y = node.in(0);
    for (auto& v : y.n) v = y.dtype == DType::u64 ? v != 0 : (v > 0) - (v < 0);
    return {std::move(y)};
}

Outputs is_nan(const Node& node) {
    return classify(node, [](double v) { return std::isnan(v); });
}
Outputs is_inf(const Node& node) {
    const bool up = node.integer("detect_positive", 1) != 0, down = node.integer("detect_negative", 1) != 0;
    return classify(node, [&](double v) { return std::isinf(v) && (v > 0 ? up : down); });
}

Outputs logical_not(const Node& node) {
    Value y = node.in(0);
    if (y.dtype != DType::boolean) node.fail(fmt::format("input is {}, must be bool", name_of(y.dtype)));
    for (auto& v : y.n) v = !v;
    return {std::move(y)};
}
Outputs bitwise_not(const Node& node) {
    Value y = node.in(0);
    if (y.floating() || y.dtype == DType::boolean) node.fail(fmt::format("input is {}, must be an integer tensor", name_of(y.dtype)));
    for (auto& v : y.n) v = wrap(y.dtype, ~v);
    return {std::move(y)};
}

Outputs logical_and(const Node& node) { return combine_bits(node, true, std::bit_and<std::int64_t>{}); }
Outputs logical_or(const Node& node) { return combine_bits(node, true, std::bit_or<std::int64_t>{}); }
Outputs logical_xor(const Node& node) { return combine_bits(node, true, std::bit_xor<std::int64_t>{}); }
Outputs bitwise_and(const Node& node) { return combine_bits(node, false, std::bit_and<std::int64_t>{}); }
Outputs bitwise_or(const Node& node) { return combine_bits(node, false, std::bit_or<std::int64_t>{}); }
Outputs bitwise_xor(const Node& node) { return combine_bits(node, false, std::bit_xor<std::int64_t>{}); }

Outputs bit_shift(const Node& node) {
    const std::string direction = node.text("direction", "");
    if (direction != "LEFT" && direction != "RIGHT") node.fail(fmt::format("direction=\"{}\": must be \"LEFT\" or \"RIGHT\"", direction));
    const DType type = node.in(0).dtype;
    const auto width = static_cast<std::uint64_t>(8 * size_of(type));
    return combine_bits(node, false, [&](std::int64_t a, std::int64_t b) {
        const std::uint64_t bits = bits_of(type, a), by = bits_of(type, b);
        if (by >= width) return std::int64_t{0};  // every bit leaves
        return static_cast<std::int64_t>(direction == "LEFT" ? bits << by : bits >> by);
    });
}

Outputs mod(const Node& node) {
    const bool fmod = node.integer("fmod", 0) != 0;
    const Value &a = node.in(0), &b = node.in(1);
    if (!a.floating())
        return combine_bits(node, false, [&](std::int64_t x, std::int64_t y) -> std::int64_t {
            if (y == 0) node.fail("integer division by zero");
            if (a.dtype == DType::u64) return static_cast<std::int64_t>(static_cast<std::uint64_t>(x) % static_cast<std::uint64_t>(y));
            if (y == -1) return 0;
            const std::int64_t r = x % y;
            return !fmod && r != 0 && (r < 0) != (y < 0) ? r + y : r;  // Python's sign follows the divisor, C's the dividend
        });
    if (!fmod) node.fail("a float Mod needs fmod=1");
    if (a.dtype != b.dtype) node.fail(fmt::format("operands are {} and {}, must be of one type", name_of(a.dtype), name_of(b.dtype)));
    Value y(a.dtype, broadcast(a.shape, b.shape));
    const auto ia = broadcast_index(a.shape, y.shape), ib = broadcast_index(b.shape, y.shape);
    if (node.bounds()) y.err.resize(y.f.size());
    for (std::size_t i = 0; i < y.f.size(); ++i) {
        const double p = a.at(ia[i]), q = b.at(ib[i]), ep = a.error(ia[i]), eq = b.error(ib[i]);
        y.f[i] = std::fmod(p, q);
        if (!node.bounds()) continue;
        // The remainder of exact operands is exact; near a multiple of q either end of [0, q) is honest.
        const double moved = ep + std::fabs(std::trunc(p / q)) * eq, distance = std::fmin(std::fabs(y.f[i]), std::fabs(q) - std::fabs(y.f[i]));
        y.err[i] = moved == 0 ? 0.0 : moved < distance ? moved : std::fabs(q) + moved;
    }
    return {std::move(y)};
}

}  // namespace assay::golden::ops
