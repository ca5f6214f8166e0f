// Fault specifications, bound to a program.
#include "fuzz_target.hpp"
#include "sample_program.hpp"
#include "simkernel/exec/faults.hpp"
#include "simkernel/exec/interpreter.hpp"

namespace assay::fuzz {

std::vector<std::string> seeds() {
    return {"weight:w[3].7", "result:y[31].30", "scale:y*1.01", "drop-signal:1", "scale:y*-2.5e3", "result:a[0].b[1][2].3", "weight:w[64].0", "scale:y*1"};
}

}  // namespace assay::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace assay::fuzz;
    using namespace assay::simkernel;
    static const Program program = sample_program();
    refusing([&] {
        const FaultSpec spec = parse_fault({reinterpret_cast<const char*>(data), size});
        ++accepted;
        expect(spec.element >= 0, "an index is not negative");
        FaultPlan plan({spec}, program);
        Program disturbed = program;
        plan.apply_to_constants(disturbed);
        SparseMemory hbm(1 << 16);
        HbmOnly memory(hbm);
        for (std::uint32_t i = 0; i < program.descriptors.size(); ++i) plan.retired(0, i, memory);
        expect(!plan.empty(), "a fault that is admitted has an effect");
    });
    return 0;
}
