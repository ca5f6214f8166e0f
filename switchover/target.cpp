#include "switchover/target.hpp"

namespace assay::switchover {

std::string_view name_of(TargetErrorKind kind) {
    switch (kind) {
        case TargetErrorKind::timeout: return "timeout";
        case TargetErrorKind::target_hung: return "target_hung";
        case TargetErrorKind::link_down: return "link_down";
        case TargetErrorKind::bus_error: return "bus_error";
        case TargetErrorKind::unsupported: return "unsupported";
        case TargetErrorKind::bad_request: return "bad_request";
        case TargetErrorKind::needs_reset: return "needs_reset";
        case TargetErrorKind::lease_lost: return "lease_lost";
        case TargetErrorKind::infra: return "infra";
    }
    return "?";
}

bool has(const Capabilities& capabilities, const std::string& flag) {
    const auto fact = capabilities.find(flag);
    return fact != capabilities.end() && std::holds_alternative<bool>(fact->second) && std::get<bool>(fact->second);
}

namespace {
TargetError unsupported(const char* operation) {
    return {TargetErrorKind::unsupported, std::string(operation) + ": this target does not offer it; ask its capabilities first"};
}
}  // namespace

Status Target::backdoor_read(DeviceAddr, std::span<std::byte>) { return unsupported("backdoor_read"); }
Status Target::backdoor_write(DeviceAddr, std::span<const std::byte>) { return unsupported("backdoor_write"); }
Status Target::set_hooks(simkernel::JobHooks*) { return unsupported("set_hooks"); }

}  // namespace assay::switchover
