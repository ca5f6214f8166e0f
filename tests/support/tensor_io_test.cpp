#include "support/tensor_io.hpp"

#include <cstring>
#include <functional>

#include <gtest/gtest.h>
#include <zlib.h>

#include "support/error.hpp"
#include "support/files.hpp"
#include "support/hdf5.hpp"
#include "temp_folder.hpp"

namespace assay {
namespace {

using testing::TempFolder;

std::string message_of(const std::function<void()>& body) {
    try {
        body();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::bad_input) << error.what();
        return error.what();
    }
    ADD_FAILURE() << "no Error was thrown";
    return "";
}

std::string npy(const std::string& dict, const std::string& data) {
    std::string out("\x93NUMPY\x01\x00", 8);
    out += static_cast<char>(dict.size() & 255);
    out += static_cast<char>(dict.size() >> 8);
    return out + dict + data;
}

Tensor parse(const std::string& file) { return read_npy(std::as_bytes(std::span(file)), "a.npy"); }

template <class T>
std::string raw(std::initializer_list<T> values) {
    return {reinterpret_cast<const char*>(std::data(values)), values.size() * sizeof(T)};
}

/// Little-endian integer of `bytes` bytes.
std::string le(std::uint64_t value, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 255);
    return out;
}

std::string deflate_raw(const std::string& data) {
    std::string out(compressBound(data.size()) + 16, '\0');
    z_stream stream{};
    EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
    stream.avail_in = static_cast<uInt>(data.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

/// A ZIP archive as numpy.savez writes it: zip64 placeholders in the local header, sizes in the directory.
std::string zip(const std::vector<std::pair<std::string, std::string>>& members, bool compress) {
    std::string file, directory;
    for (const auto& [name, data] : members) {
        const std::string packed = compress ? deflate_raw(data) : data;
        const std::uint64_t crc = crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size()));
        const std::size_t local = file.size();
        const std::string method = le(compress ? 8 : 0, 2);
        file += le(0x04034b50, 4) + le(45, 2) + le(0, 2) + method + le(0, 4) + le(crc, 4) + le(0xffffffff, 4) + le(0xffffffff, 4) +
                le(name.size(), 2) + le(20, 2) + name + le(1, 2) + le(16, 2) + le(data.size(), 8) + le(packed.size(), 8) + packed;
        directory += le(0x02014b50, 4) + le(45, 2) + le(45, 2) + le(0, 2) + method + le(0, 4) + le(crc, 4) + le(packed.size(), 4) +
                     le(data.size(), 4) + le(name.size(), 2) + le(0, 2) + le(0, 2) + le(0, 2) + le(0, 2) + le(0, 4) + le(local, 4) + name;
    }
    const std::size_t at = file.size();
    return file + directory + le(0x06054b50, 4) + le(0, 4) + le(members.size(), 2) + le(members.size(), 2) + le(directory.size(), 4) +
           le(at, 4) + le(0, 2);
}

TEST(Npy, ReadsEveryByteOrderAndMemoryOrder) {
    const std::string dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
    const Tensor t = parse(npy(dict, raw<float>({1, 2, 3, 4, 5, 6})));
    EXPECT_EQ(t.shape, Shape({2, 3}));
    EXPECT_EQ(t.value(4), 5.0);

    const Tensor f = parse(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n", raw<float>({1, 4, 2, 5, 3, 6})));
    EXPECT_EQ(f, t) << "the same array, first dimension fastest";

    const Tensor big = parse(npy("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }", std::string("\x01\x02\xff\xfe", 4)));
    EXPECT_EQ(big.integer(0), 0x0102);
    EXPECT_EQ(big.integer(1), -2);

    EXPECT_EQ(parse(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (), }", std::string(1, '\1'))).dtype, DType::boolean);
    EXPECT_EQ(parse(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 4), }", "")).count(), 0);
}

TEST(Npy, WhatIsWrittenIsReadBack) {
    const TempFolder folder("assay_npy");
    for (const DType type : {DType::f32, DType::f64, DType::f16, DType::i8, DType::u8, DType::i16, DType::u16, DType::i32, DType::u32,
                             DType::i64, DType::u64, DType::boolean})
        for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 3}, Shape{0, 5}}) {
            Tensor t(type, shape);
            for (std::size_t i = 0; i < t.bytes.size(); ++i) t.bytes[i] = static_cast<std::byte>(i % 2);
            write_npy(folder / "t.npy", t);
            const auto read = read_tensors(folder / "t.npy");
            ASSERT_EQ(read.size(), 1u);
            EXPECT_EQ(read[0].tensor, t) << name_of(type) << " " << to_string(shape);
            EXPECT_EQ(std::filesystem::file_size(folder / "t.npy") % 64, t.bytes.size() % 64) << "data starts at a multiple of 64";
        }
}

