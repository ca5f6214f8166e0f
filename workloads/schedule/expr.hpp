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
        bool operator==(const Op&) const = default;
    };

    static Ref stream(std::uint32_t number) { return {Ref::Kind::stream, number}; }
    static Ref imm(float value);
    static Ref imm_i(std::int32_t value);
    /// Adds the operation, or finds it when the same was asked for before.
    Ref op(simkernel::Uop uop, Ref a);
    Ref op(simkernel::Uop uop, Ref a, Ref b);
    Ref op(simkernel::Uop uop, Ref a, Ref b, Ref c);
    const std::vector<Op>& ops() const { return ops_; }
    Ref result;  ///< what the expression computes

private:
    Ref add(Op op);
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

/// How an expression becomes descriptors: each segment computes one value from streams and from values of earlier segments, which wait in
/// temporaries of the scratchpad as raw 32-bit words (a mask or an integer would not survive as fp32).
struct ExprPlan {
    struct Segment {
        std::vector<std::size_t> ops;  ///< in order; the last is the segment's value
        std::size_t temp = 0;          ///< where its value waits; unused in the last segment
    };
    Expr expr;  ///< without what the result does not need; its last op is the result
    std::vector<Segment> segments;
    std::size_t temps = 0;  ///< temporaries alive at once
};

/// Fewest cuts where one value is alive, if they suffice; else values that several descriptors need are kept. Values may be computed twice.
/// Throws nothing: one operation always fits a descriptor.
ExprPlan plan_expr(const Expr& expr);

/// Bytes of the temporaries for `elements` elements.
std::uint64_t temp_bytes(const ExprPlan& plan, std::uint64_t elements);

/// Emits the plan over `shape`; temporaries lie at `temp` (temp_bytes of them for the shape; may be 0 when there are none). A reduction
/// applies to the final value.
void emit_plan(Emitter& emitter, const ExprPlan& plan, const VectorShape& shape, const std::vector<VectorOperand>& streams,
               const VectorOperand& out, std::uint32_t temp, const Reduction& reduction = {});

/// plan_expr and emit_plan at once, for an expression that is emitted once.
void emit_expr(Emitter& emitter, const Expr& expr, const VectorShape& shape, const std::vector<VectorOperand>& streams,
               const VectorOperand& out, std::uint32_t temp, const Reduction& reduction = {});

}  // namespace assay::workloads
