// Operators that move data against plain index loops, byte for byte: random shapes, types, layouts and parameters, from a fixed seed.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "model_builder.hpp"
#include "run_program.hpp"
#include "workloads/lower/move_plan.hpp"

namespace assay::workloads::testing {
namespace {

using Index = std::vector<std::int64_t>;

std::mt19937& engine() {
    static std::mt19937 e(41);
    return e;
}
std::int64_t draw(std::int64_t low, std::int64_t high) { return low + static_cast<std::int64_t>(engine()() % static_cast<std::uint64_t>(high - low + 1)); }

Tensor random_tensor(const Shape& shape, DType type) {
    if (type == DType::f32) return random_floats(engine(), shape);
    if (type == DType::boolean) return random_integers(engine(), shape, type, 0, 1);
    if (type == DType::i32) return random_integers(engine(), shape, type, -1000000, 1000000);
    return random_integers(engine(), shape, type, type == DType::u8 ? 0 : -128, type == DType::u8 ? 255 : 127);
}

Tensor integers(const std::vector<std::int64_t>& values) {
    return make_tensor<std::int64_t>(DType::i64, {static_cast<std::int64_t>(values.size())}, values);
}

std::int64_t flat(const Index& index, const Shape& shape) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) at = at * shape[d] + index[d];
    return at;
}

/// The element of x that output index i shows; -1: zero.
using Source = std::function<std::int64_t(const Index&)>;

Tensor moved(const Tensor& x, const Shape& shape, const Source& source) {
    Tensor y(x.dtype, shape);
    const std::size_t size = size_of(x.dtype);
    Index index(shape.size(), 0);
    for (std::int64_t i = 0, n = element_count(shape); i < n; ++i) {
        if (const std::int64_t from = source(index); from >= 0)
            std::copy_n(x.bytes.begin() + from * static_cast<std::int64_t>(size), size, y.bytes.begin() + i * static_cast<std::int64_t>(size));
        for (std::size_t d = shape.size(); d-- > 0 && ++index[d] == shape[d];) index[d] = 0;
    }
    return y;
}

constexpr DType kTypes[] = {DType::f32, DType::i32, DType::i8, DType::u8, DType::boolean};

/// Runs a model of one node between x and y; a transposed copy of x is what the node reads when `transposed`, so that it meets a view.
struct Bench {
    Shape shape;
    DType type = DType::f32;
    bool transposed = false;
    const char* chip = "aurum-nano";
    ModelBuilder m{13};
    Tensor x;

    Bench(const Shape& s, DType t, bool view, int opset = 13) : shape(s), type(t), transposed(view), m(opset), x(random_tensor(s, t)) {
        Shape given = s;
        if (view) std::reverse(given.begin(), given.end());
        m.input("given", given, t).output("y");
        m.node(view ? "Transpose" : "Identity", {"given"}, {"x"});
    }
    Tensor given() const {
        if (!transposed) return x;
        Shape reversed = shape;
        std::reverse(reversed.begin(), reversed.end());
        return moved(x, reversed, [&](const Index& i) { return flat(Index(i.rbegin(), i.rend()), shape); });
    }
    RunResult run() {
        CompileOptions options;
        options.chip = preset(chip);
        return compile_and_run(m.model, options, {{"given", given()}});
    }
    void expect(const Shape& out, const Source& source, const std::string& what) {
        const RunResult result = run();
        EXPECT_TRUE(result.program.host_steps.empty()) << what << ": " << (result.program.host_steps.empty() ? "" : result.program.host_steps[0].reason);
        const Tensor want = moved(x, out, source);
        const auto y = result.tensors.find("y");
        ASSERT_NE(y, result.tensors.end()) << what;
        ASSERT_EQ(y->second.shape, out) << what << " of " << to_string(shape);
        ASSERT_EQ(y->second.dtype, type) << what;
        ASSERT_TRUE(y->second.bytes == want.bytes) << what << " of " << to_string(shape) << " " << name_of(type) << (transposed ? ", transposed" : "");
    }
};

Shape random_shape(std::size_t rank, std::int64_t most) {
    Shape shape;
    for (std::size_t d = 0; d < rank; ++d) shape.push_back(draw(1, most));
    return shape;
}

