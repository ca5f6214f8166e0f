#include "workloads/lower/lanes.hpp"

#include <fmt/core.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "workloads/lower/math.hpp"

namespace assay::workloads {
namespace {

using simkernel::Uop;
using Ref = Expr::Ref;
using Kind = Lane::Kind;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// A node under emission.
struct Call {
    Expr& e;
    const Graph& graph;
    const Node& node;
    const std::vector<Lane>& in;

    DType type(std::size_t i = 0) const { return graph.value(node.inputs[i]).dtype; }
    DType out_type() const { return graph.value(node.outputs[0]).dtype; }
    bool real() const { return type() == DType::f32; }
    bool has(std::size_t i) const { return node.input(i) != kNoValue; }
    Ref x(std::size_t i = 0) const { return in[i].ref; }
    float attribute(const char* name, float otherwise) const { return node.real(name, otherwise); }

    Ref op(Uop uop, Ref a) const { return e.op(uop, a); }
    Ref op(Uop uop, Ref a, Ref b) const { return e.op(uop, a, b); }
    Ref op(Uop uop, Ref a, Ref b, Ref c) const { return e.op(uop, a, b, c); }

    /// A bool as 0 or 1, or as a mask: what two operands have in common.
    Ref as_mask(const Lane& lane) const {
        return lane.kind == Kind::mask ? lane.ref : op(Uop::sub_i32, Expr::imm_i(0), lane.ref);
    }
    Ref as_flag(const Lane& lane) const { return lane.kind == Kind::mask ? op(Uop::and_i32, lane.ref, Expr::imm_i(1)) : lane.ref; }
    Ref bits(std::size_t i) const { return in[i].kind == Kind::mask ? as_flag(in[i]) : in[i].ref; }

