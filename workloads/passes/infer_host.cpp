// Output types and shapes of what only the host runs, and of operators in forms that no lowering has. Rules where evaluating would be dear;
// for the rest the operator itself, on zeros.
#include <fmt/core.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "support/error.hpp"
#include "support/onnx/onnx_file.hpp"
#include "workloads/host/evaluate.hpp"
#include "workloads/passes/passes.hpp"

namespace assay::workloads {
namespace {

using I64 = std::int64_t;

/// Zeros made to find a shape hold no more elements than this, all inputs and outputs together.
constexpr I64 kLargestProbe = I64{1} << 26;

struct Context {
    Graph& graph;
    NodeId id;
    const Node& node;

    [[noreturn]] void bad(const std::string& what) const { throw MalformedNode(id, what); }
    bool has(std::size_t i) const { return node.input(i) != kNoValue; }
    const Value& in(std::size_t i) const {
        if (!has(i)) bad(fmt::format("input {} is missing; repair the model", i));
        return graph.value(node.input(i));
    }
    const Shape& shape(std::size_t i) const { return in(i).shape; }
    std::vector<I64> list(std::size_t i) const {
        std::vector<I64> values;
        for (I64 k = 0; k < in(i).constant->count(); ++k) values.push_back(in(i).constant->integer(k));
        return values;
    }
    void out(std::size_t i, DType dtype, Shape s) const {
        if (i >= node.outputs.size() || node.outputs[i] == kNoValue) return;
        Value& v = graph.value(node.outputs[i]);
        v.dtype = dtype;
        v.shape = std::move(s);
        v.known = true;
        v.dynamic = false;
    }
    std::size_t axis(I64 a, std::size_t rank) const { return static_cast<std::size_t>(normal_axis(id, a, rank)); }
};

void same(const Context& c) { c.out(0, c.in(0).dtype, c.shape(0)); }
void boolean_same(const Context& c) { c.out(0, DType::boolean, c.shape(0)); }

Shape broadcast_from(const Context& c, std::size_t first) {
    Shape s = c.shape(first);
    for (std::size_t i = first + 1; i < c.node.inputs.size(); ++i) s = broadcast_shapes(c.id, s, c.shape(i));
    return s;
}
void arithmetic(const Context& c) { c.out(0, c.in(0).dtype, broadcast_from(c, 0)); }
void comparison(const Context& c) { c.out(0, DType::boolean, broadcast_from(c, 0)); }
void where(const Context& c) { c.out(0, c.in(1).dtype, broadcast_from(c, 0)); }

void cast(const Context& c) {
    c.out(0, c.node.op == "CastLike" ? c.in(1).dtype : dtype_from_onnx(static_cast<int>(c.node.integer("to", 1)), "attribute 'to'"), c.shape(0));
}

void layer_normalization(const Context& c) {
    Shape kept = c.shape(0);
    for (std::size_t d = c.axis(c.node.integer("axis", -1), kept.size()); d < kept.size(); ++d) kept[d] = 1;
    const DType stash = dtype_from_onnx(static_cast<int>(c.node.integer("stash_type", 1)), "attribute 'stash_type'");
    same(c);
    c.out(1, stash, kept);
    c.out(2, stash, kept);
}

void batch_normalization(const Context& c) {
    same(c);
    for (std::size_t i : {1u, 2u}) c.out(i, c.in(i + 2).dtype, c.shape(i + 2));
}

void reduction(const Context& c) {
    const Shape& x = c.shape(0);
    const auto axes = c.node.has("axes") ? c.node.integers("axes") : c.has(1) ? c.list(1) : std::vector<I64>{};
    if (axes.empty() && c.node.integer("noop_with_empty_axes", 0) != 0) return same(c);
    std::vector<bool> reduced(x.size(), axes.empty());
    for (const I64 a : axes) reduced[c.axis(a, x.size())] = true;
    Shape y;
    for (std::size_t d = 0; d < x.size(); ++d) {
        if (!reduced[d])
            y.push_back(x[d]);
        else if (c.node.integer("keepdims", 1) != 0)
            y.push_back(1);
    }
    c.out(0, c.in(0).dtype, y);
}

void arg(const Context& c) {
    Shape y = c.shape(0);
    const std::size_t a = c.axis(c.node.integer("axis", 0), y.size());
    if (c.node.integer("keepdims", 1) != 0)
        y[a] = 1;
    else
        y.erase(y.begin() + static_cast<std::ptrdiff_t>(a));
    c.out(0, DType::i64, y);
}

/// Extents of sliding windows over any number of dimensions (Conv-11, MaxPool-12), as evaluate() has them.
Shape window_extents(const Context& c, const Shape& spatial, const std::vector<I64>& kernel) {
    const std::size_t rank = spatial.size();
    const auto list = [&](const char* key, I64 otherwise, std::size_t count) {
        auto v = c.node.integers(key, std::vector<I64>(count, otherwise));
        if (v.size() != count) c.bad(fmt::format("{} has {} entries, expected {}; repair the model", key, v.size(), count));
        for (const I64 e : v)
            if (std::abs(e) > hostops::kMaxElements) c.bad(fmt::format("{} holds {}; repair the model", key, e));
        return v;
    };
    if (kernel.size() != rank || rank == 0) c.bad(fmt::format("kernel_shape has {} entries for {} spatial dimensions; repair the model", kernel.size(), rank));
    const auto strides = list("strides", 1, rank), dilations = list("dilations", 1, rank), pads = list("pads", 0, 2 * rank);
    const std::string auto_pad = c.node.text("auto_pad", "NOTSET");
    if (auto_pad != "NOTSET" && auto_pad != "VALID" && auto_pad != "SAME_UPPER" && auto_pad != "SAME_LOWER")
        c.bad(fmt::format("auto_pad=\"{}\" is unknown; use NOTSET, SAME_UPPER, SAME_LOWER or VALID", auto_pad));
    Shape out;
    for (std::size_t d = 0; d < rank; ++d) {
        if (kernel[d] < 1 || kernel[d] > hostops::kMaxElements || strides[d] < 1 || dilations[d] < 1)
            c.bad(fmt::format("kernel {}, stride {} and dilation {} must be at least 1; repair the model", kernel[d], strides[d], dilations[d]));
        if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
            out.push_back((spatial[d] + strides[d] - 1) / strides[d]);
            continue;
        }
        const I64 begin = auto_pad == "VALID" ? 0 : pads[d], end = auto_pad == "VALID" ? 0 : pads[rank + d];
        const I64 reach = (kernel[d] - 1) * dilations[d] + 1, room = spatial[d] + begin + end - reach;
        if (room < 0) c.bad(fmt::format("a window of {} does not fit the padded input of {}; repair the model", reach, room + reach));
        out.push_back(room / strides[d] + 1);
        if (c.node.integer("ceil_mode", 0) != 0 && room % strides[d] != 0 && out.back() * strides[d] < spatial[d] + begin) ++out.back();
    }
    return out;
}

void convolution(const Context& c, std::size_t x, std::size_t w, DType dtype) {
    const Shape &xs = c.shape(x), &ws = c.shape(w);
    if (xs.size() < 3 || ws.size() != xs.size()) c.bad(fmt::format("input {} and weight {} do not fit; repair the model", to_string(xs), to_string(ws)));
    const I64 group = c.node.integer("group", 1);
    if (group < 1 || xs[1] % group || ws[0] % group || xs[1] / group != ws[1])
        c.bad(fmt::format("{} channels in {} groups do not fit the weight {}; repair the model", xs[1], group, to_string(ws)));
    Shape y{xs[0], ws[0]};
    const Shape spatial = window_extents(c, {xs.begin() + 2, xs.end()}, {ws.begin() + 2, ws.end()});
    y.insert(y.end(), spatial.begin(), spatial.end());
    c.out(0, dtype, y);
}

void pool(const Context& c) {
    const Shape& xs = c.shape(0);
    if (xs.size() < 3) c.bad(fmt::format("input is {}, needs at least 3 dimensions; repair the model", to_string(xs)));
    Shape y{xs[0], xs[1]};
    const Shape spatial = window_extents(c, {xs.begin() + 2, xs.end()}, c.node.integers("kernel_shape"));
    y.insert(y.end(), spatial.begin(), spatial.end());
    c.out(0, c.in(0).dtype, y);
    if (c.node.op == "MaxPool") c.out(1, DType::i64, y);
}

void conv_transpose(const Context& c) {
    const Shape &xs = c.shape(0), &ws = c.shape(1);
    if (xs.size() < 3 || ws.size() != xs.size() || ws[0] != xs[1]) c.bad(fmt::format("input {} and weight {} do not fit; repair the model", to_string(xs), to_string(ws)));
    const std::size_t rank = xs.size() - 2;
    const auto list = [&](const char* key, I64 otherwise, std::size_t count) {
        auto v = c.node.integers(key, std::vector<I64>(count, otherwise));
        if (v.size() != count) c.bad(fmt::format("{} has {} entries, expected {}; repair the model", key, v.size(), count));
        for (const I64 e : v)
            if (e < 0 || e > hostops::kMaxElements) c.bad(fmt::format("{} holds {}; repair the model", key, e));
        return v;
    };
    const auto strides = list("strides", 1, rank), dilations = list("dilations", 1, rank), pads = list("pads", 0, 2 * rank), extra = list("output_padding", 0, rank);
    const auto wanted = c.node.integers("output_shape");
    const std::string auto_pad = c.node.text("auto_pad", "NOTSET");
    Shape y{xs[0], ws[1] * c.node.integer("group", 1)};
    for (std::size_t d = 0; d < rank; ++d) {
        I64 extent = (xs[d + 2] - 1) * strides[d] + extra[d] + (ws[d + 2] - 1) * dilations[d] + 1;
        if (wanted.size() >= rank)
            extent = wanted[wanted.size() - rank + d];
        else if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER")
            extent = xs[d + 2] * strides[d];
        else if (auto_pad != "VALID")
            extent -= pads[d] + pads[rank + d];
        if (extent < 1) c.bad(fmt::format("an output dimension of {}; repair the model", extent));
        y.push_back(extent);
    }
    c.out(0, c.in(0).dtype, y);
}

void recurrent(const Context& c) {
    const Shape &x = c.shape(0), &r = c.shape(2);
    if (x.size() != 3 || r.size() != 3) c.bad("X and R need three dimensions; repair the model");
    const I64 directions = c.node.text("direction", "forward") == "bidirectional" ? 2 : 1, hidden = r[2];
    const bool batch_first = c.node.integer("layout", 0) != 0;
    const I64 steps = x[batch_first ? 1 : 0], batch = x[batch_first ? 0 : 1];
    const DType t = c.in(0).dtype;
    c.out(0, t, batch_first ? Shape{batch, steps, directions, hidden} : Shape{steps, directions, batch, hidden});
    for (std::size_t i : {1u, 2u}) c.out(i, t, batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden});
}

