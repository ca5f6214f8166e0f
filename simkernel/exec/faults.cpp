#include "simkernel/exec/faults.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <regex>

#include <fmt/format.h>

#include "simkernel/exec/legality.hpp"
#include "support/error.hpp"

namespace assay::simkernel {

const char* const kFaultGrammar =
    "weight:TENSOR[INDEX].BIT    flips a bit of a weight in device memory before the run\n"
    "result:TENSOR[INDEX].BIT    flips a bit of a layer's result as it is stored\n"
    "scale:TENSOR*FACTOR         multiplies a layer's result by FACTOR as it is stored (scale:conv1*1.01)\n"
    "drop-signal:DESCRIPTOR      the descriptor's semaphore signal is lost\n"
    "INDEX is row-major in the ONNX tensor; BIT counts from 0, the least significant bit of its ONNX type (float32: 31 sign, 30-23 exponent)";

namespace {

template <class T>
T number(const std::string& text, std::string_view spec) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
        throw Error(ErrorKind::usage, fmt::format("--fault {}: '{}' is not a number in range", spec, text));
    return value;
}

/// Byte offset of logical element `index` in the slot's device layout.
std::uint64_t device_offset(const TensorSlot& slot, std::int64_t index) {
    std::vector<std::int64_t> at(slot.shape.size());
    for (std::size_t d = slot.shape.size(); d-- > 0;) {
        at[d] = index % slot.shape[d];
        index /= slot.shape[d];
    }
    std::int64_t offset = 0;
    for (const int d : slot.perm) offset = offset * slot.shape[static_cast<std::size_t>(d)] + at[static_cast<std::size_t>(d)];
    return static_cast<std::uint64_t>(offset) * assay::size_of(slot.dtype);
}

const TensorSlot& find_result(const Program& program, const FaultSpec& spec) {
    for (const TensorSlot& slot : program.tensors)
        if (slot.name == spec.tensor && slot.role != Role::input) return slot;
    throw Error(ErrorKind::usage, fmt::format("--fault {}: no layer stores a tensor '{}'; 'assay compile --dump' lists them", spec.text, spec.tensor));
}

/// Calls body(begin, bytes) for each run that the store descriptor writes.
template <class Body>
void for_each_store_run(const DescriptorWords& words, const Body& body) {
    const StoreFields f = decode_store_fields(words);
    for (std::uint32_t i3 = 0; i3 < f.count[3]; ++i3)
        for (std::uint32_t i2 = 0; i2 < f.count[2]; ++i2)
            for (std::uint32_t i1 = 0; i1 < f.count[1]; ++i1)
                for (std::uint32_t i0 = 0; i0 < f.count[0]; ++i0)
                    body(f.ext_addr + static_cast<std::uint64_t>(i0 * f.ext_stride[0] + i1 * f.ext_stride[1] + i2 * f.ext_stride[2] + i3 * f.ext_stride[3]),
                         std::uint64_t{f.run_bytes});
}

bool is_store(const DescriptorWords& words) { return (words[0] & 0xFF) == static_cast<std::uint32_t>(Opcode::store); }

void scale_element(std::span<std::byte> element, DType dtype, bool offset_128, double factor) {
    if (dtype == DType::f32) {
        float value;
        std::memcpy(&value, element.data(), sizeof value);
        value = static_cast<float>(value * factor);
        std::memcpy(element.data(), &value, sizeof value);
    } else if (dtype == DType::i8 || dtype == DType::u8) {
        const int bias = offset_128 ? 128 : 0;
        const int low = dtype == DType::u8 ? 0 : -128;
        const double scaled = std::nearbyint((static_cast<std::int8_t>(element[0]) + bias) * factor);
        element[0] = static_cast<std::byte>(static_cast<int>(std::clamp(scaled, double(low), low + 255.0)) - bias);
    } else {
        std::int32_t value;
        std::memcpy(&value, element.data(), sizeof value);
        value = static_cast<std::int32_t>(std::clamp(std::nearbyint(value * factor), -2147483648.0, 2147483647.0));
        std::memcpy(element.data(), &value, sizeof value);
    }
}

}  // namespace

FaultSpec parse_fault(std::string_view text) {
    FaultSpec spec;
    spec.text = text;
    std::smatch m;
    static const std::regex flip(R"((weight|result):(.+)\[(\d+)\]\.(\d+))");
    static const std::regex scale(R"(scale:(.+)\*([0-9.eE+-]+))");
    static const std::regex drop(R"(drop-signal:(\d+))");
    if (std::regex_match(spec.text, m, flip)) {
        spec.kind = m[1] == "weight" ? FaultSpec::Kind::weight : FaultSpec::Kind::result;
        spec.tensor = m[2];
        spec.element = number<std::int64_t>(m[3], text);
        spec.bit = number<unsigned>(m[4], text);
    } else if (std::regex_match(spec.text, m, scale)) {
        spec.kind = FaultSpec::Kind::scale;
        spec.tensor = m[1];
        spec.factor = number<double>(m[2], text);
        if (spec.factor == 1.0) throw Error(ErrorKind::usage, fmt::format("--fault {}: a factor of 1 has no effect", text));
    } else if (std::regex_match(spec.text, m, drop)) {
        spec.kind = FaultSpec::Kind::drop_signal;
        spec.descriptor = number<std::uint32_t>(m[1], text);
    } else {
        throw Error(ErrorKind::usage, fmt::format("--fault {}: not a fault specification; allowed:\n{}", text, kFaultGrammar));
    }
    return spec;
}

