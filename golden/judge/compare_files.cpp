#include "golden/judge/compare_files.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "support/error.hpp"
#include "support/hdf5.hpp"

namespace assay::golden {
namespace {

using Key = std::pair<std::string, std::string>;  ///< group, name

std::map<Key, Tensor> read_all(const std::filesystem::path& path) {
    const Hdf5File file = Hdf5File::open(path);
    std::map<Key, Tensor> out;
    for (const std::string& group : file.groups())
        for (const std::string& name : file.tensor_names(group)) out[{group, name}] = file.read_tensor(group, name);
    return out;
}

std::string called(const Key& key) {
    return key.first == "/" ? fmt::format("tensor '{}'", key.second) : fmt::format("tensor '{}' (group {})", key.second, key.first);
}

std::string difference(const Tensor& a, const Tensor& b) {
    if (a.dtype != b.dtype) return fmt::format("{} against {}", name_of(a.dtype), name_of(b.dtype));
    if (a.shape != b.shape) return fmt::format("shape {} against {}", to_string(a.shape), to_string(b.shape));
    const std::size_t size = size_of(a.dtype);
    std::int64_t count = 0, first = -1;
    for (std::int64_t i = 0; i < a.count(); ++i) {
        const std::size_t at = static_cast<std::size_t>(i) * size;
        if (std::memcmp(a.bytes.data() + at, b.bytes.data() + at, size) == 0) continue;
        if (count++ == 0) first = i;
    }
    if (count == 0) return "";
    return fmt::format("{} of {} elements differ, first at {}: {:.9g} against {:.9g}", count, a.count(), first, a.value(first),
                       b.value(first));
}

}  // namespace

FileComparison compare_exact(const std::filesystem::path& a, const std::filesystem::path& b) {
    const std::map<Key, Tensor> left = read_all(a), right = read_all(b);
    if (left.empty() && right.empty())
        throw Error(ErrorKind::bad_input,
                    fmt::format("{} and {}: neither holds a tensor; a comparison over nothing says nothing", a.string(), b.string()));
    FileComparison out;
    for (const auto& [key, tensor] : left) {
        const auto other = right.find(key);
        if (other == right.end()) {
            out.differences.push_back(fmt::format("{}: only in {}", called(key), a.string()));
            continue;
        }
        ++out.compared;
        if (const std::string text = difference(tensor, other->second); !text.empty())
            out.differences.push_back(fmt::format("{}: {}", called(key), text));
    }
    for (const auto& [key, tensor] : right)
        if (!left.contains(key)) out.differences.push_back(fmt::format("{}: only in {}", called(key), b.string()));
    return out;
}

}  // namespace assay::golden