void attention(const Context& c) {
    const Shape &q = c.shape(0), &k = c.shape(1), &v = c.shape(2);
    if (q.size() != k.size() || k.size() != v.size() || (q.size() != 3 && q.size() != 4)) c.bad("Q, K and V need three or four dimensions; repair the model");
    const bool flat = q.size() == 3;
    const I64 heads = flat ? c.node.integer("q_num_heads", 0) : q[1], kv = flat ? c.node.integer("kv_num_heads", 0) : k[1];
    if (heads < 1 || kv < 1) c.bad("q_num_heads and kv_num_heads must be given with three dimensions; repair the model");
    const I64 past = c.has(4) && c.shape(4).size() == 4 ? c.shape(4)[2] : 0, keys = (flat ? k[1] : k[2]) + past;
    const I64 k_size = flat ? k[2] / kv : k[3], v_size = flat ? v[2] / kv : v[3], queries = flat ? q[1] : q[2];
    const DType t = c.in(0).dtype;
    c.out(0, t, flat ? Shape{q[0], queries, heads * v_size} : Shape{q[0], heads, queries, v_size});
    c.out(1, t, {q[0], kv, keys, k_size});
    c.out(2, t, {q[0], kv, keys, v_size});
    c.out(3, t, {q[0], heads, queries, keys});
}

