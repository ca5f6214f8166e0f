#include "support/hdf5.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include <fmt/format.h>
#include <hdf5.h>
#include <zlib.h>

#include "support/error.hpp"
#include "support/hdf5_image.hpp"

namespace assay {
namespace {

constexpr hsize_t kChunkElements = 1 << 16;

/// Collects HDF5's own error stack, innermost message last, in one line.
std::string error_stack() {
    std::string text;
    H5Ewalk2(
        H5E_DEFAULT, H5E_WALK_UPWARD,
        [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
            auto& line = *static_cast<std::string*>(out);
            if (error->desc && *error->desc) line += (line.empty() ? "" : "; ") + std::string(error->desc);
            return 0;
        },
        &text);
    H5Eclear2(H5E_DEFAULT);
    return text.empty() ? "no detail" : text;
}

/// An HDF5 identifier that is closed by its own kind's function.
class Handle {
public:
    Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
    Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
    Handle(const Handle&) = delete;
    ~Handle() {
        if (id_ >= 0) close_(id_);
    }
    operator hid_t() const { return id_; }

private:
    hid_t id_;
    herr_t (*close_)(hid_t);
};

/// Every status of HDF5 passes here: negative becomes an Error of the given kind.
template <class Status>
Status check(Status status, ErrorKind kind, const std::filesystem::path& path, const std::string& what) {
    if (status < 0) throw Error(kind, fmt::format("{}: {}: {}", path.string(), what, error_stack()));
    return status;
}

void be_quiet() { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

hid_t file_type(DType type) {
    switch (type) {
        case DType::f32: return H5T_IEEE_F32LE;
        case DType::f64: return H5T_IEEE_F64LE;
        case DType::f16: case DType::bf16: case DType::u16: return H5T_STD_U16LE;
        case DType::i8: return H5T_STD_I8LE;
        case DType::u8: case DType::boolean: return H5T_STD_U8LE;
        case DType::i16: return H5T_STD_I16LE;
        case DType::i32: return H5T_STD_I32LE;
        case DType::u32: return H5T_STD_U32LE;
        case DType::i64: return H5T_STD_I64LE;
        case DType::u64: return H5T_STD_U64LE;
    }
    return H5I_INVALID_HID;
}

/// Types that HDF5 stores as another one, told apart by attribute assay_dtype.
bool needs_tag(DType type) { return type == DType::f16 || type == DType::bf16 || type == DType::boolean; }

DType dtype_of(hid_t type, const std::filesystem::path& path, const std::string& name) {
    const std::size_t size = H5Tget_size(type);
    const H5T_class_t kind = H5Tget_class(type);
    if (kind == H5T_FLOAT && size == 2) {
        std::size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
        H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits);
        if (exponent_bits == 5 && mantissa_bits == 10) return DType::f16;
        if (exponent_bits == 8 && mantissa_bits == 7) return DType::bf16;
    }
    if (kind == H5T_FLOAT && size == 4) return DType::f32;
    if (kind == H5T_FLOAT && size == 8) return DType::f64;
    if (kind == H5T_ENUM && size == 1 && H5Tget_nmembers(type) == 2) return DType::boolean;  // h5py's bool: FALSE, TRUE
    if (kind == H5T_INTEGER) {
        const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
        if (size == 1) return is_signed ? DType::i8 : DType::u8;
        if (size == 2) return is_signed ? DType::i16 : DType::u16;
        if (size == 4) return is_signed ? DType::i32 : DType::u32;
        if (size == 8) return is_signed ? DType::i64 : DType::u64;
    }
    throw Error(ErrorKind::bad_input, fmt::format("{}: dataset '{}' has an element type that is not a number; remove it or convert it",
                                                  path.string(), name));
}

std::string escape(const std::string& name) {
    std::string out;
    for (const char c : name)
        if (c == '%') out += "%25";
        else if (c == '/') out += "%2F";
        else if (c == '.') out += "%2E";
        else if (c == '\0') out += "%00";
        else out += c;
    return out.empty() ? "%" : out;
}

std::string unescape(const std::string& link) {
    if (link == "%") return "";
    std::string out;
    for (std::size_t i = 0; i < link.size(); ++i) {
        if (link.compare(i, 3, "%25") == 0) out += '%', i += 2;
        else if (link.compare(i, 3, "%2F") == 0) out += '/', i += 2;
        else if (link.compare(i, 3, "%2E") == 0) out += '.', i += 2;
        else if (link.compare(i, 3, "%00") == 0) out += '\0', i += 2;
        else out += link[i];
    }
    return out;
}

Handle string_type(std::size_t size) {
    Handle type(H5Tcopy(H5T_C_S1), &H5Tclose);
    H5Tset_size(type, std::max<std::size_t>(size, 1));
    H5Tset_cset(type, H5T_CSET_UTF8);
    H5Tset_strpad(type, H5T_STR_NULLPAD);  // all `size` bytes are text: a terminator would cost the last one
    return type;
}

void put_attribute(hid_t object, const std::filesystem::path& path, const std::string& name, const std::string& value) {
    const Handle type = string_type(value.size());
    const Handle space(H5Screate(H5S_SCALAR), &H5Sclose);
    if (H5Aexists(object, name.c_str()) > 0) H5Adelete(object, name.c_str());
    const Handle attribute(check(H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT), ErrorKind::io, path,
                                 fmt::format("attribute '{}' cannot be created", name)),
                           &H5Aclose);
    check(H5Awrite(attribute, type, value.empty() ? "\0" : value.data()), ErrorKind::io, path,
          fmt::format("attribute '{}' cannot be written", name));
}

std::string get_attribute(hid_t object, const std::filesystem::path& path, const std::string& name) {
    const Handle attribute(check(H5Aopen(object, name.c_str(), H5P_DEFAULT), ErrorKind::bad_input, path,
                                 fmt::format("attribute '{}' is missing", name)),
                           &H5Aclose);
    const Handle type(H5Aget_type(attribute), &H5Tclose);
    if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) > 0)
        throw Error(ErrorKind::bad_input, fmt::format("{}: attribute '{}' is not a fixed-length string", path.string(), name));
    std::string value(H5Tget_size(type), '\0');
    const Handle memory = string_type(value.size());
    check(H5Aread(attribute, memory, value.data()), ErrorKind::damaged, path, fmt::format("attribute '{}' cannot be read", name));
    while (!value.empty() && value.back() == '\0') value.pop_back();
    return value;
}

