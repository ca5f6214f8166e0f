// NumPy's .npz: a ZIP archive (PKWARE APPNOTE 6.3) of .npy members, stored or deflated. Only the central directory is believed for
// sizes: NumPy writes zip64 placeholders in local headers.
#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <zlib.h>

#include "support/error.hpp"
#include "support/files.hpp"
#include "support/tensor_io.hpp"

namespace assay {
namespace {

constexpr std::uint32_t kEndSignature = 0x06054b50, kCentralSignature = 0x02014b50, kLocalSignature = 0x04034b50;
constexpr std::size_t kEndBytes = 22, kCentralBytes = 46, kLocalBytes = 30;
constexpr std::uint64_t kDeflateMaxRatio = 1032;  // zlib's documented limit: a larger claim is a lie or a bomb

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
    throw Error(ErrorKind::bad_input, fmt::format("{}: {}", where, what));
}

/// Little-endian reads that refuse to leave the file.
class Reader {
public:
    Reader(std::span<const std::byte> bytes, const std::string& where) : bytes_(bytes), where_(where) {}
    std::size_t size() const { return bytes_.size(); }
    std::uint32_t u16(std::size_t at) const {
        return static_cast<std::uint32_t>(slice(at, 2)[0]) | static_cast<std::uint32_t>(bytes_[at + 1]) << 8;
    }
    std::uint32_t u32(std::size_t at) const { return u16(at) | u16(at + 2) << 16; }
    std::span<const std::byte> slice(std::size_t at, std::size_t count) const {
        if (at > bytes_.size() || count > bytes_.size() - at) refuse(where_, "truncated ZIP archive");
        return bytes_.subspan(at, count);
    }

private:
    std::span<const std::byte> bytes_;
    const std::string& where_;
};

std::size_t find_end_record(const Reader& file, const std::string& where) {
    for (std::size_t back = kEndBytes; back <= file.size() && back <= kEndBytes + 65535; ++back)
        if (file.u32(file.size() - back) == kEndSignature) return file.size() - back;
    refuse(where, "not a .npz archive (no ZIP end record: truncated, corrupt or another format)");
}

std::vector<std::byte> inflate_member(std::span<const std::byte> packed, std::size_t size, const std::string& where) {
    if (size / kDeflateMaxRatio > packed.size()) refuse(where, fmt::format("{} bytes cannot inflate to {}", packed.size(), size));
    std::vector<std::byte> out(size);
    z_stream stream{};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw Error(ErrorKind::io, fmt::format("{}: zlib could not start", where));
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));  // zlib does not write through next_in
    stream.avail_in = static_cast<uInt>(packed.size());
    Bytef none = 0;
    stream.next_out = size ? reinterpret_cast<Bytef*>(out.data()) : &none;
    stream.avail_out = static_cast<uInt>(size);
    const int status = inflate(&stream, Z_FINISH);
    const bool whole = status == Z_STREAM_END && stream.avail_out == 0;
    inflateEnd(&stream);
    if (!whole) refuse(where, "corrupt deflate data");
    return out;
}

struct Member {
    std::uint32_t method = 0, crc = 0, packed = 0, size = 0, local = 0;
};

std::vector<std::byte> unpack(const Reader& file, const Member& m, const std::string& where) {
    if (m.packed == std::numeric_limits<std::uint32_t>::max() || m.size == std::numeric_limits<std::uint32_t>::max())
        refuse(where, "members of 4 GiB or more are not supported; save it as .npy");
    if (file.u32(m.local) != kLocalSignature) refuse(where, "corrupt ZIP local header");
    const std::size_t data = m.local + kLocalBytes + file.u16(m.local + 26) + file.u16(m.local + 28);
    const std::span<const std::byte> packed = file.slice(data, m.packed);
    std::vector<std::byte> bytes;
    if (m.method == 0 && m.packed == m.size)
        bytes.assign(packed.begin(), packed.end());
    else if (m.method == 8)
        bytes = inflate_member(packed, m.size, where);
    else
        refuse(where, fmt::format("ZIP method {} is not supported; save with numpy.savez or savez_compressed", m.method));
    if (crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()) != m.crc)
        refuse(where, "CRC-32 does not match; the file is damaged");
    return bytes;
}

}  // namespace

std::vector<NamedTensor> read_npz(const std::filesystem::path& path) {
    const std::string where = path.string();
    const std::vector<std::byte> bytes = read_file(path);
    const Reader file(bytes, where);
    const std::size_t end = find_end_record(file, where);
    const std::uint32_t entries = file.u16(end + 10);
    std::size_t at = file.u32(end + 16);
    std::vector<NamedTensor> out;
    for (std::uint32_t i = 0; i < entries; ++i) {
        if (file.u32(at) != kCentralSignature) refuse(where, fmt::format("corrupt ZIP directory at entry {}", i));
        const Member member{file.u16(at + 10), file.u32(at + 16), file.u32(at + 20), file.u32(at + 24), file.u32(at + 42)};
        const std::size_t name_bytes = file.u16(at + 28);
        const auto raw = file.slice(at + kCentralBytes, name_bytes);
        std::string name(reinterpret_cast<const char*>(raw.data()), raw.size());
        const std::string entry = fmt::format("{}: entry '{}'", where, name);
        if (!name.ends_with(".npy")) refuse(entry, "not a .npy member");
        const std::vector<std::byte> npy = unpack(file, member, entry);
        name.resize(name.size() - 4);
        out.push_back({name, read_npy(npy, entry)});
        at += kCentralBytes + name_bytes + file.u16(at + 30) + file.u16(at + 32);
    }
    return out;
}

}  // namespace assay
