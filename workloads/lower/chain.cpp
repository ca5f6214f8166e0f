#include "workloads/lower/chain.hpp"

#include <algorithm>

#include "support/error.hpp"
#include "workloads/lower/epilogue.hpp"

namespace assay::workloads {
namespace {

constexpr std::size_t kMostNodes = 40;  // of a chain: bounds the expression, and the search for its cuts
constexpr std::size_t kMostSteps = 16;  // nodes that join together to make one value of several

using simkernel::Uop;

class Grower {
public:
    Grower(const Lowering& l, Chain& chain, const std::function<bool(ValueId)>& readable, std::size_t most_sources)
        : l_(l), g_(l.graph), chain_(chain), readable_(readable), most_sources_(most_sources) {
        inside_.insert(chain.output);
        for (const NodeId id : chain.nodes) inside_.insert(g_.node(id).outputs[0]);
        for (const NodeId id : chain.nodes) count_sources(id, inside_, sources_);
    }

    void run() {
        while (chain_.nodes.size() < kMostNodes && step()) {
        }
    }

private:
    /// A value that must be written: nobody may keep it to himself.
    bool shown(ValueId value) const {
        const auto& probes = l_.options.probes;
        return g_.value(value).is_output || std::find(probes.begin(), probes.end(), g_.value(value).name) != probes.end();
    }

    bool absorbable(NodeId id) const {
        const Node& node = g_.node(id);
        if (l_.done.contains(id) || node.outputs.empty() || node.outputs[0] == kNoValue || !node.captures.empty()) return false;
        for (std::size_t i = 1; i < node.outputs.size(); ++i)
            if (node.outputs[i] != kNoValue) return false;
        const Value& out = g_.value(node.outputs[0]);
        if (!out.known || out.dynamic || out.shape != g_.value(chain_.output).shape) return false;
        for (const ValueId input : node.inputs)
            if (input != kNoValue && !g_.value(input).known) return false;
        if (node.op == "BatchNormalization") {
            if (out.dtype != DType::f32 || g_.value(node.inputs[0]).shape != out.shape) return false;
            try {
                (void)batch_norm_factors(g_, id);
            } catch (const NodeError&) {
                return false;  // reported when the node is lowered by itself
            }
            return true;
        }
        return elementwise_refusal(g_, id).empty();
    }

    std::size_t data_inputs(const Node& node) const { return node.op == "BatchNormalization" ? 1 : node.inputs.size(); }

    void count_sources(NodeId id, const std::set<ValueId>& computed, std::set<ValueId>& sources) const {
        const Node& node = g_.node(id);
        for (std::size_t i = 0; i < data_inputs(node); ++i) {
            const ValueId v = node.inputs[i];
            if (v == kNoValue || computed.contains(v)) continue;
            if (!(g_.is_constant(v) && g_.value(v).constant->count() == 1)) sources.insert(v);
        }
    }

    /// A value that is not there yet, but whose maker can join because nobody but `taken` reads it.
    bool joins(ValueId value, const std::vector<NodeId>& taken) const {
        const NodeId maker = g_.value(value).producer;
        if (maker < 0 || g_.node(maker).folded || taken.size() >= kMostSteps || shown(value) || !absorbable(maker)) return false;
        const auto readers = g_.consumers(value);
        return std::all_of(readers.begin(), readers.end(), [&](NodeId r) { return std::find(taken.begin(), taken.end(), r) != taken.end(); });
    }

