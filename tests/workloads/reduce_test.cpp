// Reductions over every set of dimensions, in tiles and in carried pieces, against plain sums in double.
#include <gtest/gtest.h>

#include <cmath>

#include "model_builder.hpp"
#include "run_program.hpp"

namespace assay::workloads::testing {
namespace {

/// What the operator makes of the elements of one group.
double reduce(const std::string& op, const std::vector<double>& v) {
    double sum = 0, magnitude = 0, square = 0, most = v[0], least = v[0];
    for (const double x : v) {
        sum += x;
        magnitude += std::abs(x);
        square += x * x;
        most = std::max(most, x);
        least = std::min(least, x);
    }
    if (op == "ReduceSum") return sum;
    if (op == "ReduceMean") return sum / static_cast<double>(v.size());
    if (op == "ReduceMax") return most;
    if (op == "ReduceMin") return least;
    if (op == "ReduceL1") return magnitude;
    if (op == "ReduceL2") return std::sqrt(square);
    if (op == "ReduceSumSquare") return square;
    return std::log(sum);  // ReduceLogSum
}

TEST(Reduce, AnyDimensionsOfAnyTensor) {
    const Shape shapes[] = {{7}, {5, 9}, {3, 4, 5, 6}, {2, 40, 33}, {3, 9000}, {9000, 3}};
    const char* const operators[] = {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum"};
    std::mt19937 engine(41);
    int checked = 0;
    std::size_t turn = 0;
    for (const Shape& shape : shapes)
        for (unsigned set = 1; set < 1u << shape.size(); ++set)
            for (const bool keep : {true, false}) {
                const std::string op = operators[turn++ % std::size(operators)];
                const Tensor x = random_floats(engine, shape, op == "ReduceLogSum" ? 0.5f : -2.0f, 2.0f);
                std::vector<std::int64_t> axes;
                for (std::size_t d = 0; d < shape.size(); ++d)
                    if (set >> d & 1) axes.push_back(static_cast<std::int64_t>(d));
                ModelBuilder m(11);
                m.input("x", shape).output("y");
                auto& node = m.node(op, {"x"}, {"y"});
                attribute(node, "axes", axes);
                attribute(node, "keepdims", std::int64_t{keep});
                CompileOptions options;
                options.chip = preset("aurum-nano");
                const RunResult result = compile_and_run(m.model, options, {{"x", x}});
                ASSERT_TRUE(result.program.host_steps.empty()) << op << " ran on the host: " << result.program.host_steps[0].reason;
                std::vector<std::vector<double>> groups;
                std::map<std::int64_t, std::size_t> place;
                for (std::int64_t i = 0; i < x.count(); ++i) {
                    std::int64_t rest = i, key = 0, scale = 1;
                    for (std::size_t d = shape.size(); d-- > 0; rest /= shape[d])
                        if (!(set >> d & 1)) {
                            key += rest % shape[d] * scale;
                            scale *= shape[d];
                        }
                    if (place.try_emplace(key, groups.size()).second) groups.emplace_back();
                    groups[place[key]].push_back(x.value(i));
                }
                const Tensor& y = result.tensors.at("y");
                ASSERT_EQ(y.count(), static_cast<std::int64_t>(groups.size()));
                for (const auto& [key, group] : place) {
                    double magnitude = 0;
                    for (const double v : groups[group]) magnitude += std::abs(v) + v * v;
                    const double allowed = op == "ReduceMax" || op == "ReduceMin" ? 0 : 0x1p-20 * (1 + magnitude);
                    ASSERT_NEAR(y.value(key), reduce(op, groups[group]), allowed) << op << " of " << to_string(shape) << " set " << set;
                    ++checked;
                }
            }
    EXPECT_GT(checked, 5000);
}

TEST(Reduce, IntegersAndWhatFollows) {
    std::mt19937 engine(42);
    const Tensor x = random_integers(engine, {6, 50}, DType::i32, -1000, 1000);
    const Tensor f = random_floats(engine, {6, 50});
    ModelBuilder m(13);
    m.input("x", x.shape, DType::i32).input("f", f.shape).output("most").output("y").scalar("eps", 0.25f);
    attribute(m.node("ReduceMax", {"x"}, {"most"}), "axes", std::vector<std::int64_t>{1});
    attribute(m.node("ReduceMean", {"f"}, {"mean"}), "axes", std::vector<std::int64_t>{1});
    m.node("Add", {"mean", "eps"}, {"sum"});
    m.node("Exp", {"sum"}, {"y"});
    CompileOptions options;
    options.chip = preset("aurum-nano");
    const RunResult result = compile_and_run(m.model, options, {{"x", x}, {"f", f}});
    EXPECT_EQ(result.program.layers.size(), 2u);
    for (std::int64_t row = 0; row < 6; ++row) {
        std::int64_t most = -9999;
        double mean = 0;
        for (std::int64_t i = 0; i < 50; ++i) {
            most = std::max(most, x.integer(row * 50 + i));
            mean += f.value(row * 50 + i) / 50;
        }
        EXPECT_EQ(result.tensors.at("most").integer(row), most);
        EXPECT_NEAR(result.tensors.at("y").value(row), std::exp(mean + 0.25), 1e-5);
    }
}

}  // namespace
}  // namespace assay::workloads::testing
