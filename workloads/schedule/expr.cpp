#include "workloads/schedule/expr.hpp"

#include <algorithm>
#include <bit>
#include <map>

#include "simkernel/exec/decode.hpp"
#include "simkernel/numerics/vector.hpp"
#include "support/error.hpp"

namespace assay::workloads {
namespace {

using simkernel::Dtype;
using simkernel::Uop;
using Ref = Expr::Ref;

constexpr std::size_t kUops = 15, kImmediates = 8, kStreams = 3;
constexpr std::uint64_t kTempAlign = 64;

/// What a segment needs besides its micro-operations.
struct Needs {
    std::vector<Ref> streams;  ///< in order of first use; an op reference is the value of an earlier segment
    std::vector<std::uint32_t> imms;
    bool fits() const { return streams.size() <= kStreams && imms.size() <= kImmediates; }
};

Needs needs_of(const Expr& expr, const std::vector<std::size_t>& ops) {
    Needs needs;
    for (const std::size_t i : ops)
        for (int a = 0; a < expr.ops()[i].arity; ++a) {
            const Ref& ref = expr.ops()[i].args[static_cast<std::size_t>(a)];
            if (ref.kind == Ref::Kind::immediate) {
                if (std::find(needs.imms.begin(), needs.imms.end(), ref.index) == needs.imms.end()) needs.imms.push_back(ref.index);
            } else if (ref.kind == Ref::Kind::stream || !std::binary_search(ops.begin(), ops.end(), std::size_t{ref.index})) {
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

/// The ops that `op` needs and that are not in `kept`, ascending; itself the last.
std::vector<std::size_t> cone_of(const Expr& expr, std::size_t op, const std::vector<bool>& kept) {
    std::vector<bool> in(op + 1, false);
    in[op] = true;
    std::vector<std::size_t> cone;
    for (std::size_t i = op + 1; i-- > 0;) {
        if (!in[i]) continue;
        cone.push_back(i);
        for (int a = 0; a < expr.ops()[i].arity; ++a) {
            const Ref& ref = expr.ops()[i].args[static_cast<std::size_t>(a)];
            if (ref.kind == Ref::Kind::op && !kept[ref.index]) in[ref.index] = true;
        }
    }
    std::reverse(cone.begin(), cone.end());
    return cone;
}

bool one_descriptor(const Expr& expr, const std::vector<std::size_t>& ops) { return ops.size() <= kUops && needs_of(expr, ops).fits(); }

/// Cuts where one value is alive, as late as they fit; false when some cut has none.
bool cut_cleanly(ExprPlan& plan) {
    const std::size_t total = plan.expr.ops().size();
    for (std::size_t begin = 0; begin < total;) {
        std::vector<std::size_t> ops, best;
        for (std::size_t end = begin + 1; end <= total && end - begin <= kUops; ++end) {
            ops.push_back(end - 1);
            if (clean_cut(plan.expr, end) && one_descriptor(plan.expr, ops)) best = ops;
        }
        if (best.empty()) {
            plan.segments.clear();
            return false;
        }
        begin = best.back() + 1;
        plan.segments.push_back({std::move(best), 0});
    }
    return true;
}

/// Keeps, again and again, the value that a descriptor can compute and that saves the most of what is left.
void cut_greedily(ExprPlan& plan) {
    const Expr& expr = plan.expr;
    std::vector<bool> kept(expr.ops().size(), false);
    const std::size_t result = expr.ops().size() - 1;
    while (true) {
        std::vector<std::size_t> rest = cone_of(expr, result, kept);
        if (one_descriptor(expr, rest)) {
            plan.segments.push_back({std::move(rest), 0});
            return;
        }
        std::size_t best = 0, gain = 0;
        std::vector<std::size_t> chosen;
        for (const std::size_t u : rest) {
            if (u == result) continue;
            std::vector<std::size_t> cone = cone_of(expr, u, kept);
            if (!one_descriptor(expr, cone)) continue;
            kept[u] = true;
            const std::size_t saved = rest.size() - cone_of(expr, result, kept).size();
            kept[u] = false;
            if (saved >= gain) {
                gain = saved;
                best = u;
                chosen = std::move(cone);
            }
        }
        ASSAY_CHECK(!chosen.empty(), "one operation always fits a descriptor");
        kept[best] = true;
        plan.segments.push_back({std::move(chosen), 0});
    }
}

/// Gives each value that waits a temporary; one that dies in a segment may hold that segment's value (same place, same strides).
void place_temps(ExprPlan& plan) {
    std::vector<std::size_t> last(plan.segments.size(), 0);
    std::map<std::size_t, std::size_t> maker;  // by op
    for (std::size_t s = 0; s < plan.segments.size(); ++s) {
        for (const Ref& ref : needs_of(plan.expr, plan.segments[s].ops).streams)
            if (ref.kind == Ref::Kind::op) last[maker.at(ref.index)] = s;
        maker[plan.segments[s].ops.back()] = s;
    }
    std::vector<std::size_t> busy_until;
    for (std::size_t s = 0; s + 1 < plan.segments.size(); ++s) {
        std::size_t slot = 0;
        while (slot < busy_until.size() && busy_until[slot] > s) ++slot;
        if (slot == busy_until.size()) busy_until.push_back(0);
        busy_until[slot] = last[s];
        plan.segments[s].temp = slot;
    }
    plan.temps = busy_until.size();
}

/// The expression without ops that its result does not need; a result that is no op's gets one, since it must reach v0.
Expr compacted(const Expr& source) {
    Expr out;
    if (source.result.kind != Ref::Kind::op) {
        out.op(Uop::mov, source.result);
        return out;
    }
    std::vector<Ref> moved(source.ops().size());
    for (const std::size_t i : cone_of(source, source.result.index, std::vector<bool>(source.ops().size(), false))) {
        Expr::Op op = source.ops()[i];
        for (int a = 0; a < op.arity; ++a) {
            Ref& ref = op.args[static_cast<std::size_t>(a)];
            if (ref.kind == Ref::Kind::op) ref = moved[ref.index];
        }
        moved[i] = op.arity == 1   ? out.op(op.uop, op.args[0])
                   : op.arity == 2 ? out.op(op.uop, op.args[0], op.args[1])
                                   : out.op(op.uop, op.args[0], op.args[1], op.args[2]);
    }
    return out;
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
Ref Expr::add(Op op) {
    const auto same = std::find(ops_.begin(), ops_.end(), op);
    const auto index = static_cast<std::uint32_t>(same - ops_.begin());
    if (same == ops_.end()) ops_.push_back(op);
    return result = {Ref::Kind::op, index};
}
Ref Expr::op(Uop uop, Ref a) { return add({uop, {a, {}, {}}, 1}); }
Ref Expr::op(Uop uop, Ref a, Ref b) { return add({uop, {a, b, {}}, 2}); }
Ref Expr::op(Uop uop, Ref a, Ref b, Ref c) { return add({uop, {a, b, c}, 3}); }

std::uint64_t VectorShape::elements() const {
    std::uint64_t n = 1;
    for (const std::uint32_t c : count) n *= c;
    return n;
}

ExprPlan plan_expr(const Expr& expr) {
    ExprPlan plan;
    plan.expr = compacted(expr);
    if (!cut_cleanly(plan)) cut_greedily(plan);
    place_temps(plan);
    return plan;
}

std::uint64_t temp_bytes(const ExprPlan& plan, std::uint64_t elements) {
    return plan.temps * ((4 * elements + kTempAlign - 1) / kTempAlign * kTempAlign);
}

void emit_plan(Emitter& emitter, const ExprPlan& plan, const VectorShape& shape, const std::vector<VectorOperand>& streams,
               const VectorOperand& out, std::uint32_t temp, const Reduction& reduction) {
    const Expr& expr = plan.expr;
    const auto pitch = static_cast<std::uint32_t>((4 * shape.elements() + kTempAlign - 1) / kTempAlign * kTempAlign);
    std::map<std::size_t, std::uint32_t> waiting;  // by op: address
    for (std::size_t s = 0; s < plan.segments.size(); ++s) {
        const std::vector<std::size_t>& ops = plan.segments[s].ops;
        const bool last = s + 1 == plan.segments.size();
        const Needs needs = needs_of(expr, ops);
        simkernel::VectorFields f;
        f.count = shape.count;
        f.pre_count = static_cast<std::uint32_t>(ops.size());
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
                f.in_addr[i] = waiting.at(ref.index);
                f.in_type[i] = static_cast<std::uint32_t>(Dtype::i32);
                *strides[i] = packed_strides(shape, 4);
            }
        }
        const auto place = [&](std::size_t op) { return static_cast<std::size_t>(std::lower_bound(ops.begin(), ops.end(), op) - ops.begin()); };
        const auto selector = [&](const Ref& ref) -> unsigned {
            if (ref.kind == Ref::Kind::immediate)
                return simkernel::kUopImm +
                       static_cast<unsigned>(std::find(needs.imms.begin(), needs.imms.end(), ref.index) - needs.imms.begin());
            if (ref.kind == Ref::Kind::op && std::binary_search(ops.begin(), ops.end(), std::size_t{ref.index}))
                return static_cast<unsigned>(place(ref.index)) + 1;
            return simkernel::kUopIn +
                   static_cast<unsigned>(std::find(needs.streams.begin(), needs.streams.end(), ref) - needs.streams.begin());
        };
        for (std::size_t i = 0; i < ops.size(); ++i) {
            const Expr::Op& op = expr.ops()[ops[i]];
            std::array<unsigned, 3> args{};
            for (int a = 0; a < op.arity; ++a) args[static_cast<std::size_t>(a)] = selector(op.args[static_cast<std::size_t>(a)]);
            const unsigned dst = i + 1 == ops.size() ? 0u : static_cast<unsigned>(i) + 1;
            f.uop[i] = simkernel::encode_uop(op.uop, dst, args[0], args[1], args[2]);
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
            f.out_addr = waiting[ops.back()] = temp + static_cast<std::uint32_t>(plan.segments[s].temp) * pitch;
            f.out_type = static_cast<std::uint32_t>(Dtype::i32);
            f.out_stride = packed_strides(shape, 4);
        }
        emitter.emit(f);
    }
}

void emit_expr(Emitter& emitter, const Expr& expr, const VectorShape& shape, const std::vector<VectorOperand>& streams,
               const VectorOperand& out, std::uint32_t temp, const Reduction& reduction) {
    emit_plan(emitter, plan_expr(expr), shape, streams, out, temp, reduction);
}

}  // namespace assay::workloads
