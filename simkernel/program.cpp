#include "simkernel/program.hpp"

#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "support/error.hpp"
#include "support/files.hpp"
#include "support/hash.hpp"
#include "support/hdf5.hpp"

namespace assay::simkernel {

using nlohmann::json;

std::string_view name_of(Role role) {
    switch (role) {
        case Role::input: return "input";
        case Role::output: return "output";
        case Role::intermediate: return "intermediate";
    }
    return "?";
}

namespace {

constexpr const char* kSchema = "assay.program.1";

Role role_from(const std::string& name) {
    for (const Role role : {Role::input, Role::output, Role::intermediate})
        if (name == name_of(role)) return role;
    throw json::other_error::create(501, "role '" + name + "' is unknown", nullptr);
}

DType dtype_from(const std::string& name) {
    for (const DType type : {DType::f32, DType::i8, DType::u8, DType::i32, DType::bf16})
        if (name == name_of(type)) return type;
    throw json::other_error::create(501, "dtype '" + name + "' is unknown", nullptr);
}

Dtype device_dtype_from(const std::string& name) {
    for (const Dtype type : kAllDtype)
        if (name == name_of(type)) return type;
    throw json::other_error::create(501, "device dtype '" + name + "' is unknown", nullptr);
}

json describe(const Program& p) {
    json meta{{"schema", kSchema},       {"chip", p.chip},           {"config_hash", p.config_hash}, {"precision", p.precision},
              {"model_path", p.model_path}, {"model_sha256", p.model_sha256}, {"fallback", p.fallback},   {"hbm_bytes", p.hbm_bytes}};
    meta["tensors"] = json::array();
    for (const TensorSlot& t : p.tensors)
        meta["tensors"].push_back({{"name", t.name}, {"dtype", name_of(t.dtype)}, {"shape", t.shape}, {"perm", t.perm}, {"offset_128", t.offset_128},
                                   {"addr", t.addr.value}, {"bytes", t.bytes}, {"role", name_of(t.role)}});
    meta["layers"] = json::array();
    for (const Layer& l : p.layers)
        meta["layers"].push_back({{"name", l.name}, {"op", l.op}, {"nodes", l.nodes}, {"inputs", l.inputs}, {"output", l.output},
                                  {"precision", l.precision}, {"macs", l.macs}, {"k_slab", l.k_slab}, {"mapping", l.mapping},
                                  {"first_descriptor", l.first_descriptor}, {"descriptor_count", l.descriptor_count}});
    meta["constants"] = json::array();
    for (const Constant& c : p.constants) meta["constants"].push_back({{"addr", c.addr.value}, {"bytes", c.bytes.size()}});
    meta["constant_slots"] = json::array();
    for (const ConstantSlot& c : p.constant_slots)
        meta["constant_slots"].push_back({{"name", c.name}, {"addr", c.addr.value}, {"bytes", c.bytes}, {"dtype", name_of(c.dtype)},
                                          {"elements", c.element_offset.size()}});
    return meta;
}

Tensor text_tensor(const std::string& text) {
    return make_tensor<std::byte>(DType::u8, {static_cast<std::int64_t>(text.size())}, std::as_bytes(std::span(text)));
}

/// Takes the described parts of a program from its metadata; missing or mistyped keys throw json::exception.
Program undescribe(const json& meta) {
    Program p;
    p.chip = meta.at("chip");
    p.config_hash = meta.at("config_hash");
    p.precision = meta.at("precision");
    p.model_path = meta.at("model_path");
    p.model_sha256 = meta.at("model_sha256");
    p.fallback = meta.at("fallback").get<std::vector<std::string>>();
    p.hbm_bytes = meta.at("hbm_bytes");
    for (const json& t : meta.at("tensors"))
        p.tensors.push_back({t.at("name"), dtype_from(t.at("dtype")), t.at("shape").get<Shape>(), t.at("perm").get<std::vector<int>>(), t.at("offset_128"),
                             DeviceAddr{t.at("addr")}, t.at("bytes"), role_from(t.at("role"))});
    for (const json& l : meta.at("layers")) {
        Layer layer{l.at("name"), l.at("op"), l.at("nodes").get<std::vector<int>>(), l.at("inputs").get<std::vector<std::string>>(), l.at("output"),
                    l.at("precision"), l.at("macs"), l.at("k_slab"), l.at("mapping"), l.at("first_descriptor"), l.at("descriptor_count")};
        p.layers.push_back(std::move(layer));
    }
    for (const json& c : meta.at("constants")) {
        p.constants.push_back({DeviceAddr{c.at("addr")}, {}});
        p.constants.back().bytes.resize(c.at("bytes").get<std::size_t>());
    }
    for (const json& c : meta.at("constant_slots")) {
        ConstantSlot slot{c.at("name"), DeviceAddr{c.at("addr")}, c.at("bytes"), device_dtype_from(c.at("dtype")), {}};
        slot.element_offset.resize(c.at("elements").get<std::size_t>());
        p.constant_slots.push_back(std::move(slot));
    }
    return p;
}

/// A slot whose shape, permutation and size do not agree would send the runtime outside its buffers.
void check_slot(const TensorSlot& slot, const std::string& where) {
    std::vector<bool> seen(slot.shape.size());
    bool permutation = slot.perm.size() == slot.shape.size();
    for (std::size_t i = 0; permutation && i < slot.perm.size(); ++i) {
        const auto d = static_cast<std::size_t>(slot.perm[i]);
        permutation = d < seen.size() && !seen[d];
        if (permutation) seen[d] = true;
    }
    if (!permutation || static_cast<std::uint64_t>(element_count(slot.shape)) * size_of(slot.dtype) != slot.bytes)
        throw Error(ErrorKind::damaged, fmt::format("{}: tensor '{}': shape, permutation and size do not agree; compile the model again", where, slot.name));
}

}  // namespace

void save_program(const Program& program, const std::filesystem::path& path) {
    write_atomically(path, [&](const std::filesystem::path& temporary) {
        Hdf5File file = Hdf5File::create(temporary);
        file.write_attribute("schema", kSchema);
        const auto n = static_cast<std::int64_t>(program.descriptors.size());
        Tensor descriptors(DType::u32, {n, static_cast<std::int64_t>(kDescriptorWords)});
        std::memcpy(descriptors.bytes.data(), program.descriptors.data(), descriptors.bytes.size());
        file.write_tensor("program", "descriptors", descriptors);
        Tensor debug(DType::u32, {n, 2});
        std::memcpy(debug.bytes.data(), program.debug.data(), debug.bytes.size());
        file.write_tensor("program", "debug", debug);
        std::vector<std::byte> image;
        for (const Constant& c : program.constants) image.insert(image.end(), c.bytes.begin(), c.bytes.end());
        file.write_tensor("program", "constants", make_tensor<std::byte>(DType::u8, {static_cast<std::int64_t>(image.size())}, image));
        std::vector<std::int64_t> offsets;
        for (const ConstantSlot& c : program.constant_slots) offsets.insert(offsets.end(), c.element_offset.begin(), c.element_offset.end());
        file.write_tensor("program", "element_offsets",
                          make_tensor<std::int64_t>(DType::i64, {static_cast<std::int64_t>(offsets.size())}, offsets));
        const Tensor meta = text_tensor(describe(program).dump());
        file.write_tensor("program", "meta_json", meta);
        file.write_attribute("meta_sha256", sha256_tensor(meta));
        file.close();
    });
}

Program load_program(const std::filesystem::path& path) {
    const Hdf5File file = Hdf5File::open(path);
    if (!file.has_attribute("schema") || file.read_attribute("schema") != kSchema)
        throw Error(ErrorKind::bad_input, fmt::format("{}: not a program of this version (schema {}); compile the model again", path.string(), kSchema));
    const Tensor meta = file.read_tensor("program", "meta_json");
    const auto damaged = [&](const std::string& what) { return Error(ErrorKind::damaged, fmt::format("{}: {}; compile the model again", path.string(), what)); };
    if (sha256_tensor(meta) != file.read_attribute("meta_sha256")) throw damaged("dataset 'meta_json' does not match its SHA-256");
    Program program;
    try {
        program = undescribe(json::parse(std::string_view(reinterpret_cast<const char*>(meta.bytes.data()), meta.bytes.size())));
    } catch (const json::exception& error) {
        throw damaged(fmt::format("dataset 'meta_json': {}", error.what()));
    }
    const Tensor descriptors = file.read_tensor("program", "descriptors");
    const Tensor debug = file.read_tensor("program", "debug");
    if (descriptors.dtype != DType::u32 || descriptors.shape.size() != 2 || descriptors.shape[1] != static_cast<std::int64_t>(kDescriptorWords))
        throw damaged(fmt::format("dataset 'descriptors' is {}, not Nx{} of uint32", to_string(descriptors.shape), kDescriptorWords));
    if (debug.dtype != DType::u32 || debug.shape != Shape{descriptors.shape[0], 2}) throw damaged("dataset 'debug' does not fit the descriptors");
    program.descriptors.resize(static_cast<std::size_t>(descriptors.shape[0]));
    std::memcpy(program.descriptors.data(), descriptors.bytes.data(), descriptors.bytes.size());
    program.debug.resize(program.descriptors.size());
    std::memcpy(program.debug.data(), debug.bytes.data(), debug.bytes.size());
    for (const DebugEntry& entry : program.debug)
        if (entry.layer >= program.layers.size()) throw damaged("dataset 'debug' names a layer that does not exist");
    const Tensor image = file.read_tensor("program", "constants");
    std::size_t at = 0;
    for (Constant& c : program.constants) {
        if (c.bytes.size() > image.bytes.size() - at) throw damaged("dataset 'constants' is shorter than its description");
        std::memcpy(c.bytes.data(), image.bytes.data() + at, c.bytes.size());
        at += c.bytes.size();
    }
    const Tensor offsets = file.read_tensor("program", "element_offsets");
    at = 0;
    for (ConstantSlot& c : program.constant_slots) {
        if (offsets.dtype != DType::i64 || c.element_offset.size() > static_cast<std::size_t>(offsets.count()) - at)
            throw damaged("dataset 'element_offsets' is shorter than its description");
        std::copy_n(offsets.as<std::int64_t>().begin() + static_cast<std::ptrdiff_t>(at), c.element_offset.size(), c.element_offset.begin());
        at += c.element_offset.size();
    }
    for (const TensorSlot& slot : program.tensors) check_slot(slot, path.string());
    return program;
}

}  // namespace assay::simkernel
