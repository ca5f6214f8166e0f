#pragma once
// Random legal, race-free programs: random loads, fills, matmuls, vector work and stores over small ranges of memory that collide often,
// then exactly the semaphores that their conflicts need. Their bytes are fixed by the sequential interpreter; on the chip the engines
// overlap as far as the semaphores let them.
#include <random>

#include "tests/systemc/chip_bench.hpp"

namespace assay::chip::testing {

/// `descriptors` of them, reading and writing HBM [0x1000, 0x5000), scratchpad [0, 0x1000) and the accumulator.
Program random_program(std::mt19937_64& random, std::size_t descriptors, const simkernel::ChipConfig& config);

/// Runs `programs` random programs on one chip and compares HBM, scratchpad and accumulator with the interpreter's, byte for byte. Returns
/// the cycles of each job.
std::vector<std::uint64_t> expect_interpreters_bytes(int programs, std::uint64_t seed, const simkernel::ChipConfig& config, ChipOptions options);

}  // namespace assay::chip::testing
