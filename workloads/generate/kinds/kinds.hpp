#pragma once
// Builders of the kinds, by family. Each reads as its paper's table: see catalogue.cpp for sizes.
#include "workloads/generate/catalogue.hpp"
#include "workloads/generate/net.hpp"

namespace assay::workloads::generate {

// classifiers.cpp
void build_resnet_basic(Net& net, const Dimensions& d);       ///< resnet18, resnet34: two 3x3 a block; `layers` in total
void build_resnet_bottleneck(Net& net, const Dimensions& d);  ///< resnet50, 101, 152
void build_vgg(Net& net, const Dimensions& d);
void build_densenet(Net& net, const Dimensions& d);
void build_googlenet(Net& net, const Dimensions& d);
// mobile.cpp
void build_mobilenet_v2(Net& net, const Dimensions& d);
void build_mobilenet_v3(Net& net, const Dimensions& d);
void build_efficientnet_lite(Net& net, const Dimensions& d);
// images.cpp
void build_unet(Net& net, const Dimensions& d);
void build_decoder(Net& net, const Dimensions& d);
// transformers.cpp
void build_bert(Net& net, const Dimensions& d);
void build_gpt2(Net& net, const Dimensions& d);
void build_vit(Net& net, const Dimensions& d);
void build_attention(Net& net, const Dimensions& d);
// llama.cpp
void build_llama_layer(Net& net, const Dimensions& d);
void build_llama(Net& net, const Dimensions& d);
void build_moe_layer(Net& net, const Dimensions& d);
// sequences.cpp
void build_lstm(Net& net, const Dimensions& d);
void build_gru(Net& net, const Dimensions& d);
void build_tcn(Net& net, const Dimensions& d);
// single.cpp
void build_dlrm(Net& net, const Dimensions& d);
void build_gemm(Net& net, const Dimensions& d);
void build_conv(Net& net, const Dimensions& d);

/// Inputs that several families share.
inline Value image_input(Net& net, const Dimensions& d) {
    return net.input("image", {d.batch, d.channels, d.image, d.image}, net.float_type(), Fill::image()).with(0, 1);
}
/// Channels times the width multiplier, rounded to a multiple of 8 and never down by more than a tenth (MobileNetV2, appendix of its code).
std::int64_t scaled_channels(std::int64_t channels, std::int64_t width_percent);

}  // namespace assay::workloads::generate
