#include "tests/systemc/chip_bench.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <systemc>

namespace assay::chip::testing {

void Bench::put(std::uint64_t addr, std::span<const std::byte> bytes) {
    ASSERT_TRUE(chip.backdoor_write({addr}, bytes) || chip.write_memory({addr}, bytes)) << std::hex << addr;
}

std::vector<std::byte> Bench::get(std::uint64_t addr, std::uint64_t bytes) {
    std::vector<std::byte> out(bytes);
    EXPECT_TRUE(chip.backdoor_read({addr}, out) || chip.read_memory({addr}, out)) << std::hex << addr;
    return out;
}

void Bench::load_program(const Program& program, std::uint64_t at) {
    if (!program.empty()) put(at, std::as_bytes(std::span(program)));
}

void Bench::ring(const Program& program, const Job& job) {
    const auto pair = [&](std::uint32_t lo, std::uint64_t value) {
        chip.write_register(lo, static_cast<std::uint32_t>(value));
        chip.write_register(lo + 4, static_cast<std::uint32_t>(value >> 32));
    };
    pair(reg::program_lo, job.program);
    pair(reg::completion_lo, job.completion);
    pair(reg::trace_lo, kTraceAddress);
    chip.write_register(reg::program_count, static_cast<std::uint32_t>(program.size()));
    chip.write_register(reg::program_start, job.start);
    chip.write_register(reg::stop_after, job.stop_after);
    chip.write_register(reg::trace_enable, job.trace ? 1 : 0);
    chip.write_register(reg::doorbell, 1);
}

simkernel::CompletionRecord Bench::finish(const Job& job, std::uint64_t limit) {
    const std::uint64_t deadline = chip.now().count + limit;
    while (chip.read_register(reg::completed_sequence) != chip.read_register(reg::last_sequence)) {
        if (chip.now().count >= deadline) {
            ADD_FAILURE() << "job incomplete after " << limit << " cycles";
            break;
        }
        (void)chip.advance({100'000});
    }
    std::array<std::uint32_t, 8> words{};
    const auto bytes = get(job.completion, sizeof(words));
    std::memcpy(words.data(), bytes.data(), sizeof(words));
    return simkernel::decode_completion_record(words);
}

std::uint64_t Bench::counter(Engine engine, simkernel::Counter counter) {
    const std::uint32_t offset = reg::counters + static_cast<std::uint32_t>(engine) * reg::counters_engine_stride + static_cast<std::uint32_t>(counter) * 8;
    return chip.read_register(offset) | std::uint64_t{chip.read_register(offset + 4)} << 32;
}

simkernel::TraceRecord Bench::trace(std::uint32_t index) {
    std::array<std::uint32_t, 8> words{};
    const auto bytes = get(kTraceAddress + index * simkernel::kTraceRecordBytes, sizeof(words));
    std::memcpy(words.data(), bytes.data(), sizeof(words));
    return simkernel::decode_trace_record(words);
}

std::vector<std::int8_t> pattern(std::size_t count, std::uint32_t seed) {
    std::vector<std::int8_t> values(count);
    std::uint32_t state = seed * 2654435761u + 1;
    for (auto& value : values) {
        state = state * 1664525u + 1013904223u;
        value = static_cast<std::int8_t>(state >> 24);
    }
    return values;
}

namespace {

std::vector<std::int32_t> product(const std::vector<std::int8_t>& a, const std::vector<std::int8_t>& w, std::uint32_t m, std::uint32_t k, std::uint32_t n) {
    std::vector<std::int32_t> out(m * n);
    for (std::uint32_t i = 0; i < m; ++i)
        for (std::uint32_t j = 0; j < n; ++j)
            for (std::uint32_t x = 0; x < k; ++x) out[i * n + j] += a[i * k + x] * w[x * n + j];
    return out;
}

constexpr std::uint32_t kTileM = 16, kTileK = 8, kTileN = 8;

}  // namespace

void put_gemm_operands(Bench& bench, std::uint32_t m, std::uint32_t k, std::uint32_t n, std::uint32_t seed) {
    bench.put_values(0x1000, pattern(m * k, seed));
    bench.put_values(0x2000, pattern(k * n, seed + 1));
}

std::vector<std::int32_t> gemm_expected(std::uint32_t m, std::uint32_t k, std::uint32_t n, std::uint32_t seed) {
    return product(pattern(m * k, seed), pattern(k * n, seed + 1), m, k, n);
}

Program tiled_program(std::uint32_t tiles) {
    namespace p = simkernel::testing;
    // Semaphores, one signalling engine each: 0 load, 1 matrix, 2 vector, 3 store.
    Program program;
    for (std::uint32_t t = 0; t < tiles; ++t) {
        const std::uint32_t half = t % 2 * 0x4000, acc = t % 2 * 0x200;
        auto a = p::load(0x1000 + t * 0x100, half, kTileM * kTileK);
        auto w = p::load(0x20000 + t * 0x40, half + 0x1000, kTileK * kTileN);
        auto mm = p::matmul(kTileM, kTileK, kTileN, half, half + 0x1000, acc);
        auto dr = p::drain(kTileM * kTileN, acc, half + 0x2000);
        auto st = p::store(0x40000 + t * 0x200, half + 0x2000, 4 * kTileM * kTileN);
        if (t >= 2) {
            p::add_waits(a, {{1, t - 1}});                // operands of tile t-2 are used up
            p::add_waits(dr, {{1, t + 1}, {3, t - 1}});   // its result is stored
            p::add_waits(mm, {{0, t + 1}, {2, t - 1}});   // its sums are drained
        } else {
            p::add_waits(dr, {{1, t + 1}});
            p::add_waits(mm, {{0, t + 1}});
        }
        p::add_waits(st, {{2, t + 1}});
        p::add_signal(w, 0);
        p::add_signal(mm, 1);
        p::add_signal(dr, 2);
        p::add_signal(st, 3);
        program.insert(program.end(), {a, w, mm, dr, st});
    }
    return program;
}

void put_tiled_operands(Bench& bench, std::uint32_t tiles) {
    for (std::uint32_t t = 0; t < tiles; ++t) {
        bench.put_values(0x1000 + t * 0x100, pattern(kTileM * kTileK, 2 * t));
        bench.put_values(0x20000 + t * 0x40, pattern(kTileK * kTileN, 2 * t + 1));
    }
}

std::vector<std::int32_t> tiled_expected(std::uint32_t tiles) {
    std::vector<std::int32_t> all;
    for (std::uint32_t t = 0; t < tiles; ++t) {
        const auto tile = product(pattern(kTileM * kTileK, 2 * t), pattern(kTileK * kTileN, 2 * t + 1), kTileM, kTileK, kTileN);
        all.insert(all.end(), tile.begin(), tile.end());
    }
    return all;
}

std::vector<std::uint64_t> in_child(const std::function<std::vector<std::uint64_t>()>& body) {
    int ends[2];
    if (pipe(ends) != 0) return {};
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        const std::vector<std::uint64_t> numbers = body();
        const bool good = !::testing::Test::HasFailure() &&
                          write(ends[1], numbers.data(), numbers.size() * 8) == static_cast<ssize_t>(numbers.size() * 8);
        _exit(good ? 0 : 1);
    }
    close(ends[1]);
    std::vector<std::uint64_t> numbers;
    std::uint64_t number = 0;
    while (read(ends[0], &number, sizeof(number)) == sizeof(number)) numbers.push_back(number);
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) numbers.clear();
    return numbers;
}

std::uint64_t digest(std::span<const std::byte> bytes) {
    std::uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
    for (const std::byte b : bytes) hash = (hash ^ static_cast<std::uint64_t>(b)) * 0x100000001B3u;
    return hash;
}

}  // namespace assay::chip::testing

int sc_main(int argc, char* argv[]) {
    // Any report of the SystemC library of warning or worse is a failure where it is made.
    sc_core::sc_report_handler::set_actions(sc_core::SC_WARNING, sc_core::SC_DISPLAY | sc_core::SC_THROW);
    ::testing::InitGoogleTest(&argc, argv);
    const int result = RUN_ALL_TESTS();
    return sc_core::sc_report_handler::get_count(sc_core::SC_WARNING) == 0 ? result : 1;
}
