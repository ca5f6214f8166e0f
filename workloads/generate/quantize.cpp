#include "workloads/generate/quantize.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include "support/error.hpp"

namespace assay::workloads::generate {
namespace {

const std::set<std::string> kWeighted{"Conv", "ConvTranspose", "Gemm", "MatMul"};
const std::set<std::string> kBetween{"Add", "Mul", "MaxPool", "AveragePool", "GlobalAveragePool", "Concat", "Resize", "Flatten"};
/// Operators that only select among their input's elements: the output has the input's scale, so that nothing is rounded again.
const std::set<std::string> kSelecting{"MaxPool", "Flatten", "Resize"};

template <class T>
Fill raw_fill(const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span<const T>(values));
    return Fill::raw({bytes.begin(), bytes.end()});
}

bool has_attribute(const onnx::NodeProto& node, const char* name) {
    return std::any_of(node.attribute().begin(), node.attribute().end(), [&](const auto& a) { return a.name() == name; });
}

class Quantizer {
public:
    Quantizer(const GeneratedModel& model, const Ranges& ranges, const QuantizeOptions& options)
        : source_(model), ranges_(ranges), options_(options), old_(model.proto->graph()) {
        for (const auto& info : old_.value_info()) types_[info.name()] = info.type();
        for (const auto& info : old_.output()) {
            types_[info.name()] = info.type();
            outputs_.insert(info.name());
        }
        for (const auto& info : old_.input()) types_[info.name()] = info.type();
        for (const TensorRecipe& recipe : model.weights) recipes_[recipe.name] = &recipe;
        for (const auto& node : old_.node()) {
            for (const std::string& name : node.input()) ++uses_[name];
            for (const std::string& name : node.output()) producer_[name] = &node;
        }
    }

    GeneratedModel run() {
        result_.seed = source_.seed;
        result_.parameters = source_.parameters;
        result_.macs = source_.macs;
        result_.inputs = source_.inputs;
        result_.expected = source_.expected;
        result_.proto = std::make_shared<onnx::ModelProto>(*source_.proto);
        new_ = result_.proto->mutable_graph();
        new_->clear_node();
        new_->clear_value_info();
        decide();
        for (const auto& input : old_.input())
            if (pairs_.count(input.name())) add_pair(input.name(), input.name());
        for (const auto& node : old_.node()) emit(node);
        finish_weights();
        return std::move(result_);
    }

private:
    bool is_activation(const std::string& name) const { return !name.empty() && recipes_.count(name) == 0; }
    bool is_float32(const std::string& name) const {
        const auto found = types_.find(name);
        return found != types_.end() && found->second.tensor_type().elem_type() == onnx::TensorProto::FLOAT;
    }

    /// Quantised when its activations are float32 and, of the layers between, when no operand is a constant.
    bool is_quantised(const onnx::NodeProto& node) const {
        const bool weighted = kWeighted.count(node.op_type()) > 0;
        if (!weighted && !(options_.activations_between_layers && kBetween.count(node.op_type()))) return false;
        if (!is_float32(node.output(0)) || !is_activation(node.input(0)) || !is_float32(node.input(0))) return false;
        if (weighted) return true;
        const int operands = node.op_type() == "Resize" || node.op_type() == "Flatten" ? 1 : node.input_size();
        return std::all_of(node.input().begin(), node.input().begin() + operands, [this](const std::string& name) { return is_activation(name); });
    }

    /// A ReLU (or Clip) after a quantised layer that feeds nothing else: uint8 from 0 up saturates as it does.
    bool is_removable(const onnx::NodeProto& node) const {
        if (node.op_type() != "Relu" && node.op_type() != "Clip") return false;
        const auto made = producer_.find(node.input(0));
        return made != producer_.end() && uses_.at(node.input(0)) == 1 && outputs_.count(node.input(0)) == 0 && is_quantised(*made->second) &&
               kSelecting.count(made->second->op_type()) == 0;
    }

    void decide() {
        for (const auto& node : old_.node()) {
            if (is_removable(node)) {
                removed_[node.input(0)] = node.output(0);
                pairs_.insert(node.output(0));
            } else if (is_quantised(node)) {
                ++quantised_;
                for (int i = 0; i < node.input_size(); ++i)
                    if (is_activation(node.input(i)) && is_float32(node.input(i)) && (i < 2 || node.op_type() == "Concat")) pairs_.insert(node.input(i));
                pairs_.insert(node.output(0));
            }
        }
        for (const auto& [before, after] : removed_) pairs_.erase(before);
        if (quantised_ == 0) throw Error(ErrorKind::usage, "workload make: --dtype int8: the model has no layer that int8 applies to");
    }

    struct Parameters {
        float scale = 1;
        std::uint8_t zero_point = 0;
    };

