#include "simkernel/program_parts.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simkernel/exec/decode.hpp"
#include "support/error.hpp"

namespace assay::simkernel {

using nlohmann::json;

namespace {

/// Throws the one kind of error that a file whose parts disagree gets.
class Where {
public:
    explicit Where(const std::string& file) : file_(file) {}
    [[noreturn]] void refuse(const std::string& what) const {
        throw Error(ErrorKind::damaged, fmt::format("{}: {}; compile the model again", file_, what));
    }
    void require(bool holds, const char* dataset, const std::string& what) const {
        if (!holds) refuse(fmt::format("dataset '{}' {}", dataset, what));
    }

private:
    const std::string& file_;
};

[[noreturn]] void unknown(const char* what, const std::string& name) {
    throw json::other_error::create(501, fmt::format("{} '{}' is unknown", what, name), nullptr);
}

constexpr std::size_t kBoxWords = 14;

void append(std::vector<std::int64_t>& words, const ElementBox& box) {
    words.insert(words.end(), {box.element, box.offset});
    for (const auto* each : {&box.count, &box.element_stride, &box.offset_stride}) words.insert(words.end(), each->begin(), each->end());
}

ElementBox box_from(std::span<const std::int64_t, kBoxWords> words) {
    ElementBox box{words[0], words[1], {}, {}, {}};
    std::copy_n(words.begin() + 2, 4, box.count.begin());
    std::copy_n(words.begin() + 6, 4, box.element_stride.begin());
    std::copy_n(words.begin() + 10, 4, box.offset_stride.begin());
    return box;
}

Role role_from(const std::string& name) {
    for (const Role role : {Role::input, Role::output, Role::intermediate})
        if (name == name_of(role)) return role;
    unknown("role", name);
}

DType dtype_from(const std::string& name) {
    for (const DType type : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::u8, DType::i16, DType::u16, DType::i32,
                             DType::u32, DType::i64, DType::u64, DType::boolean})
        if (name == name_of(type)) return type;
    unknown("dtype", name);
}

Dtype device_dtype_from(const std::string& name) {
    for (const Dtype type : kAllDtype)
        if (name == name_of(type)) return type;
    unknown("device dtype", name);
}

json describe(const std::vector<TensorSlot>& slots) {
    json list = json::array();
    for (const TensorSlot& t : slots)
        list.push_back({{"name", t.name}, {"dtype", name_of(t.dtype)}, {"shape", t.shape}, {"perm", t.perm}, {"offset_128", t.offset_128},
                        {"addr", t.addr.value}, {"bytes", t.bytes}, {"role", name_of(t.role)}, {"narrow", t.narrow}, {"on_host", t.on_host},
                        {"internal", t.internal}});
    return list;
}

json describe(const Program& p) {
    json meta{{"schema", "assay.program.3"}, {"chip", p.chip},           {"config_hash", p.config_hash}, {"precision", p.precision},
              {"model_path", p.model_path},  {"model_sha256", p.model_sha256}, {"hbm_bytes", p.hbm_bytes}};
    meta["tensors"] = describe(p.tensors);
    meta["host_steps"] = json::array();
    for (const HostStep& h : p.host_steps)
        meta["host_steps"].push_back({{"layer", h.layer}, {"before", h.before}, {"inputs", describe(h.inputs)}, {"outputs", describe(h.outputs)},
                                      {"model_bytes", h.model.size()}, {"reason", h.reason}});
    meta["bound_inputs"] = json::array();
    for (const BoundInput& b : p.bound_inputs)
        meta["bound_inputs"].push_back({{"name", b.name}, {"dtype", name_of(b.value.dtype)}, {"shape", b.value.shape}});
    meta["layers"] = json::array();
    for (const Layer& l : p.layers)
        meta["layers"].push_back({{"name", l.name}, {"op", l.op}, {"nodes", l.nodes}, {"inputs", l.inputs}, {"outputs", l.outputs},
                                  {"precision", l.precision}, {"macs", l.macs}, {"operations", l.operations}, {"k_slab", l.k_slab}, {"mapping", l.mapping},
                                  {"first_descriptor", l.first_descriptor}, {"descriptor_count", l.descriptor_count}, 
                                  {"x_scale", l.x_scale}, {"w_scale", l.w_scale}, {"x_zero", l.x_zero}});
    meta["constants"] = json::array();
    for (const Constant& c : p.constants) meta["constants"].push_back({{"addr", c.addr.value}, {"bytes", c.bytes.size()}});
    meta["constant_slots"] = json::array();
    for (const ConstantSlot& c : p.constant_slots)
        meta["constant_slots"].push_back({{"name", c.name}, {"addr", c.addr.value}, {"bytes", c.bytes}, {"dtype", name_of(c.dtype)},
                                          {"elements", c.elements.elements()}, {"boxes", c.elements.boxes().size()}});
    return meta;
}

/// An unsigned number that fits T. json's own conversion would take -1, 1.5 and 2^40 for some other value.
template <class T>
T unsigned_at(const json& object, const char* key) {
    const json& value = object.at(key);
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::numeric_limits<T>::max())
        throw json::other_error::create(501, fmt::format("{} = {} is no unsigned integer of {} bits", key, value.dump(), 8 * sizeof(T)), nullptr);
    return value.get<T>();
}

