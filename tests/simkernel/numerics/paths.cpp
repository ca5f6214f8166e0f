#include "paths.hpp"

#include <stdexcept>

#include "simkernel/numerics/dispatch.hpp"
#include "simkernel/numerics/kernel_tables.hpp"

namespace assay::simkernel::test {
namespace {

bool runs_wide() {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

}  // namespace

std::vector<std::string> all_paths() {
    std::vector<std::string> names = available_dispatch();
    if (runs_wide()) names.emplace_back("wide");
    return names;
}

PathScope::PathScope(const std::string& name) {
#if defined(__x86_64__)
    if (name == "wide") {
        install_kernels(&kKernelsWide);
        return;
    }
#endif
    if (!set_dispatch(name)) throw std::runtime_error("no path " + name);
}
PathScope::~PathScope() { install_kernels(nullptr); }

}  // namespace assay::simkernel::test
