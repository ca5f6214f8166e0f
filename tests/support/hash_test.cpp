#include "support/hash.hpp"

#include <string>

#include <gtest/gtest.h>

#include "support/error.hpp"
#include "support/files.hpp"
#include "temp_folder.hpp"

namespace assay {
namespace {

using testing::TempFolder;

// NIST FIPS 180-4 example messages and their digests (csrc.nist.gov, "SHA256.pdf").
struct Vector {
    std::string message, digest;
};
const Vector kVectors[] = {
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {std::string(1'000'000, 'a'), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
};

TEST(Hash, BytesAndFilesGiveThePublishedDigests) {
    const TempFolder folder("assay_hash");
    for (const Vector& v : kVectors) {
        EXPECT_EQ(sha256(std::as_bytes(std::span(v.message))), v.digest) << v.message.size() << " bytes";
        write_file(folder / "message", v.message);
        EXPECT_EQ(sha256_file(folder / "message"), v.digest) << v.message.size() << " bytes in a file";
    }
}

TEST(Hash, AFileThatCannotBeReadIsNamed) {
    const TempFolder folder("assay_hash");
    for (const std::filesystem::path& path : {folder / "absent", folder.path()}) try {
            sha256_file(path);
            ADD_FAILURE() << path << " was hashed";
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos) << error.what();
        }
}

TEST(Hash, ATensorsHashCoversTypeShapeAndBytes) {
    const Tensor t = make_tensor<float>(DType::f32, {2, 3}, std::array<float, 6>{1, 2, 3, 4, 5, 6});
    std::string canonical = "float32:2x3\n";
    canonical.append(reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size());
    EXPECT_EQ(sha256_tensor(t), sha256(std::as_bytes(std::span(canonical))));

    Tensor other = t;
    other.shape = {3, 2};
    EXPECT_NE(sha256_tensor(other), sha256_tensor(t));
    other = t;
    other.dtype = DType::i32;
    EXPECT_NE(sha256_tensor(other), sha256_tensor(t));
    other = t;
    other.bytes[7] ^= std::byte{1};
    EXPECT_NE(sha256_tensor(other), sha256_tensor(t));
}

}  // namespace
}  // namespace assay