void top_k(const Context& c) {
    Shape y = c.shape(0);
    const std::size_t a = c.axis(c.node.integer("axis", -1), y.size());
    const I64 k = c.has(1) ? c.list(1).at(0) : c.node.integer("k", 0);
    if (k < 0 || k > y[a]) c.bad(fmt::format("k is {} of {} elements; repair the model", k, y[a]));
    y[a] = k;
    c.out(0, c.in(0).dtype, y);
    c.out(1, DType::i64, y);
}

void matmul_integer(const Context& c) {
    Shape a = c.shape(0), b = c.shape(1);
    if (a.size() < 2 || b.size() < 2 || a.back() != b[b.size() - 2]) c.bad(fmt::format("{} and {} do not multiply; repair the model", to_string(a), to_string(b)));
    Shape y = broadcast_shapes(c.id, {a.begin(), a.end() - 2}, {b.begin(), b.end() - 2});
    y.insert(y.end(), {a[a.size() - 2], b.back()});
    c.out(0, DType::i32, y);
}

void quantize(const Context& c) {
    const I64 type = c.node.integer("output_dtype", 0);
    c.out(0, c.has(2) ? c.in(2).dtype : type ? dtype_from_onnx(static_cast<int>(type), "attribute 'output_dtype'") : DType::u8, c.shape(0));
}

