// If, Loop and Scan whose course the data decides: their bodies are run as graphs of their own.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include "golden/reference/graph.hpp"
#include "golden/reference/ops/stack.hpp"
#include "support/error.hpp"

namespace assay::golden {
namespace {

constexpr std::int64_t kMaxIterations = std::int64_t{1} << 17;  ///< a model may not hang the run

class Control {
public:
    Control(const Step& step, const Env& env, const Arithmetic& arithmetic) : step_(step), env_(env), arithmetic_(arithmetic) {}

    std::vector<Value> run() {
        const std::string& op = step_.proto->op_type();
        std::vector<Value> out = op == "If" ? branch() : op == "Loop" ? loop() : step_.op.version < 9 ? scan_batches() : scan();
        if (uncertain_)
            for (Value& value : out) value.err.assign(static_cast<std::size_t>(value.count()), HUGE_VAL);
        return out;
    }

private:
    [[noreturn]] void fail(const std::string& what) const { throw Error(ErrorKind::bad_input, step_.label + ": " + what); }

    const Value& input(std::size_t i) const {
        const Value* value = i < step_.inputs.size() && !step_.inputs[i].empty() ? env_.find(step_.inputs[i]) : nullptr;
        if (!value) fail(fmt::format("input {} is missing", i));
        return *value;
    }
    bool given(std::size_t i) const { return i < step_.inputs.size() && !step_.inputs[i].empty(); }

    std::int64_t scalar(const Value& value, const char* what) {
        if (value.floating() || value.count() != 1)
            fail(fmt::format("{} is {} of shape {}, must be one element", what, name_of(value.dtype), to_string(value.shape)));
        uncertain_ |= value.error(0) > 0;
        return value.n[0];
    }

    /// Runs a body on its formal inputs and gives its results.
    std::vector<Value> call(const Graph& body, std::vector<Value> arguments) const {
        Env env(body, &env_);
        for (std::size_t i = 0; i < arguments.size(); ++i) env.own[body.formals[i]] = std::move(arguments[i]);
        for (const Step& step : body.steps) evaluate(step, env, arithmetic_);
        std::vector<Value> out;
        for (const std::string& result : body.results) out.push_back(*env.find(result));
        return out;
    }

    std::vector<Value> branch() { return call(*step_.bodies[scalar(input(0), "the condition") ? 0 : 1], {}); }

    std::vector<Value> loop() {
        const Graph& body = *step_.bodies[0];
        const std::int64_t trips = given(0) ? scalar(input(0), "the trip count") : kMaxIterations + 1;
        bool go = !given(1) || scalar(input(1), "the condition") != 0;
        std::vector<Value> state;
        for (std::size_t i = 2; i < step_.inputs.size(); ++i) state.push_back(input(i));
        const std::size_t carried = state.size();
        if (body.formals.size() != carried + 2 || body.results.size() < carried + 1)
            fail(fmt::format("the body takes {} values and gives {}, with {} carried", body.formals.size(), body.results.size(), carried));
        std::vector<std::vector<Value>> scans(body.results.size() - carried - 1);
        for (std::int64_t i = 0; go && i < trips; ++i) {
            if (i >= kMaxIterations) fail(fmt::format("goes on past {} iterations", kMaxIterations));
            Value iteration(DType::i64, {}), condition(DType::boolean, {});
            iteration.n[0] = i;
            condition.n[0] = 1;
            std::vector<Value> arguments{std::move(iteration), std::move(condition)};
            std::move(state.begin(), state.end(), std::back_inserter(arguments));
            std::vector<Value> results = call(body, std::move(arguments));
            go = scalar(results[0], "the condition that the body gives") != 0;
            state.assign(std::make_move_iterator(results.begin() + 1), std::make_move_iterator(results.begin() + 1 + static_cast<std::ptrdiff_t>(carried)));
            for (std::size_t k = 0; k < scans.size(); ++k) scans[k].push_back(std::move(results[1 + carried + k]));
        }
        for (std::size_t k = 0; k < scans.size(); ++k) state.push_back(stacked(scans[k], 0, 1 + carried + k));
        return state;
    }

    /// Results of the iterations along a new axis. Without one the declared shape stands in (dimensions left open are 0).
    Value stacked(const std::vector<Value>& parts, std::int64_t axis, std::size_t result) const {
        if (parts.empty()) return step_.bodies[0]->empty_results.at(result);
        const std::int64_t rank = parts[0].rank() + 1;
        if (axis < -rank || axis >= rank) fail(fmt::format("scan output axis {} is outside [{}, {})", axis, -rank, rank));
        std::vector<const Value*> in;
        for (const Value& part : parts) in.push_back(&part);
        return ops::stack(in, axis < 0 ? axis + rank : axis, step_.label);
    }

    std::vector<std::int64_t> attribute(const char* name, std::size_t size) const {
        for (const auto& a : step_.proto->attribute())
            if (a.name() == name) {
                if (static_cast<std::size_t>(a.ints_size()) != size) fail(fmt::format("{} has {} entries, needs {}", name, a.ints_size(), size));
                return {a.ints().begin(), a.ints().end()};
            }
        return std::vector<std::int64_t>(size, 0);
    }

