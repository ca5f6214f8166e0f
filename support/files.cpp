#include "support/files.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "support/error.hpp"

namespace assay {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void refuse(const fs::path& path, const std::string& what) {
    throw Error(ErrorKind::io, fmt::format("{}: {}; nothing was left under this name", path.string(), what));
}

void sync(const fs::path& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) refuse(path, std::strerror(errno));
    const int status = ::fsync(fd);
    const int error = errno;
    ::close(fd);
    // A folder on some file systems cannot be synced; the file itself must be.
    if (status != 0 && !(fs::is_directory(path) && error == EINVAL)) refuse(path, std::strerror(error));
}

/// A pipe, terminal or other device: there is no file to keep whole, and a rename would replace the device itself.
bool is_device(const fs::path& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

}  // namespace

void write_atomically(const fs::path& path, const std::function<void(const fs::path&)>& write) {
    if (is_device(path)) {
        write(path);
        return;
    }
    const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    std::error_code error;
    if (!fs::is_directory(folder, error)) refuse(path, fmt::format("folder '{}' does not exist; create it first", folder.string()));
    if (::access(folder.c_str(), W_OK) != 0) refuse(path, fmt::format("folder '{}' is not writable ({})", folder.string(), std::strerror(errno)));
    fs::path temporary = path;
    temporary += fmt::format(".tmp{}", ::getpid());
    try {
        write(temporary);
        sync(temporary);
        if (::rename(temporary.c_str(), path.c_str()) != 0) refuse(path, std::strerror(errno));
        sync(folder);
    } catch (const Error& failure) {
        fs::remove(temporary, error);
        // The user knows the file by its final name.
        std::string text = failure.what();
        if (const std::size_t at = text.find(temporary.string()); at != std::string::npos) text.replace(at, temporary.string().size(), path.string());
        throw Error(failure.kind(), text);
    } catch (...) {
        fs::remove(temporary, error);
        throw;
    }
}

void write_file(const fs::path& path, std::string_view text) {
    write_atomically(path, [&](const fs::path& temporary) {
        std::ofstream file(temporary, std::ios::binary);
        file.write(text.data(), static_cast<std::streamsize>(text.size()));
        file.flush();
        if (!file) refuse(path, fmt::format("cannot be written ({})", std::strerror(errno)));
    });
}

std::vector<std::byte> read_file(const fs::path& path, std::uint64_t limit_bytes) {
    std::error_code error;
    if (fs::is_directory(path, error)) throw Error(ErrorKind::bad_input, fmt::format("{}: is a folder, not a file", path.string()));
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) throw Error(ErrorKind::bad_input, fmt::format("{}: cannot be read ({}); check the path", path.string(), std::strerror(errno)));
    const std::streamoff size = file.tellg();
    if (size < 0 || static_cast<std::uint64_t>(size) > limit_bytes)
        throw Error(ErrorKind::bad_input, fmt::format("{}: {} bytes, allowed at most {}", path.string(), size, limit_bytes));
    std::vector<std::byte> bytes(static_cast<std::size_t>(size));
    file.seekg(0);
    file.read(reinterpret_cast<char*>(bytes.data()), size);
    if (!file) throw Error(ErrorKind::bad_input, fmt::format("{}: could not be read to its end", path.string()));
    return bytes;
}

std::string read_text(const fs::path& path, std::uint64_t limit_bytes) {
    const std::vector<std::byte> bytes = read_file(path, limit_bytes);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace assay
