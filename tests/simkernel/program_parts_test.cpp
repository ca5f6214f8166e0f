#include "simkernel/program_parts.hpp"

#include <functional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/error.hpp"
#include "tests/fuzz/sample_program.hpp"

namespace assay::simkernel {
namespace {

using nlohmann::json;

ProgramParts good() { return parts_of(fuzz::sample_program()); }

/// The message with which the parts are refused after `change` to their metadata.
std::string refused(const std::function<void(json&)>& change) {
    ProgramParts parts = good();
    json meta = json::parse(parts.meta);
    change(meta);
    parts.meta = meta.dump();
    try {
        program_from(parts, "p.h5");
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::damaged) << error.what();
        return error.what();
    }
    ADD_FAILURE() << "was taken: " << parts.meta;
    return "";
}

TEST(ProgramParts, AProgramComesBackFromItsParts) {
    const ProgramParts again = parts_of(program_from(good(), "p.h5"));
    EXPECT_EQ(again.meta, good().meta);
    EXPECT_EQ(again.descriptors, good().descriptors);
    EXPECT_EQ(again.constants, good().constants);
    EXPECT_EQ(again.element_boxes, good().element_boxes);
}

struct Case {
    const char* what;
    std::function<void(json&)> change;
    const char* expected;
};

TEST(ProgramParts, EachInconsistencyIsNamed) {
    const std::vector<Case> cases{
        {"a huge constant", [](json& m) { m["constants"][0]["bytes"] = std::uint64_t{1} << 60; }, "'constants' is shorter"},
        {"a short constant", [](json& m) { m["constants"][0]["bytes"] = 63; }, "'constants' is longer"},
        {"a huge box count", [](json& m) { m["constant_slots"][0]["boxes"] = UINT64_MAX; }, "'element_boxes' is shorter"},
        {"fewer boxes", [](json& m) { m["constant_slots"][0]["boxes"] = 0; }, "'element_boxes' is longer"},
        {"fewer elements than in its boxes", [](json& m) { m["constant_slots"][0]["elements"] = 63; }, "constant 'w'"},
        {"a slot smaller than its elements", [](json& m) { m["constant_slots"][0]["bytes"] = 8; }, "constant 'w'"},
        {"a negative size", [](json& m) { m["constants"][0]["bytes"] = -1; }, "no unsigned integer"},
        {"a fractional address", [](json& m) { m["tensors"][0]["addr"] = 1.5; }, "no unsigned integer"},
        {"a wide index", [](json& m) { m["layers"][0]["first_descriptor"] = std::uint64_t{1} << 32; }, "no unsigned integer of 32 bits"},
        {"a tensor past the program's memory", [](json& m) { m["tensors"][1]["addr"] = 0x3F81; }, "tensor 'y'"},
        {"an address that wraps", [](json& m) { m["tensors"][1]["addr"] = UINT64_MAX - 3; }, "tensor 'y'"},
        {"memory past HBM", [](json& m) { m["hbm_bytes"] = UINT64_MAX; }, "hbm_bytes"},
        {"a shape of another size", [](json& m) { m["tensors"][0]["shape"] = {4, 9}; }, "tensor 'x'"},
        {"a shape whose size wraps to that of the slot",
         [](json& m) {
             m["tensors"][1]["shape"] = {std::int64_t{1} << 62, 4};
             m["tensors"][1]["bytes"] = 0;
         },
         "tensor 'y'"},
        {"a repeated dimension", [](json& m) { m["tensors"][0]["perm"] = {1, 1}; }, "tensor 'x'"},
        {"a negative dimension index", [](json& m) { m["tensors"][0]["perm"] = {0, -1}; }, "tensor 'x'"},
        {"an offset on 32-bit elements", [](json& m) { m["tensors"][1]["offset_128"] = true; }, "offset_128"},
        {"a layer past the descriptors", [](json& m) { m["layers"][0]["descriptor_count"] = 6; }, "layer 'gemm'"},
        {"no layers", [](json& m) { m["layers"] = json::array(); }, "'debug' names a layer"},
        {"an unknown role", [](json& m) { m["tensors"][0]["role"] = "spare"; }, "role 'spare'"},
        {"a type that does not exist", [](json& m) { m["tensors"][0]["dtype"] = "bfloat15"; }, "dtype 'bfloat15'"},
        {"a type of another size", [](json& m) { m["tensors"][0]["dtype"] = "bfloat16"; }, "tensor 'x'"},
        {"a narrow float", [](json& m) { m["tensors"][1]["narrow"] = true; }, "tensor 'y'"},
        {"a host step of no layer", [](json& m) { m["host_steps"] = {{{"layer", 9}, {"before", 0}, {"inputs", json::array()}, {"outputs", json::array()}, {"model_bytes", 0}, {"reason", ""}}}; }, "host step of layer 9"},
        {"a host step past the program", [](json& m) { m["host_steps"] = {{{"layer", 0}, {"before", 99}, {"inputs", json::array()}, {"outputs", json::array()}, {"model_bytes", 0}, {"reason", ""}}}; }, "before descriptor 99"},
        {"a host model that is not there", [](json& m) { m["host_steps"] = {{{"layer", 0}, {"before", 0}, {"inputs", json::array()}, {"outputs", json::array()}, {"model_bytes", 7}, {"reason", ""}}}; }, "'host_image' is shorter"},
        {"a bound input without its bytes", [](json& m) { m["bound_inputs"] = {{{"name", "sr"}, {"dtype", "int64"}, {"shape", {1}}}}; }, "'host_image' is shorter"},
        {"a missing key", [](json& m) { m.erase("layers"); }, "layers"},
        {"another kind of document", [](json& m) { m = json::array({1, 2}); }, "meta_json"},
    };
    for (const Case& c : cases) EXPECT_NE(refused(c.change).find(c.expected), std::string::npos) << c.what << ": " << refused(c.change);
}

TEST(ProgramParts, DatasetsOfAnotherTypeOrShapeAreNamed) {
    const auto refuses = [](const std::function<void(ProgramParts&)>& change, const std::string& expected) {
        ProgramParts parts = good();
        change(parts);
        try {
            program_from(parts, "p.h5");
            ADD_FAILURE() << expected << " was taken";
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
        }
    };
    refuses([](ProgramParts& p) { p.descriptors = Tensor(DType::u32, {5, 63}); }, "'descriptors' is 5x63");
    refuses([](ProgramParts& p) { p.descriptors = Tensor(DType::f32, {5, 64}); }, "'descriptors'");
    refuses([](ProgramParts& p) { p.debug = Tensor(DType::u32, {4, 2}); }, "'debug' does not fit");
    refuses([](ProgramParts& p) { p.constants.dtype = DType::i8; }, "'constants' is not uint8");
    refuses([](ProgramParts& p) { p.element_boxes = Tensor(DType::i32, {1, 14}); }, "'element_boxes' is not Nx14 of int64");
    refuses([](ProgramParts& p) { p.element_boxes = Tensor(DType::i64, {14}); }, "'element_boxes' is not Nx14 of int64");
}

}  // namespace
}  // namespace assay::simkernel
