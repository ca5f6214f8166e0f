// LSTM-7/14/22, GRU and RNN unrolled. The input's share of all steps is one product; each step is then a product with the state and a chain of
// elementwise nodes:
//
//     g = X W' + b                     [T, B, gates x H], once
//     step t:  a = g[t] + h R'         the product's drain adds g[t]
//              LSTM  i, o, f, c~ = parts of a; c = f(f + Pf c) c + f(i + Pi c) g(c~); h = f(o + Po c) h(c)
//              GRU   z, r, h~ = parts of a; h = (1 - z) h~ + z h, with r before the product (linear_before_reset = 0) or behind it
//              RNN   h = f(a)
//
// Covered: all directions, both layouts, initial states, peepholes, clip, constant weights, full sequences. Whole they stay with weights or
// sequence lengths of the run time, input_forget, or activations with parameters of their own.
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "workloads/passes/decompose/families.hpp"

namespace assay::workloads {
namespace {

constexpr std::int64_t kMostSteps = 1024;  // unrolled, over all directions

class Unroller {
public:
    explicit Unroller(Rewriter& r) : r_(r), n_(r.original), lstm_(n_.op == "LSTM"), gru_(n_.op == "GRU"), gates_(lstm_ ? 4 : gru_ ? 3 : 1) {
        const Shape x = r.in(0).shape;
        if (x.size() != 3 || r.in(1).shape.size() != 3 || r.in(2).shape.size() != 3)
            throw MalformedNode(r.id, "X, W and R must have 3 dimensions; repair the model");
        batch_first_ = n_.integer("layout", 0) != 0;
        steps_ = x[batch_first_ ? 1 : 0];
        batch_ = x[batch_first_ ? 0 : 1];
        input_ = x[2];
        directions_ = r.in(1).shape[0];
        hidden_ = r.in(2).shape[2];
        if (r.in(1).shape != Shape{directions_, gates_ * hidden_, input_} || r.in(2).shape != Shape{directions_, gates_ * hidden_, hidden_})
            throw MalformedNode(r.id, "W and R do not fit X and each other; repair the model");
        if (r.in(0).dtype != DType::f32 || n_.integer("input_forget", 0) != 0 || steps_ * directions_ > kMostSteps || n_.has("activation_alpha") ||
            n_.has("activation_beta"))
            throw NotTakenApart{};
        if (r.has(4)) {
            if (!r.in(4).constant) throw NotTakenApart{};
            for (std::int64_t i = 0; i < r.in(4).constant->count(); ++i)
                if (r.in(4).constant->integer(i) != steps_) throw NotTakenApart{};
        }
        weights_ = r.constant_input(1);
        recurrent_ = r.constant_input(2);
        if (r.has(3)) bias_ = r.constant_input(3);
        if (lstm_ && r.has(7)) peepholes_ = r.constant_input(7);
        if (bias_.size() != (r.has(3) ? static_cast<std::size_t>(directions_ * 2 * gates_ * hidden_) : 0) ||
            (!peepholes_.empty() && peepholes_.size() != static_cast<std::size_t>(directions_ * 3 * hidden_)))
            throw MalformedNode(r.id, "B or P does not fit W; repair the model");
        choose_activations();
    }

    void run() {
        const ValueId x = batch_first_ ? r_.transpose(n_.inputs[0], {1, 0, 2}) : n_.inputs[0];
        const ValueId y = r_.output(0), y_h = r_.output(1), y_c = lstm_ ? r_.output(2) : kNoValue;
        std::vector<ValueId> all, last_h, last_c;
        for (std::int64_t d = 0; d < directions_; ++d) {
            const bool reverse = n_.text("direction", "forward") == "reverse" || d == 1;
            direction(x, d, reverse);
            std::vector<ValueId> parts;
            for (const ValueId h : states_) parts.push_back(r_.reshape(h, {1, 1, batch_, hidden_}));
            if (reverse) std::reverse(parts.begin(), parts.end());
            if (y != kNoValue) all.push_back(join(parts, 0));
            last_h.push_back(r_.reshape(states_.back(), {1, batch_, hidden_}));
            if (lstm_) last_c.push_back(r_.reshape(cell_, {1, batch_, hidden_}));
        }
        // [T, D, B, H] and [D, B, H]; with the batch first [B, T, D, H] and [B, D, H].
        if (y != kNoValue) finish(all, 1, {2, 0, 1, 3}, y);
        if (y_h != kNoValue) finish(last_h, 0, {1, 0, 2}, y_h);
        if (y_c != kNoValue) finish(last_c, 0, {1, 0, 2}, y_c);
    }

private:
    void choose_activations() {
        static const std::map<std::string, std::string> known{{"sigmoid", "Sigmoid"}, {"tanh", "Tanh"},         {"relu", "Relu"},
                                                              {"softsign", "Softsign"}, {"softplus", "Softplus"}, {"hardsigmoid", "HardSigmoid"}};
        const std::size_t each = lstm_ ? 3 : gru_ ? 2 : 1;
        const auto given = n_.attributes.find("activations");
        for (std::int64_t d = 0; d < directions_; ++d)
            for (std::size_t i = 0; i < each; ++i) {
                std::string name = each == 1 || i > 0 ? "tanh" : "sigmoid";
                if (given != n_.attributes.end()) {
                    // A node's texts reach the graph as the protobuf has them only.
                    const auto texts = texts_of("activations");
                    const std::size_t at = static_cast<std::size_t>(d) * each + i;
                    if (at >= texts.size()) throw NotTakenApart{};
                    name = texts[at];
                }
                std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
                const auto found = known.find(name);
                if (found == known.end()) throw NotTakenApart{};
                activations_.push_back(found->second);
            }
    }
    std::vector<std::string> texts_of(const std::string& key) const {
        std::vector<std::string> texts;
        for (const auto& attribute : n_.proto->attribute())
            if (attribute.name() == key) texts.assign(attribute.strings().begin(), attribute.strings().end());
        return texts;
    }

