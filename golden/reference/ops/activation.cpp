// Activations beyond those of elementwise_unary.cpp: compositions of bounded functions. Local errors are taken at the exact
// operand; the operand's own error passes through the steepest slope of the function, where that is simpler than following it.
#include <cmath>

#include "golden/reference/ops/map.hpp"

namespace assay::golden::ops {
namespace {

constexpr Bounded exactly(double v) { return {v, 0}; }
/// A constant that the chip holds rounded to fp32.
Bounded constant_f32(const Functions& f, double v) { return {f.numerics().round(v), rounding(v)}; }
/// Steepest slopes: of x Phi(x) at 1.42; of x sigmoid(x) at 2.4; of Mish at 1.5.
constexpr double kGeluSlope = 1.13, kSwishSlope = 1.1, kMishSlope = 1.09;

/// A function that the chip or its host gives to within kFunctionUlp.
template <class F>
Outputs monotone(const Node& node, F value) {
    return map_bounded(node, [&](const Functions& f, Bounded x) { return f.monotone(x, value, kFunctionUlp); });
}

}  // namespace

Outputs elu(const Node& node) {
    const double alpha = node.real("alpha", 1.0f);
    return map_bounded(node, [&](const Functions& f, Bounded x) {
        if (x.v - x.e >= 0) return x;
        const Bounded below = f.mul(exactly(alpha), f.expm1({std::fmin(x.v, 0.0), x.e}));
        return x.v >= 0 ? Bounded{x.v, std::fmax(x.e, below.e)} : Bounded{below.v, x.v + x.e > 0 ? std::fmax(x.e, below.e) : below.e};
    });
}

Outputs selu(const Node& node) {
    const double alpha = node.real("alpha", 1.67326319217681884765625f), gamma = node.real("gamma", 1.05070102214813232421875f);
    return map_bounded(node, [&](const Functions& f, Bounded x) {
        // The chip multiplies gamma and alpha beforehand or one after the other: one rounding more of the product.
        Bounded below = f.mul(exactly(gamma), f.mul(exactly(alpha), f.expm1({std::fmin(x.v, 0.0), x.e})));
        below.e += rounding(below.v);
        const Bounded above = f.mul(exactly(gamma), x);
        if (x.v - x.e >= 0) return above;
        const double e = x.v + x.e > 0 ? std::fmax(above.e, below.e) : below.e;
        return Bounded{x.v >= 0 ? above.v : below.v, e};
    });
}

Outputs celu(const Node& node) {
    const double alpha = node.real("alpha", 1.0f);
    return map_bounded(node, [&](const Functions& f, Bounded x) {
        if (x.v - x.e >= 0) return x;
        const Bounded below = f.mul(exactly(alpha), f.expm1(f.div({std::fmin(x.v, 0.0), x.e}, exactly(alpha))));
        return x.v >= 0 ? Bounded{x.v, std::fmax(x.e, below.e)} : Bounded{below.v, x.v + x.e > 0 ? std::fmax(x.e, below.e) : below.e};
    });
}

Outputs gelu(const Node& node) {
    const std::string approximate = node.text("approximate", "none");
    if (approximate != "none" && approximate != "tanh") node.fail("approximate=\"" + approximate + "\" is not defined; use \"none\" or \"tanh\"");
    const bool by_tanh = approximate == "tanh";
    return map_bounded(node, [&](const Functions& f, Bounded x) {
        const Bounded p = exactly(x.v);
        if (std::isinf(x.v)) return Bounded{x.v > 0 ? x.v : -0.0, 0};
        Bounded gate;
        if (by_tanh) {
            const Bounded cube = f.mul(f.mul(p, p), p);
            const Bounded inner = f.add(p, f.mul(constant_f32(f, 0.044715), cube));
            gate = f.tanh(f.mul(constant_f32(f, std::sqrt(2 / M_PI)), inner));
        } else {
            gate = f.erf(f.mul(p, constant_f32(f, M_SQRT1_2)));
        }
        return Functions::with_slope(f.mul(f.mul(exactly(0.5), p), f.add(exactly(1), gate)), x, kGeluSlope);
    });
}

Outputs swish(const Node& node) {
    const double alpha = node.real("alpha", 1.0f);
    return map_bounded(node, [&](const Functions& f, Bounded x) {
        if (std::isinf(x.v)) return Bounded{alpha * x.v > 0 ? x.v : 0.0, 0};
        return Functions::with_slope(f.mul(exactly(x.v), f.sigmoid(f.mul(exactly(alpha), exactly(x.v)))), x, kSwishSlope);
    });
}

Outputs mish(const Node& node) {
    return map_bounded(node, [&](const Functions& f, Bounded x) {
        if (std::isinf(x.v)) return Bounded{x.v > 0 ? x.v : 0.0, 0};
        return Functions::with_slope(f.mul(exactly(x.v), f.tanh(f.softplus(exactly(x.v)))), x, kMishSlope);
    });
}

Outputs softplus(const Node& node) {
    return map_bounded(node, [](const Functions& f, Bounded x) { return f.softplus(x); });
}

Outputs softsign(const Node& node) {
    return map_bounded(node, [](const Functions& f, Bounded x) {
        return f.monotone(x, [](double v) { return v / (1 + std::fabs(v)); }, 1.0);  // an addition and a division: two half ULPs
    });
}

Outputs thresholded_relu(const Node& node) {
    const double alpha = node.real("alpha", 1.0f);
    return map_bounded(node, [&](const Functions&, Bounded x) {
        const bool doubtful = x.e > 0 && std::fabs(x.v - alpha) <= x.e;  // either side of the threshold is honest
        return Bounded{x.v > alpha ? x.v : 0.0, doubtful ? std::fabs(x.v) + x.e : x.v > alpha ? x.e : 0.0};
    });
}

Outputs shrink(const Node& node) {
    const double lambda = node.real("lambd", 0.5f), bias = node.real("bias", 0.0f);
    if (!node.in(0).floating()) {
        Value y = node.in(0);
        for (auto& v : y.n) {
            const auto x = static_cast<double>(v);
            v = wrap(y.dtype, static_cast<std::int64_t>(x < -lambda ? x + bias : x > lambda ? x - bias : 0.0));
        }
        return {std::move(y)};
    }
    return map_bounded(node, [&](const Functions& f, Bounded x) {
        const Bounded y = x.v < -lambda ? f.add(x, exactly(bias)) : x.v > lambda ? f.add(x, exactly(-bias)) : Bounded{};
        const bool doubtful = x.e > 0 && std::fabs(std::fabs(x.v) - lambda) <= x.e;
        return doubtful ? Bounded{y.v, std::fabs(x.v) + x.e + std::fabs(bias)} : y;
    });
}

// Functions of a real variable.

Outputs log(const Node& node) {
    return map_bounded(node, [](const Functions& f, Bounded x) { return f.log(x); });
}
Outputs erf(const Node& node) {
    return map_bounded(node, [](const Functions& f, Bounded x) { return f.erf(x); });
}
Outputs reciprocal(const Node& node) {
    return map_bounded(node, [](const Functions& f, Bounded x) { return f.div(exactly(1), x); });
}
Outputs sin(const Node& node) {
    return map_bounded(node, [](const Functions& f, Bounded x) {
        return f.smooth(x, [](double v) { return std::sin(v); }, 1, 0.5, kSineAbsolute * std::fmax(1.0, std::fabs(x.v) / kSineRange));
    });
}
Outputs cos(const Node& node) {
    return map_bounded(node, [](const Functions& f, Bounded x) {
        return f.smooth(x, [](double v) { return std::cos(v); }, 1, 0.5, kSineAbsolute * std::fmax(1.0, std::fabs(x.v) / kSineRange));
    });
}
Outputs tan(const Node& node) {
    return map_bounded(node, [](const Functions& f, Bounded x) {
        const bool pole = x.e > 0 && std::floor((x.v + x.e) / M_PI + 0.5) != std::floor((x.v - x.e) / M_PI + 0.5);
        const Bounded y = f.monotone(x, [](double v) { return std::tan(v); }, kFunctionUlp);
        return pole ? Bounded{y.v, HUGE_VAL} : y;
    });
}
Outputs asin(const Node& node) {
    return monotone(node, [](double v) { return std::asin(v); });
}
Outputs acos(const Node& node) {
    return monotone(node, [](double v) { return std::acos(v); });
}
Outputs atan(const Node& node) {
    return monotone(node, [](double v) { return std::atan(v); });
}
Outputs sinh(const Node& node) {
    return monotone(node, [](double v) { return std::sinh(v); });
}
Outputs cosh(const Node& node) {
    return map_bounded(node, [](const Functions& f, Bounded x) {
        return f.smooth(x, [](double v) { return std::cosh(v); }, std::sinh(std::fabs(x.v) + x.e), kFunctionUlp);
    });
}
Outputs asinh(const Node& node) {
    return monotone(node, [](double v) { return std::asinh(v); });
}
Outputs acosh(const Node& node) {
    return monotone(node, [](double v) { return std::acosh(v); });
}
Outputs atanh(const Node& node) {
    return monotone(node, [](double v) { return std::atanh(v); });
}

}  // namespace assay::golden::ops
