// Einsum-12: operands are contracted one after another, each contraction a batched matrix product, as a compiler has to do it.
#include <algorithm>
#include <cmath>
#include <cctype>
#include <map>

#include <fmt/format.h>

#include "golden/reference/functions.hpp"
#include "golden/reference/ops/indexing.hpp"
#include "golden/reference/ops/kernels.hpp"
#include "golden/reference/ops/matrix_product.hpp"

namespace assay::golden::ops {
namespace {

/// A letter of the equation; the dimensions of "..." are -1 for its last, -2 for the one before, so that they meet from the right.
using Label = int;
using Labels = std::vector<Label>;

bool holds(const Labels& labels, Label label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

Labels joined(Labels a, const Labels& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

/// The labels of one term; `rest` is how many dimensions its "..." stands for.
Labels read_term(const Node& node, const std::string& term, std::int64_t rest) {
    Labels labels;
    bool dots = false;
    for (std::size_t i = 0; i < term.size(); ++i) {
        if (std::isalpha(static_cast<unsigned char>(term[i]))) {
            labels.push_back(term[i]);
        } else if (term.compare(i, 3, "...") == 0 && !dots) {
            for (std::int64_t d = rest; d > 0; --d) labels.push_back(static_cast<Label>(-d));
            dots = true;
            i += 2;
        } else {
            node.fail(fmt::format("equation: term '{}' is not letters and at most one '...'", term));
        }
    }
    return labels;
}

/// Dimensions by label, each label once.
struct Term {
    Labels labels;
    Value value;

    std::int64_t extent(Label label) const {
        const auto at = std::find(labels.begin(), labels.end(), label);
        return at == labels.end() ? 1 : value.shape[static_cast<std::size_t>(at - labels.begin())];
    }
};

/// The term with dimensions `order`, of which it may lack some (extent 1), stretched to `extents` where it has 1.
Value arranged(const Term& term, const Labels& order, const Shape& extents) {
    const std::vector<std::int64_t> own = strides_of(term.value.shape);
    std::vector<std::int64_t> strides(order.size(), 0);
    for (std::size_t d = 0; d < order.size(); ++d) {
        const auto at = std::find(term.labels.begin(), term.labels.end(), order[d]);
        if (at != term.labels.end() && term.extent(order[d]) != 1) strides[d] = own[static_cast<std::size_t>(at - term.labels.begin())];
    }
    return term.value.gather(index_of(extents, [&](const std::vector<std::int64_t>& at) {
        std::int64_t i = 0;
        for (std::size_t d = 0; d < at.size(); ++d) i += at[d] * strides[d];
        return i;
    }), extents);
}

class Contraction {
public:
    /// Sums of integers are exact in fp64 up to 2^53.
    explicit Contraction(const Node& node) : node_(node), numerics_(node.in(0).floating() ? node.numerics() : Numerics{}) {}

    /// Input `i` by its labels; a label that repeats walks the diagonal.
    Term term(std::size_t i, const Labels& labels) const {
        const Value& x = node_.in(i);
        if (x.dtype != node_.in(0).dtype) node_.fail(fmt::format("operand {} is {}, operand 0 is {}", i, name_of(x.dtype), name_of(node_.in(0).dtype)));
        const std::vector<std::int64_t> own = strides_of(x.shape);
        Term out;
        Shape shape;
        std::vector<std::int64_t> strides;
        for (std::size_t d = 0; d < labels.size(); ++d) {
            const auto at = std::find(out.labels.begin(), out.labels.end(), labels[d]);
            const auto k = static_cast<std::size_t>(at - out.labels.begin());
            if (at == out.labels.end()) {
                out.labels.push_back(labels[d]);
                shape.push_back(x.shape[d]);
                strides.push_back(own[d]);
            } else if (shape[k] == x.shape[d]) {
                strides[k] += own[d];
            } else {
                node_.fail(fmt::format("equation: a label that repeats in operand {} is {} and {}", i, shape[k], x.shape[d]));
            }
        }
        out.value = real(x).gather(index_of(shape, [&](const std::vector<std::int64_t>& at) {
            std::int64_t e = 0;
            for (std::size_t d = 0; d < at.size(); ++d) e += at[d] * strides[d];
            return e;
        }), shape);
        return out;
    }

    /// The term without the labels that `needed` lacks: they are summed.
    Term summed(const Term& term, const Labels& needed) const {
        Labels keep, sum;
        for (const Label label : term.labels) (holds(needed, label) ? keep : sum).push_back(label);
        if (sum.empty()) return term;
        Shape shape;
        for (const Label label : joined(keep, sum)) shape.push_back(term.extent(label));
        const Value from = arranged(term, joined(keep, sum), shape);
        shape.resize(keep.size());
        const std::int64_t groups = element_count(shape), length = groups == 0 ? 0 : from.count() / groups;
        Term out{keep, Value(DType::f32, shape)};
        if (numerics_.bounds()) out.value.err.resize(out.value.f.size());
        for (std::int64_t g = 0; g < groups; ++g) {
            double total = 0, magnitude = 0, error = 0;
            for (std::int64_t i = g * length; i < (g + 1) * length; ++i) {
                total = numerics_.round(total + from.at(i));
                magnitude += std::fabs(from.at(i));
                error += from.error(i);
            }
            out.value.f[static_cast<std::size_t>(g)] = total;
            if (numerics_.bounds()) out.value.err[static_cast<std::size_t>(g)] = error + sum_error(static_cast<double>(length), magnitude);
        }
        return out;
    }

    /// Both terms in one: labels of both that are needed are a batch, those of both that are not are summed.
    Term contracted(const Term& a, const Term& b, const Labels& needed) const {
        Labels batch, sum, rows, columns;
        for (const Label label : a.labels) (!holds(b.labels, label) ? rows : holds(needed, label) ? batch : sum).push_back(label);
        for (const Label label : b.labels)
            if (!holds(a.labels, label)) columns.push_back(label);
        const auto extents = [&](const Labels& labels) {
            Shape shape;
            for (const Label label : labels) shape.push_back(std::max(a.extent(label), b.extent(label)));
            return shape;
        };
        const std::int64_t n_batch = element_count(extents(batch)), m = element_count(extents(rows)), k = element_count(extents(sum)), n = element_count(extents(columns));
        const Labels left = joined(joined(batch, rows), sum), right = joined(joined(batch, sum), columns), both = joined(joined(batch, rows), columns);
        const Value x = arranged(a, left, extents(left)).reshaped({n_batch, m, k}), y = arranged(b, right, extents(right)).reshaped({n_batch, k, n});
        return {both, matrix_product(node_, x, y, numerics_).reshaped(extents(both))};
    }

    Value result(const Term& term, const Labels& order) const {
        Shape shape;
        for (const Label label : order) shape.push_back(term.extent(label));
        const Value from = arranged(term, order, shape);
        Value y = from;
        y.dtype = node_.in(0).dtype;
        if (!is_float(y.dtype)) {
            y = Value(node_.in(0).dtype, shape);
            for (std::int64_t i = 0; i < y.count(); ++i) y.n[static_cast<std::size_t>(i)] = wrap(y.dtype, static_cast<std::int64_t>(from.at(i)));
        }
        return y;
    }

private:
    /// Integers as real numbers.
    static Value real(const Value& x) {
        if (x.floating()) return x;
        Value out(DType::f64, x.shape);
        for (std::int64_t i = 0; i < x.count(); ++i) out.f[static_cast<std::size_t>(i)] = x.at(i);
        return out;
    }

    const Node& node_;
    const Numerics numerics_;
};

}  // namespace

Outputs einsum(const Node& node) {
    std::string equation = node.text("equation", "");
    equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
    const std::size_t arrow = equation.find("->");
    std::vector<std::string> terms(1);
    for (const char c : equation.substr(0, arrow)) {
        if (c == ',') terms.emplace_back();
        else terms.back() += c;
    }
    if (terms.size() != node.input_count()) node.fail(fmt::format("equation '{}' has {} terms for {} inputs", equation, terms.size(), node.input_count()));
    const Contraction contraction(node);
    std::vector<Term> parts;
    std::map<Label, int> uses;
    std::map<Label, std::int64_t> extents;
    std::int64_t dots = 0;
    for (std::size_t i = 0; i < terms.size(); ++i) {
        const Value& x = node.in(i);
        const auto letters = std::count_if(terms[i].begin(), terms[i].end(), [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; });
        const Labels labels = read_term(node, terms[i], x.rank() - letters);
        if (static_cast<std::int64_t>(labels.size()) != x.rank())
            node.fail(fmt::format("equation: term '{}' names {} dimensions of {}", terms[i], labels.size(), to_string(x.shape)));
        for (const Label label : labels) ++uses[label];
        for (const Label label : labels) dots = std::max<std::int64_t>(dots, -label);
        parts.push_back(contraction.term(i, labels));
        for (std::size_t d = 0; d < parts.back().labels.size(); ++d) {
            std::int64_t& extent = extents.try_emplace(parts.back().labels[d], 1).first->second;
            const std::int64_t own = parts.back().value.shape[d];
            if (extent != 1 && own != 1 && extent != own) node.fail(fmt::format("equation '{}': a label is both {} and {}", equation, extent, own));
            if (extent == 1) extent = own;
        }
    }
    Labels order;
    if (arrow != std::string::npos) {
        order = read_term(node, equation.substr(arrow + 2), dots);
    } else {
        for (std::int64_t d = dots; d > 0; --d) order.push_back(static_cast<Label>(-d));
        for (const auto& [label, count] : uses)
            if (label > 0 && count == 1) order.push_back(label);  // a map: in the order of their codes
    }
    for (const Label label : order)
        if (!extents.contains(label) || std::count(order.begin(), order.end(), label) != 1)
            node.fail(fmt::format("equation '{}': the output names a label twice, or one that no term has", equation));
    // What the result or a term from `next` on still needs.
    const auto needed = [&](std::size_t next) {
        Labels labels = order;
        for (std::size_t i = next; i < parts.size(); ++i) labels = joined(labels, parts[i].labels);
        return labels;
    };
    Term sum = contraction.summed(parts[0], needed(1));
    for (std::size_t i = 1; i < parts.size(); ++i) {
        const Labels later = needed(i + 1);
        sum = contraction.contracted(contraction.summed(sum, joined(later, parts[i].labels)), contraction.summed(parts[i], joined(later, sum.labels)), later);
    }
    // A label that only an extent of 1 held while another term had more is summed last.
    return {contraction.result(contraction.summed(sum, order), order)};
}

}  // namespace assay::golden::ops