    /// Asymmetric uint8 whose range holds 0 exactly (ONNX Runtime, compute_scale_zp).
    Parameters parameters_of(const std::string& name) const {
        if (const auto made = producer_.find(name); made != producer_.end() && kSelecting.count(made->second->op_type()) && pairs_.count(made->second->input(0)))
            return parameters_of(made->second->input(0));
        const auto found = ranges_.find(name);
        ASSAY_CHECK(found != ranges_.end(), "every float value has a range");
        const double low = std::min(found->second.low, 0.0), high = std::max(found->second.high, 0.0);
        if (!(high - low > 1e-30)) return {};
        const auto scale = static_cast<float>((high - low) / 255);
        return {scale, static_cast<std::uint8_t>(std::clamp(std::nearbyint(-low / scale), 0.0, 255.0))};
    }

    void declare(const std::string& name, const std::string& like, int elem_type) {
        auto& info = *new_->add_value_info();
        info.set_name(name);
        *info.mutable_type() = types_.at(like);
        info.mutable_type()->mutable_tensor_type()->set_elem_type(elem_type);
    }

    onnx::NodeProto& add_node(const std::string& op, const std::string& name, const std::vector<std::string>& inputs, const std::string& output) {
        onnx::NodeProto& node = *new_->add_node();
        node.set_op_type(op);
        node.set_name(name);
        for (const std::string& input : inputs) node.add_input(input);
        node.add_output(output);
        return node;
    }

    /// QuantizeLinear and DequantizeLinear behind `made`; users of `value` read what comes out. A graph output keeps its name.
    void add_pair(const std::string& value, const std::string& made) {
        const Parameters p = parameters_of(value);
        result_.weights.push_back({value + "_scale", DType::f32, {}, raw_fill(std::vector<float>{p.scale}), {}, {}});
        result_.weights.push_back({value + "_zero_point", DType::u8, {}, raw_fill(std::vector<std::uint8_t>{p.zero_point}), {}, {}});
        const std::string quantised = value + "_QuantizeLinear_Output";
        const std::string out = outputs_.count(value) ? value : value + "_DequantizeLinear_Output";
        add_node("QuantizeLinear", value + "_QuantizeLinear", {made, value + "_scale", value + "_zero_point"}, quantised);
        add_node("DequantizeLinear", value + "_DequantizeLinear", {quantised, value + "_scale", value + "_zero_point"}, out);
        declare(quantised, value, onnx::TensorProto::UINT8);
        if (out != value) {
            declare(out, value, onnx::TensorProto::FLOAT);
            reads_[value] = out;
        }
    }

    /// Axis of a weight's output channels.
    static int channel_axis(const onnx::NodeProto& node, const TensorRecipe& weight) {
        if (node.op_type() == "Conv") return 0;
        if (node.op_type() == "ConvTranspose") return 1;
        if (node.op_type() == "Gemm") return has_attribute(node, "transB") ? 0 : 1;
        return static_cast<int>(weight.shape.size()) - 1;
    }

    std::string add_weight(const onnx::NodeProto& node, const TensorRecipe& weight, std::vector<float>& scales) {
        const std::string out = weight.name + "_DequantizeLinear_Output";
        const int axis = channel_axis(node, weight);
        scales = channel_magnitudes(weight, source_.seed, axis);
        for (float& s : scales) s = s > 0 ? s / 127 : 1;
        if (!dequantised_.insert(weight.name).second) return out;
        const Shape channels{static_cast<std::int64_t>(scales.size())};
        TensorRecipe narrow = weight;
        narrow.name += "_quantized";
        narrow.stream = weight.stream.empty() ? weight.name : weight.stream;
        narrow.type = DType::i8;
        narrow.quantised = WeightScales{axis, scales};
        result_.weights.push_back(std::move(narrow));
        result_.weights.push_back({weight.name + "_scale", DType::f32, channels, raw_fill(scales), {}, {}});
        result_.weights.push_back({weight.name + "_zero_point", DType::i8, channels, raw_fill(std::vector<std::int8_t>(scales.size())), {}, {}});
        dequantise(weight, axis, out);
        return out;
    }

    void dequantise(const TensorRecipe& tensor, int axis, const std::string& out) {
        onnx::NodeProto& node = add_node("DequantizeLinear", tensor.name + "_DequantizeLinear", {tensor.name + "_quantized", tensor.name + "_scale", tensor.name + "_zero_point"}, out);
        auto& attribute = *node.add_attribute();
        attribute.set_name("axis");
        attribute.set_type(onnx::AttributeProto::INT);
        attribute.set_i(axis);
        auto& info = *new_->add_value_info();
        info.set_name(out);
        auto* type = info.mutable_type()->mutable_tensor_type();
        type->set_elem_type(onnx::TensorProto::FLOAT);
        for (const std::int64_t d : tensor.shape) type->mutable_shape()->add_dim()->set_dim_value(d);
    }

