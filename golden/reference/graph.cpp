#include "golden/reference/graph.hpp"

#include <cmath>

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include "support/error.hpp"

namespace assay::golden {

const std::string& Step::name() const {
    static const std::string kNone;
    for (const std::string& output : outputs)
        if (!output.empty()) return output;
    return kNone;
}

const Value* Env::find(const std::string& name) const {
    for (const Env* env = this; env; env = env->around_) {
        if (const auto it = env->own.find(name); it != env->own.end()) return &it->second;
        if (const auto it = env->graph_.constants.find(name); it != env->graph_.constants.end()) return &it->second;
    }
    return nullptr;
}

namespace {

/// An operator's result in a 16-bit type: rounded once more than the operator's own arithmetic says. Exact elements stay exact.
void round_narrow(Value& value, const Numerics& numerics) {
    if (value.dtype != DType::f16 && value.dtype != DType::bf16) return;
    const bool half = value.dtype == DType::f16;
    if (numerics.mode == Mode::emulate) value.f = to_value(to_tensor(value)).f;
    for (std::size_t i = 0; i < value.err.size(); ++i)
        // The unit roundoffs of 11 and 8 significant bits, and half of fp16's least subnormal.
        if (value.err[i] > 0) value.err[i] += half ? 0x1p-11 * std::fabs(value.f[i]) + 0x1p-25 : 0x1p-8 * std::fabs(value.f[i]);
}

}  // namespace

void evaluate(const Step& step, Env& env, const Arithmetic& arithmetic) {
    std::vector<Value> out;
    if (!step.bodies.empty()) {
        out = run_control(step, env, arithmetic);
    } else {
        std::vector<const Value*> in;
        for (const std::string& input : step.inputs) in.push_back(input.empty() ? nullptr : env.find(input));
        const Numerics numerics = arithmetic(step);
        const Node node(*step.proto, step.op.version, std::move(in), numerics, step.label);
        try {
            out = step.op.kernel(node);
            for (Value& value : out) round_narrow(value, numerics);
        } catch (const Error& error) {
            const std::string text = error.what();
            if (error.kind() != ErrorKind::bad_input || text.starts_with(env.graph().model)) throw;
            node.fail(text);  // from a helper that does not know the node
        }
        node.check_all_attributes_used();
    }
    if (out.size() < step.outputs.size())
        throw Error(ErrorKind::bad_input, fmt::format("{}: has {} outputs, only {} is supported", step.label, step.outputs.size(), out.size()));
    for (std::size_t o = 0; o < step.outputs.size(); ++o)
        if (!step.outputs[o].empty()) env.own[step.outputs[o]] = std::move(out[o]);
}

}  // namespace assay::golden
