#pragma once
// What a run prints for people.
#include <string>

#include "campaign/session.hpp"

namespace assay::cli {

/// Table of layers, engines, outputs and the verdict line.
std::string summary(const campaign::SessionReport& report);
std::string colored(golden::Verdict verdict);

}  // namespace assay::cli
