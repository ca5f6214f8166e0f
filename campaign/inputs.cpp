#include "campaign/inputs.hpp"

#include <algorithm>
#include <random>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <onnx/onnx_pb.h>

#include "support/error.hpp"
#include "support/onnx/onnx_file.hpp"
#include "support/tensor_io.hpp"

namespace assay::campaign {
namespace fs = std::filesystem;
namespace {

ValueInfo describe(const onnx::ValueInfoProto& value) {
    ValueInfo info;
    info.name = value.name();
    const auto& type = value.type().tensor_type();
    info.dtype = dtype_from_onnx(type.elem_type(), fmt::format("value '{}'", value.name()));
    for (const auto& dim : type.shape().dim()) {
        info.shape.push_back(dim.has_dim_value() && dim.dim_value() > 0 ? dim.dim_value() : -1);
        info.dim_names.push_back(dim.dim_param());
    }
    return info;
}

std::string declared(const ValueInfo& info) {
    std::vector<std::string> dims;
    for (std::size_t i = 0; i < info.shape.size(); ++i)
        dims.push_back(info.shape[i] >= 0 ? std::to_string(info.shape[i]) : info.dim_names[i].empty() ? "?" : info.dim_names[i]);
    return fmt::format("{} {}", name_of(info.dtype), dims.empty() ? "scalar" : fmt::format("{}", fmt::join(dims, "x")));
}

bool fits(const ValueInfo& info, const Tensor& tensor) {
    if (tensor.dtype != info.dtype || tensor.shape.size() != info.shape.size()) return false;
    for (std::size_t i = 0; i < info.shape.size(); ++i)
        if (info.shape[i] >= 0 && info.shape[i] != tensor.shape[i]) return false;
    return true;
}

/// Files input_0.pb, input_1.pb, … in number order.
std::vector<fs::path> numbered(const fs::path& folder, const std::string& prefix) {
    std::vector<fs::path> files;
    for (int i = 0;; ++i) {
        const fs::path file = folder / fmt::format("{}_{}.pb", prefix, i);
        if (!fs::exists(file)) break;
        files.push_back(file);
    }
    return files;
}

/// Collects tensors for one side of the model (inputs or outputs).
class Matcher {
public:
    Matcher(std::vector<ValueInfo> values, std::string what) : values_(std::move(values)), what_(std::move(what)) {}

    void take(const std::string& name, Tensor tensor, const std::string& from) {
        const auto found = std::find_if(values_.begin(), values_.end(), [&](const ValueInfo& v) { return v.name == name; });
        if (found == values_.end()) {
            std::vector<std::string> known;
            for (const ValueInfo& v : values_) known.push_back(v.name);
            problems.push_back(fmt::format("{}: the model has no {} '{}'; it has: {}", from, what_, name, fmt::join(known, ", ")));
        } else if (!fits(*found, tensor)) {
            problems.push_back(fmt::format("{}: {} '{}' is {} {}, the model takes {}", from, what_, name, name_of(tensor.dtype), to_string(tensor.shape),
                                           declared(*found)));
        } else {
            tensors[name] = std::move(tensor);
        }
    }

    /// A tensor without a name of the model goes to the first value that has none yet.
    void take_next(Tensor tensor, const std::string& from) {
        for (const ValueInfo& v : values_)
            if (!tensors.count(v.name)) return take(v.name, std::move(tensor), from);
        problems.push_back(fmt::format("{}: one {} too many; the model has {}", from, what_, values_.size()));
    }
    bool knows(const std::string& name) const {
        return std::any_of(values_.begin(), values_.end(), [&](const ValueInfo& v) { return v.name == name; });
    }
    void require_all() {
        for (const ValueInfo& v : values_)
            if (!tensors.count(v.name)) problems.push_back(fmt::format("{} '{}' ({}) is missing; give it with --input {}=FILE", what_, v.name, declared(v), v.name));
    }

