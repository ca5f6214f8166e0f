#pragma once
// Faults that a user plants (--fault SPEC), bound to a program. Each proves that the suites would notice it.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "simkernel/exec/hooks.hpp"
#include "simkernel/program.hpp"

namespace assay::simkernel {

struct FaultSpec {
    enum class Kind { weight, result, scale, drop_signal } kind = Kind::weight;
    std::string tensor;
    std::int64_t element = 0;      ///< row-major index in the ONNX tensor
    unsigned bit = 0;              ///< of the ONNX element type, 0 = least significant
    double factor = 1.0;
    std::uint32_t descriptor = 0;
    std::string text;              ///< as given
};

/// The grammar, one line each, for --help and the docs.
extern const char* const kFaultGrammar;

/// Throws Error(usage) naming the specification and the grammar.
FaultSpec parse_fault(std::string_view text);

class FaultPlan final : public JobHooks {
public:
    /// Binds specifications to a program. Throws Error(usage) for an unknown tensor, an index or bit out of range, or a signal that no wait
    /// needs (it would have no effect).
    FaultPlan(const std::vector<FaultSpec>& specs, const Program& program);

    /// Weight faults, applied to constants before they are loaded: flips bits of `program`'s constant data.
    void apply_to_constants(Program& program) const;
    bool drops_signal(std::uint32_t core, std::uint32_t index) override;
    void retired(std::uint32_t core, std::uint32_t index, ExternalMemory& memory) override;
    bool empty() const { return weights_.empty() && results_.empty() && dropped_.empty(); }

private:
    struct ByteFlip {
        std::uint64_t addr;
        std::uint8_t mask;
    };
    struct Result {
        std::uint32_t after_descriptor;
        std::uint64_t addr;      ///< of one element, or of the bytes that the descriptor stored
        std::uint64_t bytes;
        unsigned bit;
        double factor;           ///< 1: flip `bit` of the element; else scale all elements
        DType dtype;
        bool offset_128;
    };
    std::vector<ByteFlip> weights_;
    std::vector<Result> results_;
    std::vector<std::uint32_t> dropped_;
};

}  // namespace assay::simkernel
