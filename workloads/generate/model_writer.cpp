#include "workloads/generate/model_writer.hpp"

#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <onnx/onnx_pb.h>

#include "support/error.hpp"
#include "support/files.hpp"

namespace assay::workloads::generate {
namespace fs = std::filesystem;
namespace {

using google::protobuf::io::CodedOutputStream;

/// Keys of length-delimited fields: (field number << 3) | 2, of onnx.proto.
constexpr std::uint32_t kModelGraph = 7 << 3 | 2, kGraphInitializer = 5 << 3 | 2, kTensorRawData = 9 << 3 | 2;

constexpr std::uint64_t kAlign = 4096;  ///< offsets of external data: a page, so that readers may map them (ONNX, external data)

/// A tensor without its data.
onnx::TensorProto header_of(const TensorRecipe& recipe) {
    onnx::TensorProto proto;
    proto.set_name(recipe.name);
    proto.set_data_type(onnx_type(recipe.type));
    for (const std::int64_t d : recipe.shape) proto.add_dims(d);
    return proto;
}

std::uint64_t varint_bytes(std::uint64_t value) { return CodedOutputStream::VarintSize64(value); }
/// Bytes of a length-delimited field whose key takes one byte.
std::uint64_t field_bytes(std::uint64_t length) { return 1 + varint_bytes(length) + length; }

std::string serialise(const google::protobuf::MessageLite& message) {
    std::string bytes;
    google::protobuf::io::StringOutputStream stream(&bytes);
    CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
    return bytes;
}

/// A file that reports refused writes by name.
class Output {
public:
    explicit Output(const fs::path& path) : path_(path), file_(path, std::ios::binary) { check(); }
    void write(std::span<const std::byte> bytes) {
        file_.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        check();
    }
    void write(const std::string& bytes) { write(std::as_bytes(std::span(bytes))); }
    void key(std::uint32_t key, std::uint64_t length) {
        std::uint8_t buffer[16];
        std::uint8_t* end = CodedOutputStream::WriteVarint32ToArray(key, buffer);
        end = CodedOutputStream::WriteVarint64ToArray(length, end);
        write(std::as_bytes(std::span(buffer, end)));
    }
    void pad_to(std::uint64_t offset, std::uint64_t at) { write(std::string(offset - at, '\0')); }
    void finish() {
        file_.flush();
        check();
    }

private:
    void check() {
        if (!file_) throw Error(ErrorKind::io, fmt::format("{}: cannot be written ({})", path_.string(), std::strerror(errno)));
    }
    fs::path path_;
    std::ofstream file_;
};

void check_room(const GeneratedModel& model, const fs::path& path) {
    std::error_code error;
    const fs::space_info space = fs::space(path.has_parent_path() ? path.parent_path() : fs::path("."), error);
    const std::uint64_t needed = weight_bytes(model);
    if (!error && space.available < needed)
        throw Error(ErrorKind::io, fmt::format("{}: needs {} bytes, the disk has {} left; nothing was written", path.string(), needed, space.available));
}

/// One file: the graph's length is known before any weight is made.
void write_inline(const GeneratedModel& model, const fs::path& path) {
    std::vector<std::string> headers;
    const std::string graph = serialise(model.proto->graph());
    std::uint64_t length = graph.size();
    for (const TensorRecipe& recipe : model.weights) {
        headers.push_back(serialise(header_of(recipe)));
        length += field_bytes(headers.back().size() + field_bytes(recipe.bytes()));
    }
    onnx::ModelProto outer = *model.proto;
    outer.clear_graph();
    write_atomically(path, [&](const fs::path& temporary) {
        Output out(temporary);
        out.write(serialise(outer));
        out.key(kModelGraph, length);
        out.write(graph);
        for (std::size_t i = 0; i < model.weights.size(); ++i) {
            const TensorRecipe& recipe = model.weights[i];
            out.key(kGraphInitializer, headers[i].size() + field_bytes(recipe.bytes()));
            out.write(headers[i]);
            out.key(kTensorRawData, recipe.bytes());
            produce(recipe, model.seed, [&](std::span<const std::byte> part) { out.write(part); });
        }
        out.finish();
    });
}

void write_external(const GeneratedModel& model, const fs::path& path) {
    const fs::path data = path.string() + ".data";
    onnx::ModelProto proto = *model.proto;
    write_atomically(data, [&](const fs::path& temporary) {
        Output out(temporary);
        std::uint64_t at = 0;
        for (const TensorRecipe& recipe : model.weights) {
            onnx::TensorProto& tensor = *proto.mutable_graph()->add_initializer() = header_of(recipe);
            // Small tensors stay in the model: shapes and axes must be readable without the data.
            if (recipe.bytes() < 1024) {
                std::string& raw = *tensor.mutable_raw_data();
                produce(recipe, model.seed, [&](std::span<const std::byte> part) { raw.append(reinterpret_cast<const char*>(part.data()), part.size()); });
                continue;
            }
            const std::uint64_t offset = (at + kAlign - 1) / kAlign * kAlign;
            out.pad_to(offset, at);
            tensor.set_data_location(onnx::TensorProto::EXTERNAL);
            for (const auto& [key, value] : {std::pair<const char*, std::string>{"location", data.filename().string()}, {"offset", std::to_string(offset)},
                                             {"length", std::to_string(recipe.bytes())}}) {
                auto* entry = tensor.add_external_data();
                entry->set_key(key);
                entry->set_value(value);
            }
            produce(recipe, model.seed, [&](std::span<const std::byte> part) { out.write(part); });
            at = offset + recipe.bytes();
        }
        out.finish();
    });
    write_file(path, serialise(proto));
}

}  // namespace

std::uint64_t weight_bytes(const GeneratedModel& model) {
    std::uint64_t bytes = 0;
    for (const TensorRecipe& recipe : model.weights) bytes += recipe.bytes();
    return bytes;
}

void write_model(const GeneratedModel& model, const fs::path& path, std::uint64_t inline_limit) {
    check_room(model, path);
    if (weight_bytes(model) <= inline_limit) write_inline(model, path);
    else write_external(model, path);
}

void write_inputs(const GeneratedModel& model, const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error || !fs::is_directory(folder)) throw Error(ErrorKind::io, fmt::format("{}: cannot be made ({})", folder.string(), error.message()));
    for (std::size_t i = 0; i < model.inputs.size(); ++i) {
        const TensorRecipe& recipe = model.inputs[i];
        const std::string header = serialise(header_of(recipe));
        write_atomically(folder / fmt::format("input_{}.pb", i), [&](const fs::path& temporary) {
            Output out(temporary);
            out.write(header);
            out.key(kTensorRawData, recipe.bytes());
            produce(recipe, model.seed, [&](std::span<const std::byte> part) { out.write(part); });
            out.finish();
        });
    }
}

std::shared_ptr<onnx::ModelProto> in_memory(const GeneratedModel& model) {
    if (weight_bytes(model) > kInlineLimit)
        throw Error(ErrorKind::usage, fmt::format("workload make: {} bytes of weights are too many to hold in memory (allowed {}); make the model smaller", weight_bytes(model), kInlineLimit));
    auto proto = std::make_shared<onnx::ModelProto>(*model.proto);
    for (const TensorRecipe& recipe : model.weights) {
        onnx::TensorProto& tensor = *proto->mutable_graph()->add_initializer() = header_of(recipe);
        std::string& raw = *tensor.mutable_raw_data();
        raw.reserve(recipe.bytes());
        produce(recipe, model.seed, [&](std::span<const std::byte> part) { raw.append(reinterpret_cast<const char*>(part.data()), part.size()); });
    }
    return proto;
}

}  // namespace assay::workloads::generate