/// A few damaged or hostile bytes may claim a shape of terabytes: it must be one that the stored bytes can fill, before memory is asked for.
void check_stored(hid_t dataset, hid_t space, std::uint64_t elements, std::size_t element_bytes, const std::filesystem::path& path,
                  const std::string& name) {
    if (H5Sget_simple_extent_type(space) == H5S_NULL)
        throw Error(ErrorKind::bad_input, fmt::format("{}: dataset '{}' has an empty dataspace; remove it or give it a shape", path.string(), name));
    constexpr std::uint64_t deflate_max_ratio = 1032;               // zlib's documented limit
    constexpr std::uint64_t always_allowed = std::uint64_t{1} << 26;  // other filters pack more; what they pack this small is no danger
    const std::uint64_t stored = H5Dget_storage_size(dataset);
    if (elements > always_allowed / element_bytes && elements / deflate_max_ratio > stored / element_bytes)
        throw Error(ErrorKind::bad_input, fmt::format("{}: dataset '{}' claims {} elements of {} bytes, but {} bytes are stored; damaged or never written",
                                                      path.string(), name, elements, element_bytes, stored));
}

/// False for a large tensor of which samples shrink by less than a quarter, as weights do: deflating them takes many times what everything else
/// about the file does, and saves little.
bool worth_deflating(const Tensor& tensor) {
    constexpr std::size_t large = std::size_t{4} << 20, sample = std::size_t{64} << 10, samples = 4;
    if (tensor.bytes.size() < large) return true;
    const std::size_t width = size_of(tensor.dtype);
    std::size_t packed = 0;
    std::vector<Bytef> shuffled(sample), out(compressBound(sample));
    for (std::size_t i = 0; i < samples; ++i) {
        const std::byte* from = tensor.bytes.data() + (tensor.bytes.size() - sample) / (samples - 1) * i / width * width;
        for (std::size_t b = 0; b < sample; ++b) shuffled[b % width * (sample / width) + b / width] = static_cast<Bytef>(from[b]);
        uLongf size = out.size();
        if (compress2(out.data(), &size, shuffled.data(), sample, 1) != Z_OK) return true;
        packed += size;
    }
    return packed < sample * samples / 4 * 3;
}

}  // namespace

Hdf5File::Hdf5File(std::filesystem::path path, std::int64_t id, std::unique_ptr<Hdf5Image> image)
    : path_(std::move(path)), image_(std::move(image)), id_(id) {}
Hdf5File::Hdf5File(Hdf5File&& other) noexcept
    : path_(std::move(other.path_)), image_(std::move(other.image_)), id_(std::exchange(other.id_, -1)) {}
Hdf5File& Hdf5File::operator=(Hdf5File&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(image_, other.image_);
    std::swap(id_, other.id_);
    return *this;
}

Hdf5File::~Hdf5File() {
    if (id_ >= 0) H5Fclose(id_);
}

