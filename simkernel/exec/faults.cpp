#include "simkernel/exec/faults.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "simkernel/exec/decode.hpp"
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
T number(std::string_view text, std::string_view spec) {
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

/// Calls body(begin, bytes) for each run that the store descriptor writes; none when it is one that no chip would run, and none for an indexed
/// store, whose rows are known at run time only: what such a store overwrites is disturbed when the copy under it is stored.
template <class Body>
void for_each_store_run(const DescriptorWords& words, const Body& body) {
    const StoreFields f = decode_store_fields(words);
    if (f.index_enable) return;
    std::uint64_t runs = 1;
    for (const std::uint32_t n : f.count)
        if (__builtin_mul_overflow(runs, std::uint64_t{n}, &runs) || runs > kMaxDmaRuns) return;
    for (std::uint32_t i3 = 0; i3 < f.count[3]; ++i3)
        for (std::uint32_t i2 = 0; i2 < f.count[2]; ++i2)
            for (std::uint32_t i1 = 0; i1 < f.count[1]; ++i1)
                for (std::uint32_t i0 = 0; i0 < f.count[0]; ++i0)
                    body(f.ext_addr + static_cast<std::uint64_t>(i0 * f.ext_stride[0] + i1 * f.ext_stride[1] + i2 * f.ext_stride[2] + i3 * f.ext_stride[3]),
                         std::uint64_t{f.run_bytes});
}

struct Range {
    std::uint64_t begin, end;
};

/// What the store descriptor writes of a slot, as disjoint ranges, so that each byte is disturbed once however often it is stored.
std::vector<Range> stored_within(const DescriptorWords& words, const TensorSlot& slot) {
    std::vector<Range> ranges;
    for_each_store_run(words, [&](std::uint64_t begin, std::uint64_t bytes) {
        if (begin < slot.addr.value || begin - slot.addr.value > slot.bytes || bytes > slot.bytes - (begin - slot.addr.value)) return;
        if (!ranges.empty() && begin >= ranges.back().begin && begin <= ranges.back().end) ranges.back().end = std::max(ranges.back().end, begin + bytes);
        else ranges.push_back({begin, begin + bytes});
    });
    std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    std::vector<Range> merged;
    for (const Range& range : ranges) {
        if (!merged.empty() && range.begin <= merged.back().end) merged.back().end = std::max(merged.back().end, range.end);
        else merged.push_back(range);
    }
    return merged;
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
    const auto refuse = [&] { throw Error(ErrorKind::usage, fmt::format("--fault {}: not a fault specification; allowed:\n{}", text, kFaultGrammar)); };
    const std::size_t colon = text.find(':');
    const std::string_view kind = text.substr(0, colon);
    if (colon == std::string_view::npos) refuse();
    const std::string_view rest = text.substr(colon + 1);
    if (kind == "weight" || kind == "result") {
        // From the end: a tensor's name may hold any of these characters.
        const std::size_t close = rest.rfind("].");
        const std::size_t open = rest.rfind('[', close);
        if (close == std::string_view::npos || open == std::string_view::npos || open == 0) refuse();
        spec.kind = kind == "weight" ? FaultSpec::Kind::weight : FaultSpec::Kind::result;
        spec.tensor = rest.substr(0, open);
        spec.element = number<std::int64_t>(rest.substr(open + 1, close - open - 1), text);
        if (spec.element < 0) refuse();
        spec.bit = number<unsigned>(rest.substr(close + 2), text);
    } else if (kind == "scale") {
        const std::size_t star = rest.rfind('*');
        if (star == std::string_view::npos || star == 0) refuse();
        spec.kind = FaultSpec::Kind::scale;
        spec.tensor = rest.substr(0, star);
        spec.factor = number<double>(rest.substr(star + 1), text);
        if (!std::isfinite(spec.factor)) refuse();
        if (spec.factor == 1.0) throw Error(ErrorKind::usage, fmt::format("--fault {}: a factor of 1 has no effect", text));
    } else if (kind == "drop-signal") {
        spec.kind = FaultSpec::Kind::drop_signal;
        spec.descriptor = number<std::uint32_t>(rest, text);
    } else {
        refuse();
    }
    return spec;
}

FaultPlan::FaultPlan(const std::vector<FaultSpec>& specs, const Program& program) {
    for (const FaultSpec& spec : specs) {
        const auto refuse = [&](const std::string& why) { throw Error(ErrorKind::usage, fmt::format("--fault {}: {}", spec.text, why)); };
        if (spec.kind == FaultSpec::Kind::drop_signal) {
            if (spec.descriptor >= program.descriptors.size())
                refuse(fmt::format("the program has {} descriptors, numbered from 0", program.descriptors.size()));
            if (!signal_is_needed(program.descriptors, spec.descriptor)) refuse("no wait needs this descriptor's signal, so dropping it has no effect");
            dropped_.push_back(spec.descriptor);
        } else if (spec.kind == FaultSpec::Kind::weight) {
            const auto slot = std::find_if(program.constant_slots.begin(), program.constant_slots.end(),
                                           [&](const ConstantSlot& c) { return c.name == spec.tensor && !c.elements.empty(); });
            if (slot == program.constant_slots.end()) refuse(fmt::format("the program holds no weight '{}'; 'assay compile --dump' lists them", spec.tensor));
            if (spec.element >= slot->elements.elements()) refuse(fmt::format("index {}: '{}' has {} elements", spec.element, spec.tensor, slot->elements.elements()));
            const std::optional<std::int64_t> offset = slot->elements.offset(spec.element);
            if (!offset) refuse(fmt::format("element {} of '{}' takes no part in the program; choose another", spec.element, spec.tensor));
            // A float weight held as bf16 is the upper 16 bits of its float32; other types count the bits of their own words.
            const unsigned low = slot->dtype == Dtype::bf16 ? 16 : 0;
            const unsigned high = low + static_cast<unsigned>(8 * size_of(slot->dtype)) - 1;
            if (spec.bit < low || spec.bit > high) refuse(fmt::format("bit {}: the device holds bits {} to {} of this weight", spec.bit, low, high));
            const unsigned bit = spec.bit - low;
            weights_.push_back({slot->addr.value + static_cast<std::uint64_t>(*offset) + bit / 8,
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
                for (const Range& range : stored_within(program.descriptors[i], slot)) {
                    if (spec.kind == FaultSpec::Kind::scale)
                        results_.push_back({i, range.begin, range.end - range.begin, 0, spec.factor, slot.dtype, slot.offset_128});
                    else if (element >= range.begin && element < range.end)
                        results_.push_back({i, element, assay::size_of(slot.dtype), spec.bit, 1.0, slot.dtype, slot.offset_128});
                }
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
