#include "support/onnx/onnx_file.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>

#include <fmt/format.h>
#include <onnx/onnx_pb.h>  // not onnx-ml.pb.h: this one defines ONNX_API

#include "support/error.hpp"
#include "support/files.hpp"

namespace assay {
namespace fs = std::filesystem;
namespace {

using Proto = onnx::TensorProto;

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorKind::bad_input, message); }

std::string called(const Proto& proto) { return fmt::format("tensor '{}'", proto.name()); }

/// The file that `location` names, which must lie inside `folder` also after symbolic links are followed: a model must not be able to
/// read the rest of its user's disk.
fs::path external_path(const fs::path& folder, const std::string& location, const std::string& where) {
    const fs::path relative(location);
    if (location.empty() || relative.is_absolute())
        refuse(fmt::format("{}: external data location '{}' must be a relative path", where, location));
    std::error_code error;
    const fs::path base = fs::weakly_canonical(folder.empty() ? fs::path(".") : folder, error);
    const fs::path full = fs::weakly_canonical(base / relative, error);
    const auto [base_end, ignored] = std::mismatch(base.begin(), base.end(), full.begin(), full.end());
    if (error || base_end != base.end()) refuse(fmt::format("{}: external data location '{}' leaves the model's folder", where, location));
    return full;
}

std::uint64_t parse_size(const std::string& text, const std::string& where, const char* key) {
    std::uint64_t value = 0;
    if (text.empty()) refuse(fmt::format("{}: external data {} is empty; it must be a decimal number", where, key));
    for (const char c : text) {
        if (c < '0' || c > '9' || __builtin_mul_overflow(value, std::uint64_t{10}, &value) ||
            __builtin_add_overflow(value, static_cast<std::uint64_t>(c - '0'), &value))
            refuse(fmt::format("{}: external data {} = '{}': must be a decimal number below 2^64", where, key, text));
    }
    return value;
}

void inline_external(Proto& proto, const fs::path& folder, const std::string& file) {
    if (proto.data_location() != Proto::EXTERNAL) return;
    const std::string where = fmt::format("{}: {}", file, called(proto));
    std::string location, offset = "0", length;
    for (const auto& entry : proto.external_data()) {
        if (entry.key() == "location") location = entry.value();
        if (entry.key() == "offset") offset = entry.value();
        if (entry.key() == "length") length = entry.value();
    }
    const fs::path path = external_path(folder, location, where);
    std::error_code error;
    const std::uint64_t held = fs::is_regular_file(path, error) ? fs::file_size(path, error) : 0;
    std::ifstream data(path, std::ios::binary);
    if (error || !data || !fs::is_regular_file(path)) refuse(fmt::format("{}: external data: {}: cannot be read; check the path", where, path.string()));
    const std::uint64_t begin = parse_size(offset, where, "offset");
    if (begin > held) refuse(fmt::format("{}: external data offset {} is past the {} bytes of '{}'", where, begin, held, path.string()));
    const std::uint64_t left = held - begin;
    const std::uint64_t size = length.empty() ? left : parse_size(length, where, "length");
    if (size > left) refuse(fmt::format("{}: external data needs {} bytes at {}, '{}' has {}", where, size, begin, path.string(), left));
    // Only the tensor's own part: many tensors share one file of gigabytes.
    std::string& raw = *proto.mutable_raw_data();
    raw.resize(size);
    data.seekg(static_cast<std::streamoff>(begin));
    data.read(raw.data(), static_cast<std::streamsize>(size));
    if (!data) refuse(fmt::format("{}: external data: {}: could not be read to byte {}", where, path.string(), begin + size));
    proto.clear_external_data();
    proto.clear_data_location();
}

void inline_external(onnx::GraphProto& graph, const fs::path& folder, const std::string& file) {
    for (auto& tensor : *graph.mutable_initializer()) inline_external(tensor, folder, file);
    for (auto& node : *graph.mutable_node())
        for (auto& attribute : *node.mutable_attribute()) {
            if (attribute.has_t()) inline_external(*attribute.mutable_t(), folder, file);
            for (auto& tensor : *attribute.mutable_tensors()) inline_external(tensor, folder, file);
            if (attribute.has_g()) inline_external(*attribute.mutable_g(), folder, file);
            for (auto& subgraph : *attribute.mutable_graphs()) inline_external(subgraph, folder, file);
        }
}

