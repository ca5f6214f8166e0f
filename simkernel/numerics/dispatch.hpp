#pragma once
// Which vector instructions the numerics use. Every path computes the same bits; the choice is a matter of speed only. Forcing one is for
// tests and benchmarks.
#include <string>
#include <string_view>
#include <vector>

namespace assay::simkernel {

/// Paths that this host can run, slowest first: "baseline" (SSE2, no FMA), "avx2" (AVX2 + FMA), "avx512" (F, BW, DQ, VL), "avx512vnni".
/// Only "scalar" where the host is not x86-64: there the definitions themselves run.
std::vector<std::string> available_dispatch();
/// Uses `name` from now on, in all threads; not while a descriptor is being computed. False, and no change, when the host cannot run it.
bool set_dispatch(std::string_view name);
std::string current_dispatch();

}  // namespace assay::simkernel