    Lane result(Ref ref) const {
        if (out_type() == DType::boolean) return {Kind::flag, ref};
        return {out_type() == DType::f32 ? Kind::real : Kind::integer, ref};
    }
    /// An integer as the narrow type holds it: two's complement, as numpy.
    Lane wrapped(Ref ref) const {
        if (out_type() == DType::i8) ref = op(Uop::shr_i32, op(Uop::shl_i32, ref, Expr::imm_i(24)), Expr::imm_i(24));
        if (out_type() == DType::u8) ref = op(Uop::and_i32, ref, Expr::imm_i(255));
        return result(ref);
    }
    Lane truth(Ref mask) const { return {Kind::mask, mask}; }
    Ref invert(Ref mask) const { return op(Uop::xor_i32, mask, Expr::imm_i(-1)); }
};

using Rule = std::function<Lane(const Call&)>;

/// Types a rule takes for all inputs that it computes with.
enum Types : unsigned { kReal = 1, kInteger = 2, kBool = 4, kAny = 7 };

struct Entry {
    unsigned types = 0;
    Rule rule;
};

Entry unary(Ref (*function)(Expr&, Ref)) {
    return {kReal, [function](const Call& c) { return c.result(function(c.e, c.x())); }};
}

Entry fold(Uop real, Uop integer) {
    return {kReal | kInteger, [real, integer](const Call& c) {
                Ref y = c.x();
                for (std::size_t i = 1; i < c.in.size(); ++i) y = c.op(c.real() ? real : integer, y, c.x(i));
                return c.real() || real == Uop::min_f32 || real == Uop::max_f32 ? c.result(y) : c.wrapped(y);
            }};
}

Entry compare(bool swap, Uop real, bool or_equal) {
    return {kReal | kInteger, [=](const Call& c) {
                const std::size_t a = swap ? 1 : 0, b = 1 - a;
                if (c.real()) return c.truth(c.op(real, c.x(a), c.x(b)));
                // a <= b is not b < a, for integers.
                return c.truth(or_equal ? c.invert(c.op(Uop::lt_i32, c.x(b), c.x(a))) : c.op(Uop::lt_i32, c.x(a), c.x(b)));
            }};
}

Entry logic(Uop uop) {
    return {kBool, [uop](const Call& c) {
                if (c.in[0].kind == Kind::flag && c.in[1].kind == Kind::flag) return Lane{Kind::flag, c.op(uop, c.x(0), c.x(1))};
                return c.truth(c.op(uop, c.as_mask(c.in[0]), c.as_mask(c.in[1])));
            }};
}

Entry bitwise(Uop uop) {
    return {kInteger, [uop](const Call& c) { return c.result(c.op(uop, c.x(0), c.x(1))); }};
}

Lane divide(const Call& c) {
    if (c.real()) return c.result(c.op(Uop::div_f32, c.x(0), c.x(1)));
    return c.wrapped(emit_divide_integers(c.e, c.x(0), c.x(1)).quotient);
}

Lane modulo(const Call& c) {
    // Integers only: the remainder of a division in fp32 is not exact. fmod=0 takes the divisor's sign, fmod=1 the dividend's.
    const Ref r = emit_divide_integers(c.e, c.x(0), c.x(1)).remainder;
    if (c.node.integer("fmod", 0) != 0) return c.wrapped(r);
    const Ref differ = c.op(Uop::lt_i32, c.op(Uop::xor_i32, r, c.x(1)), Expr::imm_i(0));
    const Ref shifted = c.op(Uop::add_i32, r, c.x(1));
    return c.wrapped(c.op(Uop::select, r, c.op(Uop::select, differ, shifted, r), r));
}

Lane power(const Call& c) {
    const Value& exponent = c.graph.value(c.node.inputs[1]);
    if (exponent.constant && exponent.constant->count() == 1) {
        const double y = exponent.constant->value(0);
        if (c.real()) return c.result(emit_pow_constant(c.e, c.x(), static_cast<float>(y)));
        Ref p = Expr::imm_i(1);
        for (int i = 0; i < static_cast<int>(y); ++i) p = c.op(Uop::mul_i32, p, c.x());
        return c.wrapped(p);
    }
    return c.result(emit_pow(c.e, c.x(), c.in[1].kind == Kind::integer ? c.op(Uop::i32_to_f32, c.x(1)) : c.x(1)));
}

Lane absolute(const Call& c) {
    if (c.real()) return c.result(emit_abs(c.e, c.x()));
    return c.wrapped(c.op(Uop::max_i32, c.x(), c.op(Uop::sub_i32, Expr::imm_i(0), c.x())));
}

Lane negative(const Call& c) {
    if (c.real()) return c.result(emit_negate(c.e, c.x()));
    return c.wrapped(c.op(Uop::sub_i32, Expr::imm_i(0), c.x()));
}

Lane sign(const Call& c) {
    if (!c.real()) {
        const Ref one = Expr::imm_i(1), minus = Expr::imm_i(-1);
        return c.result(c.op(Uop::min_i32, c.op(Uop::max_i32, c.x(), minus), one));
    }
    const Ref up = c.op(Uop::lt_f32, Expr::imm(0.0f), c.x()), down = c.op(Uop::lt_f32, c.x(), Expr::imm(0.0f));
    return c.result(c.op(Uop::select, up, Expr::imm(1.0f), c.op(Uop::select, down, Expr::imm(-1.0f), c.x())));
}

/// f(x) where x < 0, x elsewhere (and for NaN).
Lane below_zero(const Call& c, Ref value) { return c.result(c.op(Uop::select, c.op(Uop::lt_f32, c.x(), Expr::imm(0.0f)), value, c.x())); }

Lane leaky(const Call& c) { return below_zero(c, c.op(Uop::mul_f32, c.x(), Expr::imm(c.attribute("alpha", 0.01f)))); }

Lane prelu(const Call& c) {
    if (c.real()) return below_zero(c, c.op(Uop::mul_f32, c.x(), c.x(1)));
    const Ref low = c.op(Uop::lt_i32, c.x(), Expr::imm_i(0));
    return c.wrapped(c.op(Uop::select, low, c.op(Uop::mul_i32, c.x(), c.x(1)), c.x()));
}

Lane elu(const Call& c) { return below_zero(c, c.op(Uop::mul_f32, emit_expm1(c.e, c.x()), Expr::imm(c.attribute("alpha", 1.0f)))); }

Lane selu(const Call& c) {
    const float alpha = c.attribute("alpha", 1.67326319217681884765625f), gamma = c.attribute("gamma", 1.05070102214813232421875f);
    const Ref low = c.op(Uop::mul_f32, emit_expm1(c.e, c.x()), Expr::imm(alpha * gamma));
    const Ref high = c.op(Uop::mul_f32, c.x(), Expr::imm(gamma));
    return c.result(c.op(Uop::select, c.op(Uop::lt_f32, c.x(), Expr::imm(0.0f)), low, high));
}

Lane celu(const Call& c) {
    const float alpha = c.attribute("alpha", 1.0f);
    return below_zero(c, c.op(Uop::mul_f32, emit_expm1(c.e, c.op(Uop::div_f32, c.x(), Expr::imm(alpha))), Expr::imm(alpha)));
}

Ref softplus_of(const Call& c) {
    // max(x, 0) + log(1 + exp(-|x|)).
    const Ref tail = emit_log1p_unit(c.e, emit_exp(c.e, emit_negate(c.e, emit_abs(c.e, c.x()))));
    return c.op(Uop::add_f32, c.op(Uop::max_f32, c.x(), Expr::imm(0.0f)), tail);
}

Lane hard_sigmoid_line(const Call& c, float alpha, float beta) {
    const Ref line = c.op(Uop::fma_f32, c.x(), Expr::imm(alpha), Expr::imm(beta));
    return {Kind::real, c.op(Uop::min_f32, c.op(Uop::max_f32, line, Expr::imm(0.0f)), Expr::imm(1.0f))};
}

Lane gelu(const Call& c) {
    const Ref half = c.op(Uop::mul_f32, c.x(), Expr::imm(0.5f));
    if (c.node.text("approximate", "none") == "tanh") {
        // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) = x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)): no cancellation for negative x.
        constexpr float kTwice = 0x1.988454p+0f, kCube = 0.044715f;
        const Ref xx = c.op(Uop::mul_f32, c.x(), c.x());
        const Ref inner = c.op(Uop::mul_f32, c.op(Uop::fma_f32, c.op(Uop::mul_f32, xx, c.x()), Expr::imm(kCube), c.x()), Expr::imm(kTwice));
        return c.result(c.op(Uop::mul_f32, c.x(), emit_sigmoid(c.e, inner)));
    }
    const Ref f = emit_erf(c.e, c.op(Uop::mul_f32, c.x(), Expr::imm(0x1.6a09e6p-1f)));
    return c.result(c.op(Uop::mul_f32, half, c.op(Uop::add_f32, f, Expr::imm(1.0f))));
}

Lane threshold(const Call& c) {
    const Ref over = c.op(Uop::lt_f32, Expr::imm(c.attribute("alpha", 1.0f)), c.x());
    return c.result(c.op(Uop::select, over, c.x(), Expr::imm(0.0f)));
}

Lane shrink(const Call& c) {
    const float lambda = c.attribute("lambd", 0.5f), bias = c.attribute("bias", 0.0f);
    const Ref low = c.op(Uop::lt_f32, c.x(), Expr::imm(-lambda)), high = c.op(Uop::lt_f32, Expr::imm(lambda), c.x());
    const Ref up = c.op(Uop::add_f32, c.x(), Expr::imm(bias)), down = c.op(Uop::sub_f32, c.x(), Expr::imm(bias));
    return c.result(c.op(Uop::select, low, up, c.op(Uop::select, high, down, Expr::imm(0.0f))));
}

Lane clip(const Call& c) {
    // Opset 6: attributes; 11: optional scalar inputs. min(max(x, low), high), as the specification says even when low > high.
    Ref y = c.x();
    const Uop max = c.real() ? Uop::max_f32 : Uop::max_i32, min = c.real() ? Uop::min_f32 : Uop::min_i32;
    if (c.has(1))
        y = c.op(max, y, c.x(1));
    else if (c.node.has("min"))
        y = c.op(max, y, Expr::imm(c.attribute("min", 0)));
    if (c.has(2))
        y = c.op(min, y, c.x(2));
    else if (c.node.has("max"))
        y = c.op(min, y, Expr::imm(c.attribute("max", 0)));
    return c.result(y);
}

Lane equal(const Call& c) {
    if (c.real()) return c.truth(c.op(Uop::eq_f32, c.x(0), c.x(1)));
    return c.truth(c.op(Uop::eq_i32, c.bits(0), c.bits(1)));
}

Lane negation(const Call& c) {
    if (c.in[0].kind == Kind::mask) return c.truth(c.invert(c.x()));
    return {Kind::flag, c.op(Uop::xor_i32, c.x(), Expr::imm_i(1))};
}

Lane where(const Call& c) {
    const DType type = c.out_type();
    const Ref a = c.bits(1), b = c.bits(2);
    const Ref y = c.op(Uop::select, c.x(0), a, b);
    return {type == DType::f32 ? Kind::real : type == DType::boolean ? Kind::flag : Kind::integer, y};
}

Lane cast(const Call& c) {
    const DType from = c.type(), to = c.out_type();
    const Ref x = c.bits(0);
    if (from == to) return {c.in[0].kind == Kind::mask ? Kind::flag : c.in[0].kind, x};
    if (to == DType::f32) return {Kind::real, c.op(Uop::i32_to_f32, x)};
    if (to == DType::boolean) {
        const Ref zero = from == DType::f32 ? c.op(Uop::eq_f32, x, Expr::imm(0.0f)) : c.op(Uop::eq_i32, x, Expr::imm_i(0));
        return c.truth(c.invert(zero));  // NaN is true
    }
    return c.wrapped(from == DType::f32 ? c.op(Uop::f32_to_i32, emit_trunc(c.e, x)) : x);
}

Lane shift(const Call& c) {
    // uint8 only on the device: a shift by 8 or more leaves nothing, which the unit's 5-bit count would not say.
    const bool left = c.node.text("direction", "") == "LEFT";
    const Ref count = c.op(Uop::min_i32, c.x(1), Expr::imm_i(8));
    return c.wrapped(c.op(left ? Uop::shl_i32 : Uop::shr_i32, c.x(0), count));
}

Lane is_infinite(const Call& c) {
    const bool up = c.node.integer("detect_positive", 1) != 0, down = c.node.integer("detect_negative", 1) != 0;
    if (up && down) return c.truth(c.op(Uop::eq_f32, emit_abs(c.e, c.x()), Expr::imm(kInfinity)));
    if (!up && !down) return {Kind::flag, Expr::imm_i(0)};
    return c.truth(c.op(Uop::eq_f32, c.x(), Expr::imm(up ? kInfinity : -kInfinity)));
}

Lane mean(const Call& c) {
    Ref y = c.x();
    for (std::size_t i = 1; i < c.in.size(); ++i) y = c.op(Uop::add_f32, y, c.x(i));
    return c.result(c.op(Uop::div_f32, y, Expr::imm(static_cast<float>(c.in.size()))));
}

Ref ceiling(Expr& e, Ref x) { return emit_negate(e, e.op(Uop::floor_f32, emit_negate(e, x))); }
Ref floor_of(Expr& e, Ref x) { return e.op(Uop::floor_f32, x); }
Ref round_of(Expr& e, Ref x) { return e.op(Uop::round_f32, x); }
Ref root(Expr& e, Ref x) { return e.op(Uop::sqrt_f32, x); }
Ref reciprocal(Expr& e, Ref x) { return e.op(Uop::div_f32, Expr::imm(1.0f), x); }

const std::map<std::string, Entry>& rules() {
    static const std::map<std::string, Entry> table{
        {"Add", fold(Uop::add_f32, Uop::add_i32)},
        {"Sub", fold(Uop::sub_f32, Uop::sub_i32)},
        {"Mul", fold(Uop::mul_f32, Uop::mul_i32)},
        {"Sum", fold(Uop::add_f32, Uop::add_i32)},
        {"Min", fold(Uop::min_f32, Uop::min_i32)},
        {"Max", fold(Uop::max_f32, Uop::max_i32)},
        {"Mean", {kReal, mean}},
        {"Div", {kReal | kInteger, divide}},
        {"Mod", {kInteger, modulo}},
        {"Pow", {kReal | kInteger, power}},
        {"Abs", {kReal | kInteger, absolute}},
        {"Neg", {kReal | kInteger, negative}},
        {"Sign", {kReal | kInteger, sign}},
        {"Floor", unary(floor_of)},
        {"Ceil", unary(ceiling)},
        {"Round", unary(round_of)},
        {"Sqrt", unary(root)},
        {"Reciprocal", unary(reciprocal)},
        {"Exp", unary(emit_exp_any)},
        {"Log", unary(emit_log)},
        {"Erf", unary(emit_erf)},
        {"Sin", unary(emit_sin)},
        {"Cos", unary(emit_cos)},
        {"Atan", unary(emit_atan)},
        {"Tanh", unary(emit_tanh)},
        {"Sigmoid", unary(emit_sigmoid)},
        {"Relu", {kReal | kInteger,
                  [](const Call& c) {
                      return c.result(c.real() ? c.op(Uop::max_f32, c.x(), Expr::imm(0.0f)) : c.op(Uop::max_i32, c.x(), Expr::imm_i(0)));
                  }}},
        {"LeakyRelu", {kReal, leaky}},
        {"PRelu", {kReal | kInteger, prelu}},
        {"Elu", {kReal, elu}},
        {"Selu", {kReal, selu}},
        {"Celu", {kReal, celu}},
        {"Gelu", {kReal, gelu}},
        {"HardSigmoid",
         {kReal, [](const Call& c) { return hard_sigmoid_line(c, c.attribute("alpha", 0.2f), c.attribute("beta", 0.5f)); }}},
        {"HardSwish",
         {kReal, [](const Call& c) { return c.result(c.op(Uop::mul_f32, c.x(), hard_sigmoid_line(c, 1.0f / 6.0f, 0.5f).ref)); }}},
        {"Swish",
         {kReal,
          [](const Call& c) {
              const float alpha = c.attribute("alpha", 1.0f);
              const Ref inner = alpha == 1.0f ? c.x() : c.op(Uop::mul_f32, c.x(), Expr::imm(alpha));
              return c.result(c.op(Uop::mul_f32, c.x(), emit_sigmoid(c.e, inner)));
          }}},
        {"Softplus", {kReal, [](const Call& c) { return c.result(softplus_of(c)); }}},
        {"Softsign",
         {kReal, [](const Call& c) { return c.result(c.op(Uop::div_f32, c.x(), c.op(Uop::add_f32, emit_abs(c.e, c.x()), Expr::imm(1.0f)))); }}},
        {"Mish", {kReal, [](const Call& c) { return c.result(c.op(Uop::mul_f32, c.x(), emit_tanh(c.e, softplus_of(c)))); }}},
        {"ThresholdedRelu", {kReal, threshold}},
        {"Shrink", {kReal, shrink}},
        {"Clip", {kReal | kInteger, clip}},
        {"Equal", {kAny, equal}},
        {"Less", compare(false, Uop::lt_f32, false)},
        {"Greater", compare(true, Uop::lt_f32, false)},
        {"LessOrEqual", compare(false, Uop::le_f32, true)},
        {"GreaterOrEqual", compare(true, Uop::le_f32, true)},
        {"And", logic(Uop::and_i32)},
        {"Or", logic(Uop::or_i32)},
        {"Xor", logic(Uop::xor_i32)},
        {"Not", {kBool, negation}},
        {"Where", {kAny, where}},
        {"Cast", {kAny, cast}},
        {"CastLike", {kAny, cast}},
        {"Identity", {kAny, [](const Call& c) { return c.in[0]; }}},
        {"BitShift", {kInteger, shift}},
        {"BitwiseAnd", bitwise(Uop::and_i32)},
        {"BitwiseOr", bitwise(Uop::or_i32)},
        {"BitwiseXor", bitwise(Uop::xor_i32)},
        {"BitwiseNot", {kInteger, [](const Call& c) { return c.wrapped(c.invert(c.x())); }}},
        {"IsNaN", {kReal, [](const Call& c) { return c.truth(c.invert(c.op(Uop::eq_f32, c.x(), c.x()))); }}},
        {"IsInf", {kReal, is_infinite}},
    };
    return table;
}

unsigned class_of(DType type) {
    switch (type) {
        case DType::f32:
            return kReal;
        case DType::i8:
        case DType::u8:
        case DType::i32:
            return kInteger;
        case DType::boolean:
            return kBool;
        default:
            return 0;
    }
}

}  // namespace

std::string elementwise_refusal(const Graph& graph, NodeId id) {
    const Node& node = graph.node(id);
    const auto rule = rules().find(node.op);
    if (!node.domain.empty() || rule == rules().end()) return "the chip has no such operation";
    const auto fits = [&](ValueId v, unsigned types) { return v == kNoValue || (class_of(graph.value(v).dtype) & types) != 0; };
    const auto wrong = [&](ValueId v) { return fmt::format("arithmetic on {} is not supported; use float32 or dequantise first", name_of(graph.value(v).dtype)); };
    const bool exponent = node.op == "Pow" && node.inputs.size() == 2;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (exponent && i == 1 && graph.is_constant(node.inputs[1]) && graph.value(node.inputs[1]).constant->count() == 1) continue;
        if (node.op == "CastLike" && i == 1) continue;
        if (!fits(node.inputs[i], rule->second.types) && !(exponent && i == 1)) return wrong(node.inputs[i]);
        if (exponent && i == 1 && !fits(node.inputs[1], kReal | kInteger)) return wrong(node.inputs[1]);
    }
    if (!fits(node.outputs[0], kAny)) return fmt::format("a result of type {} is not held by the chip", name_of(graph.value(node.outputs[0]).dtype));
    if (exponent && graph.value(node.inputs[0]).dtype != DType::f32) {
        const Value& y = graph.value(node.inputs[1]);
        const double n = y.constant && y.constant->count() == 1 ? y.constant->value(0) : -1;
        if (n < 0 || n > 8 || n != std::floor(n)) return "an integer to a power that is no constant of 0 to 8 is not supported";
    }
    if (node.op == "BitShift" && graph.value(node.inputs[0]).dtype != DType::u8) return wrong(node.inputs[0]);
    return "";
}

