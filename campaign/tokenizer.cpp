#include "campaign/tokenizer.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#include "support/error.hpp"
#include "support/files.hpp"

namespace assay::campaign {
namespace {

constexpr std::int64_t kFirstByteToken = 3;
constexpr std::int32_t kLongestPiece = 1024;

}  // namespace

Tokenizer::Tokenizer(const std::filesystem::path& path) {
    const std::vector<std::byte> bytes = read_file(path);
    std::size_t at = 0;
    const auto take = [&](void* to, std::size_t count) {
        if (count > bytes.size() - at) throw Error(ErrorKind::bad_input, fmt::format("{}: ends at byte {} inside a token; give a llama2.c tokenizer", path.string(), bytes.size()));
        std::memcpy(to, bytes.data() + at, count);
        at += count;
    };
    std::int32_t longest = 0;
    take(&longest, sizeof longest);
    while (at < bytes.size()) {
        float score = 0;
        std::int32_t length = 0;
        take(&score, sizeof score);
        take(&length, sizeof length);
        if (length < 0 || length > kLongestPiece)
            throw Error(ErrorKind::bad_input, fmt::format("{}: token {} has length {}; give a llama2.c tokenizer", path.string(), pieces_.size(), length));
        std::string piece(static_cast<std::size_t>(length), '\0');
        take(piece.data(), piece.size());
        pieces_.push_back(std::move(piece));
        scores_.push_back(score);
    }
    if (pieces_.empty()) throw Error(ErrorKind::bad_input, fmt::format("{}: holds no token; give a llama2.c tokenizer", path.string()));
}

std::int64_t Tokenizer::find(const std::string& piece) const {
    const auto found = std::find(pieces_.begin(), pieces_.end(), piece);
    return found == pieces_.end() ? -1 : found - pieces_.begin();
}

std::vector<std::int64_t> Tokenizer::encode(const std::string& text) const {
    std::vector<std::int64_t> tokens{kBegin};
    if (text.empty()) return tokens;
    const std::string padded = " " + text;
    for (std::size_t i = 0; i < padded.size();) {
        std::size_t end = i + 1;  // one UTF-8 character
        while (end < padded.size() && (static_cast<unsigned char>(padded[end]) & 0xC0u) == 0x80u) ++end;
        if (const std::int64_t token = find(padded.substr(i, end - i)); token >= 0) tokens.push_back(token);
        else
            for (std::size_t b = i; b < end; ++b) tokens.push_back(kFirstByteToken + static_cast<unsigned char>(padded[b]));
        i = end;
    }
    for (;;) {
        float best = -1e10f;
        std::size_t where = 0;
        std::int64_t merged = -1;
        for (std::size_t i = 1; i + 1 < tokens.size(); ++i) {
            const std::int64_t token = find(pieces_[static_cast<std::size_t>(tokens[i])] + pieces_[static_cast<std::size_t>(tokens[i + 1])]);
            if (token < 0 || scores_[static_cast<std::size_t>(token)] <= best) continue;
            best = scores_[static_cast<std::size_t>(token)];
            where = i;
            merged = token;
        }
        if (merged < 0) return tokens;
        tokens[where] = merged;
        tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(where) + 1);
    }
}

std::string Tokenizer::decode(std::int64_t previous, std::int64_t token) const {
    if (token < 0 || static_cast<std::size_t>(token) >= pieces_.size()) return "";
    std::string piece = pieces_[static_cast<std::size_t>(token)];
    if (previous == kBegin && !piece.empty() && piece[0] == ' ') piece.erase(0, 1);
    unsigned byte = 0;
    int used = 0;
    if (std::sscanf(piece.c_str(), "<0x%02X>%n", &byte, &used) == 1 && used == static_cast<int>(piece.size())) return std::string(1, static_cast<char>(byte));
    return piece;
}

}  // namespace assay::campaign
