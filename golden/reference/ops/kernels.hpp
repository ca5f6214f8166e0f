#pragma once
// Every kernel of the reference. The semantics of each are those of the ONNX operator specification, at the versions in registry.cpp.
#include "golden/reference/node.hpp"

namespace assay::golden::ops {

using Outputs = std::vector<Value>;

// elementwise_unary.cpp
Outputs relu(const Node&);
Outputs leaky_relu(const Node&);
Outputs sigmoid(const Node&);
Outputs hard_sigmoid(const Node&);
Outputs hard_swish(const Node&);
Outputs tanh(const Node&);
Outputs exp(const Node&);
Outputs sqrt(const Node&);
Outputs neg(const Node&);
Outputs abs(const Node&);
Outputs floor(const Node&);
Outputs identity(const Node&);
// clip.cpp
Outputs clip(const Node&);
// elementwise_binary.cpp
Outputs sum(const Node&);
Outputs mean(const Node&);
Outputs add(const Node&);
Outputs sub(const Node&);
Outputs mul(const Node&);
Outputs div(const Node&);
Outputs min(const Node&);
Outputs max(const Node&);
Outputs pow(const Node&);
// conv.cpp
Outputs conv(const Node&);
// matmul.cpp
Outputs matmul(const Node&);
Outputs gemm(const Node&);
// batch_normalization.cpp
Outputs batch_normalization(const Node&);
// pool.cpp
Outputs max_pool(const Node&);
Outputs average_pool(const Node&);
Outputs global_average_pool(const Node&);
Outputs global_max_pool(const Node&);
Outputs lp_pool(const Node&);
Outputs global_lp_pool(const Node&);
Outputs max_unpool(const Node&);
// sampling.cpp
Outputs grid_sample(const Node&);
Outputs affine_grid(const Node&);
Outputs deform_conv(const Node&);
// regions.cpp
Outputs roi_align(const Node&);
Outputs max_roi_pool(const Node&);
Outputs non_max_suppression(const Node&);
// softmax.cpp
Outputs log_softmax(const Node&);
Outputs hardmax(const Node&);
Outputs softmax(const Node&);
// reduce.cpp
Outputs reduce_min(const Node&);
Outputs reduce_prod(const Node&);
Outputs reduce_l1(const Node&);
Outputs reduce_l2(const Node&);
Outputs reduce_log_sum(const Node&);
Outputs reduce_log_sum_exp(const Node&);
Outputs reduce_sum_square(const Node&);
Outputs reduce_mean(const Node&);
Outputs reduce_sum(const Node&);
Outputs reduce_max(const Node&);
// reshape.cpp
Outputs reshape(const Node&);
Outputs flatten(const Node&);
Outputs squeeze(const Node&);
Outputs unsqueeze(const Node&);
// movement.cpp
Outputs transpose(const Node&);
Outputs concat(const Node&);
Outputs slice(const Node&);
Outputs gather(const Node&);
Outputs pad(const Node&);
// arrange.cpp
Outputs split(const Node&);
Outputs expand(const Node&);
Outputs tile(const Node&);
Outputs depth_to_space(const Node&);
Outputs space_to_depth(const Node&);
Outputs trilu(const Node&);
Outputs center_crop_pad(const Node&);
Outputs reverse_sequence(const Node&);
// select.cpp
Outputs gather_elements(const Node&);
Outputs gather_nd(const Node&);
Outputs compress(const Node&);
Outputs non_zero(const Node&);
Outputs unique(const Node&);
Outputs one_hot(const Node&);
Outputs where(const Node&);
// scatter.cpp
Outputs scatter_nd(const Node&);
Outputs scatter_elements(const Node&);
Outputs col2im(const Node&);
// einsum.cpp
Outputs einsum(const Node&);
// determinant.cpp
Outputs det(const Node&);
// spectrum.cpp
Outputs dft(const Node&);
Outputs stft(const Node&);
// signal_tables.cpp
Outputs hann_window(const Node&);
Outputs hamming_window(const Node&);
Outputs blackman_window(const Node&);
Outputs mel_weight_matrix(const Node&);
// attention.cpp
Outputs attention(const Node&);
// cache.cpp
Outputs rotary_embedding(const Node&);
Outputs tensor_scatter(const Node&);
// constant.cpp
Outputs cast_like(const Node&);
Outputs dropout(const Node&);
Outputs constant(const Node&);
Outputs constant_of_shape(const Node&);
Outputs shape(const Node&);
Outputs size(const Node&);
Outputs range(const Node&);
Outputs eye_like(const Node&);
Outputs cast(const Node&);
// quantize.cpp
Outputs quantize_linear(const Node&);
Outputs dequantize_linear(const Node&);
Outputs dynamic_quantize_linear(const Node&);
// compare.cpp
Outputs equal(const Node&);
Outputs greater(const Node&);
Outputs less(const Node&);
Outputs greater_or_equal(const Node&);
Outputs less_or_equal(const Node&);
Outputs prelu(const Node&);
// conv_transpose.cpp
Outputs conv_transpose(const Node&);
// resize.cpp
Outputs resize(const Node&);  ///< and Upsample
// recurrent.cpp
Outputs rnn(const Node&);
Outputs gru(const Node&);
Outputs lstm(const Node&);
// qlinear.cpp
Outputs qlinear_conv(const Node&);
Outputs qlinear_matmul(const Node&);
Outputs conv_integer(const Node&);
Outputs matmul_integer(const Node&);
// activation.cpp
Outputs elu(const Node&);
Outputs selu(const Node&);
Outputs celu(const Node&);
Outputs gelu(const Node&);
Outputs swish(const Node&);
Outputs mish(const Node&);
Outputs softplus(const Node&);
Outputs softsign(const Node&);
Outputs thresholded_relu(const Node&);
Outputs shrink(const Node&);
Outputs log(const Node&);
Outputs erf(const Node&);
Outputs reciprocal(const Node&);
Outputs sin(const Node&);
Outputs cos(const Node&);
Outputs tan(const Node&);
Outputs asin(const Node&);
Outputs acos(const Node&);
Outputs atan(const Node&);
Outputs sinh(const Node&);
Outputs cosh(const Node&);
Outputs asinh(const Node&);
Outputs acosh(const Node&);
Outputs atanh(const Node&);
// logic.cpp
Outputs ceil(const Node&);
Outputs round(const Node&);
Outputs sign(const Node&);
Outputs is_nan(const Node&);
Outputs is_inf(const Node&);
Outputs logical_not(const Node&);
Outputs logical_and(const Node&);
Outputs logical_or(const Node&);
Outputs logical_xor(const Node&);
Outputs bitwise_not(const Node&);
Outputs bitwise_and(const Node&);
Outputs bitwise_or(const Node&);
Outputs bitwise_xor(const Node&);
Outputs bit_shift(const Node&);
Outputs mod(const Node&);
// order.cpp
Outputs arg_max(const Node&);
Outputs arg_min(const Node&);
Outputs top_k(const Node&);
Outputs cum_sum(const Node&);
// normalization.cpp
Outputs layer_normalization(const Node&);
Outputs rms_normalization(const Node&);
Outputs group_normalization(const Node&);
Outputs instance_normalization(const Node&);
Outputs mean_variance_normalization(const Node&);
Outputs lp_normalization(const Node&);
Outputs lrn(const Node&);

}  // namespace assay::golden::ops
