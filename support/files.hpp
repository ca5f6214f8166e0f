#pragma once
// Files that are either whole under their final name or absent: write to a temporary name beside it, fsync, rename.
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace assay {

/// Calls `write(temporary_path)`, fsyncs the result and renames it to `path` (POSIX rename is atomic). On any exception the temporary is
/// removed and nothing appears under `path`. Throws Error(io) naming `path` when the folder is missing, read-only or full.
/// A `path` that is a pipe or a device (/dev/stdout) is written to directly and never replaced.
void write_atomically(const std::filesystem::path& path, const std::function<void(const std::filesystem::path&)>& write);
void write_file(const std::filesystem::path& path, std::string_view text);  ///< atomically

/// Whole file. Throws Error(bad_input) when it is missing or unreadable, or larger than `limit_bytes`.
std::vector<std::byte> read_file(const std::filesystem::path& path, std::uint64_t limit_bytes = std::uint64_t{1} << 34);
std::string read_text(const std::filesystem::path& path, std::uint64_t limit_bytes = std::uint64_t{1} << 28);

}  // namespace assay
