#include "workloads/passes/index_map.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "workloads/passes/passes.hpp"
#include "workloads/passes/resize.hpp"

namespace assay::workloads {
namespace {

/// A dimension longer than this has no list: a model of a few bytes could ask for any length.
constexpr std::int64_t kLongestList = std::int64_t{1} << 24;

using Maps = std::vector<IndexMap>;

struct Context {
    const Graph& graph;
    NodeId id;
    const Node& node;
    const Shape& x;  ///< shape of input 0
    std::size_t output;

    std::optional<std::vector<std::int64_t>> integers(std::size_t i, const char* name = nullptr) const {
        return constant_integers(graph, id, i, name);
    }
    std::size_t axis(std::int64_t a) const { return static_cast<std::size_t>(normal_axis(id, a, x.size())); }
    std::int64_t rank() const { return static_cast<std::int64_t>(x.size()); }
};

Maps identity(const Shape& x) {
    Maps maps;
    for (std::size_t d = 0; d < x.size(); ++d) maps.push_back({d, {x[d]}, 0, 1, {}});
    return maps;
}

void check_list(NodeId id, std::int64_t length) {
    if (length > kLongestList)
        throw NodeError(id, fmt::format("a dimension of {} elements, allowed here: {}; cut it into parts", length, kLongestList));
}

/// Each element of `list`, with negative indices counted from the end.
void wrap_indices(NodeId id, std::vector<std::int64_t>& list, std::int64_t extent) {
    for (std::int64_t& i : list) {
        if (i < -extent || i >= extent)
            throw MalformedNode(id, fmt::format("index {} is out of range for {} elements; repair the model", i, extent));
        if (i < 0) i += extent;
    }
}

std::optional<Maps> slice(const Context& c) {
    const bool first = c.node.has("starts");  // Slice-1
    const auto starts = first ? c.node.integers("starts") : c.integers(1), ends = first ? c.node.integers("ends") : c.integers(2);
    auto axes = first ? c.node.integers("axes") : c.integers(3), steps = first ? std::vector<std::int64_t>{} : c.integers(4);
    if (!starts || !ends || !axes || !steps) return std::nullopt;
    if (axes->empty())
        for (std::size_t i = 0; i < starts->size(); ++i) axes->push_back(static_cast<std::int64_t>(i));
    if (steps->empty()) steps->assign(starts->size(), 1);
    if (ends->size() != starts->size() || axes->size() != starts->size() || steps->size() != starts->size())
        throw MalformedNode(c.id, "starts, ends, axes and steps differ in length; repair the model");
    Maps maps = identity(c.x);
    for (std::size_t i = 0; i < starts->size(); ++i) {
        IndexMap& map = maps[c.axis((*axes)[i])];
        const std::int64_t n = c.x[*map.source], step = (*steps)[i];
        if (step == 0) throw MalformedNode(c.id, "a step of 0; repair the model");
        std::int64_t start = (*starts)[i], end = (*ends)[i];
        if (start < 0) start = std::max(start, -n - 1) + n;  // far below the first element stays below it, without overflow
        if (end < 0) end = std::max(end, -n - 1) + n;
        start = std::clamp<std::int64_t>(start, 0, step > 0 ? n : std::max<std::int64_t>(n - 1, 0));
        end = std::clamp<std::int64_t>(end, step > 0 ? 0 : -1, step > 0 ? n : n - 1);
        const std::int64_t span = step > 0 ? end - start : start - end;
        const std::int64_t stride = step > 0 ? step : step == INT64_MIN ? INT64_MAX : -step;
        const std::int64_t count = span <= 0 ? 0 : (span - 1) / stride + 1;
        map = {map.source, {count}, start, count > 1 ? step : 1, {}};
    }
    return maps;
}

std::optional<Maps> split(const Context& c) {
    const std::size_t axis = c.axis(c.node.integer("axis", 0));
    const std::int64_t n = c.x[axis], parts = static_cast<std::int64_t>(c.node.outputs.size());
    auto sizes = c.integers(1, "split");
    if (!sizes) return std::nullopt;
    if (sizes->empty()) {
        // Split-18: num_outputs parts of equal size, the last one smaller. Before: equal parts, as many as outputs.
        const std::int64_t size = (n + parts - 1) / std::max<std::int64_t>(parts, 1);
        for (std::int64_t i = 0; i < parts; ++i) sizes->push_back(std::clamp<std::int64_t>(n - i * size, 0, size));
    }
    std::int64_t at = 0, total = 0;
    for (std::size_t i = 0; i < sizes->size(); ++i) {
        if ((*sizes)[i] < 0 || (*sizes)[i] > n - total) throw MalformedNode(c.id, fmt::format("the parts exceed {} elements; repair the model", n));
        if (i < c.output) at += (*sizes)[i];
        total += (*sizes)[i];
    }
    if (static_cast<std::int64_t>(sizes->size()) != parts || total != n)
        throw MalformedNode(c.id, fmt::format("{} parts of {} elements for {} outputs of {}; repair the model", sizes->size(), total, parts, n));
    Maps maps = identity(c.x);
    maps[axis] = {axis, {(*sizes)[c.output]}, at, 1, {}};
    return maps;
}

std::optional<Maps> expand(const Context& c) {
    const auto shape = c.integers(1);
    if (!shape) return std::nullopt;
    for (const std::int64_t d : *shape)
        if (d < 0) throw MalformedNode(c.id, fmt::format("the target shape has the dimension {}; repair the model", d));
    const Shape to = broadcast_shapes(c.id, c.x, *shape);
    Maps maps;
    for (std::size_t i = 0; i < to.size(); ++i) {
        IndexMap map{std::nullopt, {to[i]}, 0, 0, {}};
        if (const std::size_t lead = to.size() - c.x.size(); i >= lead) {
            map.source = i - lead;
            map.step = c.x[i - lead] == 1 ? 0 : 1;
        }
        maps.push_back(map);
    }
    return maps;
}

std::optional<Maps> tile(const Context& c) {
    const auto repeats = c.integers(1);
    if (!repeats) return std::nullopt;
    if (repeats->size() != c.x.size()) throw MalformedNode(c.id, "repeats needs one entry a dimension; repair the model");
    Maps maps = identity(c.x);
    for (std::size_t d = 0; d < c.x.size(); ++d) {
        const std::int64_t n = (*repeats)[d];
        if (n < 0) throw MalformedNode(c.id, fmt::format("repeats is {}; repair the model", n));
        maps[d].extents[0] = element_count({c.x[d], n});
        if (c.x[d] == 1) maps[d].step = 0;
        if (c.x[d] == 1 || n == 1) continue;
        check_list(c.id, maps[d].extents[0]);
        for (std::int64_t i = 0; i < maps[d].extents[0]; ++i) maps[d].list.push_back(i % c.x[d]);
    }
    return maps;
}

std::optional<Maps> gather(const Context& c) {
    auto list = c.integers(1);
    if (!list) return std::nullopt;
    const std::size_t axis = c.axis(c.node.integer("axis", 0));
    wrap_indices(c.id, *list, c.x[axis]);
    Maps maps = identity(c.x);
    maps[axis] = {axis, c.graph.value(c.node.inputs[1]).shape, 0, 0, std::move(*list)};
    if (maps[axis].count() == 0) maps[axis].list.clear();
    return maps;
}

/// By dimension: begin and end pads.
std::optional<std::vector<std::pair<std::int64_t, std::int64_t>>> pads_of(const Context& c) {
    auto pads = c.integers(1, c.node.has("paddings") ? "paddings" : "pads");
    auto axes = c.integers(3);
    if (!pads || !axes) return std::nullopt;
    if (axes->empty())
        for (std::int64_t d = 0; d < c.rank(); ++d) axes->push_back(d);
    if (pads->size() != 2 * axes->size()) throw MalformedNode(c.id, "pads needs two entries a dimension; repair the model");
    std::vector<std::pair<std::int64_t, std::int64_t>> by_dim(c.x.size(), {0, 0});
    for (std::size_t i = 0; i < axes->size(); ++i) by_dim[c.axis((*axes)[i])] = {(*pads)[i], (*pads)[axes->size() + i]};
    return by_dim;
}

std::optional<Maps> pad(const Context& c) {
    const auto pads = pads_of(c);
    if (!pads) return std::nullopt;
    const std::string mode = c.node.text("mode", "constant");
    if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")
        throw MalformedNode(c.id, fmt::format("mode=\"{}\" is unknown; use constant, edge, reflect or wrap", mode));
    Maps maps = identity(c.x);
    for (std::size_t d = 0; d < c.x.size(); ++d) {
        const auto [begin, end] = (*pads)[d];
        if (begin == 0 && end == 0) continue;
        // Negative pads drop elements first; the rest is padded as if they had never been there.
        const std::int64_t bound = std::int64_t{1} << 40;
        if (std::max(std::abs(begin), std::abs(end)) > bound || c.x[d] + begin + end < 0)
            throw MalformedNode(c.id, fmt::format("pads {} and {} do not fit a dimension of {}; repair the model", begin, end, c.x[d]));
        const std::int64_t low = std::max<std::int64_t>(0, -begin), n = std::max<std::int64_t>(0, c.x[d] - low - std::max<std::int64_t>(0, -end));
        const std::int64_t before = std::max<std::int64_t>(0, begin), count = before + n + std::max<std::int64_t>(0, end);
        maps[d] = {d, {count}, low, 1, {}};
        if (count == n) continue;
        if (mode != "constant" && n == 0) throw MalformedNode(c.id, "there is no element to pad with; repair the model");
        check_list(c.id, count);
        const std::int64_t period = n > 1 ? 2 * (n - 1) : 1;
        for (std::int64_t i = 0; i < count; ++i) {
            std::int64_t j = i - before;
            if (mode == "constant") {
                j = j < 0 || j >= n ? kFill - low : j;
            } else if (mode == "edge") {
                j = std::clamp<std::int64_t>(j, 0, n - 1);
            } else if (mode == "wrap") {
                j = (j % n + n) % n;
            } else {
                j = (j % period + period) % period;
                if (j >= n) j = period - j;
            }
            maps[d].list.push_back(low + j);
        }
    }
    return maps;
}

std::optional<Maps> resize(const Context& c) {
    const auto r = resize_of(c.graph, c.id);
    if (!r || r->mode != Resize::Mode::nearest) return std::nullopt;
    Maps maps = identity(c.x);
    for (std::size_t d = 0; d < c.x.size(); ++d) {
        if (!r->axes[d].resized() && r->transform != "tf_crop_and_resize") continue;
        maps[d].extents[0] = r->axes[d].out;
        check_list(c.id, r->axes[d].out);
        maps[d].list = nearest_indices(*r, d);
    }
    return maps;
}

}  // namespace

std::optional<std::vector<std::int64_t>> constant_integers(const Graph& graph, NodeId id, std::size_t i, const char* name) {
    const Node& node = graph.node(id);
    if (name && node.has(name)) return node.integers(name);
    const ValueId value = node.input(i);
    if (value == kNoValue) return std::vector<std::int64_t>{};
    if (!graph.is_constant(value)) return std::nullopt;
    const Tensor& t = *graph.value(value).constant;
    check_list(id, t.count());
    std::vector<std::int64_t> values;
    for (std::int64_t k = 0; k < t.count(); ++k) values.push_back(t.integer(k));
    return values;
}

std::optional<std::vector<IndexMap>> index_maps(const Graph& graph, NodeId id, std::size_t output) {
    const Node& node = graph.node(id);
    const ValueId x = node.input(0);
    if (x == kNoValue || !graph.value(x).known || graph.value(x).dynamic) return std::nullopt;
    const Context c{graph, id, node, graph.value(x).shape, output};
    if (node.op == "Slice") return slice(c);
    if (node.op == "Split") return split(c);
    if (node.op == "Expand") return expand(c);
    if (node.op == "Tile") return tile(c);
    if (node.op == "Gather") return gather(c);
    if (node.op == "Pad") return pad(c);
    if (node.op == "Resize" || node.op == "Upsample") return resize(c);
    return std::nullopt;
}

}  // namespace assay::workloads
