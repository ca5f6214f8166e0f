// RNN, GRU and LSTM (-7, -14, -22): every direction, activation and initial state of the specification, one step after another.
#include <array>
#include <functional>
#include <map>

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include "golden/reference/bounded.hpp"
#include "golden/reference/matrix.hpp"
#include "golden/reference/ops/kernels.hpp"

namespace assay::golden::ops {
namespace {

using Row = std::vector<Bounded>;
using Activation = std::function<Bounded(Bounded)>;

std::vector<std::string> texts(const Node& node, std::string_view name) {
    std::vector<std::string> out;
    if (const onnx::AttributeProto* a = node.attribute(name)) out.assign(a->strings().begin(), a->strings().end());
    return out;
}
std::vector<double> reals(const Node& node, std::string_view name) {
    std::vector<double> out;
    if (const onnx::AttributeProto* a = node.attribute(name)) out.assign(a->floats().begin(), a->floats().end());
    return out;
}

/// What the three operators share. Gates of W and R lie one after another, `gates` times hidden rows a direction.
class Recurrent {
public:
    Recurrent(const Node& node, std::int64_t gates, std::vector<std::string> defaults)
        : node_(node), math_(node.numerics()), gates_(gates), x_(node.real(0)), w_(node.real(1)), r_(node.real(2)) {
        layout_ = node.version() >= 14 ? node.integer("layout", 0) : 0;
        direction_ = node.text("direction", "forward");
        directions_ = direction_ == "bidirectional" ? 2 : 1;
        if (direction_ != "forward" && direction_ != "reverse" && direction_ != "bidirectional")
            node.fail(fmt::format("direction=\"{}\" is not known; use forward, reverse or bidirectional", direction_));
        if (x_.rank() != 3 || w_.rank() != 3 || r_.rank() != 3) node.fail("X, W and R have three dimensions");
        steps_ = x_.shape[layout_ ? 1 : 0];
        batch_ = x_.shape[layout_ ? 0 : 1];
        input_ = x_.shape[2];
        hidden_ = r_.shape[2];
        if (node.integer("hidden_size", hidden_) != hidden_ || w_.shape != Shape{directions_, gates * hidden_, input_} || r_.shape != Shape{directions_, gates * hidden_, hidden_})
            node.fail(fmt::format("W {} and R {} do not fit X {} and {} directions", to_string(w_.shape), to_string(r_.shape), to_string(x_.shape), directions_));
        clip_ = node.attribute("clip") ? node.real("clip", 0) : 0;
        std::vector<std::string> names = texts(node, "activations");
        const std::vector<double> alpha = reals(node, "activation_alpha"), beta = reals(node, "activation_beta");
        if (names.empty())
            for (std::int64_t d = 0; d < directions_; ++d) names.insert(names.end(), defaults.begin(), defaults.end());
        if (names.size() != static_cast<std::size_t>(directions_) * defaults.size()) node.fail(fmt::format("{} activations for {} directions", names.size(), directions_));
        std::size_t a = 0, b = 0;
        for (const std::string& name : names) activations_.push_back(activation(name, alpha, beta, a, b));
        per_direction_ = defaults.size();
        check_count(3, directions_ * 2 * gates * hidden_);
        if (gates == 4) check_count(7, directions_ * 3 * hidden_);
        if (node.has(4)) lengths_ = node.integers(4);
        if (!lengths_.empty() && static_cast<std::int64_t>(lengths_.size()) != batch_) node.fail(fmt::format("{} sequence lengths for a batch of {}", lengths_.size(), batch_));
    }

    /// step(direction, batch row, gates of x W^T + its bias, h and c before) leaves h and c. The recurrent part is the cell's own affair.
    using Step = std::function<void(std::int64_t direction, const Row& projected, Row& h, Row& c)>;

