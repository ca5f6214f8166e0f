#pragma once
// The error that ends a command: a bad file, option, model or a damaged golden. `cli` catches it once and maps its kind to an
// exit status. Expected failures of a target are data (switchover/target.hpp), never this.
#include <stdexcept>
#include <string>
#include <utility>

namespace assay {

enum class ErrorKind {
    usage,      ///< bad command line: exit status 2
    bad_input,  ///< malformed or unsupported user file, before anything runs: exit status 2
    damaged,    ///< a golden or result file that does not match its checksum: exit status 3
    io,         ///< the system refused a read or a write (full disk, permissions): exit status 3
    internal,   ///< a broken invariant of ours: exit status 3
};

/// `what()` reads "where: what, got against allowed; what to do".
class Error : public std::runtime_error {
public:
    Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
    ErrorKind kind() const { return kind_; }

private:
    ErrorKind kind_;
};

[[noreturn]] void check_failed(const char* condition, const char* why, const char* file, int line);

}  // namespace assay

/// A broken invariant of ours: throws Error(internal). Must be unreachable from any program or file.
#define ASSAY_CHECK(condition, why) \
    ((condition) ? void() : ::assay::check_failed(#condition, why, __FILE__, __LINE__))
