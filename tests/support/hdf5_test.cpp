#include "support/hdf5.hpp"

#include <array>
#include <cstdio>
#include <memory>

#include <random>

#include <gtest/gtest.h>

#include "support/error.hpp"
#include "support/files.hpp"
#include "temp_folder.hpp"

namespace assay {
namespace {

using testing::TempFolder;

constexpr std::array kAllTypes{DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,  DType::u8,     DType::i16,
                               DType::u16, DType::i32, DType::u32, DType::i64,  DType::u64, DType::boolean};

/// Bytes that no two elements share, so that a swapped or lost element shows.
Tensor pattern(DType type, Shape shape, unsigned seed = 1) {
    Tensor t(type, std::move(shape));
    for (std::size_t i = 0; i < t.bytes.size(); ++i) t.bytes[i] = static_cast<std::byte>((i * 37 + i / 251 + seed) & (type == DType::boolean ? 1 : 255));
    return t;
}

/// Standard output and error of a command, and whether it exited with 0.
std::pair<std::string, bool> output_of(const std::string& command) {
    std::string out;
    FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
    if (!pipe) return {"popen failed", false};
    std::array<char, 4096> buffer;
    for (std::size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) out.append(buffer.data(), n);
    return {out, ::pclose(pipe) == 0};
}

void write_all_types(const std::filesystem::path& path) {
    Hdf5File file = Hdf5File::create(path);
    for (const DType type : kAllTypes) {
        file.write_tensor("tensors", std::string(name_of(type)), pattern(type, {3, 5}));
        file.write_tensor("tensors", std::string(name_of(type)) + " scalar", pattern(type, {}));
        file.write_tensor("tensors", std::string(name_of(type)) + " empty", pattern(type, {4, 0, 2}));
    }
    file.write_attribute("schema", "assay.test.1");
    file.close();
}

TEST(Hdf5, LargeTensorsComeBackWhetherTheyShrinkOrNot) {
    const TempFolder folder("assay_hdf5");
    const auto stored = [&](const std::string& name, const Tensor& tensor) {
        Hdf5File file = Hdf5File::create(folder / name);
        file.write_tensor("tensors", "t", tensor);
        file.close();
        EXPECT_EQ(Hdf5File::open(folder / name).read_tensor("tensors", "t"), tensor) << name;
        return static_cast<double>(std::filesystem::file_size(folder / name)) / static_cast<double>(tensor.bytes.size());
    };
    for (const DType type : {DType::u8, DType::bf16, DType::f32, DType::f64}) {
        const auto count = static_cast<std::int64_t>((std::size_t{5} << 20) / size_of(type));
        Tensor noise(type, {count});
        std::mt19937 random(1);
        for (std::byte& byte : noise.bytes) byte = static_cast<std::byte>(random());
        const double as_is = stored(std::string(name_of(type)) + "_noise.h5", noise);
        EXPECT_GT(as_is, 1.0);
        EXPECT_LT(as_is, 1.02);
        EXPECT_LT(stored(std::string(name_of(type)) + "_regular.h5", pattern(type, {count})), 0.5);
    }
}

TEST(Hdf5, EveryTypeScalarAndZeroSizeComeBackAsTheyWere) {
    const TempFolder folder("assay_hdf5");
    write_all_types(folder / "a.h5");
    const Hdf5File file = Hdf5File::open(folder / "a.h5");
    ASSERT_EQ(file.tensor_names("tensors").size(), 3 * kAllTypes.size());
    for (const DType type : kAllTypes) {
        const std::string name(name_of(type));
        EXPECT_EQ(file.read_tensor("tensors", name), pattern(type, {3, 5})) << name;
        EXPECT_EQ(file.read_tensor("tensors", name + " scalar"), pattern(type, {})) << name;
        EXPECT_EQ(file.read_tensor("tensors", name + " empty"), pattern(type, {4, 0, 2})) << name;
    }
    EXPECT_EQ(file.read_attribute("schema"), "assay.test.1");
}

TEST(Hdf5, ATensorOfManyChunksComesBackAsItWas) {
    const TempFolder folder("assay_hdf5");
    const Tensor large = pattern(DType::f32, {5, 300, 301});  // no dimension is a multiple of the chunk's
    const Tensor wide = pattern(DType::u8, {3, 200'001});
    {
        Hdf5File file = Hdf5File::create(folder / "a.h5");
        file.write_tensor("/", "large", large);
        file.write_tensor("/", "wide", wide);
        file.close();
    }
    const Hdf5File file = Hdf5File::open(folder / "a.h5");
    EXPECT_EQ(file.read_tensor("/", "large"), large);
    EXPECT_EQ(file.read_tensor("/", "wide"), wide);
}

TEST(Hdf5, AnyNameIsKept) {
    const TempFolder folder("assay_hdf5");
    const std::vector<std::string> names{"conv1:0", "a/b/c",  "/abs", ".",   "..",  "a.b", "...",        "50%",  "%2F", "%00",
                                         "%",       "größe",  "層/1",  "",    " ",   "x ",  "tab\tnl\n",  "\"'\\", std::string("a\0b", 3), std::string("\0", 1)};
    {
        Hdf5File file = Hdf5File::create(folder / "a.h5");
        for (unsigned i = 0; i < names.size(); ++i) file.write_tensor("g", names[i], pattern(DType::u8, {4}, i));
        file.close();
    }
    const Hdf5File file = Hdf5File::open(folder / "a.h5");
    EXPECT_EQ(file.tensor_names("g"), names) << "in creation order";
    for (unsigned i = 0; i < names.size(); ++i) {
        EXPECT_TRUE(file.has_tensor("g", names[i])) << i;
        EXPECT_EQ(file.read_tensor("g", names[i]), pattern(DType::u8, {4}, i)) << "name " << i << " '" << names[i] << "'";
    }
    EXPECT_FALSE(file.has_tensor("g", "absent"));
    EXPECT_FALSE(file.has_tensor("absent", "a"));
    EXPECT_EQ(file.tensor_names("absent"), std::vector<std::string>{});
    EXPECT_EQ(file.groups(), (std::vector<std::string>{"/", "g"}));
}

TEST(Hdf5, AttributesAreKeptShortLongAndEmpty) {
    const TempFolder folder("assay_hdf5");
    const std::string longest(200'000, 'x');  // past the 64 KiB that an object header holds
    {
        Hdf5File file = Hdf5File::create(folder / "a.h5");
        file.write_attribute("empty", "");
        file.write_attribute("text", "größe");
        file.write_attribute("text", "again");
        file.write_attribute("long", longest);
        file.close();
    }
    const Hdf5File file = Hdf5File::open(folder / "a.h5");
    EXPECT_EQ(file.read_attribute("empty"), "");
    EXPECT_EQ(file.read_attribute("text"), "again");
    EXPECT_EQ(file.read_attribute("long"), longest);
    EXPECT_FALSE(file.has_attribute("absent"));
    EXPECT_THROW(file.read_attribute("absent"), Error);
}

TEST(Hdf5, TheSameContentGivesTheSameBytes) {
    const TempFolder folder("assay_hdf5");
    write_all_types(folder / "a.h5");
    write_all_types(folder / "b.h5");
    EXPECT_EQ(read_file(folder / "a.h5"), read_file(folder / "b.h5"));
}

TEST(Hdf5, MissingThingsAreNamed) {
    const TempFolder folder("assay_hdf5");
    write_all_types(folder / "a.h5");
    const auto message = [](const std::function<void()>& body) {
        try {
            body();
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    const Hdf5File file = Hdf5File::open(folder / "a.h5");
    EXPECT_NE(message([&] { file.read_tensor("tensors", "nope"); }).find("tensor 'nope' is missing"), std::string::npos);
    EXPECT_NE(message([&] { file.read_tensor("nope", "a"); }).find("tensor 'a' is missing"), std::string::npos);
    EXPECT_NE(message([&] { Hdf5File::open(folder / "absent.h5"); }).find("absent.h5: no such file"), std::string::npos);
    write_file(folder / "text.h5", "this is not HDF5");
    EXPECT_NE(message([&] { Hdf5File::open(folder / "text.h5"); }).find("text.h5: is not a readable HDF5 file"), std::string::npos);
    EXPECT_NE(message([&] { Hdf5File::open(folder.path()); }).find(folder.path().string()), std::string::npos);
}

TEST(Hdf5, H5dumpReadsEveryFile) {
    if (!output_of("h5dump --version").second) GTEST_SKIP() << "h5dump (hdf5-tools) is not installed";
    const TempFolder folder("assay_hdf5");
    write_all_types(folder / "a.h5");
    const auto [text, ok] = output_of("h5dump " + (folder / "a.h5").string());
    EXPECT_TRUE(ok) << text;
    EXPECT_NE(text.find("DATASET \"float32 scalar\""), std::string::npos);
    EXPECT_NE(text.find("(2,0): 1, 0, 1, 0, 1\n"), std::string::npos) << "the last row of the bool tensor\n" << text;
    EXPECT_NE(text.find("\"bfloat16\""), std::string::npos) << "the tag of a bfloat16 tensor";
}

TEST(Hdf5, H5pyReadsEveryFileAndWeReadItsOwn) {
    const char* given = std::getenv("ASSAY_PYTHON_WITH_H5PY");
    const std::string python = given ? given : "python3";
    if (!output_of(python + " -c 'import h5py'").second)
        GTEST_SKIP() << python << " has no h5py; name one that has it in ASSAY_PYTHON_WITH_H5PY";
    const TempFolder folder("assay_hdf5");
    {
        Hdf5File file = Hdf5File::create(folder / "a.h5");
        file.write_tensor("t", "f", make_tensor<float>(DType::f32, {2, 2}, std::array<float, 4>{1, -2, 3.5f, 0}));
        file.write_tensor("t", "scalar", make_tensor<std::int64_t>(DType::i64, {}, std::array<std::int64_t, 1>{-7}));
        file.write_tensor("t", "empty", Tensor(DType::i8, {0, 3}));
        file.write_tensor("t", "a/b", make_tensor<std::uint8_t>(DType::u8, {2}, std::array<std::uint8_t, 2>{1, 255}));
        file.close();
    }
    write_file(folder / "check.py", R"(
import sys, h5py, numpy as np
f = h5py.File(sys.argv[1] + '/a.h5')['t']
assert list(f) == ['f', 'scalar', 'empty', 'a%2Fb'] or set(f) == {'f', 'scalar', 'empty', 'a%2Fb'}, list(f)
assert (f['f'][()] == np.array([[1, -2], [3.5, 0]], np.float32)).all() and f['f'].dtype == np.float32
assert f['scalar'][()] == -7 and f['empty'].shape == (0, 3) and list(f['a%2Fb']) == [1, 255]
name = f['a%2Fb'].attrs['name']
assert (name.decode() if isinstance(name, bytes) else name) == 'a/b', name
with h5py.File(sys.argv[1] + '/b.h5', 'w') as g:
    g['half'] = np.array([1.5, -2], np.float16)
    g['half_be'] = np.array([1.5, -2], '>f2')
    g['i32_be'] = np.array([1, -2], '>i4')
    g['f32_be'] = np.array([1.5, -2], '>f4')
    g['flag'] = np.array([True, False])
    g['sub/x.y'] = np.arange(6, dtype=np.uint16).reshape(2, 3)
    g['text'] = 'not a tensor'
    g['nothing'] = h5py.Empty('f4')
    g.create_dataset('vast', (1 << 20, 1 << 15), dtype='i1', chunks=(1 << 10, 1 << 10))
    g['colour'] = np.array([0, 2], h5py.enum_dtype({'red': 0, 'green': 1, 'blue': 2}, basetype='i1'))
)");
    const auto [text, ok] = output_of(python + " " + (folder / "check.py").string() + " " + folder.path().string());
    ASSERT_TRUE(ok) << text;
    const Hdf5File theirs = Hdf5File::open(folder / "b.h5");
    for (const char* name : {"half", "half_be", "f32_be"}) {
        const Tensor t = theirs.read_tensor("/", name);
        EXPECT_EQ(t.value(0), 1.5) << name;
        EXPECT_EQ(t.value(1), -2.0) << name;
    }
    EXPECT_EQ(theirs.read_tensor("/", "half_be").dtype, DType::f16);
    EXPECT_EQ(theirs.read_tensor("/", "i32_be").integer(1), -2);
    EXPECT_EQ(theirs.read_tensor("/", "flag").dtype, DType::boolean);
    EXPECT_EQ(theirs.read_tensor("/", "flag").integer(0), 1);
    EXPECT_EQ(theirs.read_tensor("sub", "x.y").integer(5), 5);
    for (const char* name : {"text", "nothing", "vast", "colour"}) try {
            theirs.read_tensor("/", name);
            ADD_FAILURE() << name << " was read as a tensor";
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::bad_input) << error.what();
            EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
        }
}

}  // namespace
}  // namespace assay