TEST(Movement, SliceOfEveryStepIsAView) {
    for (int i = 0; i < 60; ++i) {
        const auto rank = static_cast<std::size_t>(draw(1, 4));
        Bench b(random_shape(rank, 9), kTypes[i % 5], i % 2 == 1);
        std::vector<std::int64_t> starts, ends, axes, steps;
        Shape out = b.shape;
        Index first(rank, 0), step(rank, 1);
        for (std::size_t d = 0; d < rank; ++d) {
            const std::int64_t n = b.shape[d], s = draw(1, 3) * (draw(0, 1) ? 1 : -1), count = draw(1, (n - 1) / std::abs(s) + 1);
            first[d] = s > 0 ? draw(0, n - 1 - (count - 1) * s) : draw((count - 1) * -s, n - 1);
            step[d] = s;
            out[d] = count;
            const std::int64_t last = first[d] + (count - 1) * s;
            starts.push_back(draw(0, 1) ? first[d] : first[d] - n);
            // The end lies anywhere in the last step, past the border as the far constants that exporters write.
            const bool past = s > 0 ? last + s >= n : last + s < 0;
            ends.push_back(past ? (s > 0 ? INT64_MAX : INT64_MIN) : last + (s > 0 ? 1 : -1));
            axes.push_back(draw(0, 1) ? static_cast<std::int64_t>(d) : static_cast<std::int64_t>(d) - static_cast<std::int64_t>(rank));
            steps.push_back(s);
        }
        b.m.constant("starts", integers(starts)).constant("ends", integers(ends)).constant("axes", integers(axes)).constant("steps", integers(steps));
        b.m.node("Slice", {"x", "starts", "ends", "axes", "steps"}, {"y"});
        b.expect(out, [&](const Index& o) {
            Index in(rank);
            for (std::size_t d = 0; d < rank; ++d) in[d] = first[d] + o[d] * step[d];
            return flat(in, b.shape);
        }, "Slice");
    }
}

TEST(Movement, AChainOfViewsIntoConcatCostsOneMove) {
    Bench b({2, 8, 6, 5}, DType::f32, false);
    b.m.constant("at", integers({4}));
    attribute(b.m.node("Split", {"x"}, {"left", "right"}), "axis", std::int64_t{1});
    attribute(b.m.node("Concat", {"right", "left"}, {"y"}), "axis", std::int64_t{1});
    const RunResult result = b.run();
    EXPECT_EQ(result.program.layers.size(), 1u) << "the halves are read from where they lie";
    b.expect({2, 8, 6, 5}, [&](const Index& o) { return flat({o[0], (o[1] + 4) % 8, o[2], o[3]}, b.shape); }, "Split and Concat");
}

TEST(Movement, SplitOfUnequalParts) {
    for (const DType type : kTypes) {
        Bench b({3, 10, 4}, type, type == DType::i8);
        b.m.constant("split", integers({2, 5, 3}));
        attribute(b.m.node("Split", {"x", "split"}, {"a", "y", "c"}), "axis", std::int64_t{-2});
        b.m.output("a").output("c");
        const auto result = b.run();
        b.expect({3, 5, 4}, [&](const Index& o) { return flat({o[0], o[1] + 2, o[2]}, b.shape); }, "Split, middle");
        EXPECT_TRUE(result.tensors.at("a").bytes == moved(b.x, {3, 2, 4}, [&](const Index& o) { return flat(o, b.shape); }).bytes);
        EXPECT_TRUE(result.tensors.at("c").bytes == moved(b.x, {3, 3, 4}, [&](const Index& o) { return flat({o[0], o[1] + 7, o[2]}, b.shape); }).bytes);
    }
}

TEST(Movement, SplitByNumOutputsLeavesTheRestToTheLast) {
    Bench b({7, 3}, DType::f32, false, 18);
    attribute(b.m.node("Split", {"x"}, {"a", "b", "y"}), "num_outputs", std::int64_t{3});
    b.expect({1, 3}, [&](const Index& o) { return flat({o[0] + 6, o[1]}, b.shape); }, "Split-18");
}

TEST(Movement, ExpandAndTileRepeat) {
    for (int i = 0; i < 40; ++i) {
        const auto rank = static_cast<std::size_t>(draw(1, 4));
        Bench b(random_shape(rank, 5), kTypes[i % 5], i % 2 == 1);
        Shape repeats, out;
        for (std::size_t d = 0; d < rank; ++d) {
            repeats.push_back(draw(1, 4));
            out.push_back(b.shape[d] * repeats[d]);
        }
        b.m.constant("repeats", integers(repeats));
        b.m.node("Tile", {"x", "repeats"}, {"y"});
        b.expect(out, [&](Index o) {
            for (std::size_t d = 0; d < rank; ++d) o[d] %= b.shape[d];
            return flat(o, b.shape);
        }, "Tile by " + to_string(repeats));
    }
    Bench b({3, 1, 4}, DType::i32, true);
    b.m.constant("shape", integers({2, 1, 5, 1}));
    b.m.node("Expand", {"x", "shape"}, {"y"});
    b.expect({2, 3, 5, 4}, [&](const Index& o) { return flat({o[1], 0, o[3]}, b.shape); }, "Expand");
}

