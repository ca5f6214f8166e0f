#include "simkernel/element_map.hpp"

#include <gtest/gtest.h>

namespace assay::simkernel {
namespace {

TEST(ElementMap, FindsEveryElementOfARearrangedTensorAndNoOther) {
    // Outputs [2, 5) and channels [1, 3) of a 6 x 4 x 3 x 2 convolution weight, stored tap by tap, 16 bytes from the slot's start.
    const std::array<std::int64_t, 4> extents{6, 4, 3, 2}, strides{24, 6, 2, 1};
    ElementMap map(6 * 4 * 3 * 2);
    map.add({2 * 24 + 1 * 6, 16, {3, 2, 3, 2}, strides, {2, 2 * 3, 2 * 3 * 2 * 2, 2 * 3 * 2}});
    std::int64_t held = 0;
    for (std::int64_t o = 0; o < extents[0]; ++o)
        for (std::int64_t c = 0; c < extents[1]; ++c)
            for (std::int64_t kh = 0; kh < extents[2]; ++kh)
                for (std::int64_t kw = 0; kw < extents[3]; ++kw) {
                    const auto offset = map.offset(o * 24 + c * 6 + kh * 2 + kw);
                    const bool inside = o >= 2 && o < 5 && c >= 1 && c < 3;
                    ASSERT_EQ(offset.has_value(), inside) << o << " " << c << " " << kh << " " << kw;
                    if (!inside) continue;
                    ASSERT_EQ(*offset, 16 + 2 * (o - 2) + 6 * (c - 1) + 24 * kh + 12 * kw);
                    ++held;
                }
    EXPECT_EQ(held, 3 * 2 * 3 * 2);
    EXPECT_FALSE(map.offset(-1));
    EXPECT_FALSE(map.offset(6 * 4 * 3 * 2));
}

TEST(ElementMap, TransposedDimensionsAreFoundInAnyOrder) {
    ElementMap map(12);
    map.add({0, 0, {4, 3, 1, 1}, {1, 4, 0, 0}, {12, 4, 0, 0}});  // row-major 3 x 4, stored as 4 x 3
    for (std::int64_t r = 0; r < 3; ++r)
        for (std::int64_t c = 0; c < 4; ++c) EXPECT_EQ(map.offset(r * 4 + c), 12 * c + 4 * r);
}

TEST(ElementMap, DenseAndEmpty) {
    EXPECT_TRUE(ElementMap().empty());
    EXPECT_TRUE(ElementMap::dense(0, 4).boxes().empty());
    const ElementMap map = ElementMap::dense(10, 4);
    EXPECT_EQ(map.offset(9), 36);
    EXPECT_FALSE(map.offset(10));
    EXPECT_TRUE(map.fits(40, 4));
    EXPECT_FALSE(map.fits(39, 4));
}

TEST(ElementMap, BoxesThatLeaveTheirTensorOrTheirBytesDoNotFit) {
    const auto fits = [](const ElementBox& box) {
        ElementMap map(24);
        map.add(box);
        return map.fits(48, 2);
    };
    EXPECT_TRUE(fits({0, 0, {4, 6, 1, 1}, {6, 1, 0, 0}, {12, 2, 0, 0}}));
    EXPECT_FALSE(fits({1, 0, {4, 6, 1, 1}, {6, 1, 0, 0}, {12, 2, 0, 0}})) << "an element past the last";
    EXPECT_FALSE(fits({-1, 0, {1, 1, 1, 1}, {}, {}}));
    EXPECT_FALSE(fits({0, 2, {4, 6, 1, 1}, {6, 1, 0, 0}, {12, 2, 0, 0}})) << "a byte past the last";
    EXPECT_FALSE(fits({0, 0, {4, 6, 1, 1}, {6, 1, 0, 0}, {-12, 2, 0, 0}}));
    EXPECT_FALSE(fits({0, 0, {0, 1, 1, 1}, {}, {}}));
    EXPECT_FALSE(fits({5, 0, {2, 1, 1, 1}, {-1, 0, 0, 0}, {2, 0, 0, 0}})) << "strides of elements are not negative";
    EXPECT_FALSE(fits({0, 0, {INT64_MAX, 2, 1, 1}, {1, 1, 0, 0}, {}}));
    EXPECT_FALSE(fits({0, 0, {1, 1, 2, 1}, {0, 0, 1, 0}, {0, 0, INT64_MAX, 0}}));
    EXPECT_FALSE(ElementMap(-1).fits(1, 1));
}

}  // namespace
}  // namespace assay::simkernel
