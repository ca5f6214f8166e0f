#include "workloads/graph/graph.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <queue>

#include "support/error.hpp"

namespace assay::workloads {

std::int64_t Node::integer(const std::string& key, std::int64_t otherwise) const {
    const auto it = attributes.find(key);
    return it == attributes.end() ? otherwise : it->second.i;
}

float Node::real(const std::string& key, float otherwise) const {
    const auto it = attributes.find(key);
    return it == attributes.end() ? otherwise : it->second.f;
}

std::string Node::text(const std::string& key, const std::string& otherwise) const {
    const auto it = attributes.find(key);
    return it == attributes.end() ? otherwise : it->second.s;
}

std::vector<std::int64_t> Node::integers(const std::string& key, std::vector<std::int64_t> otherwise) const {
    const auto it = attributes.find(key);
    return it == attributes.end() ? otherwise : it->second.ints;
}

ValueId Graph::find(const std::string& name) const {
    const auto it = by_name_.find(name);
    return it == by_name_.end() ? kNoValue : it->second;
}

ValueId Graph::value_id(const std::string& name) {
    const auto [it, added] = by_name_.try_emplace(name, static_cast<ValueId>(values_.size()));
    if (added) {
        Value value;
        value.name = name;
        values_.push_back(std::move(value));
    }
    return it->second;
}

NodeId Graph::add_node(Node node) {
    const auto id = static_cast<NodeId>(boost::add_vertex(std::move(node), adjacency_));
    for (const ValueId output : this->node(id).outputs)
        if (output != kNoValue) {
            Value& v = value(output);
            if (v.producer >= 0 || v.is_input || v.constant)
                throw Error(ErrorKind::bad_input, fmt::format("{}: value '{}' is defined twice; the second time by node '{}'", file, v.name,
                                                              this->node(id).name));
            v.producer = id;
        }
    return id;
}

void Graph::connect() {
    boost::remove_edge_if([](const auto&) { return true; }, adjacency_);
    readers_.assign(values_.size(), {});
    for (NodeId id = 0; id < node_count(); ++id) {
        const auto read = [&](ValueId input) {
            if (input == kNoValue) return;
            auto& readers = readers_[static_cast<std::size_t>(input)];
            if (readers.empty() || readers.back() != id) readers.push_back(id);
            if (const NodeId from = value(input).producer; from >= 0)
                boost::add_edge(static_cast<std::size_t>(from), static_cast<std::size_t>(id), Edge{input}, adjacency_);
        };
        for (const ValueId input : node(id).inputs) read(input);
        for (const ValueId capture : node(id).captures) read(capture);
    }
}

std::vector<NodeId> Graph::topological_order() const {
    // Kahn's algorithm with a heap: boost::topological_sort gives an order that depends on the depth-first search, not on the file.
    std::vector<std::size_t> missing(boost::num_vertices(adjacency_));
    std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
    for (std::size_t v = 0; v < missing.size(); ++v) {
        missing[v] = boost::in_degree(v, adjacency_);
        if (missing[v] == 0) ready.push(static_cast<NodeId>(v));
    }
    std::vector<NodeId> order;
    while (!ready.empty()) {
        const NodeId id = ready.top();
        ready.pop();
        order.push_back(id);
        for (auto [e, end] = boost::out_edges(static_cast<std::size_t>(id), adjacency_); e != end; ++e)
            if (--missing[boost::target(*e, adjacency_)] == 0) ready.push(static_cast<NodeId>(boost::target(*e, adjacency_)));
    }
    for (std::size_t v = 0; v < missing.size(); ++v)
        if (missing[v] != 0)
            throw Error(ErrorKind::bad_input,
                        fmt::format("{}: node '{}' lies on a cycle; an ONNX graph has none", file, adjacency_[v].name));
    return order;
}

std::vector<NodeId> Graph::consumers(ValueId id) const {
    std::vector<NodeId> found;
    for (const NodeId reader : readers_[static_cast<std::size_t>(id)])
        if (!node(reader).folded) found.push_back(reader);
    return found;
}

}  // namespace assay::workloads