TEST(Movement, GatherByConstants) {
    for (int i = 0; i < 60; ++i) {
        const auto rank = static_cast<std::size_t>(draw(1, 4));
        Bench b(random_shape(rank, 12), kTypes[i % 5], i % 2 == 1);
        const auto axis = static_cast<std::size_t>(draw(0, static_cast<std::int64_t>(rank) - 1));
        const Shape shape = i % 3 == 0 ? Shape{} : random_shape(static_cast<std::size_t>(draw(1, 2)), 9);
        std::vector<std::int64_t> indices;
        for (std::int64_t k = 0; k < element_count(shape); ++k) indices.push_back(draw(-b.shape[axis], b.shape[axis] - 1));
        b.m.constant("indices", make_tensor<std::int64_t>(DType::i64, shape, indices));
        attribute(b.m.node("Gather", {"x", "indices"}, {"y"}), "axis", static_cast<std::int64_t>(axis));
        Shape out(b.shape.begin(), b.shape.begin() + static_cast<std::ptrdiff_t>(axis));
        out.insert(out.end(), shape.begin(), shape.end());
        out.insert(out.end(), b.shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, b.shape.end());
        b.expect(out, [&](const Index& o) {
            const auto begin = o.begin() + static_cast<std::ptrdiff_t>(axis);
            const std::int64_t index = indices[static_cast<std::size_t>(flat(Index(begin, begin + static_cast<std::ptrdiff_t>(shape.size())), shape))];
            Index in(o.begin(), begin);
            in.push_back(index < 0 ? index + b.shape[axis] : index);
            in.insert(in.end(), begin + static_cast<std::ptrdiff_t>(shape.size()), o.end());
            return flat(in, b.shape);
        }, "Gather of " + to_string(shape) + " along " + std::to_string(axis));
    }
}

std::int64_t padded_index(const std::string& mode, std::int64_t j, std::int64_t n) {
    if (j >= 0 && j < n) return j;
    if (mode == "constant") return -1;
    if (mode == "edge") return j < 0 ? 0 : n - 1;
    while (j < 0 || j >= n) {
        if (mode == "wrap")
            j += j < 0 ? n : -n;
        else
            j = n == 1 ? 0 : j < 0 ? -j : 2 * (n - 1) - j;
    }
    return j;
}

TEST(Movement, PadOfEveryModeAndSign) {
    const std::string modes[] = {"constant", "edge", "reflect", "wrap"};
    for (int i = 0; i < 80; ++i) {
        const auto rank = static_cast<std::size_t>(draw(1, 4));
        const std::string& mode = modes[i % 4];
        Bench b(random_shape(rank, 7), kTypes[i % 5], i % 3 == 1, mode == "wrap" ? 19 : 13);
        std::vector<std::int64_t> pads(2 * rank, 0);
        Shape out = b.shape;
        Index low(rank, 0), kept = b.shape;
        for (std::size_t d = 0; d < rank; ++d) {
            const std::int64_t n = b.shape[d];
            pads[d] = draw(-(n - 1) / 2, 3);
            pads[rank + d] = draw(-(n - 1) / 2, 3);
            low[d] = std::max<std::int64_t>(0, -pads[d]);
            kept[d] = n - low[d] - std::max<std::int64_t>(0, -pads[rank + d]);
            out[d] = n + pads[d] + pads[rank + d];
        }
        b.m.constant("pads", integers(pads));
        attribute(b.m.node("Pad", {"x", "pads"}, {"y"}), "mode", mode.c_str());
        b.expect(out, [&](const Index& o) {
            Index in(rank);
            for (std::size_t d = 0; d < rank; ++d) {
                const std::int64_t j = padded_index(mode, o[d] - std::max<std::int64_t>(0, pads[d]), kept[d]);
                if (j < 0) return std::int64_t{-1};
                in[d] = low[d] + j;
            }
            return flat(in, b.shape);
        }, "Pad " + mode + " " + to_string(pads));
    }
}

