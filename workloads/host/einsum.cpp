// Einsum.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "workloads/host/elements.hpp"
#include "workloads/host/matrix.hpp"

namespace assay::workloads::hostops {
namespace {

using I64 = std::int64_t;

/// Labels of one term, one a dimension: letters as they are, dimensions of "..." as 256, 257, … aligned at the last.
using Labels = std::vector<int>;
constexpr int kEllipsis = 256, kMaxEllipsis = 64;

Labels labels_of(const Call& c, const std::string& term, std::size_t rank, bool output, std::size_t ellipsis_rank) {
    Labels labels;
    const std::size_t dots = term.find("...");
    std::size_t letters = 0;
    for (const char ch : term) letters += std::isalpha(static_cast<unsigned char>(ch)) != 0;
    const std::size_t wide = dots == std::string::npos ? 0 : output ? ellipsis_rank : rank - std::min(rank, letters);
    if (wide > kMaxEllipsis) c.fail("more than 64 dimensions; repair the model");
    for (std::size_t i = 0; i < term.size(); ++i) {
        if (i == dots) {
            for (std::size_t k = 0; k < wide; ++k) labels.push_back(kEllipsis + kMaxEllipsis - static_cast<int>(wide) + static_cast<int>(k));
            i += 2;
        } else if (std::isalpha(static_cast<unsigned char>(term[i]))) {
            labels.push_back(term[i]);
        } else if (term[i] != ' ') {
            c.fail(fmt::format("equation: '{}' is not understood; repair the model", term));
        }
    }
    if (!output && labels.size() != rank) c.fail(fmt::format("equation: '{}' has {} labels for {} dimensions; repair the model", term, labels.size(), rank));
    return labels;
}

struct Operand {
    Labels labels;   // each once
    Shape shape;
    std::vector<double> v;
};

I64 extent_of(const Operand& o, int label) {
    const auto it = std::find(o.labels.begin(), o.labels.end(), label);
    return it == o.labels.end() ? 1 : o.shape[static_cast<std::size_t>(it - o.labels.begin())];
}

/// The operand at labels `order`, with missing ones as extent 1.
std::vector<double> arranged(const Operand& o, const Labels& order, Shape& shape) {
    const auto own = strides_of(o.shape);
    std::vector<I64> strides;
    shape.clear();
    for (const int label : order) {
        const auto it = std::find(o.labels.begin(), o.labels.end(), label);
        const auto d = static_cast<std::size_t>(it - o.labels.begin());
        shape.push_back(it == o.labels.end() ? 1 : o.shape[d]);
        strides.push_back(it == o.labels.end() ? 0 : own[d]);
    }
    const I64 n = element_count(shape);
    std::vector<double> out(static_cast<std::size_t>(n));
    std::vector<I64> index(shape.size(), 0);
    I64 at = 0;
    for (I64 i = 0; i < n; ++i) {
        out[static_cast<std::size_t>(i)] = o.v[static_cast<std::size_t>(at)];
        for (std::size_t d = shape.size(); d-- > 0;) {
            at += strides[d];
            if (++index[d] < shape[d]) break;
            at -= strides[d] * shape[d];
            index[d] = 0;
        }
    }
    return out;
}

/// Sums out labels that `kept` lacks.
Operand summed(Operand o, const std::vector<int>& kept) {
    Labels keep, drop;
    for (const int label : o.labels) (std::find(kept.begin(), kept.end(), label) == kept.end() ? drop : keep).push_back(label);
    if (drop.empty()) return o;
    Labels order = keep;
    order.insert(order.end(), drop.begin(), drop.end());
    Shape shape;
    const auto v = arranged(o, order, shape);
    Operand out;
    out.labels = keep;
    out.shape.assign(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(keep.size()));
    const I64 lines = element_count(out.shape), length = extent(shape, keep.size(), shape.size());
    for (I64 i = 0; i < lines; ++i) {
        double sum = 0;
        for (I64 k = 0; k < length; ++k) sum += v[static_cast<std::size_t>(i * length + k)];
        out.v.push_back(sum);
    }
    return out;
}

/// Contracts two operands over the labels that nobody else needs: batch labels (in both and kept), rows, columns and summed ones.
Operand contracted(const Call& c, const Operand& a, const Operand& b, const std::vector<int>& kept) {
    Labels batch, rows, columns, sums;
    const auto in = [](const Labels& list, int label) { return std::find(list.begin(), list.end(), label) != list.end(); };
    for (const int label : a.labels) {
        if (!in(b.labels, label))
            rows.push_back(label);
        else
            (in(kept, label) ? batch : sums).push_back(label);
    }
    for (const int label : b.labels)
        if (!in(a.labels, label)) columns.push_back(label);
    Operand out;
    out.labels = batch;
    for (const int label : batch) out.shape.push_back(std::max(extent_of(a, label), extent_of(b, label)));
    const auto product_of = [&](const Labels& list) {
        I64 n = 1;
        for (const int label : list) n *= std::max(extent_of(a, label), extent_of(b, label));
        return n;
    };
    const I64 n_batch = product_of(batch), m = product_of(rows), k = product_of(sums), n = product_of(columns);
    c.make(DType::u8, {std::min(element_count({n_batch, m, n}), kMaxElements + 1)});
    c.work(static_cast<double>(n_batch) * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n));
    const auto spread_to = [&](const Operand& o, Labels order) {  // a dimension of 1 against a larger one repeats
        Operand wide = o;
        Shape target;
        for (const int label : wide.labels) target.push_back(in(batch, label) || in(sums, label) ? std::max(extent_of(a, label), extent_of(b, label)) : extent_of(wide, label));
        if (target != wide.shape) {
            Tensor t(DType::f64, wide.shape);
            std::copy(wide.v.begin(), wide.v.end(), t.as<double>().begin());
            wide.v = reals_of(spread(c, t, target));
            wide.shape = target;
        }
        Shape shape;
        return arranged(wide, order, shape);
    };
    Labels left = batch, right = batch;
    left.insert(left.end(), rows.begin(), rows.end());
    left.insert(left.end(), sums.begin(), sums.end());
    right.insert(right.end(), sums.begin(), sums.end());
    right.insert(right.end(), columns.begin(), columns.end());
    const auto x = spread_to(a, left), y = spread_to(b, right);
    out.v.resize(static_cast<std::size_t>(n_batch * m * n));
    for (I64 i = 0; i < n_batch; ++i) product(x.data() + i * m * k, y.data() + i * k * n, out.v.data() + i * m * n, m, k, n);
    for (const Labels* list : {&rows, &columns})
        for (const int label : *list) {
            out.labels.push_back(label);
            out.shape.push_back(std::max(extent_of(a, label), extent_of(b, label)));
        }
    return out;
}

/// Einsum-12. Integers go through double, exact while sums stay below 2^53.
Results einsum(const Call& c) {
    c.same_types(0, c.input_count());
    std::string equation = c.text("equation", "");
    equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
    const std::size_t arrow = equation.find("->");
    std::string left = equation.substr(0, arrow);
    std::vector<std::string> terms{""};
    for (const char ch : left) {
        if (ch == ',')
            terms.emplace_back();
        else
            terms.back() += ch;
    }
    if (terms.size() != c.input_count()) c.fail(fmt::format("equation '{}' has {} terms for {} inputs; repair the model", equation, terms.size(), c.input_count()));
    std::vector<Operand> operands;
    std::map<int, int> uses;
    std::size_t ellipsis_rank = 0;
    for (std::size_t i = 0; i < terms.size(); ++i) {
        const Tensor& x = c.in(i);
        const Labels labels = labels_of(c, terms[i], x.shape.size(), false, 0);
        ellipsis_rank = std::max(ellipsis_rank, static_cast<std::size_t>(std::count_if(labels.begin(), labels.end(), [](int l) { return l >= kEllipsis; })));
        // A label that repeats in one term walks the diagonal.
        Operand o;
        std::vector<I64> strides;
        const auto own = strides_of(x.shape);
        for (std::size_t d = 0; d < labels.size(); ++d) {
            ++uses[labels[d]];
            const auto it = std::find(o.labels.begin(), o.labels.end(), labels[d]);
            if (it == o.labels.end()) {
                o.labels.push_back(labels[d]);
                o.shape.push_back(x.shape[d]);
                strides.push_back(own[d]);
            } else {
                const auto k = static_cast<std::size_t>(it - o.labels.begin());
                if (o.shape[k] != x.shape[d]) c.bad_shape(i, "a repeated label has two extents; repair the model");
                strides[k] += own[d];
            }
        }
        o.v = reals_of(gather_strided(c, x, o.shape, strides, 0));
        operands.push_back(std::move(o));
    }
    std::map<int, I64> extents;
    for (const Operand& o : operands)
        for (std::size_t d = 0; d < o.labels.size(); ++d) {
            I64& e = extents.try_emplace(o.labels[d], 1).first->second;
            if (e != 1 && o.shape[d] != 1 && e != o.shape[d]) c.fail(fmt::format("equation '{}': a label is {} and {}; repair the model", equation, e, o.shape[d]));
            e = e == 1 ? o.shape[d] : e;
        }
    Labels result;
    if (arrow != std::string::npos) {
        result = labels_of(c, equation.substr(arrow + 2), 0, true, ellipsis_rank);
    } else {  // the ellipsis, then labels used once, in alphabetical order
        for (std::size_t k = 0; k < ellipsis_rank; ++k) result.push_back(kEllipsis + kMaxEllipsis - static_cast<int>(ellipsis_rank) + static_cast<int>(k));
        for (const auto& [label, count] : uses)
            if (count == 1 && label < kEllipsis) result.push_back(label);
    }
    for (std::size_t i = 0; i < result.size(); ++i)
        if (!extents.contains(result[i]) || std::count(result.begin(), result.end(), result[i]) != 1)
            c.fail(fmt::format("equation '{}': an output label is unknown or repeats; repair the model", equation));
    Operand sum = operands[0];
    for (std::size_t i = 1; i <= operands.size(); ++i) {
        std::vector<int> kept = result;  // what the result or a later term needs
        for (std::size_t k = i; k < operands.size(); ++k) kept.insert(kept.end(), operands[k].labels.begin(), operands[k].labels.end());
        sum = summed(std::move(sum), kept);
        if (i == operands.size()) break;
        std::vector<int> later = result;
        for (std::size_t k = i + 1; k < operands.size(); ++k) later.insert(later.end(), operands[k].labels.begin(), operands[k].labels.end());
        std::vector<int> shared = later;
        shared.insert(shared.end(), sum.labels.begin(), sum.labels.end());
        sum = contracted(c, sum, summed(operands[i], shared), later);
    }
    Shape shape;
    const auto v = arranged(sum, result, shape);
    return one(tensor_of(c, c.in(0).dtype, shape, std::span<const double>(v)));
}

}  // namespace

std::span<const Operator> einsum_operators() {
    static constexpr Operator table[] = {{"Einsum", einsum, 12}};
    return table;
}

}  // namespace assay::workloads::hostops
