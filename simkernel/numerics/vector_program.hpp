#pragma once
// A micro-program run over chunks of elements: every micro-operation processes a whole chunk before the next, so that decoding it costs nothing.
#include <array>
#include <memory>
#include <vector>

#include "simkernel/numerics/kernels.hpp"
#include "simkernel/numerics/vector_walk.hpp"

namespace assay::simkernel {

inline constexpr std::size_t kChunk = 512;            ///< elements; a register is then 2 KiB and a handful of them stay in L1
inline constexpr std::size_t kChunkWords = kChunk + 16;  ///< kernels may touch 16 words past the last element

/// Lane registers, converted streams and immediates of one thread.
struct ChunkBuffers {
    using Words = std::array<std::uint32_t, kChunkWords>;
    std::array<Words, 16> v;
    std::array<Words, 3> stream;
    std::array<Words, 8> imm;
    std::uint32_t ready = 0;  ///< bit i: stream[i] holds what prepare() put there
    Words zero{};
    Words values;    ///< elements that the reduction is taking
    Words raw;       ///< elements as they lie in memory, before conversion
    Words pending;   ///< reduced values that wait for the micro-operations after the reduction
    std::vector<std::uint32_t> partial;
};
/// This thread's, on the heap: the caller may be a SystemC process with a small stack.
ChunkBuffers& chunk_buffers();

/// Micro-operations [first, last) of a descriptor over the elements of `extents`.
class ChunkProgram {
public:
    ChunkProgram(const KernelTable& kernel, const VectorFields& f, const std::array<const std::byte*, 3>& in, const Extents& extents,
                 std::uint32_t first, std::uint32_t last);

    /// Elements to take at a time: at most kChunk; a whole number of rows of dimension 0 where streams repeat with it.
    std::size_t chunk() const { return chunk_; }
    /// Fills what is the same for every chunk: immediates, and streams that repeat with the rows of dimension 0 when `aligned`, that is when run() is
    /// called for multiples of chunk() only. Once for each thread and program, before run().
    void prepare(ChunkBuffers& buffers, bool aligned) const;
    /// v0 of elements [flat, flat + count), count <= kChunk. `v0` is its initial value, or null for zero.
    const std::uint32_t* run(ChunkBuffers& buffers, std::size_t flat, std::size_t count, const std::uint32_t* v0) const;

private:
    /// Elements [flat, flat + count) of stream s as lane values.
    void load(ChunkBuffers& buffers, std::size_t s, std::size_t flat, std::size_t count) const;

    const KernelTable& kernel_;
    const VectorFields& f_;
    const std::array<const std::byte*, 3> in_;
    const std::uint32_t first_, last_;
    std::array<StridedWalk, 3> walk_;
    std::uint32_t streams_read_ = 0;  ///< bit i: some operand is stream i and it is in use
    std::uint32_t imms_read_ = 0;
    std::uint32_t repeating_ = 0;     ///< bit i: stream i is the same in every row of dimension 0
    std::size_t chunk_ = kChunk;
    std::size_t total_ = 0;           ///< elements
};

}  // namespace assay::simkernel
