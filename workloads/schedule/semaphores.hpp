#pragma once
// Semaphore insertion: orders descriptors of different engines that touch the same bytes, and nothing else.
#include <vector>

#include "workloads/schedule/emitter.hpp"

namespace assay::workloads {

/// Writes wait and signal fields into the descriptors. Semaphore e belongs to engine e and counts the descriptors of e that somebody
/// awaits. Guarantees: every pair of conflicting accesses is ordered; the stream is legal one descriptor at a time; a descriptor signals
/// only if some wait names exactly that count, so losing any one signal leaves the last wait on that semaphore unmet.
void insert_semaphores(std::vector<Item>& stream);

}  // namespace assay::workloads