TEST(Movement, BlocksBothWays) {
    for (const char* mode : {"DCR", "CRD"})
        for (const bool view : {false, true}) {
            Bench b({2, 12, 3, 5}, view ? DType::i8 : DType::f32, view);
            auto& node = b.m.node("DepthToSpace", {"x"}, {"y"});
            attribute(node, "blocksize", std::int64_t{2});
            attribute(node, "mode", mode);
            b.expect({2, 3, 6, 10}, [&](const Index& o) {
                const std::int64_t row = o[2] % 2, col = o[3] % 2;
                const std::int64_t channel = mode[0] == 'D' ? (row * 2 + col) * 3 + o[1] : (o[1] * 2 + row) * 2 + col;
                return flat({o[0], channel, o[2] / 2, o[3] / 2}, b.shape);
            }, mode);
        }
    Bench b({1, 3, 4, 9}, DType::u8, false);
    b.shape = {1, 3, 4, 9};
    Bench s({2, 3, 6, 9}, DType::u8, true);
    attribute(s.m.node("SpaceToDepth", {"x"}, {"y"}), "blocksize", std::int64_t{3});
    s.expect({2, 27, 2, 3}, [&](const Index& o) {
        const std::int64_t block = o[1] / 3;
        return flat({o[0], o[1] % 3, o[2] * 3 + block / 3, o[3] * 3 + block % 3}, s.shape);
    }, "SpaceToDepth");
}

TEST(Movement, TriluKeepsBits) {
    for (const DType type : kTypes)
        for (const bool upper : {false, true})
            for (const std::int64_t k : {-9, -2, 0, 1, 9}) {
                if (type == DType::boolean) continue;  // ONNX allows it; the model builder has no shorter form
                Bench b({2, 5, 7}, type, type == DType::i32, 14);
                if (type == DType::f32) b.x.as<std::uint32_t>()[3] = 0x8000'0001u;  // a negative subnormal: no arithmetic may touch it
                b.m.constant("k", make_tensor<std::int64_t>(DType::i64, {}, std::vector<std::int64_t>{k}));
                attribute(b.m.node("Trilu", {"x", "k"}, {"y"}), "upper", std::int64_t{upper});
                b.expect(b.shape, [&](const Index& o) { return (upper ? o[2] >= o[1] + k : o[2] <= o[1] + k) ? flat(o, b.shape) : -1; }, "Trilu");
            }
}

TEST(Movement, ReverseSequenceByConstantLengths) {
    for (const bool view : {false, true}) {
        Bench b({6, 4, 3}, DType::f32, view);
        const std::vector<std::int64_t> lengths{1, 6, 4, 5};
        b.m.constant("lengths", integers(lengths));
        b.m.node("ReverseSequence", {"x", "lengths"}, {"y"});
        b.expect(b.shape, [&](const Index& o) {
            const std::int64_t n = lengths[static_cast<std::size_t>(o[1])];
            return flat({o[0] < n ? n - 1 - o[0] : o[0], o[1], o[2]}, b.shape);
        }, "ReverseSequence");
    }
}

TEST(Movement, NearestResizeByAnyFactor) {
    // asymmetric and floor: index = floor(o * in / out), which the integers give exactly.
    for (int i = 0; i < 40; ++i) {
        Bench b({draw(1, 2), draw(1, 5), draw(2, 9), draw(2, 9)}, kTypes[i % 4], i % 2 == 1);
        const Shape out{b.shape[0], b.shape[1], draw(1, 25), draw(1, 25)};
        b.m.constant("sizes", integers(out));
        auto& node = b.m.node("Resize", {"x", "", "", "sizes"}, {"y"});
        attribute(node, "coordinate_transformation_mode", "align_corners");
        attribute(node, "nearest_mode", "floor");
        b.expect(out, [&](const Index& o) {
            Index in = o;
            for (const std::size_t d : {2u, 3u})
                in[d] = out[d] > 1 ? static_cast<std::int64_t>(static_cast<double>(o[d]) * static_cast<double>(b.shape[d] - 1) / static_cast<double>(out[d] - 1)) : 0;
            return flat(in, b.shape);
        }, "Resize to " + to_string(out));
    }
    Bench b({1, 16, 13, 13}, DType::f32, false);
    b.m.constant("scales", make_tensor<float>(DType::f32, {4}, std::vector<float>{1, 1, 2, 2}));
    attribute(b.m.node("Resize", {"x", "", "scales"}, {"y"}), "coordinate_transformation_mode", "asymmetric");
    b.expect({1, 16, 26, 26}, [&](const Index& o) { return flat({0, o[1], o[2] / 2, o[3] / 2}, b.shape); }, "Resize by 2");
    const RunResult result = b.run();
    EXPECT_LT(result.program.descriptors.size(), 30u) << "an integer factor is one piece, not one a row";
}

