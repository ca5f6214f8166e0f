// The program loader, apart from HDF5 (fuzz_hdf5 has that): any metadata and datasets are refused, or give a program that every reader of
// it can use. The input is six length-prefixed pieces: metadata, descriptors, debug, constants, offsets, what host steps hold.
#include "fuzz_target.hpp"
#include "sample_program.hpp"
#include "simkernel/exec/faults.hpp"
#include "simkernel/exec/legality.hpp"
#include "simkernel/program_parts.hpp"

namespace assay::fuzz {
namespace {

using namespace simkernel;

void put(std::string& out, std::span<const std::byte> piece) {
    const auto size = static_cast<std::uint32_t>(piece.size());
    out.append(reinterpret_cast<const char*>(&size), sizeof size);
    out.append(reinterpret_cast<const char*>(piece.data()), piece.size());
}

std::string pack(const Program& program) {
    const ProgramParts parts = parts_of(program);
    std::string out;
    put(out, std::as_bytes(std::span(parts.meta)));
    for (const Tensor* t : {&parts.descriptors, &parts.debug, &parts.constants, &parts.element_boxes, &parts.host_image}) put(out, t->bytes);
    return out;
}

std::span<const std::uint8_t> get(std::span<const std::uint8_t>& from) {
    Bytes bytes(from);
    const std::size_t claimed = bytes.take<std::uint32_t>();
    const std::size_t size = std::min(claimed, bytes.rest().size());
    from = bytes.rest().subspan(size);
    return bytes.rest().first(size);
}

/// The piece as a tensor of whole rows of `columns` elements (0: a vector).
Tensor as_tensor(std::span<const std::uint8_t> piece, DType type, std::int64_t columns) {
    const std::int64_t row = static_cast<std::int64_t>(size_of(type)) * std::max<std::int64_t>(columns, 1);
    const std::int64_t rows = static_cast<std::int64_t>(piece.size()) / row;
    Tensor t(type, columns ? Shape{rows, columns} : Shape{rows});
    if (!t.bytes.empty()) std::memcpy(t.bytes.data(), piece.data(), t.bytes.size());
    return t;
}

/// What the tools do with a program that was loaded.
void use(Program program) {
    constexpr std::uint64_t small = 1 << 16;
    for (const TensorSlot& slot : program.tensors) {
        if (slot.on_host || slot.bytes > small) continue;
        const std::vector<std::byte> device(slot.bytes, std::byte{0x5A});
        expect(to_device(slot, from_device(slot, device)) == device, "a slot's permutation is undone by its inverse");
    }
    for (std::uint32_t i = 0; i < program.descriptors.size(); ++i) expect(!disassemble(i, program.descriptors[i]).empty(), "every descriptor has a text");
    if (!check_program(program.descriptors, sample_chip()).empty()) return;
    for (const char* fault : {"weight:w[63].7", "result:y[31].31", "scale:y*1.01", "drop-signal:1"})
        refusing([&] {
            const FaultPlan plan({parse_fault(fault)}, program);
            plan.apply_to_constants(program);
        });
}

}  // namespace

std::vector<std::string> seeds() {
    Program two = sample_program();
    two.tensors.push_back({"z", DType::u8, {2, 3, 4}, {2, 0, 1}, true, DeviceAddr{0x3800}, 24, Role::intermediate});
    two.layers.push_back({"", "Relu", {1, 2}, {"y"}, {"z"}, "move", 0, 0, 0, "", 4, 1});
    Program host = sample_program();
    host.layers.push_back({"", "NonZero", {1}, {"y"}, {"w"}, "host", 0, 32, 0, "", 5, 0});
    TensorSlot where{"w", DType::i64, {}, {}, false, DeviceAddr{0}, 0, Role::output, false, true};
    host.tensors.push_back(where);
    host.host_steps.push_back({1, 5, {host.tensors[1]}, {where}, "not a model", "its shape depends on data"});
    host.bound_inputs.push_back({"sr", make_tensor<std::int64_t>(DType::i64, {1}, std::vector<std::int64_t>{16000})});
    return {pack(sample_program()), pack(two), pack(host), pack({})};
}

}  // namespace assay::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace assay::fuzz;
    using assay::DType;
    std::span<const std::uint8_t> input(data, size);
    assay::simkernel::ProgramParts parts;
    const std::span<const std::uint8_t> meta = get(input);
    parts.meta.assign(meta.begin(), meta.end());
    parts.descriptors = as_tensor(get(input), DType::u32, assay::simkernel::kDescriptorWords);
    parts.debug = as_tensor(get(input), DType::u32, 2);
    parts.constants = as_tensor(get(input), DType::u8, 0);
    parts.element_boxes = as_tensor(get(input), DType::i64, 14);
    parts.host_image = as_tensor(get(input), DType::u8, 0);
    refusing([&] {
        assay::simkernel::Program program = assay::simkernel::program_from(parts, "fuzz.h5");
        ++accepted;
        use(std::move(program));
    });
    return 0;
}
