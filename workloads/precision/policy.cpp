#include "workloads/precision/policy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "simkernel/numerics/formats.hpp"
#include "support/error.hpp"

namespace assay::workloads {
namespace {

using simkernel::Dtype;

constexpr Policy kPolicies[] = {
    {"native", Dtype::bf16, 3, Scaling::none, "bf16x3", "", "three bf16 parts, six products: fp32-grade"},
    {"bf16", Dtype::bf16, 1, Scaling::none, "bf16", "", "rounded once to bf16"},
    {"fp16", Dtype::f16, 1, Scaling::none, "fp16", "", "rounded once to fp16; beyond 65504 infinite"},
    {"fp8", Dtype::f8e4m3, 1, Scaling::powers, "fp8e4m3", "bf16", "e4m3fn, scaled by calibrated powers of two"},
    {"fp8:e5m2", Dtype::f8e5m2, 1, Scaling::powers, "fp8e5m2", "bf16", "the same in e5m2"},
    {"int8", Dtype::i8, 1, Scaling::integers, "w8a8", "native", "8-bit integers, activations in calibrated steps"},
    {"w8", Dtype::bf16, 1, Scaling::weights_8, "w8", "bf16", "8-bit integer weights, one step an output; bf16 activations"},
    {"w4", Dtype::bf16, 1, Scaling::weights_4, "w4", "w8", "4-bit integer weights, one step for 32 of K; bf16 activations"},
};

}  // namespace

std::span<const Policy> policies() { return kPolicies; }

std::vector<std::string> policy_names() {
    std::vector<std::string> names;
    for (const Policy& p : kPolicies) names.emplace_back(p.name);
    return names;
}

const Policy& find_policy(std::string_view name) {
    const auto* found = std::find_if(std::begin(kPolicies), std::end(kPolicies), [&](const Policy& p) { return p.name == name; });
    if (found != std::end(kPolicies)) return *found;
    throw Error(ErrorKind::usage, fmt::format("precision '{}' is unknown; use one of {}", name, fmt::join(policy_names(), ", ")));
}

double scale_for(Dtype type, double largest) {
    // OCP FP8: e4m3fn reaches 448 = 1.75 * 2^8, e5m2 57344 = 1.75 * 2^15.
    const int top = type == Dtype::f8e4m3 ? 8 : type == Dtype::f8e5m2 ? 15 : 0;
    if (top == 0 || !(largest > 0) || !std::isfinite(largest)) return 1;
    int exponent = 0;
    const double fraction = std::frexp(largest, &exponent);  // largest = fraction * 2^exponent, fraction in [0.5, 1)
    const int scale = exponent - 1 - top + (2 * fraction > 1.75 ? 1 : 0);
    return std::ldexp(1.0, std::clamp(scale, -100, 100));
}

IntegerSteps steps_for(double low, double high, bool symmetric) {
    low = std::min(low, 0.0);
    high = std::max(high, 0.0);
    if (symmetric) return {weight_step(std::max(-low, high), 127, false), 0};
    const float step = weight_step(high - low, 255, false);
    return {step, static_cast<int>(std::clamp(std::nearbyint(-128 - low / static_cast<double>(step)), -128.0, 127.0))};
}

float weight_step(double largest, int most, bool bf16) {
    auto step = static_cast<float>(largest / most);
    if (bf16) step = std::bit_cast<float>(simkernel::f32_from_bf16(simkernel::bf16_from_f32(std::bit_cast<std::uint32_t>(step))));
    return std::isnormal(step) ? step : 1.0f;
}

}  // namespace assay::workloads
