// Bytes of .npy, .npz and .pb files through their readers. The input's first byte chooses the reader.
#include <zlib.h>

#include <onnx/onnx_pb.h>

#include "fuzz_target.hpp"
#include "scratch_file.hpp"
#include "support/files.hpp"
#include "support/onnx/onnx_file.hpp"
#include "support/tensor_io.hpp"

namespace assay::fuzz {
namespace {

constexpr char kNpy = 0, kNpz = 1, kPb = 2;
constexpr int kReaders = 3;

void u16(std::string& out, std::size_t value) { out += {static_cast<char>(value & 255), static_cast<char>(value >> 8 & 255)}; }
void u32(std::string& out, std::size_t value) {
    u16(out, value & 0xFFFF);
    u16(out, value >> 16);
}

/// A ZIP archive of one member (PKWARE APPNOTE 6.3), stored or deflated.
std::string zip(const std::string& name, const std::string& content, bool deflated) {
    std::string packed = content;
    if (deflated) {
        z_stream stream{};
        deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
        packed.resize(deflateBound(&stream, content.size()));
        stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
        stream.avail_in = static_cast<uInt>(content.size());
        stream.next_out = reinterpret_cast<Bytef*>(packed.data());
        stream.avail_out = static_cast<uInt>(packed.size());
        deflate(&stream, Z_FINISH);
        packed.resize(stream.total_out);
        deflateEnd(&stream);
    }
    const auto common = [&](std::string& out) {  // from "version needed" to "extra length"
        u16(out, 20), u16(out, 0), u16(out, deflated ? 8 : 0), u32(out, 0);
        u32(out, crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size()));
        u32(out, packed.size()), u32(out, content.size()), u16(out, name.size()), u16(out, 0);
    };
    std::string file = "PK\x03\x04";
    common(file);
    file += name + packed;
    const std::size_t directory = file.size();
    file += std::string("PK\x01\x02") + std::string("\x14\0", 2);
    common(file);
    u16(file, 0), u16(file, 0), u16(file, 0), u32(file, 0), u32(file, 0);
    file += name;
    const std::size_t end = file.size();
    file += "PK\x05\x06";
    u32(file, 0), u16(file, 1), u16(file, 1), u32(file, end - directory), u32(file, directory), u16(file, 0);
    return file;
}

}  // namespace

std::vector<std::string> seeds() {
    const ScratchFile file(".npy");
    std::vector<std::string> out;
    std::string npy;
    for (const DType type : {DType::f32, DType::i64, DType::u8, DType::boolean, DType::f16}) {
        write_npy(file.path(), Tensor(type, {2, 3}));
        npy = read_text(file.path());
        out.push_back(std::string(1, kNpy) + npy);
    }
    std::string fortran = out.front();
    fortran.replace(fortran.find("False"), 5, " True");
    out.push_back(fortran);
    for (const bool deflated : {false, true}) out.push_back(std::string(1, kNpz) + zip("x.npy", npy, deflated));
    onnx::TensorProto proto;
    proto.set_name("x");
    proto.set_data_type(onnx::TensorProto::INT64);
    proto.add_dims(2);
    proto.add_int64_data(-1);
    proto.add_int64_data(1);
    out.push_back(std::string(1, kPb) + proto.SerializeAsString());
    return out;
}

}  // namespace assay::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace assay::fuzz;
    if (size == 0) return 0;
    const std::span<const std::uint8_t> bytes(data + 1, size - 1);
    static const ScratchFile npz(".npz"), pb(".pb");
    refusing([&] {
        switch (data[0] % kReaders) {
            case kNpy: (void)assay::read_npy(std::as_bytes(bytes), "fuzz.npy"); break;
            case kNpz: (void)assay::read_npz(npz.holding(bytes)); break;
            default: (void)assay::load_pb_tensor(pb.holding(bytes)); break;
        }
        ++accepted;
    });
    return 0;
}