Lane emit_node(Expr& expr, const Graph& graph, NodeId id, const std::vector<Lane>& inputs) {
    const Node& node = graph.node(id);
    return rules().at(node.op).rule(Call{expr, graph, node, inputs});
}

Lane lane_of_stored(Expr& expr, Ref stored, DType type) {
    if (type == DType::f32) return {Kind::real, stored};
    if (type == DType::boolean) return {Kind::flag, stored};
    if (type == DType::u8) return {Kind::integer, expr.op(Uop::add_i32, stored, Expr::imm_i(128))};
    return {Kind::integer, stored};
}

Ref stored_of_lane(Expr& expr, const Lane& lane, DType type) {
    if (type == DType::u8) return expr.op(Uop::sub_i32, lane.ref, Expr::imm_i(128));
    if (lane.kind == Kind::mask) return expr.op(Uop::and_i32, lane.ref, Expr::imm_i(1));
    return lane.ref;
}

Lane lane_of_constant(const Tensor& tensor, std::int64_t element) {
    if (tensor.dtype == DType::f32) return {Kind::real, Expr::imm(static_cast<float>(tensor.value(element)))};
    return {tensor.dtype == DType::boolean ? Kind::flag : Kind::integer, Expr::imm_i(static_cast<std::int32_t>(tensor.integer(element)))};
}

}  // namespace assay::workloads