/// Integers of an array, each of which must fit T.
template <class T>
std::vector<T> integers_at(const json& object, const char* key) {
    std::vector<T> out;
    for (const json& value : object.at(key)) {
        const bool fits = value.is_number_integer() && (!value.is_number_unsigned() || value.get<std::uint64_t>() <= INT64_MAX) &&
                          std::in_range<T>(value.get<std::int64_t>());
        if (!fits) throw json::other_error::create(501, fmt::format("{} holds {}, which is no integer of {} bits", key, value.dump(), 8 * sizeof(T)), nullptr);
        out.push_back(value.get<T>());
    }
    return out;
}

std::vector<TensorSlot> undescribe_slots(const json& list) {
    std::vector<TensorSlot> slots;
    for (const json& t : list)
        slots.push_back({t.at("name"), dtype_from(t.at("dtype")), integers_at<std::int64_t>(t, "shape"), integers_at<int>(t, "perm"),
                         t.at("offset_128"), DeviceAddr{unsigned_at<std::uint64_t>(t, "addr")}, unsigned_at<std::uint64_t>(t, "bytes"),
                         role_from(t.at("role")), t.at("narrow"), t.at("on_host"), t.at("internal")});
    return slots;
}

void undescribe_host(const json& meta, const ProgramParts& parts, const Where& where, Program& p) {
    std::span<const std::byte> image = parts.host_image.bytes;
    const auto take = [&](std::size_t bytes) {
        where.require(bytes <= image.size(), "host_image", "is shorter than its description");
        const auto taken = image.first(bytes);
        image = image.subspan(bytes);
        return taken;
    };
    for (const json& h : meta.at("host_steps")) {
        const auto model = take(unsigned_at<std::size_t>(h, "model_bytes"));
        p.host_steps.push_back({unsigned_at<std::uint32_t>(h, "layer"), unsigned_at<std::uint32_t>(h, "before"), undescribe_slots(h.at("inputs")),
                                undescribe_slots(h.at("outputs")), std::string(reinterpret_cast<const char*>(model.data()), model.size()),
                                h.at("reason")});
    }
    for (const json& b : meta.at("bound_inputs")) {
        const DType type = dtype_from(b.at("dtype"));
        const Shape shape = integers_at<std::int64_t>(b, "shape");
        const auto count = static_cast<std::uint64_t>(element_count(shape));
        where.require(count <= image.size() / size_of(type), "host_image", "is shorter than its description");
        BoundInput bound{b.at("name"), Tensor(type, shape)};
        std::ranges::copy(take(bound.value.bytes.size()), bound.value.bytes.begin());
        p.bound_inputs.push_back(std::move(bound));
    }
    where.require(image.empty(), "host_image", "is longer than its description");
}