    Outputs run(const Step& step, bool has_cell) {
        const Shape y_shape = layout_ ? Shape{batch_, steps_, directions_, hidden_} : Shape{steps_, directions_, batch_, hidden_};
        const Shape last_shape = layout_ ? Shape{batch_, directions_, hidden_} : Shape{directions_, batch_, hidden_};
        Value y(x_.dtype, y_shape), y_h(x_.dtype, last_shape), y_c(x_.dtype, last_shape);
        for (Value* v : {&y, &y_h, &y_c})
            if (node_.bounds()) v->err.assign(v->f.size(), 0.0);
        for (std::int64_t d = 0; d < directions_; ++d) {
            const bool backwards = direction_ == "reverse" || d == 1;
            const Product projected = project(d);
            for (std::int64_t n = 0; n < batch_; ++n) {
                Row h = state(5, d, n), c = has_cell ? state(6, d, n) : Row();
                const std::int64_t length = lengths_.empty() ? steps_ : lengths_[static_cast<std::size_t>(n)];
                if (length < 0 || length > steps_) node_.fail(fmt::format("sequence length {} of {} steps", length, steps_));
                for (std::int64_t s = 0; s < length; ++s) {
                    const std::int64_t t = backwards ? length - 1 - s : s;
                    Row gates(static_cast<std::size_t>(gates_ * hidden_));
                    for (std::int64_t g = 0; g < gates_ * hidden_; ++g) {
                        const Eigen::Index row = t * batch_ + n;
                        const Bounded p{projected.value(row, g), projected.err.size() ? projected.err(row, g) : 0.0};
                        gates[static_cast<std::size_t>(g)] = node_.has(3) ? math_.add(p, bias(d, g)) : p;
                    }
                    step(d, gates, h, c);
                    for (std::int64_t i = 0; i < hidden_; ++i)
                        put(y, layout_ ? ((n * steps_ + t) * directions_ + d) * hidden_ + i : ((t * directions_ + d) * batch_ + n) * hidden_ + i, h[static_cast<std::size_t>(i)]);
                }
                for (std::int64_t i = 0; i < hidden_; ++i) {
                    const std::int64_t at = layout_ ? (n * directions_ + d) * hidden_ + i : (d * batch_ + n) * hidden_ + i;
                    put(y_h, at, h[static_cast<std::size_t>(i)]);
                    if (has_cell) put(y_c, at, c[static_cast<std::size_t>(i)]);
                }
            }
        }
        return {std::move(y), std::move(y_h), std::move(y_c)};
    }

    /// v R^T for gates [first, first + count).
    Row recur(std::int64_t direction, const Row& v, std::int64_t first, std::int64_t count) {
        Operand a{Matrix(1, hidden_), {}};
        Operand& b = recurrence_[{direction, first, count}];  // the same at every step
        if (b.value.rows() != hidden_) b = turned(r_, (direction * gates_ + first) * hidden_, count * hidden_, hidden_);
        bool errors = false;
        for (std::int64_t i = 0; i < hidden_; ++i) {
            a.value(0, i) = v[static_cast<std::size_t>(i)].v;
            errors = errors || v[static_cast<std::size_t>(i)].e > 0;
        }
        if (errors) {
            a.err.resize(1, hidden_);
            for (std::int64_t i = 0; i < hidden_; ++i) a.err(0, i) = v[static_cast<std::size_t>(i)].e;
        }
        Product p = multiply(a, b, node_.numerics(), false);
        add_bias(p, {}, {}, false, node_.numerics());
        Row out(static_cast<std::size_t>(count * hidden_));
        for (std::size_t g = 0; g < out.size(); ++g) {
            const auto at = static_cast<Eigen::Index>(g);
            out[g] = {p.value(0, at), p.err.size() ? p.err(0, at) : 0.0};
        }
        return out;
    }
    /// Rb of a gate's unit; zero without B.
    Bounded recurrence_bias(std::int64_t direction, std::int64_t gate_unit) const {
        return node_.has(3) ? element(node_.in(3), (direction * 2 + 1) * gates_ * hidden_ + gate_unit) : Bounded{};
    }
    Bounded peephole(std::int64_t direction, std::int64_t which, std::int64_t unit) const {
        return node_.has(7) ? element(node_.in(7), (direction * 3 + which) * hidden_ + unit) : Bounded{};
    }
    Bounded activate(std::int64_t direction, std::size_t which, Bounded x) const {
        if (clip_ > 0) x = math_.clamp(x, clip_);
        return activations_[static_cast<std::size_t>(direction) * per_direction_ + which](x);
    }
    const BoundedArithmetic& math() const { return math_; }
    std::int64_t hidden() const { return hidden_; }

private:
    void check_count(std::size_t input, std::int64_t count) const {
        if (node_.has(input) && node_.real(input).count() != count)
            node_.fail(fmt::format("input {} has shape {}, needs {} elements", input, to_string(node_.in(input).shape), count));
    }
    /// Rows [first, first + rows) of the last two dimensions of `v`, transposed.
    static Operand turned(const Value& v, std::int64_t first, std::int64_t rows, std::int64_t cols) {
        Operand out{Matrix(cols, rows), {}};
        if (!v.err.empty()) out.err.resize(cols, rows);
        for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t c = 0; c < cols; ++c) {
                out.value(c, r) = v.at((first + r) * cols + c);
                if (!v.err.empty()) out.err(c, r) = v.error((first + r) * cols + c);
            }
        return out;
    }
    static Bounded element(const Value& v, std::int64_t i) { return {v.at(i), v.error(i)}; }
    void put(Value& v, std::int64_t at, Bounded b) const {
        v.f[static_cast<std::size_t>(at)] = b.v;
        if (!v.err.empty()) v.err[static_cast<std::size_t>(at)] = b.e;
    }
    Bounded bias(std::int64_t direction, std::int64_t g) const { return element(node_.in(3), direction * 2 * gates_ * hidden_ + g); }

