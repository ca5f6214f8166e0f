#pragma once
// Scales, zero points and rounding that the quantised operators share within the reference.
#include "golden/reference/node.hpp"

namespace assay::golden::ops {

/// One parameter (scale or zero point) for a whole tensor, one an index of `axis`, or one a block of `block` indices of it (block > 0).
class PerAxis {
public:
    /// `parameter` null: every value is `otherwise`. Fails unless it has one element, or shape[axis] elements in one dimension, or by block
    /// the tensor's shape with ceil(shape[axis] / block) on the axis.
    PerAxis(const Node& node, const Value* parameter, double otherwise, const Shape& shape, std::int64_t axis, const char* what, std::int64_t block = 0);
    double at(std::int64_t element) const {
        if (values_.size() == 1) return values_[0];
        const std::int64_t along = element / inner_;
        if (blocks_ == 0) return values_[static_cast<std::size_t>(along) % values_.size()];
        return values_[static_cast<std::size_t>((along / length_ * blocks_ + along % length_ / block_) * inner_ + element % inner_)];
    }

private:
    std::vector<double> values_;
    std::int64_t inner_ = 1, length_ = 1, block_ = 1, blocks_ = 0;
};

/// An empty quantised tensor with its planes; `type` must be an integer of at most 16 bits.
Value quantised_value(const Node& node, DType type, Shape shape);
/// Rounds `scaled` (real value over scale) half to even, adds the zero point and saturates, keeping the unrounded value. `scaled_err`
/// bounds the chip's scaled value; where the interval reaches over a rounding boundary the result may honestly differ by what lies across.
void quantise(Value& out, std::int64_t i, double scaled, double scaled_err, double zero_point, bool bounds);

/// Integer elements less their zero point, as real numbers (exact).
Value centred(const Value& x, const PerAxis& zero_point);

}  // namespace assay::golden::ops
