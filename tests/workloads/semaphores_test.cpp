// Semaphore insertion on random streams: conflicts are ordered, no signal is superfluous.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "model_builder.hpp"
#include "run_program.hpp"
#include "simkernel/exec/legality.hpp"
#include "workloads/schedule/semaphores.hpp"

namespace assay::workloads::testing {
namespace {

constexpr int kEngines = 4;

std::vector<Item> random_stream(std::mt19937& engine, int length) {
    std::vector<Item> stream;
    for (int i = 0; i < length; ++i) {
        Item item;
        item.engine = static_cast<simkernel::Engine>(engine() % kEngines);
        for (int t = 0; t < 2; ++t) {
            const std::uint64_t low = engine() % 60;
            item.touches.push_back({static_cast<Touch::Space>(engine() % 3), engine() % 2 == 0, low, low + 1 + engine() % 20});
        }
        stream.push_back(item);
    }
    return stream;
}

bool conflict(const Item& a, const Item& b) {
    for (const Touch& x : a.touches)
        for (const Touch& y : b.touches)
            if (x.space == y.space && (x.write || y.write) && x.low < y.high && y.low < x.high) return true;
    return false;
}

/// ordered[i][j]: j completes before i starts, by the engines' queues and the exact waits, closed transitively. Plain and slow.
std::vector<std::vector<bool>> happens_before(const std::vector<Item>& stream) {
    const std::size_t n = stream.size();
    std::vector<std::vector<bool>> before(n, std::vector<bool>(n, false));
    for (std::size_t i = 0; i < n; ++i) {
        const auto include = [&](std::size_t j) {
            before[i][j] = true;
            for (std::size_t k = 0; k < j; ++k) before[i][k] = before[i][k] || before[j][k];
        };
        for (std::size_t j = i; j-- > 0;)
            if (stream[j].engine == stream[i].engine) {
                include(j);
                break;
            }
        const auto common = simkernel::decode_common_fields(stream[i].words);
        for (std::size_t s = 0; s < 4; ++s) {
            std::uint32_t value = 0;
            for (std::size_t j = 0; j < i && common.wait_value[s] != 0 && value < common.wait_value[s]; ++j) {
                const auto other = simkernel::decode_common_fields(stream[j].words);
                if (other.signal_add == 0 || other.signal_sem != common.wait_sem[s]) continue;
                value += other.signal_add;
                if (value >= common.wait_value[s]) include(j);
            }
            EXPECT_GE(value, common.wait_value[s]) << "descriptor " << i << " waits for a later signal";
        }
    }
    return before;
}

TEST(Semaphores, EveryConflictIsOrderedAndEverySignalIsAwaitedByItsExactCount) {
    std::mt19937 engine(31);
    for (int trial = 0; trial < 30; ++trial) {
        auto stream = random_stream(engine, 120);
        insert_semaphores(stream);
        const auto before = happens_before(stream);
        for (std::size_t i = 0; i < stream.size(); ++i)
            for (std::size_t j = 0; j < i; ++j)
                ASSERT_TRUE(!conflict(stream[i], stream[j]) || before[i][j]) << "trial " << trial << ": " << j << " before " << i;
        std::array<std::uint32_t, kEngines> signalled{};
        std::array<std::set<std::uint32_t>, kEngines> counts;
        for (const Item& item : stream) {
            const auto common = simkernel::decode_common_fields(item.words);
            if (common.signal_add) {
                EXPECT_EQ(common.signal_sem, static_cast<std::uint32_t>(item.engine)) << "one signalling engine a semaphore";
                ++signalled[common.signal_sem];
            }
            for (std::size_t s = 0; s < 4; ++s)
                if (common.wait_value[s]) counts[common.wait_sem[s]].insert(common.wait_value[s]);
        }
        for (std::size_t e = 0; e < kEngines; ++e)
            EXPECT_EQ(counts[e].size(), signalled[e]) << "each count of engine " << e << " is awaited by somebody";
    }
}

TEST(Semaphores, LosingAnySignalOfAProgramIsSeenByTheSanitizerOrDeadlocks) {
    std::mt19937 engine(32);
    const Tensor x = random_floats(engine, {1, 3, 20, 20}), w = random_floats(engine, {20, 3, 3, 3});
    ModelBuilder m;
    m.input("x", x.shape).constant("w", w).output("y");
    m.node("Conv", {"x", "w"}, {"c"});
    m.node("Softmax", {"c"}, {"y"});
    CompileOptions options;
    options.chip = preset("aurum-nano");
    const auto program = compile(m.model, {"model.onnx", ""}, options);
    int signals = 0;
    for (std::uint32_t i = 0; i < program.descriptors.size(); ++i) {
        if (simkernel::decode_common_fields(program.descriptors[i]).signal_add == 0) continue;
        ++signals;
        ASSERT_TRUE(simkernel::signal_is_needed(program.descriptors, i)) << simkernel::disassemble(i, program.descriptors[i]);
    }
    EXPECT_GT(signals, 10);
}

}  // namespace
}  // namespace assay::workloads::testing