void dequantize(const Context& c) {
    const I64 type = c.node.integer("output_dtype", 0);
    c.out(0, type ? dtype_from_onnx(static_cast<int>(type), "attribute 'output_dtype'") : c.in(1).dtype, c.shape(0));
}

void dynamic_quantize(const Context& c) {
    c.out(0, DType::u8, c.shape(0));
    c.out(1, DType::f32, {});
    c.out(2, DType::u8, {});
}

void dropout(const Context& c) {
    same(c);
    c.out(1, c.graph.opset >= 10 ? DType::boolean : c.in(0).dtype, c.shape(0));
}

void like_indices(const Context& c) { c.out(0, c.in(0).dtype, c.shape(1)); }

const std::map<std::string, std::function<void(const Context&)>>& rules() {
    static const auto* table = [] {
        auto* t = new std::map<std::string, std::function<void(const Context&)>>;
        for (const char* op : {"Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Ceil", "Celu", "Clip", "Cos", "Cosh", "CumProd",
                               "CumSum", "Elu", "Erf", "Exp", "Floor", "Gelu", "GroupNormalization", "HardSigmoid", "HardSwish", "Hardmax", "Identity",
                               "InstanceNormalization", "LRN", "LeakyRelu", "Log", "LogSoftmax", "LpNormalization", "MeanVarianceNormalization", "Mish", "Neg",
                               "PRelu", "RMSNormalization", "Reciprocal", "Relu", "ReverseSequence", "RotaryEmbedding", "Round", "Scatter",
                               "ScatterElements", "ScatterND", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softmax", "Softplus", "Softsign", "Sqrt",
                               "Swish", "Tan", "Tanh", "TensorScatter", "ThresholdedRelu", "Trilu"})
            (*t)[op] = same;
        for (const char* op : {"IsInf", "IsNaN", "Not"}) (*t)[op] = boolean_same;
        for (const char* op : {"Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Max", "Mean", "Min", "Mod", "Mul", "Or", "Pow", "Sub", "Sum",
                               "Xor"})
            (*t)[op] = arithmetic;
        for (const char* op : {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"}) (*t)[op] = comparison;
        for (const char* op : {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
                               "ReduceSumSquare"})
            (*t)[op] = reduction;
        for (const char* op : {"ArgMax", "ArgMin"}) (*t)[op] = arg;
        for (const char* op : {"AveragePool", "LpPool", "MaxPool"}) (*t)[op] = pool;
        for (const char* op : {"GRU", "LSTM", "RNN"}) (*t)[op] = recurrent;
        for (const char* op : {"Cast", "CastLike"}) (*t)[op] = cast;
        (*t)["Attention"] = attention;
        (*t)["BatchNormalization"] = batch_normalization;
        (*t)["Conv"] = [](const Context& c) { convolution(c, 0, 1, c.in(0).dtype); };
        (*t)["ConvInteger"] = [](const Context& c) { convolution(c, 0, 1, DType::i32); };
        (*t)["DeformConv"] = (*t)["Conv"];
        (*t)["QLinearConv"] = [](const Context& c) { convolution(c, 0, 3, c.in(7).dtype); };
        (*t)["ConvTranspose"] = conv_transpose;
        (*t)["DequantizeLinear"] = dequantize;
        (*t)["Dropout"] = dropout;
        (*t)["DynamicQuantizeLinear"] = dynamic_quantize;
        (*t)["GatherElements"] = like_indices;
        (*t)["LayerNormalization"] = layer_normalization;
        (*t)["MatMulInteger"] = matmul_integer;
        (*t)["QuantizeLinear"] = quantize;
        (*t)["TopK"] = top_k;
        (*t)["Where"] = where;
        return t;
    }();
    return *table;
}

/// Inputs whose values, not only shapes, decide an output's shape.
const std::vector<std::size_t>& shape_parameters(const std::string& op) {
    static const std::map<std::string, std::vector<std::size_t>> table{
        {"AffineGrid", {1}},     {"BlackmanWindow", {0}}, {"CenterCropPad", {1}},  {"Col2Im", {1, 2}}, {"Compress", {0, 1}},      {"ConstantOfShape", {0}},
        {"DFT", {1, 2}},         {"Expand", {1}},         {"HammingWindow", {0}},  {"HannWindow", {0}}, {"MaxUnpool", {2}},       {"MelWeightMatrix", {0, 1, 2, 3, 4}},
        {"NonMaxSuppression", {0, 1, 2, 3, 4}},           {"NonZero", {0}},        {"OneHot", {1}},     {"Pad", {1, 3}},          {"Range", {0, 1, 2}},
        {"ReduceL1", {1}},       {"ReduceL2", {1}},       {"ReduceLogSum", {1}},   {"ReduceLogSumExp", {1}}, {"ReduceMax", {1}},   {"ReduceMean", {1}},
        {"ReduceMin", {1}},      {"ReduceProd", {1}},     {"ReduceSum", {1}},      {"ReduceSumSquare", {1}}, {"Reshape", {1}},     {"Resize", {1, 2, 3}},
        {"STFT", {1, 3}},        {"Slice", {1, 2, 3, 4}}, {"Split", {1}},          {"Squeeze", {1}},    {"Tile", {1}},            {"TopK", {1}},
        {"Unique", {0}},         {"Unsqueeze", {1}},      {"Upsample", {1}}};
    static const std::vector<std::size_t> none;
    const auto it = table.find(op);
    return it == table.end() ? none : it->second;
}

bool is_control(const std::string& op) { return op == "If" || op == "Loop" || op == "Scan"; }

/// Element types that an operator's outputs have whatever its shapes are; a guess where evaluating on stand-ins is not possible.
DType guessed_type(const Context& c, std::size_t output) {
    const std::string& op = c.node.op;
    if (is_control(op)) {
        for (const auto& attribute : c.node.proto->attribute()) {
            if (!attribute.has_g()) continue;
            const int shift = op == "Loop" ? 1 : 0;
            const int k = static_cast<int>(output) + shift;
            if (k >= attribute.g().output_size()) continue;
            const int type = attribute.g().output(k).type().tensor_type().elem_type();
            if (type != 0) return dtype_from_onnx(type, fmt::format("output {}", output));
        }
        return DType::f32;
    }
    static const std::set<std::string> int64{"ArgMax", "ArgMin", "NonMaxSuppression", "NonZero", "Shape", "Size"};
    static const std::set<std::string> booleans{"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "IsInf", "IsNaN", "Not"};
    static const std::set<std::string> int32{"ConvInteger", "MatMulInteger"};
    if (int64.contains(op) || (output > 0 && (op == "TopK" || op == "Unique" || op == "MaxPool"))) return DType::i64;
    if (booleans.contains(op)) return DType::boolean;
    if (int32.contains(op)) return DType::i32;
    if (op == "Where" && c.has(1)) return c.in(1).dtype;
    if (op == "OneHot" && c.has(2)) return c.in(2).dtype;
    if (op == "Cast") return dtype_from_onnx(static_cast<int>(c.node.integer("to", 1)), "attribute 'to'");
    if (op == "CastLike" && c.has(1)) return c.in(1).dtype;
    if (op == "QuantizeLinear") return c.has(2) ? c.in(2).dtype : DType::u8;
    if (op == "DequantizeLinear" && c.has(1)) return c.in(1).dtype;
    if (op == "ConstantOfShape") {
        const auto it = c.node.attributes.find("value");
        return it != c.node.attributes.end() && it->second.tensor ? it->second.tensor->dtype : DType::f32;
    }
    return c.has(0) ? c.in(0).dtype : DType::f32;
}

/// Runs the operator on zeros of the inputs' shapes (constants as they are). Throws Error(bad_input) when it does not take them.
std::vector<Tensor> probe(const Context& c) {
    I64 elements = 0;
    std::vector<Tensor> zeros(c.node.inputs.size());
    std::vector<const Tensor*> inputs;
    for (std::size_t i = 0; i < c.node.inputs.size(); ++i) {
        if (!c.has(i)) {
            inputs.push_back(nullptr);
            continue;
        }
        const Value& v = c.in(i);
        if (v.constant) {
            inputs.push_back(v.constant.get());
            continue;
        }
        elements += element_count(v.shape);
        if (elements > kLargestProbe) throw Error(ErrorKind::bad_input, fmt::format("inputs of more than {} elements; make the tensors smaller", kLargestProbe));
        zeros[i] = Tensor(v.dtype, v.shape);
        inputs.push_back(&zeros[i]);
    }
    return hostops::evaluate(*c.node.proto, c.graph.opset, inputs);
}

void infer_by_probe(const Context& c) {
    std::vector<Tensor> results;
    try {
        results = probe(c);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::bad_input) throw;
        throw MalformedNode(c.id, error.what());
    }
    for (std::size_t i = 0; i < results.size(); ++i) c.out(i, results[i].dtype, results[i].shape);
}

/// Outputs with a shape that only the run decides. The shape kept beside `dynamic` is a stand-in of the right rank where one is found.
void infer_dynamic(const Context& c) {
    std::vector<Tensor> results;
    if (!is_control(c.node.op)) {
        try {
            results = probe(c);
        } catch (const Error&) {  // stand-ins need not fit each other; the types follow from the operator
        }
    }
    for (std::size_t i = 0; i < c.node.outputs.size(); ++i) {
        c.out(i, i < results.size() ? results[i].dtype : guessed_type(c, i), i < results.size() ? results[i].shape : Shape{});
        if (c.node.outputs[i] != kNoValue) c.graph.value(c.node.outputs[i]).dynamic = true;
    }
}

/// True when the operator's output shape is known although an input's is not.
bool determined(const Context& c) {
    const auto all_axes = [&] { return !c.node.has("axes") && !c.has(1) && c.node.integer("noop_with_empty_axes", 0) == 0 && c.node.integer("keepdims", 1) == 0; };
    if (c.node.op == "Size" || (c.node.op.starts_with("Reduce") && all_axes())) {
        c.out(0, c.node.op == "Size" ? DType::i64 : c.in(0).dtype, {});
        return true;
    }
    if (c.node.op == "Reshape" && c.graph.is_constant(c.node.input(1))) {
        const Shape to = c.list(1);
        if (std::all_of(to.begin(), to.end(), [](I64 d) { return d > 0; })) {
            c.out(0, c.in(0).dtype, to);
            return true;
        }
    }
    return false;
}

}  // namespace

std::vector<ValueId> deciding_inputs(const Graph& graph, NodeId id) {
    const Node& node = graph.node(id);
    std::vector<ValueId> out;
    const auto add = [&](std::size_t i) {
        const ValueId v = node.input(i);
        if (v != kNoValue && !graph.is_constant(v)) out.push_back(v);
    };
    if (node.op == "If") add(0);
    if (node.op == "Loop") add(0), add(1);
    for (const std::size_t i : shape_parameters(node.op)) add(i);
    return out;
}

void infer_on_host(Graph& graph, NodeId id) {
    const Node& node = graph.node(id);
    const Context c{graph, id, node};
    if (!node.domain.empty() || !hostops::supports(node.op, graph.opset)) {
        const std::string reason = node.domain.empty() ? hostops::unsupported_reason(node.op) : std::string("the operator is not supported; rewrite the model without it");
        throw NodeError(id, reason);
    }
    const auto dynamic = [&](ValueId v) { return v != kNoValue && graph.value(v).dynamic; };
    const bool open = is_control(node.op) || !deciding_inputs(graph, id).empty();
    if (open || std::any_of(node.inputs.begin(), node.inputs.end(), dynamic)) {
        if (!is_control(node.op) && determined(c)) return;
        return infer_dynamic(c);
    }
    if (const auto rule = rules().find(node.op); rule != rules().end()) return rule->second(c);
    infer_by_probe(c);
}

}  // namespace assay::workloads
