// Tables and colour.
#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/commands.hpp"

namespace assay::cli {
namespace {

bool color = false;
std::string paint(const char* code, const std::string& text) { return color ? fmt::format("\033[{}m{}\033[0m", code, text) : text; }

/// Characters on the screen: bytes without escape sequences and UTF-8 continuation bytes.
std::size_t width_of(const std::string& text) {
    std::size_t width = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\033') {
            while (i < text.size() && text[i] != 'm') ++i;
            continue;
        }
        if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) ++width;
    }
    return width;
}

}  // namespace

void allow_color(bool wanted) {
    color = wanted && isatty(STDOUT_FILENO) && std::getenv("NO_COLOR") == nullptr;
}
std::string green(const std::string& text) { return paint("32", text); }
std::string red(const std::string& text) { return paint("1;31", text); }
std::string yellow(const std::string& text) { return paint("33", text); }
std::string bold(const std::string& text) { return paint("1", text); }

Table::Table(std::vector<std::string> header, std::vector<bool> right) : right_(std::move(right)) { rows_.push_back(std::move(header)); }
void Table::add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

std::string Table::text() const {
    std::vector<std::size_t> widths(right_.size(), 0);
    for (const auto& row : rows_)
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
    std::string text;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
        std::string line;
        for (std::size_t i = 0; i < rows_[r].size(); ++i) {
            const std::string pad(widths[i] - width_of(rows_[r][i]), ' ');
            line += (i ? "  " : "") + (right_[i] ? pad + rows_[r][i] : rows_[r][i] + pad);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += (r == 0 ? bold(line) : line) + "\n";
    }
    return text;
}

}  // namespace assay::cli
