#pragma once
// ONNX conformance: node vectors (a model, inputs, expected outputs) run one after another on a target, in child processes so that whatever a
// vector does to one is that vector's result and no other's.
#include <functional>
#include <string>
#include <vector>

#include "switchover/target.hpp"

namespace assay::campaign {

struct ConformanceOptions {
    std::string folder;             ///< holds <name>/model.onnx and <name>/test_data_set_*; "" : the system's ONNX test data
    std::string filter;             ///< only vectors whose name contains it
    std::string target = "tlm";
    switchover::TargetOptions target_options;
    std::string precision = "native";
    bool sanitize = false;
    /// |device - expected| <= atol + rtol |expected| for floats; the defaults are those of ONNX's own backend tests. Integers are exact.
    double rtol = 1e-3, atol = 1e-7;
    unsigned jobs = 2;              ///< child processes
    double timeout_seconds = 120;   ///< for one vector
    std::function<void(std::size_t done, std::size_t total)> progress;
};

struct VectorOutcome {
    /// passed; failed: wrong values or the chip's own failure; unsupported: refused before anything ran; crashed: the process died or hung.
    enum class Status { passed, failed, unsupported, crashed } status = Status::crashed;
    std::string name;      ///< folder
    std::string op;        ///< "Conv", or "(graph)" when the vector has several nodes
    bool on_host = false;  ///< at least one node ran on the host fallback
    std::string reason;    ///< empty when passed
    double seconds = 0;
};
std::string_view name_of(VectorOutcome::Status status);

struct ConformanceReport {
    std::string folder, target, chip, precision;
    std::vector<VectorOutcome> vectors;  ///< by name
    std::size_t count(VectorOutcome::Status status) const;
    std::size_t passed_on_device() const;
};

/// Throws Error(bad_input) when the folder holds no vector, Error(io) when no child can be started.
ConformanceReport run_conformance(const ConformanceOptions& options);

std::string conformance_json(const ConformanceReport& report);
std::string conformance_junit(const ConformanceReport& report);

}  // namespace assay::campaign
