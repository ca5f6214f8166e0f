#pragma once
// Outcome of a target operation: a value or a typed error with its data. Failure of a target is expected, so nothing is thrown.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace assay::switchover {

enum class TargetErrorKind {
    timeout,       ///< the deadline in device cycles passed; the device still makes progress
    target_hung,   ///< the deadline passed and the heartbeat stands still, or the job cannot end
    link_down,     ///< reads return all ones, or the connection is gone
    bus_error,     ///< an access was answered with an error or lies outside the device
    unsupported,   ///< the target has no such operation
    bad_request,   ///< the caller's arguments are wrong
    needs_reset,   ///< the device must be reset first
    lease_lost,    ///< someone else owns the board now
    infra,         ///< our own machinery failed (a process died, memory ran out)
};
std::string_view name_of(TargetErrorKind kind);

struct TargetError {
    TargetErrorKind kind = TargetErrorKind::infra;
    std::string text;               ///< "target: operation: what, got against allowed; what to do"
    std::uint64_t budget_cycles = 0;    ///< timeout, target_hung
    std::uint64_t progress_cycles = 0;  ///< heartbeat advance seen while waiting
};

template <class T>
class [[nodiscard]] Result {
public:
    Result(T value) : state_(std::move(value)) {}                // NOLINT: a value is a result
    Result(TargetError error) : state_(std::move(error)) {}      // NOLINT: an error is a result
    bool ok() const { return state_.index() == 0; }
    explicit operator bool() const { return ok(); }
    T& value() { return std::get<0>(state_); }
    const T& value() const { return std::get<0>(state_); }
    const TargetError& error() const { return std::get<1>(state_); }

private:
    std::variant<T, TargetError> state_;
};

struct Done {};
using Status = Result<Done>;

}  // namespace assay::switchover
