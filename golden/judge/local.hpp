#pragma once
// The local judgement: one layer, fed with the device's own inputs, element by element against the derived allowance.
#include <map>
#include <string>

#include "golden/judge/verdict.hpp"
#include "golden/reference/reference.hpp"

namespace assay::golden {

struct LocalQuestion {
    const Reference& reference;
    std::string output;                   ///< ONNX value that the layer makes
    std::map<std::string, Tensor> feeds;  ///< device tensors that it reads
    LayerRule rule;
    const Values* exact = nullptr;  ///< of Reference::run, for what depends on shapes only; may be null
};

/// Checks shape and type, class and position of non-finite values, then the allowance; fills local, first_failing, max_abs, max_rel, dtype,
/// shape, elements, verdict and reason. `unwritten_bytes`: how much of the device tensor still holds the poison.
/// Throws Error(bad_input) when the reference cannot evaluate the layer.
TensorVerdict judge_local(const Tensor& device, const LocalQuestion& question, std::uint64_t unwritten_bytes = 0);

/// Coordinates of a row-major index.
std::vector<std::int64_t> coordinates(std::int64_t index, const Shape& shape);
/// "[1,2,3]": device d, reference g, allowed a.
std::string describe(const ElementReport& element);

}  // namespace assay::golden
