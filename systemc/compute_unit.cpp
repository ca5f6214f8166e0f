#include "systemc/compute_unit.hpp"

#include <algorithm>

namespace assay::chip {

bool ComputeUnit::offer(std::uint32_t id, const simkernel::Decoded& descriptor, const simkernel::DescriptorWords&, Cycles) {
    if (busy_) return false;
    busy_ = true;
    id_ = id;
    left_ = cycles_of(descriptor, ports_.config());
    effect_ = ports_.values_of(descriptor);
    return true;
}

Advance ComputeUnit::advance(Cycles limit) {
    Advance result;
    if (!busy_) return result;
    result.ran = std::min(limit, left_);
    left_ = left_ - result.ran;
    result.state = UnitState::running;
    if (left_.count != 0) return result;
    busy_ = false;
    result.state = UnitState::retired;
    result.retired_id = id_;
    result.fault = effect_.fault;
    result.saturated = effect_.saturated;
    return result;
}

}  // namespace assay::chip
