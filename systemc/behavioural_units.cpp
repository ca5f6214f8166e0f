#include "systemc/dma_unit.hpp"
#include "systemc/mxu_unit.hpp"
#include "systemc/sync_unit.hpp"
#include "systemc/vpu_unit.hpp"

namespace assay::chip {

std::unique_ptr<Unit> make_behavioural_unit(simkernel::Engine engine, EnginePorts& ports) {
    switch (engine) {
        case simkernel::Engine::load:
        case simkernel::Engine::store: return std::make_unique<DmaUnit>(ports);
        case simkernel::Engine::matrix: return std::make_unique<MxuUnit>(ports);
        case simkernel::Engine::vector: return std::make_unique<VpuUnit>(ports);
        case simkernel::Engine::collective: return std::make_unique<SyncUnit>(ports);
    }
    return nullptr;
}

}  // namespace assay::chip
