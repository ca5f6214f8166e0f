// A damaged HDF5 file is a typed error or harmless, never a crash and never other data under the same name. Built twice: the quick set
// damages every ASSAY_DAMAGE_STEP-th place, the slow set all of them (opening a file costs libhdf5 milliseconds).
#include <fstream>

#include <gtest/gtest.h>

#include "support/error.hpp"
#include "support/files.hpp"
#include "support/hdf5.hpp"
#include "temp_folder.hpp"

namespace assay {
namespace {

using testing::TempFolder;

constexpr std::size_t kStep = ASSAY_DAMAGE_STEP;

Tensor sample() {
    Tensor t(DType::f32, {7, 9});
    for (std::size_t i = 0; i < t.bytes.size(); ++i) t.bytes[i] = static_cast<std::byte>(i * 89 + 1);
    return t;
}

struct Content {
    std::vector<std::string> names;
    std::vector<Tensor> tensors;
    std::string attribute;
    bool operator==(const Content&) const = default;
};

Content read_all(const std::filesystem::path& path) {
    const Hdf5File file = Hdf5File::open(path);
    Content content{file.tensor_names("tensors"), {}, file.read_attribute("schema")};
    for (const std::string& name : content.names) content.tensors.push_back(file.read_tensor("tensors", name));
    return content;
}

class Hdf5Damage : public ::testing::Test {
protected:
    void SetUp() override {
        Hdf5File file = Hdf5File::create(folder_ / "good.h5");
        file.write_tensor("tensors", "conv1:0", sample());
        file.write_tensor("tensors", "a/b", Tensor(DType::bf16, {3}));
        file.write_attribute("schema", "assay.test.1");
        file.close();
        bytes_ = read_text(folder_ / "good.h5");
        good_ = read_all(folder_ / "good.h5");
        ASSERT_EQ(good_.names, (std::vector<std::string>{"conv1:0", "a/b"}));
    }

    /// Not write_file: an fsync for each of thousands of files would be most of the test.
    void spoil(const std::string& bytes) { std::ofstream(folder_ / "bad.h5", std::ios::binary | std::ios::trunc) << bytes; }

    enum class Outcome { refused, harmless };
    Outcome outcome(const std::string& what) {
        try {
            const Content got = read_all(folder_ / "bad.h5");
            EXPECT_EQ(got.tensors.size(), good_.tensors.size()) << what;
            EXPECT_TRUE(got.tensors == good_.tensors && got.attribute == good_.attribute) << what << ": other data was read without an error";
            return Outcome::harmless;
        } catch (const Error& error) {
            EXPECT_TRUE(error.kind() == ErrorKind::damaged || error.kind() == ErrorKind::bad_input) << what << ": " << error.what();
            EXPECT_NE(std::string(error.what()).find("bad.h5"), std::string::npos) << error.what();
            return Outcome::refused;
        }
    }

    const TempFolder folder_{"assay_hdf5_damage"};
    std::string bytes_;
    Content good_;
};

TEST_F(Hdf5Damage, EveryFlippedByteIsRefusedOrHarmless) {
    std::size_t refused = 0;
    for (std::size_t at = 0; at < bytes_.size(); at += kStep)
        for (const int mask : {0x01, 0x80, 0xFF}) {
            std::string bad = bytes_;
            bad[at] = static_cast<char>(bad[at] ^ mask);
            spoil(bad);
            refused += outcome("byte " + std::to_string(at) + " ^ " + std::to_string(mask)) == Outcome::refused;
        }
    EXPECT_GT(refused, 0u);
    RecordProperty("refused", static_cast<int>(refused));
}

TEST_F(Hdf5Damage, EveryTruncationIsRefused) {
    for (std::size_t size = 0; size < bytes_.size(); size += kStep) {
        spoil(bytes_.substr(0, size));
        EXPECT_EQ(outcome("first " + std::to_string(size) + " bytes"), Outcome::refused) << size;
    }
}

TEST_F(Hdf5Damage, EveryZeroedBlockIsRefusedOrHarmless) {
    constexpr std::size_t block = 16;
    for (std::size_t at = 0; at + block <= bytes_.size(); at += kStep == 1 ? block / 2 : kStep) {
        std::string bad = bytes_;
        bad.replace(at, block, block, '\0');
        spoil(bad);
        outcome("zeros at " + std::to_string(at));
    }
}

}  // namespace
}  // namespace assay