/// Fills everything but descriptors and debug. Constants and offsets are taken from their images as they are described.
void undescribe(const json& meta, const ProgramParts& parts, const Where& where, Program& p) {
    p.chip = meta.at("chip");
    p.config_hash = unsigned_at<std::uint32_t>(meta, "config_hash");
    p.precision = meta.at("precision");
    p.model_path = meta.at("model_path");
    p.model_sha256 = meta.at("model_sha256");
    p.hbm_bytes = unsigned_at<std::uint64_t>(meta, "hbm_bytes");
    p.tensors = undescribe_slots(meta.at("tensors"));
    undescribe_host(meta, parts, where, p);
    for (const json& l : meta.at("layers"))
        p.layers.push_back({l.at("name"), l.at("op"), integers_at<int>(l, "nodes"), l.at("inputs").get<std::vector<std::string>>(),
                            l.at("outputs").get<std::vector<std::string>>(), l.at("precision"), unsigned_at<std::uint64_t>(l, "macs"),
                            unsigned_at<std::uint64_t>(l, "operations"), l.at("k_slab"), l.at("mapping"),
                            unsigned_at<std::uint32_t>(l, "first_descriptor"), unsigned_at<std::uint32_t>(l, "descriptor_count"),
                            l.value("x_scale", 0.0), l.value("w_scale", 0.0), l.value("x_zero", 0)});
    std::span<const std::byte> image = parts.constants.bytes;
    for (const json& c : meta.at("constants")) {
        const auto bytes = unsigned_at<std::size_t>(c, "bytes");
        where.require(bytes <= image.size(), "constants", "is shorter than its description");
        p.constants.push_back({DeviceAddr{unsigned_at<std::uint64_t>(c, "addr")}, {image.begin(), image.begin() + static_cast<std::ptrdiff_t>(bytes)}});
        image = image.subspan(bytes);
    }
    std::span<const std::int64_t> words = parts.element_boxes.as<std::int64_t>();
    for (const json& c : meta.at("constant_slots")) {
        const auto boxes = unsigned_at<std::size_t>(c, "boxes");
        where.require(boxes <= words.size() / kBoxWords, "element_boxes", "is shorter than its description");
        ConstantSlot slot{c.at("name"), DeviceAddr{unsigned_at<std::uint64_t>(c, "addr")}, unsigned_at<std::uint64_t>(c, "bytes"), device_dtype_from(c.at("dtype")),
                          ElementMap(static_cast<std::int64_t>(unsigned_at<std::uint64_t>(c, "elements")))};
        for (std::size_t i = 0; i < boxes; ++i, words = words.subspan(kBoxWords)) slot.elements.add(box_from(words.first<kBoxWords>()));
        p.constant_slots.push_back(std::move(slot));
    }
    where.require(image.empty(), "constants", "is longer than its description");
    where.require(words.empty(), "element_boxes", "is longer than its description");
}

/// A slot whose shape, permutation and size do not agree would send the runtime outside its buffers.
void check_slot(const TensorSlot& slot, const Where& where) {
    if (slot.on_host) return;  // what is read of it is what the host holds under its name
    std::vector<bool> seen(slot.shape.size());
    bool sound = slot.perm.size() == slot.shape.size();
    for (std::size_t i = 0; sound && i < slot.perm.size(); ++i) {
        const auto d = static_cast<std::size_t>(slot.perm[i]);
        sound = d < seen.size() && !seen[d];
        if (sound) seen[d] = true;
    }
    std::uint64_t bytes = slot.narrow ? 4 : size_of(slot.dtype);
    for (const std::int64_t dim : slot.shape) sound = sound && dim >= 0 && !__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(dim), &bytes);
    if (!sound || bytes != slot.bytes) where.refuse(fmt::format("tensor '{}': shape, permutation and size do not agree", slot.name));
    if (slot.narrow && slot.dtype != DType::i64) where.refuse(fmt::format("tensor '{}': only int64 is held narrow", slot.name));
    if (slot.offset_128 && size_of(slot.dtype) != 1) where.refuse(fmt::format("tensor '{}': offset_128 is of 8-bit integers only", slot.name));
}

void check(const Program& p, const Where& where) {
    const auto in_hbm = [&](DeviceAddr addr, std::uint64_t bytes, const std::string& what) {
        if (bytes > p.hbm_bytes || addr.value > p.hbm_bytes - bytes)
            where.refuse(fmt::format("{}: {} bytes at {:#x} leave the {} bytes that the program uses", what, bytes, addr.value, p.hbm_bytes));
    };
    if (p.hbm_bytes > region::spm) where.refuse(fmt::format("hbm_bytes = {}: the HBM region ends at {:#x}", p.hbm_bytes, region::spm));
    const auto check_slots = [&](const std::vector<TensorSlot>& slots) {
        for (const TensorSlot& slot : slots) {
            check_slot(slot, where);
            if (!slot.on_host) in_hbm(slot.addr, slot.bytes, fmt::format("tensor '{}'", slot.name));
        }
    };
    check_slots(p.tensors);
    std::uint32_t before = 0;
    for (const HostStep& step : p.host_steps) {
        if (step.layer >= p.layers.size() || step.before < before || step.before > p.descriptors.size())
            where.refuse(fmt::format("host step of layer {} before descriptor {}: out of range or out of order", step.layer, step.before));
        before = step.before;
        check_slots(step.inputs);
        check_slots(step.outputs);
    }
    for (const Constant& c : p.constants) in_hbm(c.addr, c.bytes.size(), "a constant");
    for (const ConstantSlot& c : p.constant_slots) {
        in_hbm(c.addr, c.bytes, fmt::format("constant '{}'", c.name));
        if (!c.elements.fits(c.bytes, simkernel::size_of(c.dtype)))
            where.refuse(fmt::format("constant '{}': a box of elements leaves its {} elements or {} bytes", c.name, c.elements.elements(), c.bytes));
    }
    for (const DebugEntry& entry : p.debug) where.require(entry.layer < p.layers.size(), "debug", "names a layer that does not exist");
    for (const Layer& l : p.layers)
        if (l.descriptor_count > p.descriptors.size() || l.first_descriptor > p.descriptors.size() - l.descriptor_count)
            where.refuse(fmt::format("layer '{}': descriptors {} to {} of {}", l.name, l.first_descriptor,
                                     std::uint64_t{l.first_descriptor} + l.descriptor_count, p.descriptors.size()));
}

}  // namespace

