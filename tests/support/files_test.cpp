#include "support/files.hpp"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <random>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/error.hpp"
#include "support/hdf5.hpp"
#include "temp_folder.hpp"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::TempFolder;

std::size_t entries(const fs::path& folder) {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

Error error_of(const std::function<void()>& body) {
    try {
        body();
    } catch (const Error& error) {
        return error;
    }
    ADD_FAILURE() << "no Error was thrown";
    return {ErrorKind::internal, ""};
}

/// No file of this process may grow past `bytes` while it lives: what a full disk looks like without one. EFBIG instead of ENOSPC, on the
/// same paths of ours.
class FileSizeLimit {
public:
    explicit FileSizeLimit(rlim_t bytes) {
        ::getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit limited{bytes, before_.rlim_max};
        handler_ = std::signal(SIGXFSZ, SIG_IGN);
        if (::setrlimit(RLIMIT_FSIZE, &limited) != 0) ADD_FAILURE() << "setrlimit";
    }
    ~FileSizeLimit() {
        ::setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, handler_);
    }

private:
    rlimit before_{};
    void (*handler_)(int) = nullptr;
};

TEST(Files, WritesAndReplacesWhole) {
    const TempFolder folder("assay_files");
    write_file(folder / "a", "first");
    EXPECT_EQ(read_text(folder / "a"), "first");
    write_file(folder / "a", std::string("sec\0ond", 7));
    EXPECT_EQ(read_text(folder / "a"), std::string("sec\0ond", 7));
    write_file(folder / "empty", "");
    EXPECT_EQ(read_text(folder / "empty"), "");
    EXPECT_EQ(entries(folder.path()), 2u) << "temporary files stay behind";
}

TEST(Files, AWriterThatThrowsLeavesTheOldFileAndNothingElse) {
    const TempFolder folder("assay_files");
    const auto fails = [](const fs::path& temporary) {
        std::ofstream(temporary) << "half";
        throw std::runtime_error("in the middle");
    };
    EXPECT_THROW(write_atomically(folder / "new", fails), std::runtime_error);
    EXPECT_EQ(entries(folder.path()), 0u);
    write_file(folder / "old", "whole");
    EXPECT_THROW(write_atomically(folder / "old", fails), std::runtime_error);
    EXPECT_EQ(read_text(folder / "old"), "whole");
    EXPECT_EQ(entries(folder.path()), 1u);
}

TEST(Files, AWriterThatWritesNothingIsAnError) {
    const TempFolder folder("assay_files");
    EXPECT_EQ(error_of([&] { write_atomically(folder / "a", [](const fs::path&) {}); }).kind(), ErrorKind::io);
    EXPECT_EQ(entries(folder.path()), 0u);
}

TEST(Files, AMissingFolderIsNamed) {
    const TempFolder folder("assay_files");
    const Error error = error_of([&] { write_file(folder.path() / "no" / "such" / "a", "x"); });
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_NE(std::string(error.what()).find("no/such' does not exist"), std::string::npos) << error.what();
    EXPECT_FALSE(fs::exists(folder / "no"));
}

TEST(Files, AFolderInTheFilesPlaceIsAnError) {
    const TempFolder folder("assay_files");
    fs::create_directory(folder / "a");
    EXPECT_EQ(error_of([&] { write_file(folder / "a", "x"); }).kind(), ErrorKind::io);
    EXPECT_EQ(entries(folder.path()), 1u);
}

/// Runs in a child that has given up root, which may write anywhere.
TEST(Files, AReadOnlyFolderIsNamedAndStaysEmpty) {
    const TempFolder folder("assay_files");
    ASSERT_EQ(::chmod(folder.path().c_str(), 0555), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        constexpr uid_t nobody = 65534;
        if (::getuid() == 0 && (::setresgid(nobody, nobody, nobody) != 0 || ::setresuid(nobody, nobody, nobody) != 0)) ::_exit(3);
        try {
            write_file(folder / "a", "x");
        } catch (const Error& error) {
            const bool named = std::string(error.what()).find("is not writable") != std::string::npos;
            ::_exit(error.kind() == ErrorKind::io && named ? 0 : 1);
        }
        ::_exit(2);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ::chmod(folder.path().c_str(), 0755);
    ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    if (WEXITSTATUS(status) == 3) GTEST_SKIP() << "root cannot be given up here, and root may write to a read-only folder";
    EXPECT_EQ(WEXITSTATUS(status), 0) << "1: another error, 2: the file was written";
    EXPECT_EQ(entries(folder.path()), 0u);
}

TEST(Files, AFullDiskIsAnErrorAndLeavesNothing) {
    const TempFolder folder("assay_files");
    write_file(folder / "old", "whole");
    for (const rlim_t limit : {0, 1, 4096, 99'999}) {
        const FileSizeLimit full(limit);
        EXPECT_EQ(error_of([&] { write_file(folder / "old", std::string(100'000, 'x')); }).kind(), ErrorKind::io) << limit << " bytes";
        EXPECT_EQ(entries(folder.path()), 1u) << limit << " bytes";
    }
    EXPECT_EQ(read_text(folder / "old"), "whole");
}

TEST(Files, AFullDiskUnderHdf5IsAnErrorAndLeavesNothing) {
    const TempFolder folder("assay_files");
    Tensor tensor(DType::i32, {100'000});
    std::mt19937 noise(1);
    for (std::size_t i = 0; i < 100'000; ++i) tensor.as<std::int32_t>()[i] = static_cast<std::int32_t>(noise());  // does not compress
    const auto write = [&] {
        write_atomically(folder / "a.h5", [&](const fs::path& temporary) {
            Hdf5File file = Hdf5File::create(temporary);
            file.write_attribute("key", "value");
            file.write_tensor("tensors", "a", tensor);
            file.close();
        });
    };
    for (const rlim_t limit : {0, 1, 100, 2048, 65'536, 300'000}) {
        const FileSizeLimit full(limit);
        const Error error = error_of(write);
        EXPECT_EQ(error.kind(), ErrorKind::io) << limit << " bytes";
        EXPECT_NE(std::string(error.what()).find("a.h5:"), std::string::npos) << "under its final name: " << error.what();
        EXPECT_EQ(entries(folder.path()), 0u) << limit << " bytes";
    }
    write();
    EXPECT_EQ(Hdf5File::open(folder / "a.h5").read_tensor("tensors", "a"), tensor) << "the library still works after its failures";
}

/// `--json /dev/stdout` must not replace the device by a file.
TEST(Files, ADeviceOrPipeIsWrittenToAndNeverReplaced) {
    const TempFolder folder("assay_files");
    const fs::path pipe = folder / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        std::ifstream in(pipe);
        const std::string got((std::istreambuf_iterator<char>(in)), {});
        ::_exit(got == "through" ? 0 : 1);
    }
    write_file(pipe, "through");
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT_TRUE(fs::is_fifo(pipe));
    EXPECT_EQ(entries(folder.path()), 1u);
}

TEST(Files, ReadingRefusesWhatIsMissingAFolderOrTooLarge) {
    const TempFolder folder("assay_files");
    write_file(folder / "ten", "0123456789");
    EXPECT_EQ(read_file(folder / "ten", 10).size(), 10u);
    for (const Error& error : {error_of([&] { read_file(folder / "ten", 9); }), error_of([&] { read_file(folder / "absent"); }),
                               error_of([&] { read_file(folder.path()); }), error_of([&] { read_text(folder / "ten", 9); })}) {
        EXPECT_EQ(error.kind(), ErrorKind::bad_input);
        EXPECT_NE(std::string(error.what()).find(folder.path().string()), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace assay
