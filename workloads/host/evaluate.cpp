#include "workloads/host/evaluate.hpp"
#include <onnx/onnx_pb.h>
#include <algorithm>
#include <cmath>
#include "support/error.hpp"
#include "support/onnx/onnx_file.hpp"
namespace assay::workloads::hostops {
bool supports(const std::string& op, int) { return op == "Identity" || op == "Sin"; }
std::string unsupported_reason(const std::string&) { return ""; }
std::vector<Tensor> evaluate(const onnx::NodeProto& node, int, std::span<const Tensor* const> in) {
    Tensor t = *in[0];
    if (node.op_type() == "Sin") for (auto& x : t.as<float>()) x = static_cast<float>(std::sin(static_cast<double>(x)));
    return {t};
}
std::map<std::string, Tensor> evaluate_model(const onnx::ModelProto& model, const std::map<std::string, Tensor>& inputs) {
    std::map<std::string, Tensor> v = inputs, out;
    for (const auto& i : model.graph().initializer()) v[i.name()] = tensor_from_proto(i, "t");
    for (const auto& n : model.graph().node()) {
        std::vector<const Tensor*> in;
        for (const auto& i : n.input()) in.push_back(i.empty() ? nullptr : &v.at(i));
        auto r = evaluate(n, 13, in);
        for (int o = 0; o < n.output_size(); ++o) v[n.output(o)] = r[static_cast<std::size_t>(o)];
    }
    for (const auto& o : model.graph().output()) out[o.name()] = v.at(o.name());
    return out;
}
}