ProgramParts parts_of(const Program& program) {
    ProgramParts parts;
    parts.meta = describe(program).dump();
    const auto n = static_cast<std::int64_t>(program.descriptors.size());
    parts.descriptors = Tensor(DType::u32, {n, static_cast<std::int64_t>(kDescriptorWords)});
    std::ranges::copy(std::as_bytes(std::span(program.descriptors)), parts.descriptors.bytes.begin());
    parts.debug = Tensor(DType::u32, {n, 2});
    std::ranges::copy(std::as_bytes(std::span(program.debug)), parts.debug.bytes.begin());
    std::vector<std::byte> image;
    for (const Constant& c : program.constants) image.insert(image.end(), c.bytes.begin(), c.bytes.end());
    parts.constants = make_tensor<std::byte>(DType::u8, {static_cast<std::int64_t>(image.size())}, image);
    std::vector<std::int64_t> words;
    for (const ConstantSlot& c : program.constant_slots)
        for (const ElementBox& box : c.elements.boxes()) append(words, box);
    parts.element_boxes = make_tensor<std::int64_t>(DType::i64, {static_cast<std::int64_t>(words.size() / kBoxWords), static_cast<std::int64_t>(kBoxWords)}, words);
    std::vector<std::byte> host;
    for (const HostStep& step : program.host_steps) std::ranges::copy(std::as_bytes(std::span(step.model)), std::back_inserter(host));
    for (const BoundInput& bound : program.bound_inputs) host.insert(host.end(), bound.value.bytes.begin(), bound.value.bytes.end());
    parts.host_image = make_tensor<std::byte>(DType::u8, {static_cast<std::int64_t>(host.size())}, host);
    return parts;
}

Program program_from(const ProgramParts& parts, const std::string& file) {
    const Where where(file);
    const Tensor &descriptors = parts.descriptors, &debug = parts.debug;
    if (descriptors.dtype != DType::u32 || descriptors.shape.size() != 2 || descriptors.shape[1] != static_cast<std::int64_t>(kDescriptorWords))
        where.refuse(fmt::format("dataset 'descriptors' is {}, not Nx{} of uint32", to_string(descriptors.shape), kDescriptorWords));
    where.require(debug.dtype == DType::u32 && debug.shape == Shape{descriptors.shape[0], 2}, "debug", "does not fit the descriptors");
    where.require(parts.constants.dtype == DType::u8, "constants", "is not uint8");
    where.require(parts.element_boxes.dtype == DType::i64 && parts.element_boxes.shape.size() == 2 && parts.element_boxes.shape[1] == static_cast<std::int64_t>(kBoxWords),
                  "element_boxes", "is not Nx14 of int64");
    where.require(parts.host_image.dtype == DType::u8, "host_image", "is not uint8");
    Program program;
    try {
        undescribe(json::parse(parts.meta), parts, where, program);
    } catch (const json::exception& error) {
        where.refuse(fmt::format("dataset 'meta_json': {}", error.what()));
    }
    program.descriptors.resize(static_cast<std::size_t>(descriptors.shape[0]));
    std::ranges::copy(descriptors.bytes, std::as_writable_bytes(std::span(program.descriptors)).begin());
    program.debug.resize(program.descriptors.size());
    std::ranges::copy(debug.bytes, std::as_writable_bytes(std::span(program.debug)).begin());
    check(program, where);
    return program;
}

}  // namespace assay::simkernel
