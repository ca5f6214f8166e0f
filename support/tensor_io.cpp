#include "support/tensor_io.hpp"

#include <fmt/format.h>

#include "support/error.hpp"
#include "support/files.hpp"
#include "support/hdf5.hpp"
#include "support/onnx/onnx_file.hpp"

namespace assay {
namespace {

std::vector<NamedTensor> read_hdf5(const std::filesystem::path& path) {
    const Hdf5File file = Hdf5File::open(path);
    std::vector<NamedTensor> out;
    for (const std::string& group : file.groups())
        for (const std::string& name : file.tensor_names(group)) out.push_back({name, file.read_tensor(group, name)});
    if (out.empty()) throw Error(ErrorKind::bad_input, fmt::format("{}: holds no dataset that is a tensor", path.string()));
    return out;
}

}  // namespace

std::vector<NamedTensor> read_tensors(const std::filesystem::path& path) {
    const std::string extension = path.extension().string();
    if (extension == ".pb") {
        NamedTensor out;
        out.tensor = load_pb_tensor(path, &out.name);
        return {std::move(out)};
    }
    if (extension == ".npy") return {{"", read_npy(read_file(path), path.string())}};
    if (extension == ".npz") return read_npz(path);
    if (extension == ".h5" || extension == ".hdf5") return read_hdf5(path);
    throw Error(ErrorKind::bad_input,
                fmt::format("{}: tensor format '{}' is not known; use .pb, .npy, .npz or .h5", path.string(), extension));
}

}  // namespace assay
