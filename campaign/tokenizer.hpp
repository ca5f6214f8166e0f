#pragma once
// A vocabulary in llama2.c's tokenizer format (tok512.bin): int32 longest piece, then for each token a float score, an int32 length and its
// bytes, all little-endian. Encoding merges the pair of neighbours with the best score until none is left (sentencepiece BPE).
#include <filesystem>
#include <string>
#include <vector>

namespace assay::campaign {

class Tokenizer {
public:
    /// Throws Error(bad_input) naming the file and the byte when it ends early or holds a length that cannot be.
    explicit Tokenizer(const std::filesystem::path& path);

    static constexpr std::int64_t kBegin = 1, kEnd = 2;
    std::size_t size() const { return pieces_.size(); }
    /// With kBegin in front; unknown characters become byte tokens (ids 3 to 258).
    std::vector<std::int64_t> encode(const std::string& text) const;
    /// The bytes that `token` adds after `previous`: a leading space goes after kBegin, "<0x0A>" is the byte it names.
    std::string decode(std::int64_t previous, std::int64_t token) const;

private:
    std::int64_t find(const std::string& piece) const;
    std::vector<std::string> pieces_;
    std::vector<float> scores_;
};

}  // namespace assay::campaign