    std::vector<Value> scan_over(std::vector<Value> state, const std::vector<const Value*>& sequences, const std::vector<std::int64_t>& axes,
                                 const std::vector<std::int64_t>& backwards, std::int64_t length) {
        const Graph& body = *step_.bodies[0];
        const std::size_t states = state.size();
        if (body.formals.size() != states + sequences.size() || body.results.size() < states)
            fail(fmt::format("the body takes {} values and gives {}, with {} states and {} sequences", body.formals.size(), body.results.size(),
                             states, sequences.size()));
        const std::size_t outputs = body.results.size() - states;
        const bool old = step_.op.version < 9;
        const auto out_axes = old ? std::vector<std::int64_t>(outputs, 0) : attribute("scan_output_axes", outputs);
        const auto out_backwards = old ? std::vector<std::int64_t>(outputs, 0) : attribute("scan_output_directions", outputs);
        std::vector<std::vector<Value>> scans(outputs);
        for (std::int64_t i = 0; i < length; ++i) {
            std::vector<Value> arguments = std::move(state);
            for (std::size_t k = 0; k < sequences.size(); ++k)
                arguments.push_back(ops::slice_at(*sequences[k], axes[k], backwards[k] ? length - 1 - i : i));
            std::vector<Value> results = call(body, std::move(arguments));
            state.assign(std::make_move_iterator(results.begin()), std::make_move_iterator(results.begin() + static_cast<std::ptrdiff_t>(states)));
            for (std::size_t k = 0; k < outputs; ++k) scans[k].push_back(std::move(results[states + k]));
        }
        for (std::size_t k = 0; k < outputs; ++k) {
            if (out_backwards[k]) std::reverse(scans[k].begin(), scans[k].end());
            state.push_back(stacked(scans[k], out_axes[k], states + k));
        }
        return state;
    }

    std::size_t sequence_count() const {
        for (const auto& a : step_.proto->attribute())
            if (a.name() == "num_scan_inputs" && a.i() >= 1 && a.i() <= static_cast<std::int64_t>(step_.inputs.size())) return static_cast<std::size_t>(a.i());
        fail("num_scan_inputs is missing or larger than the number of inputs");
    }

    std::vector<Value> scan() {
        const std::size_t m = sequence_count(), n = step_.inputs.size() - m;
        std::vector<Value> state;
        for (std::size_t i = 0; i < n; ++i) state.push_back(input(i));
        std::vector<std::int64_t> axes = attribute("scan_input_axes", m);
        std::vector<const Value*> sequences;
        std::int64_t length = -1;
        for (std::size_t k = 0; k < m; ++k) {
            const Value& x = input(n + k);
            if (axes[k] < -x.rank() || axes[k] >= x.rank()) fail(fmt::format("scan input axis {} of {}", axes[k], to_string(x.shape)));
            if (axes[k] < 0) axes[k] += x.rank();
            const std::int64_t here = x.shape[static_cast<std::size_t>(axes[k])];
            if (length >= 0 && here != length) fail(fmt::format("sequences of {} and {} elements", length, here));
            length = here;
            sequences.push_back(&x);
        }
        return scan_over(std::move(state), sequences, axes, attribute("scan_input_directions", m), length);
    }

    /// Scan-8: a leading batch axis on everything, the sequence axis second, and lengths by batch in input 0.
    std::vector<Value> scan_batches() {
        const std::size_t m = sequence_count(), n = step_.inputs.size() - 1 - m;
        if (step_.inputs.size() < 1 + m) fail("has too few inputs");
        const std::int64_t batches = input(1).rank() ? input(1).shape[0] : 0;
        std::vector<std::vector<Value>> results;
        std::int64_t longest = 0;
        for (std::int64_t b = 0; b < batches; ++b) {
            std::vector<Value> state, parts;
            std::vector<const Value*> sequences;
            for (std::size_t i = 0; i < n + m; ++i) {
                const Value& x = input(1 + i);
                if (x.rank() < (i < n ? 1 : 2) || x.shape[0] != batches) fail(fmt::format("input {} has shape {}", 1 + i, to_string(x.shape)));
                (i < n ? state : parts).push_back(ops::slice_at(x, 0, b));
            }
            for (const Value& part : parts) sequences.push_back(&part);
            std::int64_t length = m ? parts[0].shape[0] : 0;
            for (const Value& part : parts)
                if (part.shape[0] != length) fail("sequences of different lengths");
            longest = length;
            if (given(0)) {
                const Value& lengths = input(0);
                if (lengths.floating() || lengths.count() != batches) fail(fmt::format("sequence_lens has shape {}", to_string(lengths.shape)));
                length = lengths.n[static_cast<std::size_t>(b)];
                if (length < 1 || length > longest) fail(fmt::format("a sequence of {} in {} elements", length, longest));
            }
            std::vector<std::int64_t> backwards = attribute("directions", m);
            results.push_back(scan_over(std::move(state), sequences, std::vector<std::int64_t>(m, 0), backwards, length));
            for (std::size_t k = n; k < results.back().size(); ++k) {  // shorter sequences are filled up with zeros
                Value& y = results.back()[k];
                Shape shape = y.shape;
                shape[0] = longest;
                std::vector<std::int64_t> index(static_cast<std::size_t>(element_count(shape)), -1);
                for (std::int64_t i = 0; i < y.count(); ++i) index[static_cast<std::size_t>(i)] = i;
                y = y.gather(index, shape);
            }
        }
        if (results.empty()) fail("has no batch");
        std::vector<Value> out;
        for (std::size_t k = 0; k < results[0].size(); ++k) {
            std::vector<const Value*> in;
            for (const auto& r : results) in.push_back(&r[k]);
            out.push_back(ops::stack(in, 0, step_.label));
        }
        return out;
    }

    const Step& step_;
    const Env& env_;
    const Arithmetic& arithmetic_;
    bool uncertain_ = false;  ///< the chip may honestly take another way
};

}  // namespace

std::vector<Value> run_control(const Step& step, const Env& env, const Arithmetic& arithmetic) { return Control(step, env, arithmetic).run(); }

}  // namespace assay::golden
