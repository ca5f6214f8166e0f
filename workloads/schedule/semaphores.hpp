#pragma once
// Puts semaphores into a stream: between the engines that touch the same bytes, of one core or of several, and nothing else.
#include <vector>

#include "workloads/schedule/emitter.hpp"

namespace assay::workloads {

/// Writes core, wait and signal fields into the descriptors. Semaphore e of a core belongs to its engine e and counts the descriptors of e that
/// somebody of the core awaits; one that another core awaits counts on the engine's shared semaphore instead. Guarantees: every pair of
/// conflicting accesses is ordered; the stream is legal one descriptor at a time; a descriptor signals only if some wait names exactly that
/// count, so losing any one signal leaves the last wait on that semaphore unmet.
/// A descriptor that awaits more than its four waits hold gets `sync` descriptors before it. Returns, for each old stream index and one past
/// the last, where it now begins (its syncs included).
std::vector<std::uint32_t> insert_semaphores(std::vector<Item>& stream);

}  // namespace assay::workloads
