#pragma once
// Small ONNX models made in memory, and seeded data for them.
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <onnx/onnx_pb.h>

#include "support/tensor.hpp"

namespace assay::testing {

inline int onnx_type(DType type) {
    switch (type) {
        case DType::i8:
            return onnx::TensorProto::INT8;
        case DType::u8:
            return onnx::TensorProto::UINT8;
        case DType::i32:
            return onnx::TensorProto::INT32;
        case DType::i64:
            return onnx::TensorProto::INT64;
        default:
            return onnx::TensorProto::FLOAT;
    }
}

template <class T>
Tensor tensor(DType type, Shape shape, const std::vector<T>& values) {
    return make_tensor<T>(type, std::move(shape), values);
}
inline Tensor floats(Shape shape, const std::vector<float>& values) { return tensor<float>(DType::f32, std::move(shape), values); }

inline Tensor random_floats(Shape shape, unsigned seed, float low = -1, float high = 1) {
    std::mt19937 engine(seed);
    std::uniform_real_distribution<float> pick(low, high);
    Tensor t(DType::f32, std::move(shape));
    for (float& v : t.as<float>()) v = pick(engine);
    return t;
}

inline Tensor random_int8(Shape shape, unsigned seed) {
    std::mt19937 engine(seed);
    std::uniform_int_distribution<int> pick(-128, 127);
    Tensor t(DType::i8, std::move(shape));
    for (std::int8_t& v : t.as<std::int8_t>()) v = static_cast<std::int8_t>(pick(engine));
    return t;
}

/// Builds a model node by node.
class ModelBuilder {
public:
    explicit ModelBuilder(int opset = 13) {
        model_->set_ir_version(8);
        model_->add_opset_import()->set_version(opset);
        model_->mutable_graph()->set_name("test");
    }
    ModelBuilder& input(const std::string& name, DType type, const Shape& shape) {
        return info(model_->mutable_graph()->add_input(), name, type, shape);
    }
    ModelBuilder& output(const std::string& name, DType type = DType::f32, const Shape& shape = {}) {
        return info(model_->mutable_graph()->add_output(), name, type, shape);
    }
    ModelBuilder& constant(const std::string& name, const Tensor& t) {
        auto* proto = model_->mutable_graph()->add_initializer();
        proto->set_name(name);
        proto->set_data_type(onnx_type(t.dtype));
        for (const std::int64_t dim : t.shape) proto->add_dims(dim);
        proto->set_raw_data(t.bytes.data(), t.bytes.size());
        return *this;
    }
    ModelBuilder& node(const std::string& op, const std::vector<std::string>& inputs, const std::string& out) {
        node_ = model_->mutable_graph()->add_node();
        node_->set_op_type(op);
        node_->set_name(out);
        for (const auto& name : inputs) node_->add_input(name);
        node_->add_output(out);
        return *this;
    }
    ModelBuilder& ints(const std::string& name, const std::vector<std::int64_t>& values) {
        auto* a = attribute(name, onnx::AttributeProto::INTS);
        for (const std::int64_t v : values) a->add_ints(v);
        return *this;
    }
    ModelBuilder& integer(const std::string& name, std::int64_t value) {
        attribute(name, onnx::AttributeProto::INT)->set_i(value);
        return *this;
    }
    ModelBuilder& text(const std::string& name, const std::string& value) {
        attribute(name, onnx::AttributeProto::STRING)->set_s(value);
        return *this;
    }
    ModelBuilder& real(const std::string& name, float value) {
        attribute(name, onnx::AttributeProto::FLOAT)->set_f(value);
        return *this;
    }
    std::shared_ptr<onnx::ModelProto> build() const { return model_; }

private:
    ModelBuilder& info(onnx::ValueInfoProto* out, const std::string& name, DType type, const Shape& shape) {
        out->set_name(name);
        auto* t = out->mutable_type()->mutable_tensor_type();
        t->set_elem_type(onnx_type(type));
        for (const std::int64_t dim : shape) t->mutable_shape()->add_dim()->set_dim_value(dim);
        return *this;
    }
    onnx::AttributeProto* attribute(const std::string& name, onnx::AttributeProto::AttributeType type) {
        auto* a = node_->add_attribute();
        a->set_name(name);
        a->set_type(type);
        return a;
    }
    std::shared_ptr<onnx::ModelProto> model_ = std::make_shared<onnx::ModelProto>();
    onnx::NodeProto* node_ = nullptr;
};

}  // namespace assay::testing
