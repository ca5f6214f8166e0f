#include "workloads/precision/policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "support/error.hpp"

namespace assay::workloads {
namespace {

using simkernel::Dtype;

constexpr Policy kPolicies[] = {
    {"native", Dtype::bf16, 3, false, "bf16x3", "three bf16 parts, six products: fp32-grade"},
    {"bf16", Dtype::bf16, 1, false, "bf16", "rounded once to bf16"},
    {"fp16", Dtype::f16, 1, false, "fp16", "rounded once to fp16; beyond 65504 infinite"},
    {"fp8", Dtype::f8e4m3, 1, true, "fp8e4m3", "e4m3fn, scaled by calibrated powers of two"},
    {"fp8:e5m2", Dtype::f8e5m2, 1, true, "fp8e5m2", "the same in e5m2"},
};

}  // namespace

std::span<const Policy> policies() { return kPolicies; }

const Policy& find_policy(std::string_view name) {
    const auto* found = std::find_if(std::begin(kPolicies), std::end(kPolicies), [&](const Policy& p) { return p.name == name; });
    if (found != std::end(kPolicies)) return *found;
    std::string names;
    for (const Policy& p : kPolicies) names += (names.empty() ? "" : ", ") + std::string(p.name);
    throw Error(ErrorKind::usage, fmt::format("precision '{}' is unknown; use one of {}", name, names));
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

}  // namespace assay::workloads