    /// int32 in units of the accumulator: scale of the input times scale of the channel's weights.
    std::string add_bias(const TensorRecipe& bias, float input_scale, const std::vector<float>& weight_scales) {
        const std::string out = bias.name + "_DequantizeLinear_Output";
        if (!dequantised_.insert(bias.name).second) return out;
        const Tensor values = produce(bias, source_.seed);
        const auto count = static_cast<std::size_t>(values.count());
        std::vector<float> scales(count);
        std::vector<std::int32_t> integers(count);
        for (std::size_t i = 0; i < count; ++i) {
            scales[i] = input_scale * weight_scales[weight_scales.size() == 1 ? 0 : i];
            integers[i] = static_cast<std::int32_t>(std::clamp(std::nearbyint(values.as<float>()[i] / static_cast<double>(scales[i])), -2147483647.0, 2147483647.0));
        }
        result_.weights.push_back({bias.name + "_quantized", DType::i32, bias.shape, raw_fill(integers), {}, {}});
        result_.weights.push_back({bias.name + "_scale", DType::f32, bias.shape, raw_fill(scales), {}, {}});
        result_.weights.push_back({bias.name + "_zero_point", DType::i32, bias.shape, raw_fill(std::vector<std::int32_t>(count)), {}, {}});
        dequantise(bias, 0, out);
        return out;
    }

    void emit(const onnx::NodeProto& node) {
        if (is_removable(node)) return;  // the layer before it has written its output
        onnx::NodeProto copy = node;
        if (kWeighted.count(node.op_type()) && is_quantised(node)) {
            std::vector<float> scales;
            if (const auto weight = recipes_.find(node.input(1)); weight != recipes_.end()) copy.set_input(1, add_weight(node, *weight->second, scales));
            if (node.input_size() > 2 && !scales.empty())
                if (const auto bias = recipes_.find(node.input(2)); bias != recipes_.end())
                    copy.set_input(2, add_bias(*bias->second, parameters_of(node.input(0)).scale, scales));
        }
        for (std::string& name : *copy.mutable_input())
            if (const auto found = reads_.find(name); found != reads_.end()) name = found->second;
        std::vector<std::pair<std::string, std::string>> later;
        for (std::string& name : *copy.mutable_output()) {
            if (const auto found = removed_.find(name); found != removed_.end()) name = found->second;
            const bool paired = pairs_.count(name) > 0;
            const std::string value = name;
            if (paired && outputs_.count(name)) name += "_QuantizeLinear_Input";
            if (!name.empty() && !(outputs_.count(name))) {
                auto& info = *new_->add_value_info();
                info.set_name(name);
                *info.mutable_type() = types_.at(value);
            }
            if (paired) later.emplace_back(value, name);
        }
        *new_->add_node() = std::move(copy);
        for (const auto& [value, made] : later) add_pair(value, made);
    }

    /// Tensors that some node still reads as they were.
    void finish_weights() {
        std::set<std::string> read;
        for (const auto& node : new_->node()) read.insert(node.input().begin(), node.input().end());
        for (const TensorRecipe& recipe : source_.weights)
            if (read.count(recipe.name)) result_.weights.push_back(recipe);
    }

    const GeneratedModel& source_;
    const Ranges& ranges_;
    const QuantizeOptions options_;
    const onnx::GraphProto& old_;
    onnx::GraphProto* new_ = nullptr;
    GeneratedModel result_;
    std::map<std::string, onnx::TypeProto> types_;
    std::map<std::string, const TensorRecipe*> recipes_;
    std::map<std::string, const onnx::NodeProto*> producer_;
    std::map<std::string, int> uses_;
    std::set<std::string> outputs_, pairs_, dequantised_;
    std::map<std::string, std::string> removed_;  ///< input of a removed activation -> its output
    std::map<std::string, std::string> reads_;    ///< value -> what its users read
    int quantised_ = 0;
};

}  // namespace

Ranges analytic_ranges(const GeneratedModel& model) {
    Ranges ranges;
    for (const auto& [name, value] : model.expected) {
        const double reach = 5 * std::sqrt(std::max(value.variance, 0.0));
        ranges[name] = {value.mean - reach, value.mean + reach};
    }
    for (const TensorRecipe& input : model.inputs)
        if (is_float(input.type)) {
            const double reach = input.fill.kind == Fill::Kind::image ? 4.5 : 3.47 * input.fill.spread;
            ranges[input.name] = {input.fill.centre - reach, input.fill.centre + reach};
        }
    for (const auto& node : model.proto->graph().node()) {
        const std::string& op = node.op_type();
        const auto found = ranges.find(node.output(0));
        if (found == ranges.end()) continue;
        if (op == "Relu") found->second.low = 0;
        if (op == "Clip") found->second = {0, std::min(found->second.high, 6.0)};
        if (op == "Sigmoid" || op == "HardSigmoid" || op == "Softmax") found->second = {0, 1};
        if (op == "Tanh") found->second = {-1, 1};
    }
    return ranges;
}

GeneratedModel quantize(const GeneratedModel& model, const Ranges& ranges, const QuantizeOptions& options) {
    Ranges all = analytic_ranges(model);
    for (const auto& [name, range] : ranges) all[name] = range;
    return Quantizer(model, all, options).run();
}

}  // namespace assay::workloads::generate
