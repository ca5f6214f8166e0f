#pragma once
// Slices and stacks of whole values: what loops take apart and put together.
#include "golden/reference/node.hpp"

namespace assay::golden::ops {

/// Equal shapes along a new axis in [0, rank]. Throws Error(bad_input), starting with `label`, when shapes or types differ. `parts` not empty.
Value stack(const std::vector<const Value*>& parts, std::int64_t axis, const std::string& label);
/// x at one index of an axis, which is dropped; both in range.
Value slice_at(const Value& x, std::int64_t axis, std::int64_t index);
/// stack() of all inputs along attribute 'axis', in [-rank - 1, rank].
std::vector<Value> stack_inputs(const Node& node);

}  // namespace assay::golden::ops