    ValueId join(const std::vector<ValueId>& parts, std::int64_t axis) {
        return parts.size() == 1 ? parts[0] : r_.add("Concat", parts, {{"axis", axis}});
    }
    void finish(const std::vector<ValueId>& parts, std::int64_t axis, const std::vector<std::int64_t>& perm, ValueId output) {
        if (batch_first_) {
            r_.transpose(join(parts, axis), perm, output);
        } else if (parts.size() > 1) {
            r_.add("Concat", parts, {{"axis", axis}}, output);
        } else {
            r_.add("Identity", parts, {}, output);
        }
    }

    /// Rows [gate * H, (gate + count) * H) of one direction's matrix, as its transpose [columns, count * H].
    ValueId transposed(const std::vector<double>& m, std::int64_t d, std::int64_t gate, std::int64_t count, std::int64_t columns) {
        const std::int64_t rows = count * hidden_;
        std::vector<double> t(static_cast<std::size_t>(rows * columns));
        const std::int64_t from = (d * gates_ + gate) * hidden_;
        for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t k = 0; k < columns; ++k) t[static_cast<std::size_t>(k * rows + i)] = m[static_cast<std::size_t>((from + i) * columns + k)];
        return r_.constant(float_tensor({columns, rows}, t));
    }
    /// Wb (part 0) or Rb (part 1) of gates [gate, gate + count), 0 without a bias.
    std::vector<double> bias(std::int64_t d, std::int64_t part, std::int64_t gate, std::int64_t count) const {
        std::vector<double> b(static_cast<std::size_t>(count * hidden_), 0.0);
        if (bias_.empty()) return b;
        const std::int64_t from = ((d * 2 + part) * gates_ + gate) * hidden_;
        for (std::size_t i = 0; i < b.size(); ++i) b[i] = bias_[static_cast<std::size_t>(from) + i];
        return b;
    }
    ValueId vector(const std::vector<double>& v) { return r_.constant(float_tensor({static_cast<std::int64_t>(v.size())}, v)); }
    ValueId part(ValueId gates, std::int64_t gate, std::int64_t count = 1) {
        return count == gates_ ? gates : r_.slice(gates, 1, gate * hidden_, (gate + count) * hidden_);
    }
    ValueId activate(std::int64_t d, std::size_t i, ValueId x) {
        if (n_.has("clip") && n_.real("clip", 0) > 0) {
            const float c = n_.real("clip", 0);
            if (r_.graph.opset >= 11)
                x = r_.add("Clip", {x, r_.scalar(-c), r_.scalar(c)});
            else
                x = r_.add("Clip", {x}, {{"min", -c}, {"max", c}});
        }
        return r_.add(activations_[static_cast<std::size_t>(d) * (lstm_ ? 3 : gru_ ? 2 : 1) + i], {x});
    }
    ValueId initial(std::size_t input, std::int64_t d) {
        if (!r_.has(input)) return kNoValue;
        ValueId s = n_.inputs[input];
        if (batch_first_) s = r_.transpose(s, {1, 0, 2});
        if (directions_ > 1) s = r_.slice(s, 0, d, d + 1);
        return r_.reshape(s, {batch_, hidden_});
    }

