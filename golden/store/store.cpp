#include "golden/store/store.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "support/error.hpp"
#include "support/files.hpp"
#include "support/hash.hpp"
#include "support/hdf5.hpp"

namespace assay::golden {
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
namespace {

constexpr const char* kSchema = "assay.golden/1";
constexpr const char* kInputs = "inputs";
constexpr const char* kTensors = "tensors";

std::map<std::string, std::string> attributes_of(const Provenance& p) {
    return {{"schema", kSchema},
            {"model_path", p.model_path},
            {"model_sha256", p.model_sha256},
            {"input_sha256", p.input_sha256},
            {"producer", p.producer},
            {"seed", p.seed},
            {"date", p.date}};
}

[[noreturn]] void damaged(const std::string& text) {
    throw Error(ErrorKind::damaged, text + "; damaged or stale, rebuild it with 'assay golden make'");
}

/// The manifest, checked for its own shape.
Json read_manifest(const fs::path& golden) {
    const fs::path path = manifest_path(golden);
    if (!fs::exists(golden))
        throw Error(ErrorKind::bad_input, fmt::format("{}: no such golden; make it with 'assay golden make'", golden.string()));
    if (!fs::exists(path)) damaged(fmt::format("{}: its manifest '{}' is missing", golden.string(), path.string()));
    const Json manifest = Json::parse(read_text(path), nullptr, false);
    const auto all_strings = [&](const char* key) {
        if (!manifest.contains(key) || !manifest[key].is_object()) return false;
        for (const auto& [name, value] : manifest[key].items())
            if (!value.is_string()) return false;
        return true;
    };
    if (!manifest.is_object() || manifest.value("schema", Json()) != kSchema)
        damaged(fmt::format("{}: not a manifest of schema {}", path.string(), kSchema));
    for (const char* key : {"attributes", kInputs, kTensors})
        if (!all_strings(key)) damaged(fmt::format("{}: '{}' is missing or is no list of names and texts", path.string(), key));
    return manifest;
}

/// Calls take(tensor name, Tensor) for each tensor of a group that matches the manifest, problem(text) for each that does not.
template <class Take, class Problem>
void read_group(const Hdf5File& file, const char* group, const Json& hashes, Take take, Problem problem) {
    const std::string where = file.path().string();
    for (const auto& [name, want] : hashes.items()) {
        try {
            if (!file.has_tensor(group, name)) {
                problem(fmt::format("{}: tensor '{}' is in the manifest and not in the file", where, name));
                continue;
            }
            Tensor tensor = file.read_tensor(group, name);
            const std::string got = sha256_tensor(tensor);
            if (got != want.template get<std::string>())
                problem(fmt::format("{}: tensor '{}': SHA-256 {}… but the manifest says {}…", where, name, got.substr(0, 8),
                                    want.template get<std::string>().substr(0, 8)));
            else
                take(name, std::move(tensor));
        } catch (const Error& error) {
            problem(error.what());  // names the file and the tensor
        }
    }
    for (const std::string& name : file.tensor_names(group))
        if (!hashes.contains(name)) problem(fmt::format("{}: tensor '{}' is in the file and not in the manifest", where, name));
}

/// Reads and checks everything; `problem` decides whether to go on.
template <class Problem>
Golden read_all(const fs::path& path, Problem problem) {
    Golden out;
    const Json manifest = read_manifest(path);
    try {
        const Hdf5File file = Hdf5File::open(path);
        for (const auto& [name, want] : manifest["attributes"].items()) {
            const std::string got = file.has_attribute(name) ? file.read_attribute(name) : "(none)";
            if (got != want.template get<std::string>())
                problem(fmt::format("{}: attribute '{}' is \"{}\" but the manifest says \"{}\"", path.string(), name, got,
                                    want.template get<std::string>()));
        }
        read_group(
            file, kInputs, manifest[kInputs], [&](const std::string& name, Tensor t) { out.inputs[name] = std::move(t); }, problem);
        read_group(
            file, kTensors, manifest[kTensors], [&](const std::string& name, Tensor t) { out.tensors[name] = std::move(t); }, problem);
    } catch (const Error& error) {
        // The manifest says that a whole golden stood here: what HDF5 cannot read is damage, not bad usage.
        if (error.kind() != ErrorKind::bad_input) throw;
        problem(error.what());
    }
    const auto text = [&](const char* key) { return manifest["attributes"].value(key, std::string()); };
    out.provenance = {text("model_path"), text("model_sha256"), text("input_sha256"), text("producer"), text("seed"), text("date")};
    return out;
}

}  // namespace

std::string hash_inputs(const std::map<std::string, Tensor>& inputs) {
    std::string text;
    for (const auto& [name, tensor] : inputs) text += fmt::format("{}:{}={}\n", name.size(), name, sha256_tensor(tensor));
    return sha256(std::as_bytes(std::span(text)));
}

fs::path golden_path(const fs::path& folder, const std::string& model_sha256, const std::string& input_sha256) {
    return folder / fmt::format("golden-{}-{}.h5", model_sha256.substr(0, 16), input_sha256.substr(0, 16));
}

fs::path manifest_path(const fs::path& golden) {
    fs::path path = golden;
    path += ".manifest.json";
    return path;
}

void save_golden(const fs::path& path, const Golden& golden) {
    Json manifest{{"schema", kSchema}, {"attributes", Json::object()}, {kInputs, Json::object()}, {kTensors, Json::object()}};
    const auto attributes = attributes_of(golden.provenance);
    for (const auto& [name, value] : attributes) manifest["attributes"][name] = value;
    for (const auto& [name, tensor] : golden.inputs) manifest[kInputs][name] = sha256_tensor(tensor);
    for (const auto& [name, tensor] : golden.tensors) manifest[kTensors][name] = sha256_tensor(tensor);
    write_atomically(path, [&](const fs::path& temporary) {
        Hdf5File file = Hdf5File::create(temporary);
        for (const auto& [name, value] : attributes) file.write_attribute(name, value);
        for (const auto& [name, tensor] : golden.inputs) file.write_tensor(kInputs, name, tensor);
        for (const auto& [name, tensor] : golden.tensors) file.write_tensor(kTensors, name, tensor);
        file.close();
    });
    // Written last: a crash in between leaves a golden that is refused for its manifest, never one that is believed.
    write_file(manifest_path(path), manifest.dump(1) + "\n");
}

Golden load_golden(const fs::path& path) {
    return read_all(path, [](const std::string& text) { damaged(text); });
}

Golden load_golden_for(const fs::path& path, const std::string& model_sha256, const std::string& input_sha256) {
    Golden golden = load_golden(path);
    if (golden.provenance.model_sha256 != model_sha256)
        damaged(fmt::format("{}: made for model {}…, this one is {}…", path.string(), golden.provenance.model_sha256.substr(0, 8),
                            model_sha256.substr(0, 8)));
    if (golden.provenance.input_sha256 != input_sha256 || hash_inputs(golden.inputs) != input_sha256)
        damaged(fmt::format("{}: made for inputs {}…, these are {}…", path.string(), golden.provenance.input_sha256.substr(0, 8),
                            input_sha256.substr(0, 8)));
    return golden;
}

std::vector<std::string> verify_golden(const fs::path& path) {
    std::vector<std::string> problems;
    try {
        const Golden golden = read_all(path, [&](const std::string& text) { problems.push_back(text); });
        if (problems.empty() && hash_inputs(golden.inputs) != golden.provenance.input_sha256)
            problems.push_back(fmt::format("{}: its inputs do not match input_sha256", path.string()));
        if (problems.empty() && golden.tensors.empty()) problems.push_back(fmt::format("{}: holds no tensor", path.string()));
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::damaged) throw;
        problems.push_back(error.what());
    }
    return problems;
}

std::string show_golden(const fs::path& path) {
    const Golden golden = load_golden(path);
    std::string text;
    for (const auto& [name, value] : attributes_of(golden.provenance)) text += fmt::format("{:<13} {}\n", name, value);
    for (const auto& [title, tensors] : {std::pair{kInputs, &golden.inputs}, std::pair{kTensors, &golden.tensors}}) {
        text += fmt::format("{} ({})\n", title, tensors->size());
        for (const auto& [name, tensor] : *tensors)
            text += fmt::format("  {:<40} {:<8} {:<16} {}\n", name, name_of(tensor.dtype), to_string(tensor.shape),
                                sha256_tensor(tensor).substr(0, 16));
    }
    return text;
}

std::map<std::string, Tensor> to_stored(const Values& values) {
    std::map<std::string, Tensor> out;
    for (const auto& [name, value] : values) {
        Value plain = value;
        if (plain.floating()) plain.dtype = DType::f64;
        out[name] = to_tensor(plain);
    }
    return out;
}

Values from_stored(const std::map<std::string, Tensor>& tensors) {
    Values out;
    for (const auto& [name, tensor] : tensors) out[name] = to_value(tensor);
    return out;
}

}  // namespace assay::golden
