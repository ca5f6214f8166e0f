#include "simkernel/program.hpp"

#include <fmt/format.h>

#include "simkernel/program_parts.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/hash.hpp"
#include "support/hdf5.hpp"

namespace assay::simkernel {
namespace {

constexpr const char* kSchema = "assay.program.3";

}  // namespace

std::string_view name_of(Role role) {
    switch (role) {
        case Role::input: return "input";
        case Role::output: return "output";
        case Role::intermediate: return "intermediate";
    }
    return "?";
}

double host_share(const Program& program) {
    double host = 0, all = 0;
    for (const Layer& layer : program.layers) {
        all += static_cast<double>(layer.operations);
        if (layer.precision == "host") host += static_cast<double>(layer.operations);
    }
    return all > 0 ? host / all : 0.0;
}

void save_program(const Program& program, const std::filesystem::path& path) {
    write_atomically(path, [&](const std::filesystem::path& temporary) {
        const ProgramParts parts = parts_of(program);
        Hdf5File file = Hdf5File::create(temporary);
        file.write_attribute("schema", kSchema);
        file.write_tensor("program", "descriptors", parts.descriptors);
        file.write_tensor("program", "debug", parts.debug);
        file.write_tensor("program", "constants", parts.constants);
        file.write_tensor("program", "element_boxes", parts.element_boxes);
        file.write_tensor("program", "host_image", parts.host_image);
        const Tensor meta = make_tensor<std::byte>(DType::u8, {static_cast<std::int64_t>(parts.meta.size())}, std::as_bytes(std::span(parts.meta)));
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
    if (sha256_tensor(meta) != file.read_attribute("meta_sha256"))
        throw Error(ErrorKind::damaged, fmt::format("{}: dataset 'meta_json' does not match its SHA-256; compile the model again", path.string()));
    ProgramParts parts;
    parts.meta.assign(reinterpret_cast<const char*>(meta.bytes.data()), meta.bytes.size());
    parts.descriptors = file.read_tensor("program", "descriptors");
    parts.debug = file.read_tensor("program", "debug");
    parts.constants = file.read_tensor("program", "constants");
    parts.element_boxes = file.read_tensor("program", "element_boxes");
    parts.host_image = file.read_tensor("program", "host_image");
    return program_from(parts, path.string());
}

}  // namespace assay::simkernel
