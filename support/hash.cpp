#include "support/hash.hpp"

#include <array>
#include <fstream>
#include <memory>

#include <fmt/format.h>
#include <openssl/evp.h>

#include "support/error.hpp"

namespace assay {
namespace {

class Digest {
public:
    Digest() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
        ASSAY_CHECK(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1, "OpenSSL has no SHA-256");
    }
    void add(const void* data, std::size_t bytes) {
        ASSAY_CHECK(EVP_DigestUpdate(context_.get(), data, bytes) == 1, "EVP_DigestUpdate failed");
    }
    std::string hex() {
        std::array<unsigned char, 32> sum{};
        unsigned length = 0;
        ASSAY_CHECK(EVP_DigestFinal_ex(context_.get(), sum.data(), &length) == 1 && length == sum.size(), "EVP_DigestFinal failed");
        std::string text;
        for (const unsigned char byte : sum) text += fmt::format("{:02x}", byte);
        return text;
    }

private:
    std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace

std::string sha256(std::span<const std::byte> bytes) {
    Digest digest;
    digest.add(bytes.data(), bytes.size());
    return digest.hex();
}

std::string sha256_file(const std::filesystem::path& path) {
    const auto refuse = [&] { throw Error(ErrorKind::bad_input, fmt::format("{}: cannot be read; check the path and its permissions", path.string())); };
    std::ifstream file(path, std::ios::binary);
    if (!file || std::filesystem::is_directory(path)) refuse();
    Digest digest;
    std::array<char, 1 << 16> buffer;
    while (file.read(buffer.data(), buffer.size()) || file.gcount() > 0) digest.add(buffer.data(), static_cast<std::size_t>(file.gcount()));
    if (file.bad()) refuse();
    return digest.hex();
}

std::string sha256_tensor(const Tensor& tensor) {
    Digest digest;
    const std::string head = fmt::format("{}:{}\n", name_of(tensor.dtype), to_string(tensor.shape));
    digest.add(head.data(), head.size());
    digest.add(tensor.bytes.data(), tensor.bytes.size());
    return digest.hex();
}

}  // namespace assay