void Hdf5File::close() {
    check(H5Fclose(std::exchange(id_, -1)), ErrorKind::io, path_, "cannot be closed");
    if (!image_) return;
    const std::span<const std::byte> bytes = image_->bytes();
    std::ofstream file(path_, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) throw Error(ErrorKind::io, fmt::format("{}: {} bytes cannot be written ({})", path_.string(), bytes.size(), std::strerror(errno)));
    image_.reset();
}

Hdf5File Hdf5File::create(const std::filesystem::path& path) {
    be_quiet();
    const Handle access(H5Pcreate(H5P_FILE_ACCESS), &H5Pclose);
    H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    const Handle creation(H5Pcreate(H5P_FILE_CREATE), &H5Pclose);
    H5Pset_obj_track_times(creation, false);
    H5Pset_link_creation_order(creation, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    auto image = std::make_unique<Hdf5Image>();
    image->attach(access);
    const hid_t id = check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access), ErrorKind::io, path, "cannot be created");
    return Hdf5File(path, id, std::move(image));
}

Hdf5File Hdf5File::open(const std::filesystem::path& path) {
    be_quiet();
    if (!std::filesystem::exists(path))
        throw Error(ErrorKind::bad_input, fmt::format("{}: no such file; check the path", path.string()));
    return Hdf5File(path, check(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), ErrorKind::bad_input, path,
                                "is not a readable HDF5 file (truncated or damaged?)"),
                    nullptr);
}

void Hdf5File::write_tensor(const std::string& group, const std::string& name, const Tensor& tensor) {
    const Handle group_properties(H5Pcreate(H5P_GROUP_CREATE), &H5Pclose);
    H5Pset_obj_track_times(group_properties, false);
    H5Pset_link_creation_order(group_properties, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    const bool exists = H5Lexists(id_, group.c_str(), H5P_DEFAULT) > 0;
    const Handle parent(check(exists ? H5Gopen2(id_, group.c_str(), H5P_DEFAULT)
                                     : H5Gcreate2(id_, group.c_str(), H5P_DEFAULT, group_properties, H5P_DEFAULT),
                              ErrorKind::io, path_, fmt::format("group '{}' cannot be made", group)),
                        &H5Gclose);
    std::vector<hsize_t> dims(tensor.shape.begin(), tensor.shape.end());
    const Handle space(dims.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr),
                       &H5Sclose);
    const Handle properties(H5Pcreate(H5P_DATASET_CREATE), &H5Pclose);
    H5Pset_obj_track_times(properties, false);
    H5Pset_attr_phase_change(properties, 8, 6);
    if (!dims.empty() && tensor.count() > 0) {
        // Whole trailing dimensions as far as they fit, so that a chunk is contiguous in the tensor.
        std::vector<hsize_t> chunk(dims.size(), 1);
        hsize_t elements = 1;
        for (std::size_t i = dims.size(); i-- > 0;) {
            chunk[i] = std::min<hsize_t>(dims[i], std::max<hsize_t>(1, kChunkElements / elements));
            elements *= chunk[i];
        }
        H5Pset_chunk(properties, static_cast<int>(chunk.size()), chunk.data());
        if (worth_deflating(tensor)) {
            if (size_of(tensor.dtype) > 1) H5Pset_shuffle(properties);
            H5Pset_deflate(properties, 1);
        }
        H5Pset_fletcher32(properties);
    }
    const std::string link = escape(name);
    const Handle link_properties(H5Pcreate(H5P_LINK_CREATE), &H5Pclose);
    H5Pset_char_encoding(link_properties, H5T_CSET_UTF8);
    const Handle dataset(check(H5Dcreate2(parent, link.c_str(), file_type(tensor.dtype), space, link_properties, properties, H5P_DEFAULT),
                               ErrorKind::io, path_, fmt::format("tensor '{}' cannot be created", name)),
                         &H5Dclose);
    if (tensor.count() > 0)
        check(H5Dwrite(dataset, file_type(tensor.dtype), H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.bytes.data()), ErrorKind::io, path_,
              fmt::format("tensor '{}' cannot be written", name));
    if (needs_tag(tensor.dtype)) put_attribute(dataset, path_, "assay_dtype", std::string(name_of(tensor.dtype)));
    if (link != name) put_attribute(dataset, path_, "name", name);
}

