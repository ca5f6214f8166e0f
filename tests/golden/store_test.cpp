// The golden store: what is written is read back, and no damage goes unseen.
#include "golden/store/store.hpp"

#include <fstream>

#include <gtest/gtest.h>

#include "golden/judge/compare_files.hpp"
#include "small_model.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/hdf5.hpp"
#include "tests/support/temp_folder.hpp"

namespace assay::golden {
namespace {

using testing::random_floats;
using testing::TempFolder;

Golden sample() {
    Golden golden;
    golden.inputs = {{"x", random_floats({1, 16}, 1)}};
    Value y(DType::f32, {4, 100});
    for (std::size_t i = 0; i < y.f.size(); ++i) y.f[i] = 1.0 / static_cast<double>(i + 3);
    Value q(DType::i8, {3});
    q.n = {-128, 0, 127};
    Value empty(DType::f32, {0, 2});
    golden.tensors = to_stored({{"block1/conv:0", y}, {"q", q}, {"empty", empty}});
    golden.provenance = {"m.onnx", std::string(64, 'a'), hash_inputs(golden.inputs), "assay fp64 reference", "", "2026-11-30"};
    return golden;
}

/// Without the fsync of write_file: these tests write hundreds of damaged files.
void overwrite(const std::filesystem::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::string bytes_of(const std::filesystem::path& path) { return read_text(path); }

TEST(GoldenStore, WhatIsWrittenIsReadBack) {
    const TempFolder folder("assay_golden");
    const Golden golden = sample();
    const auto path = golden_path(folder.path(), golden.provenance.model_sha256, golden.provenance.input_sha256);
    EXPECT_EQ(path.filename().string().substr(0, 24), "golden-aaaaaaaaaaaaaaaa-");
    save_golden(path, golden);
    const Golden read = load_golden_for(path, golden.provenance.model_sha256, golden.provenance.input_sha256);
    EXPECT_EQ(read.tensors, golden.tensors);
    EXPECT_EQ(read.inputs, golden.inputs);
    EXPECT_EQ(read.provenance.producer, "assay fp64 reference");
    EXPECT_EQ(from_stored(read.tensors).at("block1/conv:0").f[7], 0.1);
    EXPECT_TRUE(verify_golden(path).empty());
    EXPECT_NE(show_golden(path).find("block1/conv:0"), std::string::npos);
}

TEST(GoldenStore, EqualContentGivesEqualBytes) {
    const TempFolder folder("assay_golden_same");
    save_golden(folder / "a.h5", sample());
    save_golden(folder / "b.h5", sample());
    EXPECT_EQ(bytes_of(folder / "a.h5"), bytes_of(folder / "b.h5"));
    EXPECT_EQ(bytes_of(folder / "a.h5.manifest.json"), bytes_of(folder / "b.h5.manifest.json"));
}

TEST(GoldenStore, AFlippedBitIsDamageOrChangesNothingThatIsRead) {
    const TempFolder folder("assay_golden_flip");
    const Golden golden = sample();
    const auto path = folder / "g.h5";
    save_golden(path, golden);
    const std::string whole = bytes_of(path);
    int damaged = 0, harmless = 0;
    for (std::size_t at = 0; at < whole.size(); at += 41) {
        std::string bent = whole;
        bent[at] = static_cast<char>(bent[at] ^ 1 << (at / 41 % 8));
        overwrite(path, bent);
        try {
            const Golden read = load_golden(path);
            ASSERT_EQ(read.tensors, golden.tensors) << "byte " << at << " changed a value unseen";
            ASSERT_EQ(read.inputs, golden.inputs) << "byte " << at;
            ++harmless;  // free space and bookkeeping of HDF5
        } catch (const Error& error) {
            ASSERT_EQ(error.kind(), ErrorKind::damaged) << "byte " << at << ": " << error.what();
            ++damaged;
        }
    }
    EXPECT_GT(damaged, 10);
    RecordProperty("harmless", harmless);
}

TEST(GoldenStore, EveryTruncationIsDamage) {
    const TempFolder folder("assay_golden_cut");
    const auto path = folder / "g.h5";
    save_golden(path, sample());
    const std::string whole = bytes_of(path);
    for (std::size_t size = 0; size < whole.size(); size += 997) {
        overwrite(path, whole.substr(0, size));
        try {
            load_golden(path);
            FAIL() << "a file cut at " << size << " was believed";
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::damaged) << error.what();
        }
    }
}

TEST(GoldenStore, AValueChangedWithItsChecksumsIsFoundByTheManifestAndNamed) {
    const TempFolder folder("assay_golden_stale");
    const Golden golden = sample();
    save_golden(folder / "g.h5", golden);
    Golden other = golden;
    other.tensors["q"].as<std::int8_t>()[1] = 1;
    save_golden(folder / "other.h5", other);
    std::filesystem::copy_file(folder / "other.h5", folder / "g.h5", std::filesystem::copy_options::overwrite_existing);
    try {
        load_golden(folder / "g.h5");
        FAIL() << "a stale file was believed";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::damaged);
        EXPECT_NE(std::string(error.what()).find("tensor 'q'"), std::string::npos) << error.what();
    }
    EXPECT_EQ(verify_golden(folder / "g.h5").size(), 1u);
}

TEST(GoldenStore, AWrongModelOrInputIsStaleAndAnAbsentFileIsBadUsage) {
    const TempFolder folder("assay_golden_wrong");
    const Golden golden = sample();
    save_golden(folder / "g.h5", golden);
    EXPECT_THROW(load_golden_for(folder / "g.h5", std::string(64, 'b'), golden.provenance.input_sha256), Error);
    EXPECT_THROW(load_golden_for(folder / "g.h5", golden.provenance.model_sha256, std::string(64, 'b')), Error);
    try {
        load_golden(folder / "absent.h5");
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    }
    std::filesystem::remove(folder / "g.h5.manifest.json");
    EXPECT_THROW(load_golden(folder / "g.h5"), Error);
    write_file(folder / "g.h5.manifest.json", "{\"schema\": 3");
    EXPECT_THROW(load_golden(folder / "g.h5"), Error);
}

TEST(CompareExact, FindsValuesShapesTypesAndMissingTensors) {
    const TempFolder folder("assay_compare");
    const auto save = [&](const char* name, const std::map<std::string, Tensor>& tensors) {
        write_atomically(folder / name, [&](const std::filesystem::path& path) {
            Hdf5File file = Hdf5File::create(path);
            for (const auto& [key, t] : tensors) file.write_tensor("tensors", key, t);
            file.close();
        });
        return folder / name;
    };
    const Tensor t = testing::floats({2}, {1.5f, 0.0f});
    const auto a = save("a.h5", {{"t", t}, {"u", t}});
    EXPECT_TRUE(compare_exact(a, save("same.h5", {{"t", t}, {"u", t}})).equal());
    const auto one = [&](const char* file, const Tensor& other) {
        return compare_exact(a, save(file, {{"t", other}, {"u", t}})).differences.at(0);
    };
    EXPECT_EQ(one("v.h5", testing::floats({2}, {1.5f, -0.0f})),
              "tensor 't' (group tensors): 1 of 2 elements differ, first at 1: 0 against -0");
    EXPECT_EQ(one("s.h5", testing::floats({1, 2}, {1.5f, 0.0f})), "tensor 't' (group tensors): shape 2 against 1x2");
    EXPECT_EQ(one("d.h5", testing::tensor<std::int32_t>(DType::i32, {2}, {1, 0})), "tensor 't' (group tensors): float32 against int32");
    EXPECT_FALSE(compare_exact(a, save("m.h5", {{"t", t}})).equal());
    EXPECT_FALSE(compare_exact(save("n.h5", {{"t", t}}), a).equal());
    EXPECT_THROW(compare_exact(save("e1.h5", {}), save("e2.h5", {})), Error) << "a comparison over nothing";
}

}  // namespace
}  // namespace assay::golden
