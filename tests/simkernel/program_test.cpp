#include "simkernel/program.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "simkernel/exec/faults.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "tests/simkernel/program_builder.hpp"

namespace assay::simkernel {
namespace {

namespace fs = std::filesystem;
using namespace testing;

Program sample() {
    Program p;
    p.chip = "aurum-nano";
    p.config_hash = config_hash(nano());
    p.precision = "native";
    p.descriptors = gemm_program(4, 8, 8);
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

fs::path scratch(const std::string& name) { return fs::temp_directory_path() / ("assay_program_" + name + ".h5"); }

TEST(ProgramFile, RoundTripsAndIsDeterministic) {
    const fs::path a = scratch("a"), b = scratch("b");
    save_program(sample(), a);
    const Program loaded = load_program(a);
    save_program(loaded, b);
    EXPECT_EQ(read_file(a), read_file(b));
    EXPECT_EQ(loaded.descriptors, sample().descriptors);
    EXPECT_EQ(loaded.layers[0].mapping, "K=8");
    EXPECT_EQ(loaded.constants[0].bytes, sample().constants[0].bytes);
}

TEST(ProgramFile, NoFlippedOrMissingByteCrashesOrPassesAsAnother) {
    const fs::path good = scratch("good"), bad = scratch("bad");
    save_program(sample(), good);
    const std::vector<std::byte> bytes = read_file(good);
    const auto reference = load_program(good);
    for (std::size_t i = 0; i < bytes.size(); i += 7) {
        std::vector<std::byte> damaged = bytes;
        damaged[i] ^= std::byte{0x10};
        if (i % 3 == 0) damaged.resize(i);
        std::ofstream(bad, std::ios::binary).write(reinterpret_cast<const char*>(damaged.data()), static_cast<std::streamsize>(damaged.size()));
        try {
            const Program p = load_program(bad);
            EXPECT_EQ(p.descriptors, reference.descriptors) << "byte " << i;
            EXPECT_EQ(p.constants[0].bytes, reference.constants[0].bytes) << "byte " << i;
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find(bad.string()), std::string::npos) << error.what();
        }
    }
}

TEST(Layout, PermutedAndOffsetTensorsRoundTrip) {
    Tensor t(DType::u8, {2, 3, 4, 5});
    for (std::size_t i = 0; i < t.bytes.size(); ++i) t.bytes[i] = static_cast<std::byte>(i * 7);
    const TensorSlot slot{"t", DType::u8, t.shape, {0, 2, 3, 1}, true, DeviceAddr{0}, t.bytes.size(), Role::input};
    const auto device = to_device(slot, t);
    // Device element (n,h,w,c) = (1,2,3,1) is logical (1,1,2,3), stored with value - 128.
    EXPECT_EQ(device[((1 * 4 + 2) * 5 + 3) * 3 + 1], t.bytes[((1 * 3 + 1) * 4 + 2) * 5 + 3] ^ std::byte{0x80});
    EXPECT_EQ(from_device(slot, device), t);
}

TEST(Faults, GrammarAndBindingRefuseWhatHasNoEffect) {
    const Program p = sample();
    for (const char* good : {"weight:w[63].7", "result:y[31].31", "scale:y*1.01", "drop-signal:1"}) {
        const FaultPlan plan({parse_fault(good)}, p);
        EXPECT_FALSE(plan.empty()) << good;
    }
    for (const char* bad : {"", "weight:w", "weight:w[1]", "weight:w[x].1", "scale:y", "scale:y*1", "drop-signal:x", "flip:y[0].1"})
        EXPECT_THROW(parse_fault(bad), Error) << bad;
    for (const char* bad : {"weight:w[64].7", "weight:w[0].8", "weight:v[0].0", "result:y[32].0", "result:y[0].32", "result:x[0].0", "scale:z*2",
                            "drop-signal:0", "drop-signal:4", "drop-signal:99"})
        EXPECT_THROW(FaultPlan({parse_fault(bad)}, p), Error) << bad;
}

TEST(Faults, WeightFlipChangesOneBitOfTheConstants) {
    Program p = sample();
    const FaultPlan plan({parse_fault("weight:w[5].7")}, p);
    plan.apply_to_constants(p);
    EXPECT_EQ(p.constants[0].bytes[5], std::byte{0x83});
    EXPECT_EQ(p.constants[0].bytes[4], std::byte{3});
}

TEST(Disassemble, NamesAddressesWaitsAndSignals) {
    const std::string text = disassemble(2, sample().descriptors[2]);
    for (const char* part : {"matmul", "i8", "a=spm+0x0", "w=spm+0x4000", "n=8", "wait s0>=1", "signal s2+1"})
        EXPECT_NE(text.find(part), std::string::npos) << text;
}

}  // namespace
}  // namespace assay::simkernel
