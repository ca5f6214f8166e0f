#pragma once
// One file in memory for readers that take a path: fuzzing writes it thousands of times.
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include <unistd.h>

namespace assay::fuzz {

class ScratchFile {
public:
    explicit ScratchFile(const std::string& extension) {
        const std::filesystem::path memory = "/dev/shm";
        const std::filesystem::path folder = ::access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
        path_ = folder / ("assay_fuzz." + std::to_string(::getpid()) + extension);
    }
    ~ScratchFile() {
        std::error_code ignored;
        std::filesystem::remove(path_, ignored);
    }
    ScratchFile(const ScratchFile&) = delete;
    ScratchFile& operator=(const ScratchFile&) = delete;
    const std::filesystem::path& holding(std::span<const std::uint8_t> bytes) const {
        std::ofstream(path_, std::ios::binary | std::ios::trunc).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        return path_;
    }
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

}  // namespace assay::fuzz