TEST(Movement, GatherAndScatterByElementAndTuple) {
    for (int i = 0; i < 24; ++i) {
        const auto rank = static_cast<std::size_t>(draw(1, 3));
        const Shape shape = random_shape(rank, 8);
        const auto axis = static_cast<std::size_t>(draw(0, static_cast<std::int64_t>(rank) - 1));
        Shape picked;
        for (std::size_t d = 0; d < rank; ++d) picked.push_back(d == axis ? draw(1, 9) : draw(1, shape[d]));
        std::vector<std::int64_t> indices;
        for (std::int64_t k = 0; k < element_count(picked); ++k) indices.push_back(draw(-shape[axis], shape[axis] - 1));
        Bench b(shape, kTypes[i % 5], i % 2 == 1);
        b.m.constant("indices", make_tensor<std::int64_t>(DType::i64, picked, indices));
        attribute(b.m.node("GatherElements", {"x", "indices"}, {"y"}), "axis", static_cast<std::int64_t>(axis));
        b.expect(picked, [&](Index o) {
            const std::int64_t index = indices[static_cast<std::size_t>(flat(o, picked))];
            o[axis] = index < 0 ? index + shape[axis] : index;
            return flat(o, shape);
        }, "GatherElements");
    }
    Bench b({4, 5, 6}, DType::f32, true);
    const std::vector<std::int64_t> tuples{3, -1, 0, 2, 1, 1};
    b.m.constant("indices", make_tensor<std::int64_t>(DType::i64, {3, 2}, tuples));
    b.m.node("GatherND", {"x", "indices"}, {"y"});
    b.expect({3, 6}, [&](const Index& o) {
        const auto t = static_cast<std::size_t>(2 * o[0]);
        return flat({(tuples[t] + 4) % 4, (tuples[t + 1] + 5) % 5, o[1]}, b.shape);
    }, "GatherND");
}

TEST(Movement, ScatterWritesUpdatesOverACopy) {
    for (const bool view : {false, true}) {
        Bench b({5, 7, 3}, DType::i32, view, 16);
        const std::vector<std::int64_t> tuples{4, 0, 1, -2, 0, 6};
        const Tensor updates = random_tensor({3, 3}, DType::i32);
        b.m.constant("indices", make_tensor<std::int64_t>(DType::i64, {3, 2}, tuples));
        b.m.input("updates", updates.shape, DType::i32);
        b.m.node("ScatterND", {"x", "indices", "updates"}, {"y"});
        CompileOptions options;
        options.chip = preset("aurum-nano");
        const RunResult result = compile_and_run(b.m.model, options, {{"given", b.given()}, {"updates", updates}});
        Tensor want = b.x;
        for (std::int64_t t = 0; t < 3; ++t)
            for (std::int64_t c = 0; c < 3; ++c)
                want.as<std::int32_t>()[static_cast<std::size_t>(flat({tuples[static_cast<std::size_t>(2 * t)], (tuples[static_cast<std::size_t>(2 * t + 1)] + 7) % 7, c}, b.shape))] =
                    updates.as<std::int32_t>()[static_cast<std::size_t>(3 * t + c)];
        EXPECT_TRUE(result.program.host_steps.empty());
        EXPECT_TRUE(result.tensors.at("y").bytes == want.bytes);
    }
}

/// One axis of a resize in double: the input coordinate by the mode, then two or four neighbours clamped onto the border.
double sampled(const std::function<double(std::int64_t)>& at, std::int64_t n, std::int64_t out, std::int64_t o, const std::string& transform, bool cubic) {
    const double scale = static_cast<double>(out) / static_cast<double>(n);
    const double x = transform == "asymmetric"      ? static_cast<double>(o) / scale
                     : transform == "align_corners" ? (out > 1 ? static_cast<double>(o * (n - 1)) / static_cast<double>(out - 1) : 0)
                                                    : (static_cast<double>(o) + 0.5) / scale - 0.5;
    const auto f = static_cast<std::int64_t>(std::floor(x));
    const double t = x - static_cast<double>(f), a = -0.75;
    const auto v = [&](std::int64_t i) { return at(std::clamp<std::int64_t>(i, 0, n - 1)); };
    if (!cubic) return (1 - t) * v(f) + t * v(f + 1);
    double sum = 0;
    for (std::int64_t k = -1; k <= 2; ++k) {
        const double d = std::abs(t - static_cast<double>(k));
        const double w = d <= 1 ? (a + 2) * d * d * d - (a + 3) * d * d + 1 : a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a;
        sum += w * v(f + k);
    }
    return sum;
}