    /// Adds the nodes that turn the open value into one other value.
    bool step() {
        if (shown(chain_.output)) return false;
        std::vector<NodeId> taken;
        std::vector<ValueId> made;
        std::set<ValueId> computed = inside_;
        const auto take_readers = [&](ValueId value) {
            const auto readers = g_.consumers(value);
            if (readers.empty()) return false;
            for (const NodeId reader : readers) {
                if (std::find(taken.begin(), taken.end(), reader) != taken.end()) continue;
                if (taken.size() == kMostSteps || !absorbable(reader)) return false;
                taken.push_back(reader);
                made.push_back(g_.node(reader).outputs[0]);
                computed.insert(made.back());
            }
            return true;
        };
        if (!take_readers(chain_.output)) return false;
        ValueId last = kNoValue;
        while (true) {
            std::vector<ValueId> open;
            for (const ValueId value : made) {
                const auto readers = g_.consumers(value);
                const bool outside = readers.empty() || std::any_of(readers.begin(), readers.end(), [&](NodeId r) {
                                         return std::find(taken.begin(), taken.end(), r) == taken.end();
                                     });
                if (outside || shown(value)) open.push_back(value);
            }
            if (open.empty()) return false;
            if (open.size() == 1) {
                last = open[0];
                break;
            }
            if (shown(open[0]) || !take_readers(open[0])) return false;
        }
        std::set<ValueId> sources = sources_;
        for (std::size_t k = 0; k < taken.size(); ++k) {  // grows: what only these nodes read joins them
            const Node& node = g_.node(taken[k]);
            for (std::size_t i = 0; i < data_inputs(node); ++i) {
                const ValueId input = node.inputs[i];
                if (input == kNoValue || computed.contains(input) || readable_(input)) continue;
                if (!joins(input, taken)) return false;
                taken.push_back(g_.value(input).producer);
                computed.insert(input);
            }
        }
        for (const NodeId id : taken) count_sources(id, computed, sources);
        if (sources.size() > most_sources_) return false;
        if (!order(taken)) return false;
        chain_.nodes.insert(chain_.nodes.end(), taken.begin(), taken.end());
        chain_.output = last;
        inside_ = std::move(computed);
        sources_ = std::move(sources);
        return true;
    }

    /// Producers before consumers; false when that is impossible (a value of the step that waits for another outside it).
    bool order(std::vector<NodeId>& taken) const {
        std::set<ValueId> pending;
        for (const NodeId id : taken) pending.insert(g_.node(id).outputs[0]);
        std::vector<NodeId> sorted;
        while (sorted.size() < taken.size()) {
            const std::size_t before = sorted.size();
            for (const NodeId id : taken) {
                if (!pending.contains(g_.node(id).outputs[0])) continue;
                const auto& in = g_.node(id).inputs;
                if (std::any_of(in.begin(), in.end(), [&](ValueId v) { return pending.contains(v); })) continue;
                pending.erase(g_.node(id).outputs[0]);
                sorted.push_back(id);
            }
            if (sorted.size() == before) return false;
        }
        taken = std::move(sorted);
        return true;
    }

    const Lowering& l_;
    const Graph& g_;
    Chain& chain_;
    const std::function<bool(ValueId)>& readable_;
    std::size_t most_sources_;
    std::set<ValueId> inside_, sources_;
};

}  // namespace

void grow_chain(const Lowering& lowering, Chain& chain, const std::function<bool(ValueId)>& readable, std::size_t most_sources) {
    Grower(lowering, chain, readable, most_sources).run();
}

Lane emit_chain(Expr& expr, const Graph& graph, const std::vector<NodeId>& nodes, std::map<ValueId, Lane> values, ChainReader& reader) {
    Lane last;
    const auto value_of = [&](ValueId v) -> Lane {
        if (v == kNoValue) return {};
        const auto found = values.find(v);
        return found != values.end() ? found->second : values[v] = reader.read(v);
    };
    for (const NodeId id : nodes) {
        const Node& node = graph.node(id);
        if (node.op == "BatchNormalization") {
            const auto [scale, shift] = batch_norm_factors(graph, id);
            const Lane x = value_of(node.inputs[0]);
            const Expr::Ref s = reader.channel(id, scale, "#scale"), t = reader.channel(id, shift, "#shift");
            last = {Lane::Kind::real, expr.op(Uop::fma_f32, x.ref, s, t)};
        } else {
            std::vector<Lane> inputs;
            for (std::size_t i = 0; i < node.inputs.size(); ++i) {
                // An exponent that is a constant, or what CastLike only takes a type from, is not read.
                const bool unread = i == 1 && ((node.op == "Pow" && graph.is_constant(node.inputs[1]) &&
                                                graph.value(node.inputs[1]).constant->count() == 1) || node.op == "CastLike");
                inputs.push_back(unread ? Lane{} : value_of(node.inputs[i]));
            }
            last = emit_node(expr, graph, id, inputs);
        }
        values[node.outputs[0]] = last;
    }
    return last;
}

}  // namespace assay::workloads
