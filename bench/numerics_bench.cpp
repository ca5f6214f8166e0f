// Speed of the numerics on this host: MAC/s of the matrix paths and GB/s of the vector unit, with the baseline path of the same run beside
// them. Each benchmark checks its answer once against the scalar definition before it measures.
#include <benchmark/benchmark.h>

#include <cstring>
#include <random>
#include <vector>

#include "simkernel/numerics/dispatch.hpp"
#include "simkernel/numerics/matrix.hpp"
#include "simkernel/numerics/vector.hpp"
#include "simkernel/numerics/workers.hpp"

namespace {

using namespace assay::simkernel;

std::vector<std::byte> random_bytes(std::size_t count, unsigned seed) {
    std::mt19937 rng(seed);
    std::vector<std::byte> out(count);
    for (auto& b : out) b = static_cast<std::byte>(rng());
    return out;
}
/// bf16 values between 0.5 and 2 of either sign: no infinities, as in a real layer.
std::vector<std::byte> random_bf16(std::size_t count, unsigned seed) {
    std::mt19937 rng(seed);
    std::vector<std::byte> out(2 * count);
    for (std::size_t i = 0; i < count; ++i) {
        const auto bits = static_cast<std::uint16_t>((rng() & 0x80FFu) | 0x3F00u);
        std::memcpy(&out[2 * i], &bits, 2);
    }
    return out;
}

MatmulFields dense(Dtype type, std::uint32_t m, std::uint32_t k, std::uint32_t n) {
    const std::uint32_t size = type == Dtype::bf16 ? 2 : 1;
    MatmulFields f;
    f.dtype = static_cast<std::uint32_t>(type);
    f.accumulate = 1;
    f.m_count = {m, 1, 1};
    f.k_count = {k, 1, 1};
    f.a_m_stride = {static_cast<std::int32_t>(k * size), 0, 0};
    f.n_count = n;
    f.w_stride = n * size;
    f.acc_stride = 4 * n;
    return f;
}
/// 3x3 depthwise over `channels`, one position after the other.
MatmulFields depthwise(Dtype type, std::uint32_t m, std::uint32_t channels) {
    const std::uint32_t size = type == Dtype::bf16 ? 2 : 1;
    MatmulFields f = dense(type, m, channels, channels);
    f.k_count = {channels, 9, 1};
    f.a_k_stride = {static_cast<std::int32_t>(channels * size), 0};
    f.a_m_stride[0] = static_cast<std::int32_t>(channels * size);
    f.group_k = f.group_n = 1;
    f.group_period = channels;
    return f;
}

void run_matrix(benchmark::State& state, const MatmulFields& f, const char* path, unsigned threads) {
    if (!set_dispatch(path)) {
        state.SkipWithError("this host cannot run the path");
        return;
    }
    set_worker_count(threads);
    const bool bf16 = static_cast<Dtype>(f.dtype) == Dtype::bf16;
    const std::size_t m = f.m_count[0], k = std::size_t{f.k_count[0]} * f.k_count[1];
    const auto a = bf16 ? random_bf16(m * k + 16 * k, 1) : random_bytes(m * k + 16 * k, 1);
    const auto w = bf16 ? random_bf16(k * f.n_count, 2) : random_bytes(k * f.n_count, 2);
    std::vector<std::byte> acc(4 * m * f.n_count), expected(acc.size());
    run_matmul(f, a.data(), w.data(), acc.data());
    run_matmul_scalar(f, a.data(), w.data(), expected.data());
    if (acc != expected) state.SkipWithError("wrong values");
    for (auto _ : state) {
        run_matmul(f, a.data(), w.data(), acc.data());
        benchmark::ClobberMemory();
    }
    state.counters["MAC/s"] = benchmark::Counter(static_cast<double>(matmul_macs(f)), benchmark::Counter::kIsIterationInvariantRate);
}

void run_program(benchmark::State& state, VectorFields f, const char* path, unsigned threads) {
    if (!set_dispatch(path)) {
        state.SkipWithError("this host cannot run the path");
        return;
    }
    set_worker_count(threads);
    const std::size_t count = std::size_t{f.count[0]} * f.count[1];
    const auto x = random_bytes(4 * count, 3), y = random_bytes(4 * count, 4);
    std::vector<std::byte> out(4 * count), expected(out.size());
    const std::array<const std::byte*, 3> in{x.data(), y.data(), nullptr};
    run_vector(f, in, out.data(), 32);
    run_vector_scalar(f, in, expected.data(), 32);
    if (out != expected) state.SkipWithError("wrong values");
    for (auto _ : state) {
        run_vector(f, in, out.data(), 32);
        benchmark::ClobberMemory();
    }
    state.counters["elem/s"] = benchmark::Counter(static_cast<double>(count), benchmark::Counter::kIsIterationInvariantRate);
}

/// int32 + bias -> fp32 -> x scale -> round -> + zero point -> int8: the drain of a quantised layer.
VectorFields requantise(std::uint32_t rows, std::uint32_t columns) {
    VectorFields f;
    f.in_used = 3;
    f.in_type = {static_cast<std::uint32_t>(Dtype::i32), static_cast<std::uint32_t>(Dtype::i32), 0};
    f.out_type = static_cast<std::uint32_t>(Dtype::i8);
    f.count = {columns, rows, 1, 1, 1};
    const auto row = static_cast<std::int32_t>(4 * columns);
    f.in0_stride = {4, row, 0, 0, 0};
    f.in1_stride = {4, 0, 0, 0, 0};
    f.out_stride = {1, static_cast<std::int32_t>(columns), 0, 0, 0};
    f.imm[0] = 0x3B00'0000u;
    f.imm[1] = 3;
    f.uop[0] = encode_uop(Uop::add_i32, 0, kUopIn, kUopIn + 1);
    f.uop[1] = encode_uop(Uop::i32_to_f32, 0, 0);
    f.uop[2] = encode_uop(Uop::mul_f32, 0, 0, kUopImm);
    f.uop[3] = encode_uop(Uop::f32_to_i32, 0, 0);
    f.uop[4] = encode_uop(Uop::add_i32, 0, 0, kUopImm + 1);
    f.pre_count = 5;
    return f;
}
VectorFields exponentials(std::uint32_t count) {
    VectorFields f;
    f.in_used = 1;
    f.in_type[0] = f.out_type = static_cast<std::uint32_t>(Dtype::f32);
    f.count = {count, 1, 1, 1, 1};
    f.in0_stride[0] = f.out_stride[0] = 4;
    f.uop[0] = encode_uop(Uop::exp2_f32, 0, kUopIn);
    f.pre_count = 1;
    return f;
}
VectorFields row_sums(std::uint32_t rows, std::uint32_t columns) {
    VectorFields f = exponentials(columns);
    f.count[1] = rows;
    f.in0_stride[1] = static_cast<std::int32_t>(4 * columns);
    f.out_stride = {0, 4, 0, 0, 0};
    f.uop[0] = encode_uop(Uop::mov, 0, kUopIn);
    f.reduce = static_cast<std::uint32_t>(Reduce::add_f32);
    f.reduce_lanes = 1;
    return f;
}

void register_all() {
    for (const std::string& path : available_dispatch())
        for (const unsigned threads : {1u, 2u}) {
            const auto add = [&](const std::string& name, auto fields, auto runner) {
                benchmark::RegisterBenchmark((name + "/" + path + "/threads:" + std::to_string(threads)).c_str(),
                                             [=](benchmark::State& state) { runner(state, fields, path.c_str(), threads); })
                    ->UseRealTime();
            };
            for (const Dtype type : {Dtype::i8, Dtype::bf16}) {
                const std::string name(name_of(type));
                add(name + "/2048x128x128", dense(type, 2048, 128, 128), run_matrix);
                add(name + "/1024x32x32", dense(type, 1024, 32, 32), run_matrix);
                add(name + "/64x32x32", dense(type, 64, 32, 32), run_matrix);
                add(name + "/1x128x128", dense(type, 1, 128, 128), run_matrix);
                add(name + "/depthwise3x3/1024x128", depthwise(type, 1024, 128), run_matrix);
            }
            add("requantise/1024x128", requantise(1024, 128), run_program);
            add("exp2/131072", exponentials(131072), run_program);
            add("sum_lanes/1024x128", row_sums(1024, 128), run_program);
        }
}

}  // namespace

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    register_all();
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