TEST(Npy, EveryTruncationIsRefused) {
    const std::string whole = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", raw<float>({1, 2}));
    ASSERT_EQ(parse(whole).count(), 2);
    for (std::size_t size = 0; size < whole.size(); ++size) message_of([&] { parse(whole.substr(0, size)); });
}

TEST(Npy, RefusesWhatItCannotHold) {
    EXPECT_NE(message_of([] { parse(npy("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", std::string(8, 'x'))); }).find("<c8"),
              std::string::npos);
    message_of([] { parse(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", "")); });
    message_of([] { parse(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4), }", "")); });
    message_of([] { parse(npy("{'descr': '<f4', 'shape': (1,), }", raw<float>({1}))); });
    message_of([] { parse(npy("not a dictionary", "")); });
}

TEST(Npz, ReadsStoredAndDeflatedMembers) {
    const TempFolder folder("assay_npz");
    const std::string a = npy("{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }", raw<std::int32_t>({7, -7}));
    const std::string b = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (), }", std::string(1, '\x09'));
    for (const bool compress : {false, true}) {
        write_file(folder / "t.npz", zip({{"a.npy", a}, {"b.npy", b}}, compress));
        const auto read = read_tensors(folder / "t.npz");
        ASSERT_EQ(read.size(), 2u);
        EXPECT_EQ(read[0].name, "a");
        EXPECT_EQ(read[0].tensor.integer(1), -7);
        EXPECT_EQ(read[1].name, "b");
        EXPECT_EQ(read[1].tensor.integer(0), 9);
    }
}

TEST(Npz, NoByteFlippedInTheDataGoesUnseenAndNoFlipCrashes) {
    const TempFolder folder("assay_npz_flip");
    const std::string a = npy("{'descr': '<i4', 'fortran_order': False, 'shape': (8,), }", std::string(32, 'q'));
    const std::string whole = zip({{"a.npy", a}}, true);
    write_file(folder / "t.npz", whole);
    const Tensor original = read_npz(folder / "t.npz").at(0).tensor;
    for (std::size_t i = 0; i < whole.size(); ++i) {
        std::string bent = whole;
        bent[i] = static_cast<char>(bent[i] ^ 0x20);
        write_file(folder / "t.npz", bent);
        try {
            for (const NamedTensor& t : read_npz(folder / "t.npz")) EXPECT_EQ(t.tensor, original) << "flip at " << i;
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::bad_input);
        }
    }
    for (std::size_t size = 0; size < whole.size(); ++size) {
        write_file(folder / "t.npz", whole.substr(0, size));
        message_of([&] { read_npz(folder / "t.npz"); });
    }
}

TEST(TensorIo, ReadsDatasetsOfTheRootAndOfGroups) {
    const TempFolder folder("assay_h5");
    const std::int32_t values[] = {1, 2, 3};
    const Tensor t = make_tensor<std::int32_t>(DType::i32, {3}, values);
    write_atomically(folder / "t.h5", [&](const std::filesystem::path& path) {
        Hdf5File file = Hdf5File::create(path);
        file.write_tensor("outputs", "Identity:0/x", t);
        file.close();
    });
    const auto read = read_tensors(folder / "t.h5");
    ASSERT_EQ(read.size(), 1u);
    EXPECT_EQ(read[0].name, "Identity:0/x");
    EXPECT_EQ(read[0].tensor, t);
}

TEST(TensorIo, NamesAnUnknownFormatAndAMissingFile) {
    EXPECT_NE(message_of([] { read_tensors("x.csv"); }).find("'.csv' is not known"), std::string::npos);
    EXPECT_NE(message_of([] { read_tensors("/nowhere/x.npy"); }).find("/nowhere/x.npy"), std::string::npos);
}

}  // namespace
}  // namespace assay