    std::map<std::string, Tensor> tensors;
    std::vector<std::string> problems;

private:
    std::vector<ValueInfo> values_;
    std::string what_;
};

void load_folder(const fs::path& folder, Matcher& inputs, Matcher& outputs) {
    const std::vector<fs::path> files = numbered(folder, "input");
    if (files.empty()) throw Error(ErrorKind::bad_input, fmt::format("{}: holds no input_0.pb; give a test-data folder or tensor files", folder.string()));
    for (auto [side, list] : {std::pair{&inputs, files}, std::pair{&outputs, numbered(folder, "output")}})
        for (const fs::path& file : list) {
            std::string name;
            Tensor tensor = load_pb_tensor(file, &name);
            if (side->knows(name)) side->take(name, std::move(tensor), file.string());
            else side->take_next(std::move(tensor), file.string());
        }
}

}  // namespace

std::vector<ValueInfo> graph_inputs(const onnx::ModelProto& model) {
    std::set<std::string> initialised;
    for (const auto& tensor : model.graph().initializer()) initialised.insert(tensor.name());
    std::vector<ValueInfo> values;
    for (const auto& value : model.graph().input())
        if (!initialised.count(value.name())) values.push_back(describe(value));
    return values;
}

std::vector<ValueInfo> graph_outputs(const onnx::ModelProto& model) {
    std::vector<ValueInfo> values;
    for (const auto& value : model.graph().output()) values.push_back(describe(value));
    return values;
}

DataSet load_data_set(const onnx::ModelProto& model, const std::vector<std::string>& arguments) {
    Matcher inputs(graph_inputs(model), "input");
    // Declared output shapes are often symbolic or wrong; the judge compares the shapes that count.
    std::vector<ValueInfo> output_values = graph_outputs(model);
    Matcher outputs(output_values, "output");
    for (const std::string& argument : arguments) {
        const std::size_t equals = argument.find('=');
        if (equals != std::string::npos && inputs.knows(argument.substr(0, equals))) {
            const fs::path file = argument.substr(equals + 1);
            std::vector<NamedTensor> tensors = read_tensors(file);
            if (tensors.size() != 1) throw Error(ErrorKind::bad_input, fmt::format("{}: holds {} tensors, need one", file.string(), tensors.size()));
            inputs.take(argument.substr(0, equals), std::move(tensors[0].tensor), file.string());
        } else if (!fs::exists(argument)) {
            throw Error(ErrorKind::bad_input, fmt::format("--input {}: no such file or folder, and no input of that name; check the path", argument));
        } else if (fs::is_directory(argument)) {
            load_folder(argument, inputs, outputs);
        } else {
            std::vector<NamedTensor> tensors = read_tensors(argument);
            for (NamedTensor& t : tensors) {
                if (inputs.knows(t.name)) inputs.take(t.name, std::move(t.tensor), argument);
                else if (outputs.knows(t.name)) outputs.take(t.name, std::move(t.tensor), argument);
                else if (t.name.empty() || tensors.size() == 1) inputs.take_next(std::move(t.tensor), argument);
                else inputs.take(t.name, std::move(t.tensor), argument);
            }
        }
    }
    inputs.require_all();
    std::vector<std::string> problems = inputs.problems;
    problems.insert(problems.end(), outputs.problems.begin(), outputs.problems.end());
    if (!problems.empty()) throw Error(ErrorKind::bad_input, fmt::format("{}", fmt::join(problems, "\n")));
    return {std::move(inputs.tensors), std::move(outputs.tensors), fmt::format("{}", fmt::join(arguments, " "))};
}

DataSet load_expected(const onnx::ModelProto& model, const std::string& folder) {
    Matcher outputs(graph_outputs(model), "output");
    for (const fs::path& file : numbered(folder, "output")) {
        std::string name;
        Tensor tensor = load_pb_tensor(file, &name);
        if (outputs.knows(name)) outputs.take(name, std::move(tensor), file.string());
        else outputs.take_next(std::move(tensor), file.string());
    }
    if (!outputs.problems.empty()) throw Error(ErrorKind::bad_input, fmt::format("{}", fmt::join(outputs.problems, "\n")));
    return {{}, std::move(outputs.tensors), folder};
}

DataSet make_random_data_set(const onnx::ModelProto& model, std::uint64_t seed) {
    DataSet data;
    data.text = fmt::format("random, seed {}", seed);
    std::mt19937_64 random(seed);
    for (const ValueInfo& info : graph_inputs(model)) {
        Shape shape = info.shape;
        for (std::int64_t& dim : shape) dim = dim < 0 ? 1 : dim;
        Tensor tensor(info.dtype, shape);
        if (info.dtype == DType::f32)
            for (float& value : tensor.as<float>()) value = static_cast<float>(static_cast<double>(random() >> 11) * 0x1p-52 - 1.0);
        else if (size_of(info.dtype) == 1 && info.dtype != DType::boolean)
            for (std::byte& value : tensor.bytes) value = static_cast<std::byte>(random());
        else
            throw Error(ErrorKind::bad_input, fmt::format("input '{}' is {}: no random values are made for it; give it with --input", info.name, name_of(info.dtype)));
        data.inputs[info.name] = std::move(tensor);
    }
    return data;
}

}  // namespace assay::campaign