    void direction(ValueId x, std::int64_t d, bool reverse) {
        const bool before = gru_ && n_.integer("linear_before_reset", 0) == 0;
        // Rb joins Wb where the state's product is a plain summand; behind a reset gate it stays with that product.
        std::vector<double> b = bias(d, 0, 0, gates_), rb = bias(d, 1, 0, gates_);
        const std::size_t joined = static_cast<std::size_t>((gru_ && !before ? 2 : gates_) * hidden_);
        for (std::size_t i = 0; i < joined; ++i) b[i] += rb[i];
        ValueId g = r_.add("MatMul", {x, transposed(weights_, d, 0, gates_, input_)});
        if (!bias_.empty()) g = r_.add("Add", {g, vector(b)});
        state_ = initial(5, d);
        cell_ = lstm_ ? initial(6, d) : kNoValue;
        states_.clear();
        const ValueId recurrent = gru_ ? transposed(recurrent_, d, 0, 2, hidden_) : transposed(recurrent_, d, 0, gates_, hidden_);
        const ValueId candidate = gru_ ? transposed(recurrent_, d, 2, 1, hidden_) : kNoValue;
        const ValueId candidate_bias = gru_ && !before && !bias_.empty() ? vector(bias(d, 1, 2, 1)) : kNoValue;
        for (std::int64_t t = 0; t < steps_; ++t) {
            const std::int64_t at = reverse ? steps_ - 1 - t : t;
            const ValueId now = r_.reshape(steps_ == 1 ? g : r_.slice(g, 0, at, at + 1), {batch_, gates_ * hidden_});
            if (gru_) {
                gru(d, now, recurrent, candidate, candidate_bias, before);
            } else {
                const ValueId a = state_ == kNoValue ? now : r_.add("Add", {r_.add("MatMul", {state_, recurrent}), now});
                if (lstm_)
                    lstm(d, a);
                else
                    state_ = activate(d, 0, a);
            }
            states_.push_back(state_);
        }
    }

    ValueId peep(ValueId gate, std::int64_t d, std::int64_t which) {
        if (peepholes_.empty() || cell_ == kNoValue) return gate;
        std::vector<double> p(static_cast<std::size_t>(hidden_));
        for (std::size_t i = 0; i < p.size(); ++i) p[i] = peepholes_[static_cast<std::size_t>((d * 3 + which) * hidden_) + i];
        return r_.add("Add", {gate, r_.add("Mul", {cell_, vector(p)})});
    }

    void lstm(std::int64_t d, ValueId a) {
        const ValueId i = activate(d, 0, peep(part(a, 0), d, 0)), f = activate(d, 0, peep(part(a, 2), d, 2));
        const ValueId fresh = r_.add("Mul", {i, activate(d, 1, part(a, 3))});
        cell_ = cell_ == kNoValue ? fresh : r_.add("Add", {r_.add("Mul", {f, cell_}), fresh});
        const ValueId o = activate(d, 0, peep(part(a, 1), d, 1));
        state_ = r_.add("Mul", {o, r_.add(activations_[static_cast<std::size_t>(d) * 3 + 2], {cell_})});
    }

    void gru(std::int64_t d, ValueId now, ValueId recurrent, ValueId candidate, ValueId candidate_bias, bool before) {
        const ValueId now_zr = part(now, 0, 2), now_h = part(now, 2);
        const ValueId zr = activate(d, 0, state_ == kNoValue ? now_zr : r_.add("Add", {r_.add("MatMul", {state_, recurrent}), now_zr}));
        const ValueId z = r_.slice(zr, 1, 0, hidden_), reset = r_.slice(zr, 1, hidden_, 2 * hidden_);
        ValueId inner = now_h;
        if (before) {
            if (state_ != kNoValue) inner = r_.add("Add", {r_.add("MatMul", {r_.add("Mul", {reset, state_}), candidate}), now_h});
        } else {
            ValueId product = kNoValue;
            if (state_ != kNoValue) product = r_.add("MatMul", {state_, candidate});
            if (candidate_bias != kNoValue) product = product == kNoValue ? candidate_bias : r_.add("Add", {product, candidate_bias});
            if (product != kNoValue) inner = r_.add("Add", {r_.add("Mul", {reset, product}), now_h});
        }
        const ValueId h = activate(d, 1, inner);
        const ValueId kept = r_.add("Mul", {r_.add("Sub", {r_.scalar(1.0f), z}), h});
        state_ = state_ == kNoValue ? kept : r_.add("Add", {kept, r_.add("Mul", {z, state_})});
    }

    Rewriter& r_;
    const Node& n_;
    bool lstm_, gru_, batch_first_ = false;
    std::int64_t gates_, steps_ = 0, batch_ = 0, input_ = 0, directions_ = 0, hidden_ = 0;
    std::vector<double> weights_, recurrent_, bias_, peepholes_;
    std::vector<std::string> activations_;
    ValueId state_ = kNoValue, cell_ = kNoValue;
    std::vector<ValueId> states_;
};

}  // namespace

void take_apart_recurrent(Rewriter& r) { Unroller(r).run(); }

}  // namespace assay::workloads