std::shared_ptr<onnx::ModelProto> parse(const char* data, std::size_t size, const std::string& name) {
    auto model = std::make_shared<onnx::ModelProto>();
    if (size > static_cast<std::size_t>(std::numeric_limits<int>::max()) || !model->ParseFromArray(data, static_cast<int>(size)))
        refuse(fmt::format("{}: {} bytes that are not an ONNX model (truncated, corrupt or another format)", name, size));
    if (!model->has_graph() || model->graph().output_size() == 0)
        refuse(fmt::format("{}: not an ONNX model: it has no graph with outputs", name));
    if (model->ir_version() < 1) refuse(fmt::format("{}: ir_version is missing; re-export the model", name));
    const auto& imports = model->opset_import();
    const bool has_default = std::any_of(imports.begin(), imports.end(),
                                         [](const auto& i) { return (i.domain().empty() || i.domain() == "ai.onnx") && i.version() >= 1; });
    if (!has_default) refuse(fmt::format("{}: no ai.onnx operator set is imported; re-export the model", name));
    return model;
}

template <class T, class Field>
void copy_field(const Field& field, Tensor& out) {
    std::span<T> to = out.as<T>();
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<T>(field[static_cast<int>(i)]);
}

/// Narrow types travel in int32_data (and uint32 in uint64_data): a value that does not fit its type is corruption, not a wrap.
template <class T, class Field>
void copy_narrow(const Field& field, Tensor& out, const std::string& where) {
    using Wide = std::decay_t<decltype(field[0])>;
    for (const auto value : field)
        if (value < static_cast<Wide>(std::numeric_limits<T>::min()) || value > static_cast<Wide>(std::numeric_limits<T>::max()))
            refuse(fmt::format("{}: value {} does not fit {}", where, value, name_of(out.dtype)));
    copy_field<T>(field, out);
}

/// How many elements the proto's data holds, before any memory is allocated for the shape it claims.
std::uint64_t stored_count(const Proto& proto, DType type) {
    if (proto.has_raw_data()) return proto.raw_data().size() / size_of(type);
    switch (type) {
        case DType::f32:
            return static_cast<std::uint64_t>(proto.float_data_size());
        case DType::f64:
            return static_cast<std::uint64_t>(proto.double_data_size());
        case DType::i64:
            return static_cast<std::uint64_t>(proto.int64_data_size());
        case DType::u32:
        case DType::u64:
            return static_cast<std::uint64_t>(proto.uint64_data_size());
        default:
            return static_cast<std::uint64_t>(proto.int32_data_size());
    }
}

}  // namespace

namespace {

Proto::DataType onnx_from_dtype(DType type) {
    switch (type) {
        case DType::f32:
            return Proto::FLOAT;
        case DType::f64:
            return Proto::DOUBLE;
        case DType::f16:
            return Proto::FLOAT16;
        case DType::bf16:
            return Proto::BFLOAT16;
        case DType::i8:
            return Proto::INT8;
        case DType::u8:
            return Proto::UINT8;
        case DType::i16:
            return Proto::INT16;
        case DType::u16:
            return Proto::UINT16;
        case DType::i32:
            return Proto::INT32;
        case DType::u32:
            return Proto::UINT32;
        case DType::i64:
            return Proto::INT64;
        case DType::u64:
            return Proto::UINT64;
        case DType::boolean:
            return Proto::BOOL;
    }
    throw Error(ErrorKind::internal, "an element type without a counterpart in ONNX");
}

}  // namespace

onnx::TensorProto proto_from_tensor(const Tensor& tensor, const std::string& name) {
    onnx::TensorProto proto;
    proto.set_name(name);
    proto.set_data_type(onnx_from_dtype(tensor.dtype));
    for (const std::int64_t dim : tensor.shape) proto.add_dims(dim);
    proto.set_raw_data(tensor.bytes.data(), tensor.bytes.size());
    return proto;
}