TEST(Interpolation, LinearAndCubicOfOneAndTwoAxes) {
    const char* transforms[] = {"half_pixel", "align_corners", "asymmetric"};
    for (int i = 0; i < 36; ++i) {
        const bool cubic = i % 2 == 1, view = i % 3 == 2, large = i == 4 || i == 5;
        const std::string transform = transforms[i / 2 % 3];
        Bench b(large ? Shape{2, 70, 40, 30} : Shape{draw(1, 2), draw(1, 9), draw(2, 9), draw(2, 9)}, DType::f32, view);
        Shape out = b.shape;
        if (i % 4 != 3) out[2] = i % 5 == 0 ? 2 * b.shape[2] : draw(1, 22);
        if (i % 4 != 2) out[3] = i % 5 == 0 ? 2 * b.shape[3] : draw(1, 22);
        b.m.constant("sizes", integers(out));
        auto& node = b.m.node("Resize", {"x", "", "", "sizes"}, {"y"});
        attribute(node, "mode", cubic ? "cubic" : "linear");
        attribute(node, "coordinate_transformation_mode", transform.c_str());
        const RunResult result = b.run();
        ASSERT_TRUE(result.program.host_steps.empty()) << result.program.host_steps[0].reason;
        const Tensor& y = result.tensors.at("y");
        ASSERT_EQ(y.shape, out);
        Index o(4, 0);
        for (std::int64_t e = 0, n = element_count(out); e < n; ++e) {
            const double g = sampled([&](std::int64_t r) {
                return sampled([&](std::int64_t c) { return b.x.value(flat({o[0], o[1], r, c}, b.shape)); }, b.shape[3], out[3], o[3], transform, cubic);
            }, b.shape[2], out[2], o[2], transform, cubic);
            // Weights of at most 1 in magnitude (cubic: their absolute sum is below 1.6), elements below 1: some roundings of 2^-24 each.
            ASSERT_NEAR(y.value(e), g, (cubic ? 40 : 8) * 0x1p-24) << transform << (cubic ? " cubic " : " linear ") << to_string(b.shape) << " to " << to_string(out) << " at " << e;
            for (std::size_t d = 4; d-- > 0 && ++o[d] == out[d];) o[d] = 0;
        }
    }
}

TEST(Interpolation, BetweenQuantisedTensorsRoundsOnce) {
    Bench b({1, 5, 6, 7}, DType::u8, false);
    b.m.scalar("s", 0.5f).zero_point("z", 20, DType::u8).constant("sizes", integers({1, 5, 12, 14}));
    b.m.node("DequantizeLinear", {"x", "s", "z"}, {"f"});
    attribute(b.m.node("Resize", {"f", "", "", "sizes"}, {"r"}), "mode", "linear");
    b.m.node("QuantizeLinear", {"r", "s", "z"}, {"y"});
    const RunResult result = b.run();
    EXPECT_TRUE(result.program.host_steps.empty());
    EXPECT_EQ(result.program.layers.size(), 1u);
    const Tensor& y = result.tensors.at("y");
    Index o(4, 0);
    for (std::int64_t e = 0; e < y.count(); ++e) {
        const double g = sampled([&](std::int64_t r) {
            return sampled([&](std::int64_t c) { return b.x.value(flat({0, o[1], r, c}, b.shape)); }, 7, 14, o[3], "half_pixel", false);
        }, 6, 12, o[2], "half_pixel", false);
        ASSERT_NEAR(y.value(e), g, 0.5 + 1e-4) << e;  // quarters and sixteenths: exact in fp32, so only the rounding is left
        for (std::size_t d = 4; d-- > 0 && ++o[d] == y.shape[d];) o[d] = 0;
    }
}

Tensor words(const Shape& shape, std::int64_t low, std::int64_t high) {
    Tensor t(DType::i32, shape);
    for (std::int32_t& v : t.as<std::int32_t>()) v = static_cast<std::int32_t>(draw(low, high));
    return t;
}

