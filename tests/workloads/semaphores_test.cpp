// Semaphore insertion on random streams: conflicts are ordered, no signal is superfluous.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "model_builder.hpp"
#include "run_program.hpp"
#include "simkernel/exec/decode.hpp"
#include "simkernel/exec/legality.hpp"
#include "workloads/schedule/semaphores.hpp"

namespace assay::workloads::testing {
namespace {

constexpr int kEngines = 4;  // that touch memory

std::vector<Item> random_stream(std::mt19937& engine, int length, std::uint32_t cores) {
    std::vector<Item> stream;
    for (int i = 0; i < length; ++i) {
        Item item;
        item.engine = static_cast<simkernel::Engine>(engine() % kEngines);
        item.core = static_cast<std::uint32_t>(engine() % cores);
        for (int t = 0; t < (cores == 1 ? 2 : 5); ++t) {
            const std::uint64_t low = engine() % 60;
            item.touches.push_back({static_cast<Touch::Space>(engine() % 3), engine() % (cores == 1 ? 2 : 8) == 0, low, low + 1 + engine() % 20});
            Touch& touch = item.touches.back();
            if (cores > 1 && touch.write && touch.space == Touch::Space::hbm) touch.group = engine() % 3;
        }
        stream.push_back(item);
    }
    return stream;
}

bool conflict(const Item& a, const Item& b) {
    for (const Touch& x : a.touches)
        for (const Touch& y : b.touches)
            if (!(x.group != 0 && x.group == y.group && x.write && y.write)  // of one group: different bytes
                && x.space == y.space && (x.space == Touch::Space::hbm || a.core == b.core) && (x.write || y.write) && x.low < y.high && y.low < x.high) return true;
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
            if (stream[j].engine == stream[i].engine && stream[j].core == stream[i].core) {
                include(j);
                break;
            }
        const auto common = simkernel::decode_common_fields(stream[i].words);
        for (std::size_t s = 0; s < 4; ++s) {
            std::uint32_t value = 0;
            for (std::size_t j = 0; j < i && common.wait_value[s] != 0 && value < common.wait_value[s]; ++j) {
                const auto other = simkernel::decode_common_fields(stream[j].words);
                if (other.signal_add == 0 || simkernel::signalled(other) != simkernel::awaited(common, s)) continue;
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
    std::size_t syncs = 0;
    for (int trial = 0; trial < 40; ++trial) {
        const std::uint32_t cores = trial < 20 ? 1 : 2 + trial % 3;
        auto stream = random_stream(engine, 120, cores);
        const std::vector<Item> plain = stream;
        const auto place = insert_semaphores(stream);
        ASSERT_EQ(place.size(), plain.size() + 1);
        ASSERT_EQ(place.back(), stream.size());
        if (cores == 1) ASSERT_EQ(stream.size(), plain.size()) << "one core needs no sync";
        for (std::size_t i = 0; i < plain.size(); ++i) {
            // Its syncs, then itself.
            for (std::uint32_t at = place[i]; at + 1 < place[i + 1]; ++at, ++syncs) {
                ASSERT_EQ(stream[at].engine, simkernel::Engine::collective);
                ASSERT_EQ(stream[at].core, plain[i].core);
            }
            ASSERT_EQ(stream[place[i + 1] - 1].engine, plain[i].engine);
        }
        const auto before = happens_before(stream);
        for (std::size_t i = 0; i < stream.size(); ++i)
            for (std::size_t j = 0; j < i; ++j)
                ASSERT_TRUE(!conflict(stream[i], stream[j]) || before[i][j]) << "trial " << trial << ": " << j << " before " << i;
        std::map<simkernel::SemaphoreId, std::uint32_t> signalled;
        std::map<simkernel::SemaphoreId, std::set<std::uint32_t>> counts;
        std::map<simkernel::SemaphoreId, std::pair<std::uint32_t, simkernel::Engine>> owner;
        for (const Item& item : stream) {
            const auto common = simkernel::decode_common_fields(item.words);
            ASSERT_EQ(common.core, item.core);
            if (common.signal_add) {
                const auto id = simkernel::signalled(common);
                const auto [known, fresh] = owner.try_emplace(id, item.core, item.engine);
                EXPECT_EQ(known->second, std::pair(item.core, item.engine)) << "one signalling engine a semaphore";
                if (!common.signal_shared) EXPECT_EQ(common.signal_sem, static_cast<std::uint32_t>(item.engine));
                ++signalled[id];
            }
            for (std::size_t s = 0; s < 4; ++s)
                if (common.wait_value[s]) counts[simkernel::awaited(common, s)].insert(common.wait_value[s]);
        }
        EXPECT_EQ(counts.size(), signalled.size());
        for (const auto& [id, count] : signalled)
            EXPECT_EQ(counts[id].size(), count) << "each count of " << simkernel::semaphore_name(id, true) << " is awaited by somebody";
    }
    EXPECT_GT(syncs, 10u) << "some descriptor of several cores awaits more than four";
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
