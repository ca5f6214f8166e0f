#include "workloads/schedule/expr.hpp"

#include <algorithm>
#include <bit>

#include "simkernel/exec/decode.hpp"
#include "simkernel/numerics/vector.hpp"
#include "support/error.hpp"

namespace assay::workloads {
namespace {

using simkernel::Dtype;
using simkernel::Uop;
using Ref = Expr::Ref;

constexpr std::size_t kUops = 15, kImmediates = 8, kStreams = 3;

Dtype type_of(Uop uop) { return uop >= Uop::add_i32 || uop == Uop::f32_to_i32 ? Dtype::i32 : Dtype::f32; }

/// What a segment needs besides its micro-operations.
struct Needs {
    std::vector<Ref> streams;  ///< in order of first use; an op reference is the value carried from the segment before
    std::vector<std::uint32_t> imms;
    bool fits() const { return streams.size() <= kStreams && imms.size() <= kImmediates; }
};

Needs needs_of(const Expr& expr, std::size_t begin, std::size_t end) {
    Needs needs;
    for (std::size_t i = begin; i < end; ++i)
        for (int a = 0; a < expr.ops()[i].arity; ++a) {
            const Ref& ref = expr.ops()[i].args[static_cast<std::size_t>(a)];
            if (ref.kind == Ref::Kind::immediate) {
                if (std::find(needs.imms.begin(), needs.imms.end(), ref.index) == needs.imms.end()) needs.imms.push_back(ref.index);
            } else if (ref.kind == Ref::Kind::stream || ref.index < begin) {
                if (std::find(needs.streams.begin(), needs.streams.end(), ref) == needs.streams.end()) needs.streams.push_back(ref);
            }
        }
    return needs;
}

/// True when, after op `end - 1`, it is the only op value used later.
bool clean_cut(const Expr& expr, std::size_t end) {
    for (std::size_t i = end; i < expr.ops().size(); ++i)
        for (int a = 0; a < expr.ops()[i].arity; ++a) {
            const Ref& ref = expr.ops()[i].args[static_cast<std::size_t>(a)];
            if (ref.kind == Ref::Kind::op && ref.index + 1 < end) return false;
        }
    return true;
}

std::array<std::int32_t, 5> packed_strides(const VectorShape& shape, std::int32_t size) {
    std::array<std::int32_t, 5> stride{};
    std::int64_t at = size;
    for (std::size_t d = 0; d < 5; ++d) {
        stride[d] = static_cast<std::int32_t>(at);
        at *= shape.count[d];
    }
    return stride;
}

}  // namespace

Ref Expr::imm(float value) { return {Ref::Kind::immediate, std::bit_cast<std::uint32_t>(value)}; }
Ref Expr::imm_i(std::int32_t value) { return {Ref::Kind::immediate, static_cast<std::uint32_t>(value)}; }
Ref Expr::op(Uop uop, Ref a) {
    ops_.push_back({uop, {a, {}, {}}, 1});
    return result = {Ref::Kind::op, static_cast<std::uint32_t>(ops_.size() - 1)};
}
Ref Expr::op(Uop uop, Ref a, Ref b) {
    ops_.push_back({uop, {a, b, {}}, 2});
    return result = {Ref::Kind::op, static_cast<std::uint32_t>(ops_.size() - 1)};
}
Ref Expr::op(Uop uop, Ref a, Ref b, Ref c) {
    ops_.push_back({uop, {a, b, c}, 3});
    return result = {Ref::Kind::op, static_cast<std::uint32_t>(ops_.size() - 1)};
}

std::uint64_t VectorShape::elements() const {
    std::uint64_t n = 1;
    for (const std::uint32_t c : count) n *= c;
    return n;
}

std::vector<Segment> split(const Expr& expr) {
    std::vector<Segment> segments;
    const std::size_t total = expr.ops().size();
    for (std::size_t begin = 0; begin < total;) {
        std::size_t best = begin;
        for (std::size_t end = begin + 1; end <= total && end - begin <= kUops; ++end)
            if (clean_cut(expr, end) && needs_of(expr, begin, end).fits()) best = end;
        ASSAY_CHECK(best > begin, "an expression must have a cut within one descriptor");
        segments.push_back({begin, best});
        begin = best;
    }
    return segments;
}

void emit_expr(Emitter& emitter, const Expr& source, const VectorShape& shape, const std::vector<VectorOperand>& streams,
               const VectorOperand& out, std::uint32_t temp, const Reduction& reduction) {
    Expr expr = source;
    // A result that is no op's (a copy, or a bare stream) still needs one micro-operation to reach v0.
    if (expr.ops().empty()) expr.op(Uop::mov, source.result);
    ASSAY_CHECK(expr.result.kind == Ref::Kind::op && expr.result.index + 1 == expr.ops().size(),
                "an expression's result must be its last op");
    const auto segments = split(expr);
    for (std::size_t s = 0; s < segments.size(); ++s) {
        const std::size_t begin = segments[s].begin, end = segments[s].end;  // clang 14 captures no structured binding
        const bool last = s + 1 == segments.size();
        const Needs needs = needs_of(expr, begin, end);
        simkernel::VectorFields f;
        f.count = shape.count;
        f.pre_count = static_cast<std::uint32_t>(end - begin);
        std::copy(needs.imms.begin(), needs.imms.end(), f.imm.begin());
        const std::array<std::array<std::int32_t, 5>*, 3> strides{&f.in0_stride, &f.in1_stride, &f.in2_stride};
        for (std::size_t i = 0; i < needs.streams.size(); ++i) {
            const Ref& ref = needs.streams[i];
            f.in_used |= 1u << i;
            if (ref.kind == Ref::Kind::stream) {
                const VectorOperand& operand = streams.at(ref.index);
                f.in_addr[i] = operand.addr;
                f.in_type[i] = static_cast<std::uint32_t>(operand.type);
                *strides[i] = operand.stride;
            } else {
                f.in_addr[i] = temp;
                f.in_type[i] = static_cast<std::uint32_t>(type_of(expr.ops()[ref.index].uop));
                *strides[i] = packed_strides(shape, 4);
            }
        }
        const auto selector = [&](const Ref& ref) -> unsigned {
            if (ref.kind == Ref::Kind::immediate)
                return simkernel::kUopImm +
                       static_cast<unsigned>(std::find(needs.imms.begin(), needs.imms.end(), ref.index) - needs.imms.begin());
            if (ref.kind == Ref::Kind::op && ref.index >= begin)
                return ref.index + 1 == end ? 0u : static_cast<unsigned>(ref.index - begin) + 1;
            return simkernel::kUopIn +
                   static_cast<unsigned>(std::find(needs.streams.begin(), needs.streams.end(), ref) - needs.streams.begin());
        };
        for (std::size_t i = begin; i < end; ++i) {
            const Expr::Op& op = expr.ops()[i];
            std::array<unsigned, 3> args{};
            for (int a = 0; a < op.arity; ++a) args[static_cast<std::size_t>(a)] = selector(op.args[static_cast<std::size_t>(a)]);
            const unsigned dst = i + 1 == end ? 0u : static_cast<unsigned>(i - begin) + 1;
            f.uop[i - begin] = simkernel::encode_uop(op.uop, dst, args[0], args[1], args[2]);
        }
        if (last) {
            f.out_addr = out.addr;
            f.out_type = static_cast<std::uint32_t>(out.type);
            f.out_stride = out.stride;
            f.reduce = static_cast<std::uint32_t>(reduction.op);
            f.reduce_lanes = reduction.lanes;
            f.reduce_dims = reduction.dims;
            if (reduction.carry_in) {
                ASSAY_CHECK(needs.streams.size() < 3, "carried partials take the place of the third stream");
                f.carry_in = 1;
                f.in_addr[2] = *reduction.carry_in;
            }
            f.carry_out = reduction.carry_out;
        } else {
            f.out_addr = temp;
            f.out_type = static_cast<std::uint32_t>(type_of(expr.ops()[end - 1].uop));
            f.out_stride = packed_strides(shape, 4);
        }
        emitter.emit(f);
    }
}

}  // namespace assay::workloads
