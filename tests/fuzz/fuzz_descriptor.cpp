// What decode() admits, execute() runs safely, and writes only where accesses() says. Work is bounded by skipping what admits too much of it.
#include <algorithm>

#include "fuzz_target.hpp"
#include "simkernel/exec/interpreter.hpp"
#include "simkernel/exec/legality.hpp"
#include "simkernel/exec/semantics.hpp"
#include "simkernel/program.hpp"
#include "tests/simkernel/program_builder.hpp"

namespace assay::fuzz {
namespace {

using namespace simkernel;

constexpr std::uint64_t kMaxWork = 1 << 16;          // per descriptor; a full-sized one takes seconds
constexpr std::uint64_t kExternalBytes = 1 << 16;
constexpr std::size_t kMaxDescriptors = 4;

const ChipConfig& chip() {
    static const ChipConfig config = [] {
        ChipConfig nano = simkernel::testing::nano();
        nano.cores = 3;
        return nano;
    }();
    return config;
}

/// HBM of 64 KiB that notes which bytes were written.
class Recorder final : public ExternalMemory {
public:
    bool read(std::uint64_t addr, std::span<std::byte> out) override {
        if (out.size() > kExternalBytes || addr > kExternalBytes - out.size()) return false;
        std::fill(out.begin(), out.end(), std::byte{0x5A});
        return true;
    }
    bool write(std::uint64_t addr, std::span<const std::byte> in) override {
        if (in.size() > kExternalBytes || addr > kExternalBytes - in.size()) return false;
        writes.emplace_back(addr, in.size());
        return true;
    }
    std::vector<std::pair<std::uint64_t, std::uint64_t>> writes;
};

/// The bytes of one space that `ranges` say are written; only those below `size` are kept.
std::vector<bool> written(const std::vector<AccessRange>& ranges, AccessRange::Space space, std::size_t size) {
    std::vector<bool> marks(size);
    for (const AccessRange& range : ranges) {
        if (!range.write || range.space != space) continue;
        std::vector<std::uint64_t> index(range.dims.size(), 0);
        for (bool more = true; more;) {
            std::uint64_t at = range.base;
            for (std::size_t d = 0; d < index.size(); ++d) at += index[d] * static_cast<std::uint64_t>(range.dims[d].second);
            for (std::uint64_t b = 0; b < range.run; ++b)
                if (at + b < size) marks[at + b] = true;
            more = false;
            for (std::size_t d = index.size(); d-- > 0 && !more;) {
                more = ++index[d] < range.dims[d].first;
                if (!more) index[d] = 0;
            }
        }
    }
    return marks;
}

void check_changes(std::span<const std::byte> before, std::span<const std::byte> after, const std::vector<AccessRange>& ranges, AccessRange::Space space) {
    if (std::equal(before.begin(), before.end(), after.begin())) return;
    const std::vector<bool> allowed = written(ranges, space, before.size());
    for (std::size_t i = 0; i < before.size(); ++i) expect(before[i] == after[i] || allowed[i], "execute() writes only what accesses() lists");
}

void execute_checked(const Decoded& decoded) {
    static LocalMemory local(chip());
    static std::vector<std::byte> spm_before, acc_before;
    Recorder external;
    const std::span<std::byte> spm = local.scratchpad(), acc = local.accumulator();
    spm_before.assign(spm.begin(), spm.end());
    acc_before.assign(acc.begin(), acc.end());
    execute(decoded, local, external, chip());
    const std::vector<AccessRange> ranges = accesses(decoded, chip());
    check_changes(spm_before, spm, ranges, AccessRange::Space::spm);
    check_changes(acc_before, acc, ranges, AccessRange::Space::acc);
    if (external.writes.empty()) return;
    const std::vector<bool> allowed = written(ranges, AccessRange::Space::ext, kExternalBytes);
    for (const auto& [addr, bytes] : external.writes)
        for (std::uint64_t b = 0; b < bytes; ++b) expect(allowed[addr + b], "a store writes only what accesses() lists");
}

/// Brings words that mutation has made near what decode() admits: no reserved bits, small extents, addresses inside the memories.
void guide(DescriptorWords& words, Bytes& bytes) {
    const OpcodeInfo& info = kOpcodes[bytes.below(kOpcodes.size())];
    words[0] = static_cast<std::uint32_t>(info.opcode);
    for (std::size_t i = 0; i < words.size(); ++i) words[i] &= ~info.reserved[i];
    CommonFields common = decode_common_fields(words);
    common.core %= static_cast<std::uint32_t>(chip().cores);
    common.signal_sem %= 8;
    for (std::uint32_t& sem : common.wait_sem) sem %= 8;
    encode(common, words);
    const auto small = [&](auto& values, std::uint32_t most) {
        for (auto& value : values) value = 1 + static_cast<std::uint32_t>(value) % most;
    };
    const auto near = [&](auto& strides, int unit) {
        for (auto& stride : strides) stride = (static_cast<int>(static_cast<std::uint32_t>(stride) % 256) - 64) * unit;
    };
    const auto transfer = [&](auto f) {
        small(f.count, 4);
        f.run_bytes = 1 + f.run_bytes % 64;
        f.local_addr = (f.local_addr & kAccBit) | (0x400 + f.local_addr % 0x400);
        near(f.local_stride, 1);
        if constexpr (requires { f.ext_addr; }) {
            f.ext_addr = 0x4000 + f.ext_addr % 0x4000;
            near(f.ext_stride, 1);
        } else {
            f.pattern_bytes = 1u << f.pattern_bytes % 3;
            f.run_bytes = f.run_bytes / 4 * 4 + 4;
            f.pattern &= static_cast<std::uint32_t>((std::uint64_t{1} << 8 * f.pattern_bytes) - 1);
        }
        encode(f, words);
    };
    switch (info.opcode) {
        case Opcode::nop:
        case Opcode::sync: break;
        case Opcode::load: transfer(decode_load_fields(words)); break;
        case Opcode::fill: transfer(decode_fill_fields(words)); break;
        case Opcode::store: transfer(decode_store_fields(words)); break;
        case Opcode::matmul: {
            MatmulFields f = decode_matmul_fields(words);
            f.dtype = static_cast<std::uint32_t>(f.dtype % 2 ? Dtype::bf16 : Dtype::i8);
            small(f.m_count, 4);
            small(f.k_count, 2);
            f.n_count = 1 + f.n_count % 8;
            f.a_addr = 0x800 + f.a_addr % 0x400 * 2;
            f.w_addr = 0x800 + f.w_addr % 0x400 * 2;
            f.acc_addr = kAccBit | f.acc_addr % 64 * 4;
            f.w_stride = f.n_count * 2 + f.w_stride % 8 * 2;
            f.acc_stride = f.n_count * 4 + f.acc_stride % 2 * 4;
            near(f.a_m_stride, 2);
            near(f.a_k_stride, 2);
            if (f.group_k % 2) f.group_k = f.group_n = f.group_period = 0;
            else f.group_k = 1 + f.group_k % 4, f.group_n = 1 + f.group_n % 4, f.group_period = f.group_k * (1 + f.group_period % 4);
            encode(f, words);
            break;
        }
        case Opcode::vector: {
            VectorFields f = decode_vector_fields(words);
            small(f.count, 5);
            f.pre_count %= 8;
            f.post_count = f.reduce % 2 ? f.post_count % 4 : 0;
            f.reduce = f.reduce % 2 ? 1 + f.reduce % 6 : 0;
            if (f.reduce == 0) f.reduce_lanes = f.reduce_dims = f.carry_in = f.carry_out = 0;
            f.reduce_dims %= 5;
            if (f.carry_out) f.post_count = 0;
            if (f.carry_in) f.in_used &= 3;
            for (auto& type : f.in_type) type %= 5;
            f.out_type %= 5;
            for (std::size_t i = 0; i < f.in_addr.size(); ++i) f.in_addr[i] = (f.in_addr[i] & kAccBit) | static_cast<std::uint32_t>(0x400 + 0x400 * i + f.in_addr[i] % 64 * 4);
            f.out_addr = (f.out_addr & kAccBit) | (0x400 + f.out_addr % 64 * 4);
            for (auto* strides : {&f.in0_stride, &f.in1_stride, &f.in2_stride}) near(*strides, 4);
            // Dense output, then sparse where the input says so.
            std::int32_t step = 4;
            for (std::size_t d = 0; d < 5; ++d) {
                const bool reduced = (d >= 1 && d <= f.reduce_dims) || (d == 0 && (f.reduce_lanes || f.carry_out));
                f.out_stride[d] = reduced ? 0 : step * (1 + (f.out_stride[d] & 1));
                if (!reduced) step = f.out_stride[d] * static_cast<std::int32_t>(f.count[d]);
            }
            for (std::size_t i = 0; i < f.uop.size(); ++i) {
                if (i >= f.pre_count + f.post_count) {
                    f.uop[i] = 0;
                    continue;
                }
                std::uint32_t& uop = f.uop[i];
                uop = (uop & 0x00000F00u) | static_cast<std::uint32_t>(kAllUop[(uop & 0xFF) % kAllUop.size()]) | (uop >> 12 & 31) % 24 << 12 |
                      (uop >> 17 & 31) % 24 << 17 | (uop >> 22 & 31) % 24 << 22;
                for (std::uint32_t s = 0; s < 3; ++s)
                    if (f.in_used >> s & 1 && bytes.below(4) == 0) uop = (uop & ~(31u << 12)) | (24 + s) << 12;
            }
            encode(f, words);
            break;
        }
    }
}

}  // namespace

std::vector<std::string> seeds() {
    std::vector<std::string> out;
    for (const DescriptorWords& words : simkernel::testing::gemm_program(2, 4, 4)) {
        out.emplace_back(1, '\0');  // raw
        out.back().append(reinterpret_cast<const char*>(words.data()), sizeof words);
    }
    std::string all(1, '\0');
    for (const std::string& one : out) all += one.substr(1);
    out.push_back(all);
    for (char opcode = 0; opcode < static_cast<char>(kOpcodes.size()); ++opcode)  // guided
        for (unsigned i = 0; i < 4; ++i) {
            std::string bytes(2 + sizeof(DescriptorWords) + 64, '\0');
            for (std::size_t b = 1; b < bytes.size(); ++b) bytes[b] = static_cast<char>(b * (i + 1) * 29 + b / 7);
            bytes[0] = 1;
            bytes[1 + sizeof(DescriptorWords)] = opcode;
            out.push_back(bytes);
        }
    return out;
}

}  // namespace assay::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace assay::fuzz;
    using namespace assay::simkernel;
    Bytes bytes({data, size});
    const bool guided = bytes.take<std::uint8_t>() & 1;
    std::vector<DescriptorWords> program;
    while (!bytes.empty() && program.size() < kMaxDescriptors) {
        auto words = bytes.take<DescriptorWords>();
        if (guided) guide(words, bytes);
        program.push_back(words);
    }
    bool bounded = true;
    for (std::uint32_t i = 0; i < program.size(); ++i) {
        expect(!disassemble(i, program[i]).empty(), "every descriptor has a text");
        Decoded decoded;
        if (decode(program[i], chip(), decoded)) continue;
        ++accepted;
        bounded = bounded && work_of(decoded) <= kMaxWork;
        if (work_of(decoded) <= kMaxWork) execute_checked(decoded);
        (void)signal_is_needed(program, i);
    }
    const bool legal = check_program(program, chip()).empty();
    if (!bounded) return 0;
    static Recorder external;
    static Interpreter interpreter(chip(), external);  // what an earlier input left in its local memory is as good as zeros
    external.writes.clear();
    const JobResult result = interpreter.run(program);
    if (legal) expect(result.code == ErrorCode::none || result.code == ErrorCode::illegal_address, "a legal program fails only by an external address");
    return 0;
}
