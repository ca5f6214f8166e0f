#pragma once
// A chip on the bench: loads a program, runs it as a driver would, and returns what it left behind. One chip a process (SystemC elaborates
// once), so each TEST runs in its own process under ctest, and comparisons of chips run each in a child (in_child).
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "simkernel/exec/interpreter.hpp"
#include "systemc/chip.hpp"
#include "tests/simkernel/program_builder.hpp"

namespace assay::chip::testing {

namespace reg = simkernel::reg;
namespace region = simkernel::region;
using simkernel::DescriptorWords;
using simkernel::Engine;
using simkernel::ErrorCode;
using simkernel::JobStatus;
using Program = std::vector<DescriptorWords>;

inline constexpr std::uint64_t kProgramAddress = 0x100000;
inline constexpr std::uint64_t kCompletionAddress = 0x0F0000;
inline constexpr std::uint64_t kTraceAddress = 0x0E0000;

struct Job {
    std::uint32_t start = 0;
    std::uint32_t stop_after = 0xFFFF'FFFF;
    std::uint64_t program = kProgramAddress;
    std::uint64_t completion = kCompletionAddress;
    bool trace = false;
};

class Bench {
public:
    explicit Bench(const simkernel::ChipConfig& chip_config = simkernel::testing::nano(), ChipOptions options = {})
        : config(chip_config), chip(chip_config, std::move(options)) {}

    const simkernel::ChipConfig config;
    Chip chip;

    /// By the back door, or by the front door of a chip that has none.
    void put(std::uint64_t addr, std::span<const std::byte> bytes);
    std::vector<std::byte> get(std::uint64_t addr, std::uint64_t bytes);
    template <class T>
    void put_values(std::uint64_t addr, const std::vector<T>& values) { put(addr, std::as_bytes(std::span(values))); }
    template <class T>
    std::vector<T> get_values(std::uint64_t addr, std::size_t count) {
        std::vector<T> values(count);
        const auto bytes = get(addr, count * sizeof(T));
        std::memcpy(values.data(), bytes.data(), bytes.size());
        return values;
    }

    void load_program(const Program& program, std::uint64_t at = kProgramAddress);
    void ring(const Program& program, const Job& job = {});
    /// Advances until completed_sequence reaches last_sequence; fails the test past `limit` cycles.
    simkernel::CompletionRecord finish(const Job& job = {}, std::uint64_t limit = 10'000'000);
    simkernel::CompletionRecord run(const Program& program, const Job& job = {}) {
        load_program(program);
        ring(program, job);
        return finish(job);
    }
    void reset(std::uint32_t kind) { chip.write_register(reg::reset_control, kind); }
    std::uint64_t counter(Engine engine, simkernel::Counter counter);
    simkernel::TraceRecord trace(std::uint32_t index);
    std::uint64_t cycles(const simkernel::CompletionRecord& r) const { return std::uint64_t{r.cycles_hi} << 32 | r.cycles; }
};

/// Deterministic bytes that are not all alike.
std::vector<std::int8_t> pattern(std::size_t count, std::uint32_t seed);

/// Operands of gemm_program(m, k, n) at 0x1000 and 0x2000; its product is left at 0x3000.
void put_gemm_operands(Bench& bench, std::uint32_t m, std::uint32_t k, std::uint32_t n, std::uint32_t seed = 1);
/// The product by a plain loop.
std::vector<std::int32_t> gemm_expected(std::uint32_t m, std::uint32_t k, std::uint32_t n, std::uint32_t seed = 1);

/// A longer legal program: `tiles` independent tiles of gemm, double buffered over two halves of the scratchpad, so that engines overlap,
/// queues fill and both DMA engines contend. Tile t reads 0x1000 + t*0x100 and 0x20000 + t*0x40 and writes 0x40000 + t*0x100.
Program tiled_program(std::uint32_t tiles);
void put_tiled_operands(Bench& bench, std::uint32_t tiles);
std::vector<std::int32_t> tiled_expected(std::uint32_t tiles);

/// Runs `body` in a child process, before this one has made a chip, and returns its numbers. Empty when the child failed.
std::vector<std::uint64_t> in_child(const std::function<std::vector<std::uint64_t>()>& body);
std::uint64_t digest(std::span<const std::byte> bytes);

}  // namespace assay::chip::testing