    /// x W^T for all steps at once: row t * batch + n.
    Product project(std::int64_t direction) const {
        Operand a{Matrix(steps_ * batch_, input_), {}};
        const Operand b = turned(w_, direction * gates_ * hidden_, gates_ * hidden_, input_);
        if (!x_.err.empty()) a.err.resize(steps_ * batch_, input_);
        for (std::int64_t t = 0; t < steps_; ++t)
            for (std::int64_t n = 0; n < batch_; ++n)
                for (std::int64_t i = 0; i < input_; ++i) {
                    const std::int64_t from = (layout_ ? n * steps_ + t : t * batch_ + n) * input_ + i;
                    a.value(t * batch_ + n, i) = x_.at(from);
                    if (!x_.err.empty()) a.err(t * batch_ + n, i) = x_.error(from);
                }
        Product p = multiply(a, b, node_.numerics(), false);
        add_bias(p, {}, {}, false, node_.numerics());
        return p;
    }
    Row state(std::size_t input, std::int64_t direction, std::int64_t n) const {
        Row row(static_cast<std::size_t>(hidden_));
        if (!node_.has(input)) return row;
        const Value& v = node_.real(input);
        if (v.count() != directions_ * batch_ * hidden_) node_.fail(fmt::format("initial state of shape {}", to_string(v.shape)));
        for (std::int64_t i = 0; i < hidden_; ++i)
            row[static_cast<std::size_t>(i)] = element(v, layout_ ? (n * directions_ + direction) * hidden_ + i : (direction * batch_ + n) * hidden_ + i);
        return row;
    }
    Activation activation(const std::string& name, const std::vector<double>& alpha, const std::vector<double>& beta, std::size_t& a, std::size_t& b) const {
        const auto take = [](const std::vector<double>& list, std::size_t& at, double otherwise) { return at < list.size() ? list[at++] : otherwise; };
        const BoundedArithmetic& m = math_;
        if (name == "Sigmoid") return [&m](Bounded x) { return m.sigmoid(x); };
        if (name == "Tanh") return [&m](Bounded x) { return m.tanh(x); };
        if (name == "Relu") return [&m](Bounded x) { return m.relu(x); };
        if (name == "LeakyRelu") return [&m, s = take(alpha, a, 0.01f)](Bounded x) { return m.leaky_relu(x, s); };
        if (name == "Affine") {
            const double s = take(alpha, a, 1), t = take(beta, b, 0);
            return [&m, s, t](Bounded x) { return m.affine(x, s, t); };
        }
        if (name == "HardSigmoid") {
            const double s = take(alpha, a, 0.2f), t = take(beta, b, 0.5f);
            return [&m, s, t](Bounded x) { return m.hard_sigmoid(x, s, t); };
        }
        if (name == "ThresholdedRelu") return [&m, s = take(alpha, a, 1.0)](Bounded x) { return m.thresholded_relu(x, s); };
        if (name == "Elu") return [&m, s = take(alpha, a, 1.0)](Bounded x) { return m.elu(x, s); };
        if (name == "Softsign") return [&m](Bounded x) { return m.softsign(x); };
        if (name == "Softplus") return [&m](Bounded x) { return m.softplus(x); };
        if (name == "ScaledTanh") {
            const double s = take(alpha, a, 1), t = take(beta, b, 1);
            return [&m, s, t](Bounded x) { return m.mul({s, 0}, m.tanh(m.mul({t, 0}, x))); };
        }
        node_.fail(fmt::format("activation \"{}\" is not known; use Sigmoid, Tanh, Relu, LeakyRelu, ThresholdedRelu, Affine, ScaledTanh, "
                               "HardSigmoid, Elu, Softsign or Softplus",
                               name));
    }

