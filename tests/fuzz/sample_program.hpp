#pragma once
// A small legal program with everything that a program file can hold.

#include "simkernel/program.hpp"
#include "tests/simkernel/program_builder.hpp"

namespace assay::fuzz {

inline const simkernel::ChipConfig& sample_chip() {
    static const simkernel::ChipConfig config = simkernel::testing::nano();
    return config;
}

inline simkernel::Program sample_program() {
    using namespace simkernel;
    Program p;
    p.chip = "aurum-nano";
    p.config_hash = config_hash(sample_chip());
    p.precision = "native";
    p.descriptors = simkernel::testing::gemm_program(4, 8, 8);
    p.debug.assign(p.descriptors.size(), {0, 0});
    p.constants.push_back({DeviceAddr{0x2000}, std::vector<std::byte>(64, std::byte{3})});
    ConstantSlot weight{"w", DeviceAddr{0x2000}, 64, Dtype::i8, ElementMap::dense(64, 1)};
    p.constant_slots.push_back(weight);
    p.tensors.push_back({"x", DType::i8, {4, 8}, {0, 1}, false, DeviceAddr{0x1000}, 32, Role::input});
    p.tensors.push_back({"y", DType::i32, {4, 8}, {0, 1}, false, DeviceAddr{0x3000}, 128, Role::output});
    p.layers.push_back({"gemm", "Gemm", {0}, {"x"}, {"y"}, "int8", 256, 512, 8, "K=8", 0, 5});
    p.hbm_bytes = 0x4000;
    return p;
}

}  // namespace assay::fuzz
