#include "golden/reference/registry.hpp"

#include <map>

#include "golden/reference/ops/kernels.hpp"

namespace assay::golden {
namespace {

struct Entry {
    Kernel kernel;              ///< null: control flow (control.cpp)
    std::vector<int> versions;  ///< ascending: each version of the operator that changed its definition (ONNX Changelog.md)
};

const std::map<std::string, Entry>& table() {
    static const std::map<std::string, Entry> kTable{
        {"Abs", {ops::abs, {1, 6, 13}}},
        {"Acos", {ops::acos, {7, 22}}},
        {"Acosh", {ops::acosh, {9, 22}}},
        {"Add", {ops::add, {7, 13, 14}}},
        {"And", {ops::logical_and, {7}}},
        {"ArgMax", {ops::arg_max, {1, 11, 12, 13}}},
        {"ArgMin", {ops::arg_min, {1, 11, 12, 13}}},
        {"Asin", {ops::asin, {7, 22}}},
        {"Asinh", {ops::asinh, {9, 22}}},
        {"Atan", {ops::atan, {7, 22}}},
        {"Atanh", {ops::atanh, {9, 22}}},
        {"AveragePool", {ops::average_pool, {1, 7, 10, 11, 19, 22}}},
        {"BatchNormalization", {ops::batch_normalization, {7, 9, 14, 15}}},
        {"BitShift", {ops::bit_shift, {11}}},
        {"BitwiseAnd", {ops::bitwise_and, {18}}},
        {"BitwiseNot", {ops::bitwise_not, {18}}},
        {"BitwiseOr", {ops::bitwise_or, {18}}},
        {"BitwiseXor", {ops::bitwise_xor, {18}}},
        {"Cast", {ops::cast, {6, 9, 13, 19, 21, 23}}},
        {"CastLike", {ops::cast_like, {15, 19, 21, 23}}},
        {"Ceil", {ops::ceil, {6, 13}}},
        {"Celu", {ops::celu, {12}}},
        {"CenterCropPad", {ops::center_crop_pad, {18}}},
        {"Clip", {ops::clip, {6, 11, 12, 13}}},
        {"Col2Im", {ops::col2im, {18}}},
        {"Compress", {ops::compress, {9, 11}}},
        {"Concat", {ops::concat, {4, 11, 13}}},
        {"Constant", {ops::constant, {1, 9, 11, 12, 13, 19, 21, 23}}},
        {"ConstantOfShape", {ops::constant_of_shape, {9, 20, 21, 23}}},
        {"Conv", {ops::conv, {1, 11, 22}}},
        {"ConvInteger", {ops::conv_integer, {10}}},
        {"ConvTranspose", {ops::conv_transpose, {1, 11, 22}}},
        {"Cos", {ops::cos, {7, 22}}},
        {"Cosh", {ops::cosh, {9, 22}}},
        {"CumSum", {ops::cum_sum, {11, 14}}},
        {"DepthToSpace", {ops::depth_to_space, {1, 11, 13}}},
        {"DequantizeLinear", {ops::dequantize_linear, {10, 13, 19, 21, 23}}},
        {"Div", {ops::div, {7, 13, 14}}},
        {"Dropout", {ops::dropout, {7, 10, 12, 13, 22}}},
        {"Elu", {ops::elu, {6, 22}}},
        {"Equal", {ops::equal, {7, 11, 13, 19}}},
        {"Erf", {ops::erf, {9, 13}}},
        {"Exp", {ops::exp, {6, 13}}},
        {"Expand", {ops::expand, {8, 13}}},
        {"EyeLike", {ops::eye_like, {9, 22}}},
        {"Flatten", {ops::flatten, {1, 9, 11, 13, 21, 23}}},
        {"Floor", {ops::floor, {6, 13}}},
        {"GRU", {ops::gru, {7, 14, 22}}},
        {"Gather", {ops::gather, {1, 11, 13}}},
        {"GatherElements", {ops::gather_elements, {11, 13}}},
        {"GatherND", {ops::gather_nd, {11, 12, 13}}},
        {"Gelu", {ops::gelu, {20}}},
        {"Gemm", {ops::gemm, {7, 9, 11, 13}}},
        {"GlobalAveragePool", {ops::global_average_pool, {1, 22}}},
        {"GlobalMaxPool", {ops::global_max_pool, {1, 22}}},
        {"Greater", {ops::greater, {7, 9, 13}}},
        {"GreaterOrEqual", {ops::greater_or_equal, {12, 16}}},
        {"GroupNormalization", {ops::group_normalization, {18, 21}}},
        {"HardSigmoid", {ops::hard_sigmoid, {6, 22}}},
        {"HardSwish", {ops::hard_swish, {14, 22}}},
        {"Hardmax", {ops::hardmax, {1, 11, 13}}},
        {"Identity", {ops::identity, {1, 13, 14, 16, 19, 21, 23}}},
        {"InstanceNormalization", {ops::instance_normalization, {1, 6, 22}}},
        {"IsInf", {ops::is_inf, {10, 20}}},
        {"IsNaN", {ops::is_nan, {9, 13, 20}}},
        {"LRN", {ops::lrn, {1, 13}}},
        {"If", {nullptr, {1, 11, 13, 16, 19, 21, 23, 24}}},
        {"LSTM", {ops::lstm, {7, 14, 22}}},
        {"LayerNormalization", {ops::layer_normalization, {17}}},
        {"LeakyRelu", {ops::leaky_relu, {6, 16}}},
        {"Less", {ops::less, {7, 9, 13}}},
        {"LessOrEqual", {ops::less_or_equal, {12, 16}}},
        {"Log", {ops::log, {6, 13}}},
        {"LogSoftmax", {ops::log_softmax, {1, 11, 13}}},
        {"LpNormalization", {ops::lp_normalization, {1, 22}}},
        {"Loop", {nullptr, {1, 11, 13, 16, 19, 21, 23, 24}}},
        {"MatMul", {ops::matmul, {1, 9, 13}}},
        {"MatMulInteger", {ops::matmul_integer, {10}}},
        {"Max", {ops::max, {6, 8, 12, 13}}},
        {"MaxPool", {ops::max_pool, {1, 8, 10, 11, 12, 22}}},
        {"Mean", {ops::mean, {6, 8, 13}}},
        {"MeanVarianceNormalization", {ops::mean_variance_normalization, {9, 13}}},
        {"Min", {ops::min, {6, 8, 12, 13}}},
        {"Mish", {ops::mish, {18, 22}}},
        {"Mod", {ops::mod, {10, 13}}},
        {"Mul", {ops::mul, {7, 13, 14}}},
        {"Neg", {ops::neg, {6, 13}}},
        {"NonZero", {ops::non_zero, {9, 13}}},
        {"Not", {ops::logical_not, {1}}},
        {"OneHot", {ops::one_hot, {9, 11}}},
        {"Or", {ops::logical_or, {7}}},
        {"PRelu", {ops::prelu, {7, 9, 16}}},
        {"Pad", {ops::pad, {1, 2, 11, 13, 18, 19, 21, 23, 24}}},
        {"Pow", {ops::pow, {7, 12, 13, 15}}},
        {"QLinearConv", {ops::qlinear_conv, {10}}},
        {"QLinearMatMul", {ops::qlinear_matmul, {10, 21}}},
        {"QuantizeLinear", {ops::quantize_linear, {10, 13, 19, 21, 23}}},
        {"RMSNormalization", {ops::rms_normalization, {23}}},
        {"RNN", {ops::rnn, {7, 14, 22}}},
        {"Range", {ops::range, {11}}},
        {"Reciprocal", {ops::reciprocal, {6, 13}}},
        {"ReduceL1", {ops::reduce_l1, {1, 11, 13, 18}}},
        {"ReduceL2", {ops::reduce_l2, {1, 11, 13, 18}}},
        {"ReduceLogSum", {ops::reduce_log_sum, {1, 11, 13, 18}}},
        {"ReduceLogSumExp", {ops::reduce_log_sum_exp, {1, 11, 13, 18}}},
        {"ReduceMax", {ops::reduce_max, {1, 11, 12, 13, 18, 20}}},
        {"ReduceMean", {ops::reduce_mean, {1, 11, 13, 18}}},
        {"ReduceMin", {ops::reduce_min, {1, 11, 12, 13, 18, 20}}},
        {"ReduceProd", {ops::reduce_prod, {1, 11, 13, 18}}},
        {"ReduceSum", {ops::reduce_sum, {1, 11, 13}}},
        {"ReduceSumSquare", {ops::reduce_sum_square, {1, 11, 13, 18}}},
        {"Relu", {ops::relu, {6, 13, 14}}},
        {"Reshape", {ops::reshape, {5, 13, 14, 19, 21, 23}}},
        {"Resize", {ops::resize, {10, 11, 13, 18, 19}}},
        {"ReverseSequence", {ops::reverse_sequence, {10}}},
        {"Round", {ops::round, {11, 22}}},
        {"Scan", {nullptr, {8, 9, 11, 16, 19, 21, 23, 24}}},
        {"Scatter", {ops::scatter_elements, {9}}},
        {"ScatterElements", {ops::scatter_elements, {11, 13, 16, 18}}},
        {"ScatterND", {ops::scatter_nd, {11, 13, 16, 18}}},
        {"Selu", {ops::selu, {6, 22}}},
        {"Shape", {ops::shape, {1, 13, 15, 19, 21, 23}}},
        {"Shrink", {ops::shrink, {9}}},
        {"Sigmoid", {ops::sigmoid, {6, 13}}},
        {"Sign", {ops::sign, {9, 13}}},
        {"Sin", {ops::sin, {7, 22}}},
        {"Sinh", {ops::sinh, {9, 22}}},
        {"Size", {ops::size, {1, 13, 19, 21, 23, 24}}},
        {"Slice", {ops::slice, {1, 10, 11, 13}}},
        {"Softmax", {ops::softmax, {1, 11, 13}}},
        {"Softplus", {ops::softplus, {1, 22}}},
        {"Softsign", {ops::softsign, {1, 22}}},
        {"SpaceToDepth", {ops::space_to_depth, {1, 13}}},
        {"Split", {ops::split, {2, 11, 13, 18}}},
        {"Sqrt", {ops::sqrt, {6, 13}}},
        {"Squeeze", {ops::squeeze, {1, 11, 13, 21, 23}}},
        {"Sub", {ops::sub, {7, 13, 14}}},
        {"Sum", {ops::sum, {6, 8, 13}}},
        {"Swish", {ops::swish, {24}}},
        {"Tan", {ops::tan, {7, 22}}},
        {"Tanh", {ops::tanh, {6, 13}}},
        {"ThresholdedRelu", {ops::thresholded_relu, {10, 22}}},
        {"Tile", {ops::tile, {6, 13}}},
        {"TopK", {ops::top_k, {1, 10, 11, 24}}},
        {"Transpose", {ops::transpose, {1, 13, 21, 23, 24}}},
        {"Trilu", {ops::trilu, {14}}},
        {"Unique", {ops::unique, {11}}},
        {"Unsqueeze", {ops::unsqueeze, {1, 11, 13, 21, 23}}},
        {"Upsample", {ops::resize, {9}}},
        {"Where", {ops::where, {9, 16}}},
        {"Xor", {ops::logical_xor, {7}}},
    };
    return kTable;
}

}  // namespace

Operator find_operator(const std::string& op_type, int opset) {
    const auto entry = table().find(op_type);
    Operator out;
    if (entry == table().end()) return out;
    for (const int version : entry->second.versions)
        if (version <= opset) out = {entry->second.kernel, version};
    return out;
}

std::vector<std::string> operator_names() {
    std::vector<std::string> names;
    for (const auto& [name, entry] : table()) names.push_back(name);
    return names;
}

}  // namespace assay::golden
