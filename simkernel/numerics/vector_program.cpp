#include "simkernel/numerics/vector_program.hpp"

#include "simkernel/numerics/vector.hpp"

namespace assay::simkernel {
namespace {

struct Operation {
    Uop op;
    unsigned dst;
    std::array<unsigned, 3> operand;
};
Operation decode(std::uint32_t word) {
    return {static_cast<Uop>(word & 0xFFu), (word >> 8) & 15u, {(word >> 12) & 31u, (word >> 17) & 31u, (word >> 22) & 31u}};
}

}  // namespace

ChunkBuffers& chunk_buffers() {
    thread_local const auto instance = std::make_unique<ChunkBuffers>();
    return *instance;
}

ChunkProgram::ChunkProgram(const KernelTable& kernel, const VectorFields& f, const std::array<const std::byte*, 3>& in, const Extents& extents,
                           std::uint32_t first, std::uint32_t last)
    : kernel_(kernel), f_(f), in_(in), first_(first), last_(last) {
    const std::array<const std::array<std::int32_t, 5>*, 3> strides{&f.in0_stride, &f.in1_stride, &f.in2_stride};
    for (std::uint32_t i = first; i < last; ++i)
        for (const unsigned selector : decode(f.uop[i]).operand) {
            if (selector >= kUopImm && selector < kUopIn) imms_read_ |= 1u << (selector - kUopImm);
            if (selector >= kUopIn && selector < kUopIn + 3) streams_read_ |= 1u << (selector - kUopIn);
        }
    streams_read_ &= f.in_used;
    if (f.carry_in != 0) streams_read_ &= 3u;  // in2 holds the partials then
    for (std::size_t s = 0; s < 3; ++s)
        if ((streams_read_ >> s & 1u) != 0) walk_[s] = StridedWalk(extents, strides_of(*strides[s]), bytes_of(static_cast<Dtype>(f.in_type[s])));
    total_ = product(extents);
    if (extents[0] >= kChunk || extents[0] == total_) return;
    for (std::size_t s = 0; s < 3; ++s) {
        bool repeats = (streams_read_ >> s & 1u) != 0;
        for (std::size_t d = 1; d < 5; ++d) repeats = repeats && (extents[d] == 1 || (*strides[s])[d] == 0);
        if (repeats) repeating_ |= 1u << s;
    }
    if (repeating_ != 0) chunk_ = kChunk / extents[0] * extents[0];
}

void ChunkProgram::prepare(ChunkBuffers& buffers, bool aligned) const {
    buffers.ready = 0;
    for (std::size_t s = 0; aligned && s < 3; ++s)
        if ((repeating_ >> s & 1u) != 0) load(buffers, s, 0, std::min(chunk_, total_));
    buffers.ready = aligned ? repeating_ : 0;
    for (std::size_t i = 0; i < 8; ++i)
        if ((imms_read_ >> i & 1u) != 0) buffers.imm[i].fill(f_.imm[i]);
}

void ChunkProgram::load(ChunkBuffers& buffers, std::size_t s, std::size_t flat, std::size_t count) const {
    const auto type = static_cast<Dtype>(f_.in_type[s]);
    std::ptrdiff_t offset = 0;
    if (walk_[s].dense(flat, count, offset)) {
        kernel_.read(type, in_[s] + offset, buffers.stream[s].data(), count);
    } else {
        auto* raw = reinterpret_cast<std::byte*>(buffers.raw.data());
        walk_[s].gather(in_[s], flat, count, raw);
        kernel_.read(type, raw, buffers.stream[s].data(), count);
    }
}

const std::uint32_t* ChunkProgram::run(ChunkBuffers& buffers, std::size_t flat, std::size_t count, const std::uint32_t* v0) const {
    for (std::size_t s = 0; s < 3; ++s)
        if ((streams_read_ >> s & 1u) != 0 && (buffers.ready >> s & 1u) == 0) load(buffers, s, flat, count);
    // A register that no earlier micro-operation wrote holds zero (v0: its initial value).
    std::array<const std::uint32_t*, 32> source;
    source.fill(buffers.zero.data());
    if (v0 != nullptr) source[0] = v0;
    for (std::size_t i = 0; i < 8; ++i) source[kUopImm + i] = buffers.imm[i].data();
    for (std::size_t s = 0; s < 3; ++s)
        if ((streams_read_ >> s & 1u) != 0) source[kUopIn + s] = buffers.stream[s].data();
    for (std::uint32_t i = first_; i < last_; ++i) {
        const Operation o = decode(f_.uop[i]);
        std::uint32_t* dst = buffers.v[o.dst].data();
        kernel_.uop(o.op, source[o.operand[0]], source[o.operand[1]], source[o.operand[2]], dst, count);
        source[o.dst] = dst;
    }
    return source[0];
}

}  // namespace assay::simkernel