DType dtype_from_onnx(int onnx_type, const std::string& where) {
    switch (onnx_type) {
        case Proto::FLOAT:
            return DType::f32;
        case Proto::DOUBLE:
            return DType::f64;
        case Proto::FLOAT16:
            return DType::f16;
        case Proto::BFLOAT16:
            return DType::bf16;
        case Proto::INT8:
            return DType::i8;
        case Proto::UINT8:
            return DType::u8;
        case Proto::INT16:
            return DType::i16;
        case Proto::UINT16:
            return DType::u16;
        case Proto::INT32:
            return DType::i32;
        case Proto::UINT32:
            return DType::u32;
        case Proto::INT64:
            return DType::i64;
        case Proto::UINT64:
            return DType::u64;
        case Proto::BOOL:
            return DType::boolean;
        default:
            break;
    }
    const std::string name = Proto::DataType_IsValid(onnx_type) ? Proto::DataType_Name(static_cast<Proto::DataType>(onnx_type)) : "unknown";
    refuse(fmt::format("{}: element type {} ({}) is not supported; use a float, integer or bool type", where, onnx_type, name));
}

Tensor tensor_from_proto(const Proto& proto, const std::string& where) {
    if (proto.has_segment()) refuse(fmt::format("{}: segmented tensors are not supported", where));
    if (proto.data_location() == Proto::EXTERNAL) refuse(fmt::format("{}: external data is only supported in model files", where));
    const DType type = dtype_from_onnx(proto.data_type(), where);
    const Shape shape(proto.dims().begin(), proto.dims().end());
    std::int64_t expected = 0;
    try {
        expected = element_count(shape);
    } catch (const Error& error) {
        refuse(fmt::format("{}: {}", where, error.what()));
    }
    const std::uint64_t stored = stored_count(proto, type);
    if (stored != static_cast<std::uint64_t>(expected) || (proto.has_raw_data() && proto.raw_data().size() % size_of(type) != 0))
        refuse(
            fmt::format("{}: {} elements of {} are stored, shape {} needs {}", where, stored, name_of(type), to_string(shape), expected));
    Tensor out(type, shape);
    if (proto.has_raw_data()) {
        if (!out.bytes.empty()) std::memcpy(out.bytes.data(), proto.raw_data().data(), out.bytes.size());
        return out;
    }
    switch (type) {
        case DType::f32:
            copy_field<float>(proto.float_data(), out);
            break;
        case DType::f64:
            copy_field<double>(proto.double_data(), out);
            break;
        case DType::i64:
            copy_field<std::int64_t>(proto.int64_data(), out);
            break;
        case DType::u64:
            copy_field<std::uint64_t>(proto.uint64_data(), out);
            break;
        case DType::u32:
            copy_narrow<std::uint32_t>(proto.uint64_data(), out, where);
            break;
        case DType::i32:
            copy_field<std::int32_t>(proto.int32_data(), out);
            break;
        case DType::i16:
            copy_narrow<std::int16_t>(proto.int32_data(), out, where);
            break;
        case DType::i8:
            copy_narrow<std::int8_t>(proto.int32_data(), out, where);
            break;
        case DType::u8:
        case DType::boolean:
            copy_narrow<std::uint8_t>(proto.int32_data(), out, where);
            break;
        // Half precisions are stored as their bit patterns.
        case DType::u16:
        case DType::f16:
        case DType::bf16:
            copy_narrow<std::uint16_t>(proto.int32_data(), out, where);
            break;
    }
    return out;
}

std::shared_ptr<const onnx::ModelProto> load_onnx(const fs::path& path) {
    const std::vector<std::byte> bytes = read_file(path);
    const std::shared_ptr<onnx::ModelProto> model = parse(reinterpret_cast<const char*>(bytes.data()), bytes.size(), path.string());
    inline_external(*model->mutable_graph(), path.parent_path(), path.string());
    return model;
}

std::shared_ptr<const onnx::ModelProto> parse_onnx(const std::string& bytes, const std::string& name) {
    return parse(bytes.data(), bytes.size(), name);
}

Tensor load_pb_tensor(const fs::path& path, std::string* name_out) {
    const std::vector<std::byte> bytes = read_file(path);
    Proto proto;
    if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()) ||
        !proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || !proto.has_data_type())
        refuse(fmt::format("{}: {} bytes that are not an ONNX TensorProto (truncated, corrupt or another format)", path.string(),
                           bytes.size()));
    if (name_out) *name_out = proto.name();
    return tensor_from_proto(proto, fmt::format("{}: {}", path.string(), called(proto)));
}

}  // namespace assay
