// Types and shapes of the operators that only move data.
#include <fmt/core.h>

#include "workloads/passes/index_map.hpp"
#include "workloads/passes/passes.hpp"
#include "workloads/passes/resize.hpp"

namespace assay::workloads {
namespace {

void set(Graph& graph, NodeId id, std::size_t output, DType type, Shape shape) {
    const Node& node = graph.node(id);
    if (output >= node.outputs.size() || node.outputs[output] == kNoValue) return;
    Value& v = graph.value(node.outputs[output]);
    v.dtype = type;
    v.shape = std::move(shape);
    v.known = true;
}

Shape block_shape(NodeId id, const Node& node, const Shape& x) {
    const std::int64_t b = node.integer("blocksize", 0);
    if (x.size() != 4 || b < 1 || b > 65536) throw MalformedNode(id, fmt::format("input {} with blocks of {}; repair the model", to_string(x), b));
    const bool deep = node.op == "SpaceToDepth";
    if (deep ? x[2] % b || x[3] % b : x[1] % (b * b)) throw MalformedNode(id, fmt::format("{} does not divide into blocks of {}; repair the model", to_string(x), b));
    return deep ? Shape{x[0], x[1] * b * b, x[2] / b, x[3] / b} : Shape{x[0], x[1] / (b * b), x[2] * b, x[3] * b};
}

Shape gather_nd_shape(NodeId id, const Node& node, const Shape& x, const Shape& indices) {
    const std::int64_t batch = node.integer("batch_dims", 0);
    if (indices.empty() || batch < 0 || batch >= static_cast<std::int64_t>(indices.size()) || indices.back() < 1 ||
        indices.back() + batch > static_cast<std::int64_t>(x.size()))
        throw MalformedNode(id, fmt::format("indices {} with batch_dims = {} do not fit {}; repair the model", to_string(indices), batch, to_string(x)));
    Shape y(indices.begin(), indices.end() - 1);
    y.insert(y.end(), x.begin() + batch + indices.back(), x.end());
    return y;
}

}  // namespace

bool infer_movement(Graph& graph, NodeId id) {
    const Node& node = graph.node(id);
    if (node.inputs.empty() || node.input(0) == kNoValue) return false;
    const Value& x = graph.value(node.inputs[0]);
    if (x.dynamic) return false;
    const Shape in = x.shape;
    const DType type = x.dtype;
    const std::string& op = node.op;
    const auto second = [&]() -> const Value* {
        const ValueId v = node.input(1);
        return v == kNoValue || !graph.value(v).known || graph.value(v).dynamic ? nullptr : &graph.value(v);
    };
    if (index_maps(graph, id)) {
        for (std::size_t o = 0; o < node.outputs.size(); ++o) {
            Shape shape;
            const auto maps = index_maps(graph, id, o);  // kept alive while its extents are read
            for (const IndexMap& map : *maps) shape.insert(shape.end(), map.extents.begin(), map.extents.end());
            set(graph, id, o, type, std::move(shape));
        }
        return true;
    }
    if (op == "Gather" && second()) {
        const auto axis = normal_axis(id, node.integer("axis", 0), in.size());
        Shape y(in.begin(), in.begin() + axis);
        y.insert(y.end(), second()->shape.begin(), second()->shape.end());
        y.insert(y.end(), in.begin() + axis + 1, in.end());
        set(graph, id, 0, type, y);
        return true;
    }
    if (op == "Resize" || op == "Upsample") {
        const auto resize = resize_of(graph, id);
        if (!resize) return false;
        Shape y;
        for (const ResizeAxis& a : resize->axes) y.push_back(a.out);
        set(graph, id, 0, type, y);
        return true;
    }
    if (op == "DepthToSpace" || op == "SpaceToDepth") {
        set(graph, id, 0, type, block_shape(id, node, in));
        return true;
    }
    if (op == "GatherElements" && second()) {
        set(graph, id, 0, type, second()->shape);
        return true;
    }
    if (op == "GatherND" && second()) {
        set(graph, id, 0, type, gather_nd_shape(id, node, in, second()->shape));
        return true;
    }
    if (op == "Trilu" || op == "ReverseSequence" || op == "ScatterND" || op == "ScatterElements" || op == "Scatter") {
        set(graph, id, 0, type, in);
        return true;
    }
    return false;
}

}  // namespace assay::workloads