Tensor Hdf5File::read_tensor(const std::string& group, const std::string& name) const {
    // Files made by others use their names as they are.
    const std::string escaped = group + "/" + escape(name);
    const std::string link = H5Lexists(id_, escaped.c_str(), H5P_DEFAULT) > 0 ? escaped : group + "/" + name;
    const Handle dataset(check(H5Dopen2(id_, link.c_str(), H5P_DEFAULT), ErrorKind::damaged, path_,
                               fmt::format("tensor '{}' is missing or unreadable", name)),
                         &H5Dclose);
    const Handle space(check(H5Dget_space(dataset), ErrorKind::damaged, path_, fmt::format("tensor '{}' has no shape", name)), &H5Sclose);
    const Handle type(check(H5Dget_type(dataset), ErrorKind::damaged, path_, fmt::format("tensor '{}' has no type", name)), &H5Tclose);
    const int rank = check(H5Sget_simple_extent_ndims(space), ErrorKind::damaged, path_, fmt::format("tensor '{}' has no rank", name));
    std::vector<hsize_t> dims(static_cast<std::size_t>(rank));
    if (rank > 0) check(H5Sget_simple_extent_dims(space, dims.data(), nullptr), ErrorKind::damaged, path_, "shape cannot be read");
    DType dtype = dtype_of(type, path_, name);
    if (H5Aexists(dataset, "assay_dtype") > 0) {
        const std::string tag = get_attribute(dataset, path_, "assay_dtype");
        for (const DType tagged : {DType::f16, DType::bf16, DType::boolean})
            if (tag == name_of(tagged) && size_of(tagged) == size_of(dtype)) dtype = tagged;
    }
    const Shape shape(dims.begin(), dims.end());
    check_stored(dataset, space, static_cast<std::uint64_t>(element_count(shape)), size_of(dtype), path_, name);
    Tensor tensor(dtype, shape);
    if (tensor.count() > 0) {
        // h5py's bool (an enum) and half have no predefined type: their own one, in our byte order.
        const Handle own(H5Tcopy(type), &H5Tclose);
        const bool predefined = H5Tget_class(type) == H5T_INTEGER || H5Tget_size(type) > 2;
        if (H5Tget_class(type) == H5T_FLOAT) H5Tset_order(own, H5T_ORDER_LE);
        check(H5Dread(dataset, predefined ? file_type(dtype) : static_cast<hid_t>(own), H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.bytes.data()), ErrorKind::damaged, path_,
              fmt::format("tensor '{}' is damaged", name));
    }
    return tensor;
}

namespace {

/// Links of a group in creation order; by name in files made by others, which may not track it.
std::vector<std::string> links(hid_t parent, const std::filesystem::path& path, const std::string& group) {
    std::vector<std::string> names;
    const auto collect = [](hid_t, const char* link, const H5L_info_t*, void* out) -> herr_t {
        static_cast<std::vector<std::string>*>(out)->push_back(link);
        return 0;
    };
    if (H5Literate(parent, H5_INDEX_CRT_ORDER, H5_ITER_INC, nullptr, collect, &names) < 0) {
        H5Eclear2(H5E_DEFAULT);
        names.clear();
        check(H5Literate(parent, H5_INDEX_NAME, H5_ITER_INC, nullptr, collect, &names), ErrorKind::damaged, path,
              fmt::format("group '{}' cannot be listed", group));
    }
    return names;
}

bool is_object(hid_t parent, const std::filesystem::path& path, const std::string& link, H5O_type_t kind) {
    H5O_info_t info;
    check(H5Oget_info_by_name2(parent, link.c_str(), &info, H5O_INFO_BASIC, H5P_DEFAULT), ErrorKind::damaged, path,
          fmt::format("object '{}' is unreadable", link));
    return info.type == kind;
}

}  // namespace

std::vector<std::string> Hdf5File::tensor_names(const std::string& group) const {
    if (group != "/" && H5Lexists(id_, group.c_str(), H5P_DEFAULT) <= 0) return {};
    const Handle parent(check(H5Gopen2(id_, group.c_str(), H5P_DEFAULT), ErrorKind::damaged, path_,
                              fmt::format("group '{}' is unreadable", group)),
                        &H5Gclose);
    std::vector<std::string> datasets;
    for (const std::string& link : links(parent, path_, group))
        if (is_object(parent, path_, link, H5O_TYPE_DATASET)) datasets.push_back(unescape(link));
    return datasets;
}

std::vector<std::string> Hdf5File::groups() const {
    std::vector<std::string> names{"/"};
    for (const std::string& link : links(id_, path_, "/"))
        if (is_object(id_, path_, link, H5O_TYPE_GROUP)) names.push_back(link);
    return names;
}

bool Hdf5File::has_tensor(const std::string& group, const std::string& name) const {
    return H5Lexists(id_, group.c_str(), H5P_DEFAULT) > 0 && H5Lexists(id_, (group + "/" + escape(name)).c_str(), H5P_DEFAULT) > 0;
}

void Hdf5File::write_attribute(const std::string& name, const std::string& value) { put_attribute(id_, path_, name, value); }
std::string Hdf5File::read_attribute(const std::string& name) const { return get_attribute(id_, path_, name); }
bool Hdf5File::has_attribute(const std::string& name) const { return H5Aexists(id_, name.c_str()) > 0; }

}  // namespace assay
