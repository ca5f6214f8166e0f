#include "simkernel/exec/touch_map.hpp"

#include <algorithm>
#include <bitset>
#include <random>

#include <gtest/gtest.h>

#include "tests/simkernel/program_builder.hpp"

namespace assay::simkernel {
namespace {

using Space = AccessRange::Space;
constexpr std::size_t kMany = 300;

struct Touch {
    std::uint32_t core = 0;
    std::vector<AccessRange> ranges;
};

/// By definition: both touch a byte of one memory between a range's first and last, and one of the two writes.
bool conflict(const Touch& a, const Touch& b) {
    for (const AccessRange& x : a.ranges)
        for (const AccessRange& y : b.ranges) {
            if (x.space != y.space || (x.space != Space::ext && a.core != b.core) || (!x.write && !y.write)) continue;
            const auto [x_low, x_high] = bounds(x);
            const auto [y_low, y_high] = bounds(y);
            if (x_low < y_high && y_low < x_high) return true;
        }
    return false;
}

Touch random_touch(std::mt19937_64& random) {
    Touch touch{static_cast<std::uint32_t>(random() % 2), {}};
    for (std::size_t i = 0; i < 1 + random() % 3; ++i) {
        AccessRange range;
        range.space = static_cast<Space>(random() % 3);
        range.write = i == 0 && random() % 2 == 0;
        range.base = 100 + random() % 200;
        range.run = 1 + random() % 20;
        if (random() % 2 == 0) range.dims = {{1 + random() % 4, static_cast<std::int64_t>(random() % 40) - 20}};
        touch.ranges.push_back(range);
    }
    return touch;
}

TEST(TouchMap, NamesConflictsAloneAndLeavesNoneUnordered) {
    ChipConfig config = testing::nano();
    config.cores = 2;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        std::mt19937_64 random(seed);
        TouchMap map(config, kMany);
        std::vector<Touch> touches;
        std::vector<std::bitset<kMany>> after(kMany);  // [i][j]: i follows j, by way of others or not
        std::uint64_t oldest = 0;
        for (std::uint64_t id = 0; id < kMany; ++id) {
            touches.push_back(random_touch(random));
            if (random() % 8 == 0) oldest += random() % (id - oldest + 1);  // what is older has finished
            std::vector<TouchMap::Id> before;
            map.followed(touches[id].core, touches[id].ranges, id, oldest, before);
            for (const TouchMap::Id other : before) {
                ASSERT_GE(other, oldest);
                ASSERT_LT(other, id);
                EXPECT_TRUE(conflict(touches[id], touches[other])) << id << " follows " << other << " for nothing, seed " << seed;
                EXPECT_EQ(std::count(before.begin(), before.end(), other), 1);
                after[id] |= after[other];
                after[id].set(other);
            }
            for (std::uint64_t other = oldest; other < id; ++other)
                if (conflict(touches[id], touches[other])) { ASSERT_TRUE(after[id][other]) << id << " may pass " << other << ", seed " << seed; }
            map.note(touches[id].core, touches[id].ranges, id, oldest);
        }
    }
}

TEST(TouchMap, CoresShareTheExternalMemoryAlone) {
    ChipConfig config = testing::nano();
    config.cores = 2;
    TouchMap map(config, 16);
    const auto write = [](Space space) { return std::vector<AccessRange>{{space, true, 64, 8, {}}}; };
    for (const Space space : {Space::spm, Space::acc, Space::ext}) map.note(0, write(space), static_cast<TouchMap::Id>(space), 0);
    const auto followed = [&](std::uint32_t core, Space space, TouchMap::Id id) {
        std::vector<TouchMap::Id> before;
        map.followed(core, write(space), id, 0, before);
        return before;
    };
    EXPECT_EQ(followed(1, Space::ext, 10), std::vector<TouchMap::Id>{static_cast<TouchMap::Id>(Space::ext)});
    EXPECT_TRUE(followed(1, Space::spm, 11).empty());
    EXPECT_TRUE(followed(1, Space::acc, 12).empty());
    EXPECT_EQ(followed(0, Space::acc, 13), std::vector<TouchMap::Id>{static_cast<TouchMap::Id>(Space::acc)});
}

TEST(TouchMap, ARangeThatLeavesTheAddressSpaceIsEverything) {
    const AccessRange below{Space::ext, true, 8, 4, {{3, -100}}}, above{Space::ext, true, UINT64_MAX - 8, 4, {{3, 100}}};
    for (const AccessRange& range : {below, above}) EXPECT_EQ(bounds(range), (std::pair<std::uint64_t, std::uint64_t>{0, UINT64_MAX}));
}

}  // namespace
}  // namespace assay::simkernel