TEST(Movement, GatherByIndicesOfTheRunTime) {
    for (int i = 0; i < 40; ++i) {
        const auto rank = static_cast<std::size_t>(draw(1, 4));
        Bench b(random_shape(rank, 12), kTypes[i % 5], i % 2 == 1);
        const auto axis = static_cast<std::size_t>(draw(0, static_cast<std::int64_t>(rank) - 1));
        const Shape shape = i % 5 == 0 ? Shape{} : random_shape(static_cast<std::size_t>(draw(1, 2)), 9);
        const Tensor indices = words(shape, -b.shape[axis], b.shape[axis] - 1);
        b.m.input("indices", shape, DType::i32);
        attribute(b.m.node("Gather", {"x", "indices"}, {"y"}), "axis", static_cast<std::int64_t>(axis));
        CompileOptions options;
        options.chip = preset("aurum-nano");
        const RunResult result = compile_and_run(b.m.model, options, {{"given", b.given()}, {"indices", indices}});
        Shape out(b.shape.begin(), b.shape.begin() + static_cast<std::ptrdiff_t>(axis));
        out.insert(out.end(), shape.begin(), shape.end());
        out.insert(out.end(), b.shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, b.shape.end());
        const Tensor want = moved(b.x, out, [&](const Index& o) {
            const auto begin = o.begin() + static_cast<std::ptrdiff_t>(axis);
            const std::int64_t index = indices.integer(flat(Index(begin, begin + static_cast<std::ptrdiff_t>(shape.size())), shape));
            Index in(o.begin(), begin);
            in.push_back(index < 0 ? index + b.shape[axis] : index);
            in.insert(in.end(), begin + static_cast<std::ptrdiff_t>(shape.size()), o.end());
            return flat(in, b.shape);
        });
        EXPECT_TRUE(result.program.host_steps.empty()) << (result.program.host_steps.empty() ? "" : result.program.host_steps[0].reason);
        ASSERT_TRUE(result.tensors.at("y").bytes == want.bytes) << to_string(b.shape) << " by " << to_string(shape) << " along " << axis;
    }
}

TEST(Movement, AnEmbeddingLargerThanTheScratchpadIsLookedUpInTiles) {
    ModelBuilder m;
    const Tensor table = random_floats(engine(), {500, 300}), indices = words({2, 97}, -500, 499);  // 600 KB, 194 rows of 1200 bytes
    m.constant("table", table).input("indices", indices.shape, DType::i32).output("y");
    m.node("Gather", {"table", "indices"}, {"y"});
    CompileOptions options;
    options.chip = preset("aurum-nano");
    const RunResult result = compile_and_run(m.model, options, {{"indices", indices}});
    EXPECT_TRUE(result.program.host_steps.empty());
    const Tensor& y = result.tensors.at("y");
    for (std::int64_t i = 0; i < 194; ++i)
        for (std::int64_t c = 0; c < 300; ++c) {
            const std::int64_t row = (indices.integer(i) + 500) % 500;
            ASSERT_EQ(y.as<float>()[static_cast<std::size_t>(i * 300 + c)], table.as<float>()[static_cast<std::size_t>(row * 300 + c)]) << i << "," << c;
        }
}

TEST(Movement, ManyScatteredConstantIndicesGoThroughOneList) {
    Bench b({200, 40}, DType::f32, false);
    std::vector<std::int64_t> indices;
    for (int i = 0; i < 150; ++i) indices.push_back(draw(-200, 199));
    b.m.constant("indices", integers(indices));
    b.m.node("Gather", {"x", "indices"}, {"y"});
    b.expect({150, 40}, [&](const Index& o) { return flat({(indices[static_cast<std::size_t>(o[0])] + 200) % 200, o[1]}, b.shape); }, "Gather");
    EXPECT_LT(b.run().program.descriptors.size(), 40u);
}

TEST(Movement, ElementsByIndicesOfTheRunTime) {
    for (const std::int64_t axis : {0, 1}) {
        Bench b({9, 6}, DType::f32, axis == 1);
        const Shape picked = axis == 0 ? Shape{4, 6} : Shape{9, 8};
        const Tensor indices = words(picked, -b.shape[static_cast<std::size_t>(axis)], b.shape[static_cast<std::size_t>(axis)] - 1);
        b.m.input("indices", picked, DType::i32);
        attribute(b.m.node("GatherElements", {"x", "indices"}, {"y"}), "axis", axis);
        CompileOptions options;
        options.chip = preset("aurum-nano");
        const RunResult result = compile_and_run(b.m.model, options, {{"given", b.given()}, {"indices", indices}});
        const Tensor want = moved(b.x, picked, [&](Index o) {
            const std::int64_t index = indices.integer(flat(o, picked)), n = b.shape[static_cast<std::size_t>(axis)];
            o[static_cast<std::size_t>(axis)] = (index + n) % n;
            return flat(o, b.shape);
        });
        EXPECT_TRUE(result.program.host_steps.empty());
        EXPECT_TRUE(result.tensors.at("y").bytes == want.bytes) << "axis " << axis;
    }
}

