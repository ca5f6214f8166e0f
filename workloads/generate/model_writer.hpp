#pragma once
// Generated models as files. Weights are made while they are written: memory does not grow with them.
#include <filesystem>
#include <memory>

#include "workloads/generate/graph_builder.hpp"

namespace assay::workloads::generate {

/// Largest model written into one file; past it weights go to `<name>.data` beside it (protobuf allows 2 GiB).
inline constexpr std::uint64_t kInlineLimit = 1'500'000'000;

std::uint64_t weight_bytes(const GeneratedModel& model);

/// Writes the model, whole or not at all. Throws Error(io) when the disk has too little room (before writing) or refuses.
void write_model(const GeneratedModel& model, const std::filesystem::path& path, std::uint64_t inline_limit = kInlineLimit);

/// Writes input_0.pb … in the order of the graph's inputs into `folder`, made if absent.
void write_inputs(const GeneratedModel& model, const std::filesystem::path& folder);

/// The whole model in memory. Throws Error(usage) past the inline limit.
std::shared_ptr<onnx::ModelProto> in_memory(const GeneratedModel& model);

}  // namespace assay::workloads::generate
