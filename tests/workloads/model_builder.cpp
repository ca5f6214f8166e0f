#include "model_builder.hpp"

#include <cmath>
#include <sstream>

namespace assay::workloads::testing {
namespace {

int onnx_type(DType type) {
    switch (type) {
        case DType::f32:
            return onnx::TensorProto::FLOAT;
        case DType::i8:
            return onnx::TensorProto::INT8;
        case DType::u8:
            return onnx::TensorProto::UINT8;
        case DType::i32:
            return onnx::TensorProto::INT32;
        case DType::i64:
            return onnx::TensorProto::INT64;
        case DType::f64:
            return onnx::TensorProto::DOUBLE;
        case DType::boolean:
            return onnx::TensorProto::BOOL;
        default:
            return onnx::TensorProto::UNDEFINED;
    }
}

}  // namespace

ModelBuilder::ModelBuilder(int opset) {
    model.set_ir_version(8);
    auto* set = model.add_opset_import();
    set->set_domain("");
    set->set_version(opset);
    model.mutable_graph()->set_name("test");
}

ModelBuilder& ModelBuilder::input(const std::string& name, const Shape& shape, DType type) {
    auto* info = model.mutable_graph()->add_input();
    info->set_name(name);
    auto* tensor = info->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(onnx_type(type));
    auto* dims = tensor->mutable_shape();
    for (const std::int64_t d : shape) {
        if (d > 0)
            dims->add_dim()->set_dim_value(d);
        else
            dims->add_dim()->set_dim_param("N");
    }
    return *this;
}

ModelBuilder& ModelBuilder::constant(const std::string& name, const Tensor& tensor) {
    auto* init = model.mutable_graph()->add_initializer();
    init->set_name(name);
    init->set_data_type(onnx_type(tensor.dtype));
    for (const std::int64_t d : tensor.shape) init->add_dims(d);
    init->set_raw_data(tensor.bytes.data(), tensor.bytes.size());
    return *this;
}

ModelBuilder& ModelBuilder::scalar(const std::string& name, float value) {
    return constant(name, make_tensor<float>(DType::f32, {}, std::vector<float>{value}));
}

ModelBuilder& ModelBuilder::zero_point(const std::string& name, int value, DType type) {
    Tensor t(type, {});
    t.bytes[0] = static_cast<std::byte>(value);
    return constant(name, t);
}

onnx::NodeProto& ModelBuilder::node(const std::string& op, const std::vector<std::string>& inputs,
                                    const std::vector<std::string>& outputs) {
    auto* n = model.mutable_graph()->add_node();
    n->set_op_type(op);
    n->set_name(outputs[0] + "_node");
    for (const auto& i : inputs) n->add_input(i);
    for (const auto& o : outputs) n->add_output(o);
    return *n;
}

ModelBuilder& ModelBuilder::output(const std::string& name) {
    model.mutable_graph()->add_output()->set_name(name);
    return *this;
}

void attribute(onnx::NodeProto& node, const std::string& name, const std::vector<std::int64_t>& values) {
    auto* a = node.add_attribute();
    a->set_name(name);
    a->set_type(onnx::AttributeProto::INTS);
    for (const std::int64_t v : values) a->add_ints(v);
}
void attribute(onnx::NodeProto& node, const std::string& name, std::int64_t value) {
    auto* a = node.add_attribute();
    a->set_name(name);
    a->set_type(onnx::AttributeProto::INT);
    a->set_i(value);
}
void attribute(onnx::NodeProto& node, const std::string& name, float value) {
    auto* a = node.add_attribute();
    a->set_name(name);
    a->set_type(onnx::AttributeProto::FLOAT);
    a->set_f(value);
}
void attribute(onnx::NodeProto& node, const std::string& name, const char* value) {
    auto* a = node.add_attribute();
    a->set_name(name);
    a->set_type(onnx::AttributeProto::STRING);
    a->set_s(value);
}

Tensor random_floats(std::mt19937& engine, const Shape& shape, float low, float high) {
    Tensor t(DType::f32, shape);
    for (float& v : t.as<float>()) v = low + (high - low) * static_cast<float>(engine() >> 8) * 0x1p-24f;
    return t;
}

Tensor random_integers(std::mt19937& engine, const Shape& shape, DType type, int low, int high) {
    Tensor t(type, shape);
    for (std::int64_t i = 0; i < t.count(); ++i) {
        const int v = low + static_cast<int>(engine() % static_cast<unsigned>(high - low + 1));
        if (type == DType::i32)
            t.as<std::int32_t>()[i] = v;
        else
            t.bytes[static_cast<std::size_t>(i)] = static_cast<std::byte>(v);
    }
    return t;
}

std::string ConvCase::text() const {
    std::ostringstream s;
    s << n << "x" << c << "x" << h << "x" << w << " by " << o << "x" << c / groups << "x" << kh << "x" << kw << " groups " << groups
      << " stride " << stride_h << "," << stride_w << " dilation " << dilation_h << "," << dilation_w << " pads " << top << "," << left
      << "," << bottom << "," << right;
    return s.str();
}

ConvSums plain_conv(const ConvCase& k, const std::function<double(std::int64_t)>& value,
                    const std::function<double(std::int64_t)>& weight) {
    ConvSums r;
    const std::int64_t cg = k.c / k.groups, og = k.o / k.groups;
    for (std::int64_t n = 0; n < k.n; ++n)
        for (std::int64_t o = 0; o < k.o; ++o)
            for (std::int64_t y = 0; y < k.out_h(); ++y)
                for (std::int64_t x = 0; x < k.out_w(); ++x) {
                    double sum = 0, magnitude = 0;
                    for (std::int64_t c = 0; c < cg; ++c)
                        for (std::int64_t i = 0; i < k.kh; ++i)
                            for (std::int64_t j = 0; j < k.kw; ++j) {
                                const std::int64_t iy = y * k.stride_h + i * k.dilation_h - k.top,
                                                   ix = x * k.stride_w + j * k.dilation_w - k.left;
                                if (iy < 0 || iy >= k.h || ix < 0 || ix >= k.w) continue;
                                const double p = value(((n * k.c + o / og * cg + c) * k.h + iy) * k.w + ix) *
                                                 weight(((o * cg + c) * k.kh + i) * k.kw + j);
                                sum += p;
                                magnitude += std::abs(p);
                            }
                    r.sum.push_back(sum);
                    r.magnitude.push_back(magnitude);
                }
    return r;
}

void conv_attributes(onnx::NodeProto& node, const ConvCase& c) {
    attribute(node, "group", c.groups);
    attribute(node, "strides", {c.stride_h, c.stride_w});
    attribute(node, "dilations", {c.dilation_h, c.dilation_w});
    attribute(node, "pads", {c.top, c.left, c.bottom, c.right});
}

}  // namespace assay::workloads::testing
