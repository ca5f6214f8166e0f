#pragma once
// One rewrite a family. Each throws NotTakenApart when the node is outside what it covers, and NodeError when the node breaks the operator's
// rules; nothing is in the graph before Rewriter::commit.
#include "workloads/passes/decompose/rewriter.hpp"

namespace assay::workloads {

void take_apart_recurrent(Rewriter& r);       ///< LSTM, GRU, RNN
void take_apart_normalization(Rewriter& r);   ///< Layer, RMS, Group, Instance, MeanVariance and LpNormalization
void take_apart_reduction(Rewriter& r);       ///< LogSoftmax, ReduceLogSumExp, CumSum
void take_apart_conv_transpose(Rewriter& r);  ///< ConvTranspose
void take_apart_attention(Rewriter& r);       ///< Attention, RotaryEmbedding

}  // namespace assay::workloads
