#pragma once
// The Verilated arithmetic of one processing element.
#include "Vmxu_pe_tb.h"

#include "tests/rtl_models/mxu_pe_cases.hpp"

namespace assay::test {

class VerilatedPe {
public:
    void drive(const PeCase& c) {
        top_.psum_i = c.psum;
        top_.act_i = c.act;
        top_.weight_i = c.weight;
        top_.eval();
    }
    std::uint32_t i8() const { return top_.i8_o; }
    std::uint32_t bf16() const { return top_.bf16_o; }
    std::uint32_t canonical() const { return top_.canonical_o; }

private:
    VerilatedContext context_;
    Vmxu_pe_tb top_{&context_};
};

}  // namespace assay::test
