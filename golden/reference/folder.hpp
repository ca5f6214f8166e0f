#pragma once
// Which values of a graph are known before it runs: what If, Loop and Scan are flattened by.
#include <optional>
#include <set>

#include "golden/reference/graph.hpp"

namespace assay::golden {

/// Evaluates parts of a growing graph on demand. Inputs that are not given stand as zeros of their declared shape, where that is complete:
/// what depends on their values is not known, what depends on their shapes is.
class Folder {
public:
    explicit Folder(const Graph& graph) : graph_(graph) {}

    /// `value_known`: a given integer or bool tensor; else only its shape counts.
    void add_input(const std::string& name, Value value, bool value_known);

    struct Known {
        Value value;
        bool value_known = false, shape_known = false;
        std::set<std::string> inputs;  ///< graph inputs that it was computed from
    };
    /// Null when it cannot be computed before the graph runs.
    const Known* find(const std::string& name);

private:
    void compute(const Step& step);
    const Graph& graph_;
    std::map<std::string, std::optional<Known>> known_;
};

}  // namespace assay::golden
