#include "golden/reference/ops/stack.hpp"

#include <fmt/format.h>

#include "golden/reference/ops/indexing.hpp"
#include "support/error.hpp"

namespace assay::golden::ops {

Value stack(const std::vector<const Value*>& parts, std::int64_t axis, const std::string& label) {
    const Value& first = *parts.at(0);
    Shape shape = first.shape;
    const auto at = static_cast<std::size_t>(axis);
    shape.insert(shape.begin() + axis, static_cast<std::int64_t>(parts.size()));
    Value y(first.dtype, shape);
    const std::int64_t inner = extent(first.shape, at, first.shape.size()), outer = extent(first.shape, 0, at);
    bool errors = false;
    for (const Value* part : parts) {
        if (part->dtype != first.dtype || part->shape != first.shape)
            throw Error(ErrorKind::bad_input, fmt::format("{}: one iteration gives {} of {}, another {} of {}", label, name_of(first.dtype),
                                                          to_string(first.shape), name_of(part->dtype), to_string(part->shape)));
        errors |= !part->err.empty();
    }
    if (errors) y.err.assign(static_cast<std::size_t>(y.count()), 0.0);
    const auto count = static_cast<std::int64_t>(parts.size());
    for (std::int64_t p = 0; p < count; ++p)
        for (std::int64_t o = 0; o < outer; ++o) {
            const Value& part = *parts[static_cast<std::size_t>(p)];
            const std::int64_t from = o * inner, to = (o * count + p) * inner;
            if (y.floating())
                std::copy_n(part.f.begin() + from, inner, y.f.begin() + to);
            else
                std::copy_n(part.n.begin() + from, inner, y.n.begin() + to);
            if (!part.err.empty()) std::copy_n(part.err.begin() + from, inner, y.err.begin() + to);
        }
    return y;
}

Value slice_at(const Value& x, std::int64_t axis, std::int64_t index) {
    const auto at = static_cast<std::size_t>(axis);
    const std::int64_t dim = x.shape[at], inner = extent(x.shape, at + 1, x.shape.size()), outer = extent(x.shape, 0, at);
    Shape shape = x.shape;
    shape.erase(shape.begin() + axis);
    std::vector<std::int64_t> from;
    from.reserve(static_cast<std::size_t>(outer * inner));
    for (std::int64_t o = 0; o < outer; ++o)
        for (std::int64_t i = 0; i < inner; ++i) from.push_back((o * dim + index) * inner + i);
    return x.gather(from, shape);
}

std::vector<Value> stack_inputs(const Node& node) {
    std::vector<const Value*> parts;
    for (std::size_t i = 0; i < node.input_count(); ++i) parts.push_back(&node.in(i));
    std::vector<Value> out;
    const std::int64_t axis = node.axis(node.integer("axis", 0), node.in(0).rank() + 1);
    out.push_back(stack(parts, axis, "the stack of a loop's results"));
    return out;
}

}  // namespace assay::golden::ops