    const Node& node_;
    const BoundedArithmetic math_;
    const std::int64_t gates_;
    const Value &x_, &w_, &r_;
    std::int64_t layout_ = 0, directions_ = 1, steps_ = 0, batch_ = 0, input_ = 0, hidden_ = 0;
    std::string direction_;
    double clip_ = 0;
    std::vector<Activation> activations_;
    std::size_t per_direction_ = 1;
    std::vector<std::int64_t> lengths_;
    std::map<std::array<std::int64_t, 3>, Operand> recurrence_;  ///< by direction, first gate, gates
};

}  // namespace

Outputs rnn(const Node& node) {
    Recurrent cell(node, 1, {"Tanh"});
    Outputs out = cell.run(
        [&](std::int64_t d, const Row& x, Row& h, Row&) {
            const Row r = cell.recur(d, h, 0, 1);
            for (std::size_t i = 0; i < h.size(); ++i)
                h[i] = cell.activate(d, 0, cell.math().add(cell.math().add(x[i], r[i]), cell.recurrence_bias(d, static_cast<std::int64_t>(i))));
        },
        false);
    out.pop_back();
    return out;
}

Outputs gru(const Node& node) {
    const bool linear_first = node.integer("linear_before_reset", 0) != 0;
    Recurrent cell(node, 3, {"Sigmoid", "Tanh"});
    const BoundedArithmetic& m = cell.math();
    Outputs out = cell.run(
        [&](std::int64_t d, const Row& x, Row& h, Row&) {  // gates in the order z, r, h
            const auto n = static_cast<std::size_t>(cell.hidden());
            const auto rb = [&](std::size_t gate, std::size_t i) { return cell.recurrence_bias(d, static_cast<std::int64_t>(gate * n + i)); };
            const Row zr = cell.recur(d, h, 0, 2);
            Row z(n), reset(n), gated(n);
            for (std::size_t i = 0; i < n; ++i) {
                z[i] = cell.activate(d, 0, m.add(m.add(x[i], zr[i]), rb(0, i)));
                reset[i] = cell.activate(d, 0, m.add(m.add(x[n + i], zr[n + i]), rb(1, i)));
                gated[i] = m.mul(reset[i], h[i]);
            }
            const Row last = cell.recur(d, linear_first ? h : gated, 2, 1);
            for (std::size_t i = 0; i < n; ++i) {
                Bounded inner = m.add(last[i], rb(2, i));
                if (linear_first) inner = m.mul(reset[i], inner);
                const Bounded candidate = cell.activate(d, 1, m.add(x[2 * n + i], inner));
                // (1 - z) h~ + z h; a program may form it as h~ + z (h - h~), which rounds as often.
                h[i] = m.add(m.mul(m.sub({1, 0}, z[i]), candidate), m.mul(z[i], h[i]));
            }
        },
        false);
    out.pop_back();
    return out;
}

Outputs lstm(const Node& node) {
    const bool coupled = node.integer("input_forget", 0) != 0;
    Recurrent cell(node, 4, {"Sigmoid", "Tanh", "Tanh"});
    const BoundedArithmetic& m = cell.math();
    return cell.run(
        [&](std::int64_t d, const Row& x, Row& h, Row& c) {  // gates in the order i, o, f, c; peepholes i, o, f
            const auto n = static_cast<std::size_t>(cell.hidden());
            const Row r = cell.recur(d, h, 0, 4);
            const auto gate = [&](std::size_t g, std::size_t i) {
                return m.add(m.add(x[g * n + i], r[g * n + i]), cell.recurrence_bias(d, static_cast<std::int64_t>(g * n + i)));
            };
            const auto peep = [&](Bounded sum, std::int64_t which, std::size_t i, Bounded state) {
                return node.has(7) ? m.add(sum, m.mul(cell.peephole(d, which, static_cast<std::int64_t>(i)), state)) : sum;
            };
            for (std::size_t i = 0; i < n; ++i) {
                const Bounded in = cell.activate(d, 0, peep(gate(0, i), 0, i, c[i]));
                const Bounded forget = coupled ? m.sub({1, 0}, in) : cell.activate(d, 0, peep(gate(2, i), 2, i, c[i]));
                const Bounded candidate = cell.activate(d, 1, gate(3, i));
                c[i] = m.add(m.mul(forget, c[i]), m.mul(in, candidate));
                const Bounded out = cell.activate(d, 0, peep(gate(1, i), 1, i, c[i]));
                h[i] = m.mul(out, cell.activate(d, 2, c[i]));
            }
        },
        true);
}

}  // namespace assay::golden::ops