TEST(Movement, ACacheIsUpdatedAtRowsOfTheRunTime) {
    for (const bool view : {false, true}) {
        Bench b({30, 2, 16}, DType::f32, view, 16);
        const Tensor indices = make_tensor<std::int32_t>(DType::i32, {3, 1}, std::vector<std::int32_t>{7, -1, 0});
        const Tensor updates = random_tensor({3, 2, 16}, DType::f32);
        b.m.input("indices", indices.shape, DType::i32).input("updates", updates.shape);
        b.m.node("ScatterND", {"x", "indices", "updates"}, {"y"});
        CompileOptions options;
        options.chip = preset("aurum-nano");
        const RunResult result = compile_and_run(b.m.model, options, {{"given", b.given()}, {"indices", indices}, {"updates", updates}});
        Tensor want = b.x;
        const std::int64_t rows[] = {7, 29, 0};
        for (std::int64_t r = 0; r < 3; ++r)
            std::copy_n(updates.bytes.begin() + r * 128, 128, want.bytes.begin() + rows[r] * 128);
        EXPECT_TRUE(result.program.host_steps.empty());
        EXPECT_TRUE(result.tensors.at("y").bytes == want.bytes);
    }
}

TEST(Movement, TensorsLargerThanTheScratchpadArePermutedInTiles) {
    for (const DType type : {DType::i8, DType::f32}) {
        Bench b({70, 50, 61}, type, false);  // 213 KB and 854 KB through 64 KiB
        attribute(b.m.node("Transpose", {"x"}, {"t"}), "perm", {2, 0, 1});
        b.m.constant("shape", integers({61 * 70, 50}));
        b.m.node("Reshape", {"t", "shape"}, {"y"});
        b.expect({61 * 70, 50}, [&](const Index& o) { return flat({o[0] % 70, o[1], o[0] / 70}, b.shape); }, "Transpose, flattened");
    }
}

TEST(Pieces, CoverEveryElementOnceInFewPieces) {
    const auto check = [](const std::vector<std::int64_t>& from, std::size_t most, const char* what) {
        std::vector<std::int64_t> to;
        for (std::size_t i = 0; i < from.size(); ++i) to.push_back(static_cast<std::int64_t>(i));
        std::vector<std::int64_t> got(from.size(), INT64_MIN);
        const auto pieces = cut_into_pieces(from, to);
        EXPECT_LE(pieces.size(), most) << what;
        for (const Piece& piece : pieces) {
            Shape index(piece.extents.size(), 0);
            for (std::int64_t i = 0, n = element_count(piece.extents); i < n; ++i) {
                std::int64_t a = piece.from_offset, b = piece.to_offset;
                for (std::size_t d = 0; d < index.size(); ++d) {
                    a += index[d] * piece.from[d];
                    b += index[d] * piece.to[d];
                }
                ASSERT_TRUE(b >= 0 && b < static_cast<std::int64_t>(got.size()) && got[static_cast<std::size_t>(b)] == INT64_MIN) << what;
                got[static_cast<std::size_t>(b)] = a;
                next_index(index, piece.extents);
            }
        }
        EXPECT_EQ(got, from) << what;
    };
    const auto list = [](int n, const std::function<std::int64_t(int)>& f) {
        std::vector<std::int64_t> v;
        for (int i = 0; i < n; ++i) v.push_back(f(i));
        return v;
    };
    check(list(64, [](int i) { return i; }), 1, "a progression");
    check(list(64, [](int i) { return i / 2; }), 1, "doubled");
    check(list(60, [](int i) { return i % 12; }), 1, "tiled");
    check(list(66, [](int i) { return i * 2 / 3; }), 2, "by 3/2");
    check(list(65, [](int i) { return i * 4 / 13; }), 13, "by 13/4");
    check({5}, 1, "one element");
    for (int i = 0; i < 50; ++i) check(list(static_cast<int>(draw(1, 40)), [](int) { return draw(0, 20); }), 40, "anything");
}

}  // namespace
}  // namespace assay::workloads::testing
