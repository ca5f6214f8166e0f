// NumPy's .npy format (numpy.lib.format, versions 1 to 3): a magic string, a Python dictionary literal, raw elements.
#include <algorithm>
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "support/error.hpp"
#include "support/files.hpp"
#include "support/tensor_io.hpp"

namespace assay {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::int64_t kMaxRank = 32;  // NumPy's own limit

struct Header {
    DType dtype = DType::f32;
    bool swapped = false;  ///< elements are big-endian
    bool fortran = false;  ///< first dimension fastest
    Shape shape;
};

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
    throw Error(ErrorKind::bad_input, fmt::format("{}: {}", where, what));
}

/// Parses exactly what NumPy writes: {'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }
class HeaderParser {
public:
    HeaderParser(std::string_view text, const std::string& where) : text_(text), where_(where) {}

    Header parse() {
        Header header;
        bool descr = false, order = false, shape = false;
        expect('{');
        while (!accept('}')) {
            const std::string key = quoted();
            expect(':');
            if (key == "descr") {
                parse_descr(quoted(), header);
                descr = true;
            } else if (key == "fortran_order") {
                header.fortran = boolean();
                order = true;
            } else if (key == "shape") {
                header.shape = tuple();
                shape = true;
            } else {
                refuse(where_, fmt::format("unknown key '{}' in the .npy header", key));
            }
            if (!accept(',') && !peek('}')) broken();
        }
        if (!descr || !order || !shape) refuse(where_, "the .npy header lacks 'descr', 'fortran_order' or 'shape'");
        return header;
    }

private:
    [[noreturn]] void broken() const { refuse(where_, fmt::format("malformed .npy header near character {}", at_)); }
    void skip() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    }
    bool peek(char c) {
        skip();
        return at_ < text_.size() && text_[at_] == c;
    }
    bool accept(char c) {
        if (!peek(c)) return false;
        ++at_;
        return true;
    }
    void expect(char c) {
        if (!accept(c)) broken();
    }
    std::string quoted() {
        expect('\'');
        const std::size_t end = text_.find('\'', at_);
        if (end == std::string_view::npos) broken();
        std::string out(text_.substr(at_, end - at_));
        at_ = end + 1;
        return out;
    }
    bool boolean() {
        skip();
        for (const std::string_view word : {"True", "False"})
            if (text_.substr(at_).starts_with(word)) {
                at_ += word.size();
                return word == "True";
            }
        broken();
    }
    Shape tuple() {
        Shape shape;
        expect('(');
        while (!accept(')')) {
            skip();
            std::int64_t dim = 0;
            const std::size_t begin = at_;
            for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
                if (__builtin_mul_overflow(dim, 10, &dim) || __builtin_add_overflow(dim, text_[at_] - '0', &dim)) broken();
            if (at_ == begin || static_cast<std::int64_t>(shape.size()) == kMaxRank) broken();
            shape.push_back(dim);
            if (!accept(',') && !peek(')')) broken();
        }
        return shape;
    }
    void parse_descr(const std::string& descr, Header& header) const {
        static constexpr std::pair<std::string_view, DType> kTypes[] = {
            {"f4", DType::f32}, {"f8", DType::f64}, {"f2", DType::f16}, {"i1", DType::i8},  {"u1", DType::u8},  {"i2", DType::i16},
            {"u2", DType::u16}, {"i4", DType::i32}, {"u4", DType::u32}, {"i8", DType::i64}, {"u8", DType::u64}, {"b1", DType::boolean}};
        const bool has_order = !descr.empty() && std::string_view("<>=|").find(descr[0]) != std::string_view::npos;
        for (const auto& [code, type] : kTypes)
            if (has_order && descr.substr(1) == code) {
                header.dtype = type;
                header.swapped = descr[0] == '>' && size_of(type) > 1;
                return;
            }
        refuse(where_, fmt::format("element type '{}' is not supported; convert it to a float, integer or bool array", descr));
    }

    std::string_view text_;
    const std::string& where_;
    std::size_t at_ = 0;
};

/// Column-major elements to row-major.
std::vector<std::byte> to_row_major(const std::vector<std::byte>& in, const Shape& shape, std::size_t size) {
    std::vector<std::byte> out(in.size());
    std::vector<std::int64_t> index(shape.size(), 0);
    for (std::size_t to = 0; to < out.size(); to += size) {
        std::int64_t from = 0, stride = 1;
        for (std::size_t d = 0; d < shape.size(); ++d) {
            from += index[d] * stride;
            stride *= shape[d];
        }
        std::memcpy(out.data() + to, in.data() + static_cast<std::size_t>(from) * size, size);
        for (std::size_t d = shape.size(); d-- > 0 && ++index[d] == shape[d];) index[d] = 0;
    }
    return out;
}

}  // namespace

Tensor read_npy(std::span<const std::byte> bytes, const std::string& where) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (text.size() < 10 || !text.starts_with(kMagic)) refuse(where, "not a .npy array (the magic string is missing)");
    const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(text[i])); };
    const std::size_t version = byte(6);
    if (version < 1 || version > 3) refuse(where, fmt::format(".npy version {} is not supported; versions 1 to 3 are", version));
    const std::size_t head = version == 1 ? 10 : 12;
    if (text.size() < head) refuse(where, "truncated .npy header");
    const std::size_t length = byte(8) | byte(9) << 8 | (version == 1 ? 0 : byte(10) << 16 | byte(11) << 24);
    if (text.size() - head < length) refuse(where, "truncated .npy header");
    const Header header = HeaderParser(text.substr(head, length), where).parse();

    const std::span<const std::byte> data = bytes.subspan(head + length);
    const std::size_t size = size_of(header.dtype);
    std::int64_t count = 0;
    try {
        count = element_count(header.shape);
    } catch (const Error& error) {
        refuse(where, error.what());
    }
    if (data.size() % size != 0 || data.size() / size != static_cast<std::size_t>(count))
        refuse(where, fmt::format("{} bytes of data, shape {} of {} needs {} elements of {} bytes", data.size(), to_string(header.shape),
                                  name_of(header.dtype), count, size));
    Tensor out(header.dtype, header.shape);
    out.bytes.assign(data.begin(), data.end());
    if (header.swapped)
        for (std::size_t i = 0; i < out.bytes.size(); i += size) std::reverse(out.bytes.begin() + i, out.bytes.begin() + i + size);
    if (header.fortran) out.bytes = to_row_major(out.bytes, out.shape, size);
    return out;
}

void write_npy(const std::filesystem::path& path, const Tensor& tensor) {
    const char kind = tensor.dtype == DType::boolean ? 'b' : is_float(tensor.dtype) ? 'f' : name_of(tensor.dtype)[0];
    // NumPy has no bfloat16: its bits are written as uint16.
    const std::string code = tensor.dtype == DType::bf16 ? "u2" : fmt::format("{}{}", kind, size_of(tensor.dtype));
    std::string header =
        fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}", size_of(tensor.dtype) == 1 ? '|' : '<', code,
                    fmt::join(tensor.shape, ", "), tensor.shape.size() == 1 ? "," : "");
    constexpr std::size_t kAlign = 64;  // the format asks that the data starts at a multiple of 64
    header.append((kAlign - (10 + header.size() + 1) % kAlign) % kAlign, ' ');
    header += '\n';
    std::string file(kMagic);
    file += {'\x01', '\x00', static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
    file += header;
    file.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
    write_file(path, file);
}

}  // namespace assay