FaultPlan::FaultPlan(const std::vector<FaultSpec>& specs, const Program& program) {
    for (const FaultSpec& spec : specs) {
        const auto refuse = [&](const std::string& why) { throw Error(ErrorKind::usage, fmt::format("--fault {}: {}", spec.text, why)); };
        if (spec.kind == FaultSpec::Kind::drop_signal) {
            if (spec.descriptor >= program.descriptors.size())
                refuse(fmt::format("the program has descriptors 0 to {}", program.descriptors.size() - 1));
            if (!signal_is_needed(program.descriptors, spec.descriptor)) refuse("no wait needs this descriptor's signal, so dropping it has no effect");
            dropped_.push_back(spec.descriptor);
        } else if (spec.kind == FaultSpec::Kind::weight) {
            const auto slot = std::find_if(program.constant_slots.begin(), program.constant_slots.end(),
                                           [&](const ConstantSlot& c) { return c.name == spec.tensor && !c.element_offset.empty(); });
            if (slot == program.constant_slots.end()) refuse(fmt::format("the program holds no weight '{}'; 'assay compile --dump' lists them", spec.tensor));
            if (spec.element >= static_cast<std::int64_t>(slot->element_offset.size()))
                refuse(fmt::format("index {}: '{}' has {} elements", spec.element, spec.tensor, slot->element_offset.size()));
            // A float weight is held as bf16: the upper 16 bits of its float32.
            const unsigned low = slot->dtype == Dtype::bf16 ? 16 : 0;
            const unsigned high = slot->dtype == Dtype::bf16 ? 31 : static_cast<unsigned>(8 * (slot->dtype == Dtype::i8 ? 1 : 4)) - 1;
            if (spec.bit < low || spec.bit > high) refuse(fmt::format("bit {}: the device holds bits {} to {} of this weight", spec.bit, low, high));
            const unsigned bit = spec.bit - low;
            weights_.push_back({slot->addr.value + static_cast<std::uint64_t>(slot->element_offset[static_cast<std::size_t>(spec.element)]) + bit / 8,
                                static_cast<std::uint8_t>(1u << bit % 8)});
        } else {
            const TensorSlot& slot = find_result(program, spec);
            if (spec.kind == FaultSpec::Kind::result) {
                if (spec.element >= element_count(slot.shape)) refuse(fmt::format("index {}: '{}' has {} elements", spec.element, spec.tensor, element_count(slot.shape)));
                if (spec.bit >= 8 * assay::size_of(slot.dtype)) refuse(fmt::format("bit {}: an element of '{}' has {} bits", spec.bit, spec.tensor, 8 * assay::size_of(slot.dtype)));
            }
            const std::uint64_t element = slot.addr.value + device_offset(slot, spec.element);
            const std::size_t before = results_.size();
            for (std::uint32_t i = 0; i < program.descriptors.size(); ++i) {
                if (!is_store(program.descriptors[i])) continue;
                for_each_store_run(program.descriptors[i], [&](std::uint64_t begin, std::uint64_t bytes) {
                    if (spec.kind == FaultSpec::Kind::scale && begin >= slot.addr.value && begin + bytes <= slot.addr.value + slot.bytes)
                        results_.push_back({i, begin, bytes, 0, spec.factor, slot.dtype, slot.offset_128});
                    if (spec.kind == FaultSpec::Kind::result && element >= begin && element < begin + bytes)
                        results_.push_back({i, element, assay::size_of(slot.dtype), spec.bit, 1.0, slot.dtype, slot.offset_128});
                });
            }
            if (results_.size() == before) refuse(fmt::format("no descriptor stores '{}'", spec.tensor));
        }
    }
}

void FaultPlan::apply_to_constants(Program& program) const {
    for (const ByteFlip& flip : weights_)
        for (Constant& constant : program.constants)
            if (flip.addr >= constant.addr.value && flip.addr < constant.addr.value + constant.bytes.size())
                constant.bytes[flip.addr - constant.addr.value] ^= std::byte{flip.mask};
}

bool FaultPlan::drops_signal(std::uint32_t, std::uint32_t index) {
    return std::find(dropped_.begin(), dropped_.end(), index) != dropped_.end();
}

void FaultPlan::retired(std::uint32_t, std::uint32_t index, ExternalMemory& memory) {
    for (const Result& fault : results_) {
        if (fault.after_descriptor != index) continue;
        std::vector<std::byte> bytes(fault.bytes);
        ASSAY_CHECK(memory.read(fault.addr, bytes), "a stored tensor lies in device memory");
        if (fault.factor == 1.0) {
            bytes[fault.bit / 8] ^= std::byte{static_cast<std::uint8_t>(1u << fault.bit % 8)};
        } else {
            const std::size_t size = assay::size_of(fault.dtype);
            for (std::size_t at = 0; at + size <= bytes.size(); at += size)
                scale_element(std::span(bytes).subspan(at, size), fault.dtype, fault.offset_128, fault.factor);
        }
        ASSAY_CHECK(memory.write(fault.addr, bytes), "a stored tensor lies in device memory");
    }
}

}  // namespace assay::simkernel
