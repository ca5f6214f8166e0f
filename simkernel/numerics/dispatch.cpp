#include "simkernel/numerics/dispatch.hpp"

#include <atomic>

#include "simkernel/numerics/kernel_tables.hpp"

namespace assay::simkernel {
namespace {

/// Tables that the host can run, slowest first. The compiler's run-time support asks the processor and the operating system.
std::vector<const KernelTable*> runnable() {
    std::vector<const KernelTable*> tables;
#if defined(__x86_64__)
    tables.push_back(&kKernelsBaseline);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) tables.push_back(&kKernelsAvx2);
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
    if (avx512) tables.push_back(&kKernelsAvx512);
    if (avx512 && __builtin_cpu_supports("avx512vnni")) tables.push_back(&kKernelsAvx512Vnni);
#endif
    return tables;
}

const KernelTable* best() {
    const auto tables = runnable();
    return tables.empty() ? nullptr : tables.back();
}

std::atomic<const KernelTable*>& chosen() {
    static std::atomic<const KernelTable*> table{best()};
    return table;
}

}  // namespace

const KernelTable* kernels() { return chosen().load(std::memory_order_acquire); }

void install_kernels(const KernelTable* table) { chosen().store(table != nullptr ? table : best(), std::memory_order_release); }

std::vector<std::string> available_dispatch() {
    std::vector<std::string> names;
    for (const KernelTable* table : runnable()) names.emplace_back(table->name);
    if (names.empty()) names.emplace_back("scalar");
    return names;
}

bool set_dispatch(std::string_view name) {
    for (const KernelTable* table : runnable())
        if (name == table->name) {
            install_kernels(table);
            return true;
        }
    return kernels() == nullptr && name == "scalar";
}

std::string current_dispatch() { return kernels() == nullptr ? "scalar" : kernels()->name; }

}  // namespace assay::simkernel
