#pragma once
// Elementwise expressions, and their division into vector descriptors: 15 micro-operations, 8 immediates and 3 streams each.
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "aurum_contract.hpp"
#include "workloads/schedule/emitter.hpp"

namespace assay::workloads {

/// A value in single-assignment form. Streams are named by the caller's numbering and bound to memory when emitted.
class Expr {
public:
    struct Ref {
        enum class Kind : std::uint8_t { op, stream, immediate } kind = Kind::op;
        std::uint32_t index = 0;  ///< op number, stream number, or the immediate's bits
        bool operator==(const Ref&) const = default;
    };
    struct Op {
        simkernel::Uop uop;
        std::array<Ref, 3> args;
        int arity;
    };

    static Ref stream(std::uint32_t number) { return {Ref::Kind::stream, number}; }
    static Ref imm(float value);
    static Ref imm_i(std::int32_t value);
    Ref op(simkernel::Uop uop, Ref a);
    Ref op(simkernel::Uop uop, Ref a, Ref b);
    Ref op(simkernel::Uop uop, Ref a, Ref b, Ref c);
    const std::vector<Op>& ops() const { return ops_; }
    Ref result;  ///< what the expression computes

private:
    std::vector<Op> ops_;
};

/// A strided operand of a vector descriptor.
struct VectorOperand {
    std::uint32_t addr = 0;
    simkernel::Dtype type = simkernel::Dtype::f32;
    std::array<std::int32_t, 5> stride{};  ///< bytes along each dimension; 0 repeats
};

struct VectorShape {
    std::array<std::uint32_t, 5> count{1, 1, 1, 1, 1};
    std::uint64_t elements() const;
};

/// Reduction that follows an expression; dimension meanings as in the descriptor.
struct Reduction {
    simkernel::Reduce op = simkernel::Reduce::none;
    bool lanes = false;
    std::uint32_t dims = 0;
    std::optional<std::uint32_t> carry_in{};  ///< where the partials of the part before lie; the expression then reads two streams at most
    bool carry_out = false;                 ///< write partials (4 bytes each) instead of the result
};

/// The ops [begin, end) of an expression that one descriptor computes.
struct Segment {
    std::size_t begin = 0, end = 0;
};

/// Fewest descriptors, greedily: each cut stands where one value is alive. Throws Error(internal) when no cut fits.
std::vector<Segment> split(const Expr& expr);

/// Emits the expression over `shape`. When it takes several descriptors, the values between them live packed at `temp` (4 bytes an
/// element); `temp` may be 0 when split(expr) is one segment. A reduction applies to the final value.
void emit_expr(Emitter& emitter, const Expr& expr, const VectorShape& shape, const std::vector<VectorOperand>& streams,
               const VectorOperand& out, std::uint32_t temp, const Reduction& reduction = {});

}  // namespace assay::workloads
