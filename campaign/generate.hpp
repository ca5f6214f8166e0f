#pragma once
// Token by token through a decoder model: each step's program is compiled for its cache length, and the state that is carried (the KV cache)
// stays in device memory where the step before left it.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "campaign/model.hpp"
#include "switchover/runtime.hpp"
#include "switchover/target.hpp"

namespace assay::campaign {

struct GenerateOptions {
    ModelRequest model;
    std::string tokenizer;  ///< llama2.c format; empty: tokens are printed as numbers
    std::string prompt;
    unsigned steps = 64;    ///< tokens fed, those of the prompt included
    /// "OUTPUT=INPUT", '*' (or '.*') standing for the same text on both sides: present*=past*.
    std::vector<std::string> carry{"present*=past*"};
    std::string token_input, position_input, logits_output;  ///< empty: found by type and name
    std::string target = "tlm";
    switchover::TargetOptions target_options;
    std::string precision = "native";
    bool sanitize = false;
    std::function<void(const std::string& piece)> on_text;  ///< called with each new piece of text
};

struct GenerateReport {
    std::vector<std::int64_t> tokens;  ///< fed and made, from the first
    std::string text;                  ///< of all tokens but the first
    std::vector<std::uint64_t> cycles; ///< by step
    std::map<std::string, std::uint64_t> cycles_by_operator;  ///< main operator of the layer
    std::uint64_t host_operations = 0, operations = 0;
    double device_seconds = 0, host_seconds = 0, compile_seconds = 0, total_seconds = 0;
    std::size_t resident_steps = 0;    ///< steps whose whole carried state was in device memory already
    simkernel::ChipConfig chip;
    std::string target, precision, model;
    double tokens_per_second() const;  ///< at the chip's clock, host steps not counted
};

/// Throws Error(usage) when inputs and outputs cannot be told apart, Error(bad_input) as compile does, and Error(internal) when the chip fails.
GenerateReport generate(const GenerateOptions& options);

std::string to_json(const GenerateReport& report);

}  // namespace assay::campaign
