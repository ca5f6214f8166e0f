#include "campaign/generate.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <onnx/onnx_pb.h>

#include "campaign/host_executor.hpp"
#include "campaign/tokenizer.hpp"
#include "support/error.hpp"

namespace assay::campaign {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point began) { return std::chrono::duration<double>(Clock::now() - began).count(); }

/// What '*' stands for in `text`; nullopt when the pattern does not fit.
std::optional<std::string> match(const std::string& pattern, const std::string& text) {
    const std::size_t star = pattern.find('*');
    if (star == std::string::npos) return pattern == text ? std::optional<std::string>("") : std::nullopt;
    const std::string head = pattern.substr(0, star), tail = pattern.substr(star + 1);
    if (text.size() < head.size() + tail.size() || !text.starts_with(head) || !text.ends_with(tail)) return std::nullopt;
    return text.substr(head.size(), text.size() - head.size() - tail.size());
}

std::string fill(const std::string& pattern, const std::string& middle) {
    const std::size_t star = pattern.find('*');
    return star == std::string::npos ? pattern : pattern.substr(0, star) + middle + pattern.substr(star + 1);
}

struct Carried {
    std::string output, input;
    Shape shape;                      ///< of the input now
    Tensor value;                     ///< host's copy, for the steps in which the device's cannot be used
    std::uint64_t buffer[2] = {0, 0}; ///< device addresses, used in turn
    std::optional<std::vector<int>> perm;  ///< layout in which the device holds it now
};

class Decoder {
public:
    explicit Decoder(const GenerateOptions& options) : options_(options), model_(load_model(request(options))) {
        model_.ranges = calibrated_ranges(model_, options.model, options.precision);
        find_carried();
        find_ports();
        plan_buffers();
        target_ = switchover::make_target(options.target, options.target_options);
    }

    GenerateReport run() {
        const auto began = Clock::now();
        std::optional<Tokenizer> tokenizer;
        if (!options_.tokenizer.empty()) tokenizer.emplace(options_.tokenizer);
        std::vector<std::int64_t> prompt = tokenizer ? tokenizer->encode(options_.prompt) : std::vector<std::int64_t>{Tokenizer::kBegin};
        GenerateReport report;
        report.chip = options_.target_options.chip;
        report.target = options_.target;
        report.precision = options_.precision;
        report.model = options_.model.model;
        report.tokens = {prompt[0]};
        for (unsigned position = 0; position < options_.steps; ++position) {
            const std::int64_t best = step(report.tokens.back(), position, report);
            const std::int64_t next = position + 1 < prompt.size() ? prompt[position + 1] : best;
            if (next == Tokenizer::kBegin || next == Tokenizer::kEnd) break;
            const std::string piece = tokenizer ? tokenizer->decode(report.tokens.back(), next) : fmt::format("{} ", next);
            report.tokens.push_back(next);
            report.text += piece;
            if (options_.on_text) options_.on_text(piece);
        }
        report.total_seconds = since(began);
        return report;
    }

private:
    static ModelRequest request(const GenerateOptions& options) {
        ModelRequest request = options.model;
        request.need_data = false;
        return request;
    }

    void find_carried() {
        const auto inputs = graph_inputs(*model_.proto);
        for (const std::string& given : options_.carry) {
            std::string pattern;  // '.*' means what '*' does
            for (std::size_t i = 0; i < given.size(); ++i)
                if (given.compare(i, 2, ".*") != 0) pattern += given[i];
            const std::size_t equals = pattern.find('=');
            if (equals == std::string::npos) throw Error(ErrorKind::usage, fmt::format("--carry {}: not OUTPUT=INPUT, as in present.*=past.*", pattern));
            const std::string from = pattern.substr(0, equals), to = pattern.substr(equals + 1);
            for (const ValueInfo& output : graph_outputs(*model_.proto)) {
                const auto middle = match(from, output.name);
                if (!middle) continue;
                const std::string name = fill(to, *middle);
                const auto input = std::find_if(inputs.begin(), inputs.end(), [&](const ValueInfo& v) { return v.name == name; });
                if (input == inputs.end()) throw Error(ErrorKind::usage, fmt::format("--carry {}: output '{}' has no input '{}'", pattern, output.name, name));
                Carried carried;
                carried.output = output.name;
                carried.input = name;
                carried.shape = input->shape;
                for (std::int64_t& dim : carried.shape) dim = std::max<std::int64_t>(dim, 0);  // an open dimension is the cache's, empty at first
                carried.value = Tensor(input->dtype, carried.shape);
                carried_.push_back(std::move(carried));
            }
        }
        if (carried_.empty()) throw Error(ErrorKind::usage, fmt::format("--carry {}: no output fits; the model has no state to decode with", fmt::join(options_.carry, " ")));
    }

    void find_ports() {
        token_ = options_.token_input;
        position_ = options_.position_input;
        for (const ValueInfo& input : graph_inputs(*model_.proto)) {
            if (is_carried(input.name)) continue;
            const bool says_position = input.name.find("pos") != std::string::npos;
            if (position_.empty() && says_position) position_ = input.name;
            else if (token_.empty() && !says_position && !is_float(input.dtype)) token_ = input.name;
            if (input.name == token_) token_info_ = input;
            else if (input.name == position_) position_info_ = input;
            else throw Error(ErrorKind::usage, fmt::format("input '{}' is neither tokens, position nor carried; say so with --token, --position or --carry", input.name));
        }
        logits_ = options_.logits_output;
        for (const ValueInfo& output : graph_outputs(*model_.proto))
            if (logits_.empty() && std::none_of(carried_.begin(), carried_.end(), [&](const Carried& c) { return c.output == output.name; })) logits_ = output.name;
        if (token_info_.name.empty() || logits_.empty()) throw Error(ErrorKind::usage, "which input takes tokens and which output gives logits is not clear; use --token and --logits");
    }

    /// Two buffers for each carried tensor, large enough for the last step, at the bottom of device memory.
    void plan_buffers() {
        std::uint64_t at = 0;
        for (Carried& carried : carried_) {
            Shape last;
            for (const ValueInfo& input : graph_inputs(*model_.proto))
                if (input.name == carried.input) last = input.shape;
            for (std::int64_t& dim : last) dim = dim < 0 ? static_cast<std::int64_t>(options_.steps) + 1 : dim;
            const std::uint64_t bytes = (static_cast<std::uint64_t>(element_count(last)) * size_of(carried.value.dtype) + 4095) / 4096 * 4096;
            carried.buffer[0] = at;
            carried.buffer[1] = at + bytes;
            at += 2 * bytes;
        }
        reserved_ = at;
    }

    bool is_carried(const std::string& input) const {
        return std::any_of(carried_.begin(), carried_.end(), [&](const Carried& c) { return c.input == input; });
    }

    static Tensor integer(const ValueInfo& info, std::int64_t value) {
        Shape shape = info.shape;
        for (std::int64_t& dim : shape) dim = dim < 0 ? 1 : dim;
        Tensor t(info.dtype, shape);
        if (t.count() != 1) throw Error(ErrorKind::usage, fmt::format("input '{}' is {}: a decoder takes one token a step", info.name, to_string(shape)));
        if (info.dtype == DType::i64) t.as<std::int64_t>()[0] = value;
        else if (info.dtype == DType::i32) t.as<std::int32_t>()[0] = static_cast<std::int32_t>(value);
        else throw Error(ErrorKind::usage, fmt::format("input '{}' is {}; tokens and positions are int32 or int64", info.name, name_of(info.dtype)));
        return t;
    }

    /// Feeds one token; returns the most likely next one.
    std::int64_t step(std::int64_t token, unsigned position, GenerateReport& report) {
        std::map<std::string, Tensor> inputs;
        inputs[token_] = integer(token_info_, token);
        if (!position_.empty()) inputs[position_] = integer(position_info_, position);
        model_.data.inputs = inputs;
        workloads::CompileOptions compile = compile_options(model_, options_.model, options_.target_options.chip, options_.precision);
        compile.probes_all = false;
        compile.reserved_bytes = reserved_;
        switchover::RunOptions run;
        run.host = execute_host_step;
        run.sanitize = options_.sanitize;
        const std::size_t now = position % 2, then = 1 - now;
        for (const Carried& carried : carried_) {
            compile.input_shapes[carried.input] = carried.value.shape;
            compile.placements[carried.input] = {carried.buffer[now], carried.perm.value_or(std::vector<int>{})};
            compile.placements[carried.output] = {carried.buffer[then], {}};
            inputs[carried.input] = carried.value;
            if (carried.perm) run.resident.insert(carried.input);
        }
        auto began = Clock::now();
        const simkernel::Program program = workloads::compile(*model_.proto, model_.source, compile);
        report.compile_seconds += since(began);
        report.resident_steps += run.resident.size() == carried_.size();
        switchover::Result<switchover::RunResult> ran = switchover::Runtime(*target_).run(program, inputs, run);
        if (!ran.ok()) throw Error(ErrorKind::internal, fmt::format("step {}: {}: {}", position, switchover::name_of(ran.error().kind), ran.error().text));
        switchover::RunResult& result = ran.value();
        if (result.completion.status != static_cast<std::uint32_t>(simkernel::JobStatus::done))
            throw Error(ErrorKind::internal, fmt::format("step {}: the job failed on the chip at descriptor {}", position, result.completion.descriptor));
        if (!result.findings.empty()) throw Error(ErrorKind::internal, fmt::format("step {}: sanitizer: {}", position, result.findings.front().text));
        report.cycles.push_back(result.cycles);
        report.device_seconds += result.device_seconds;
        report.host_seconds += result.host_seconds;
        for (std::size_t i = 0; i < program.layers.size(); ++i) {
            const simkernel::Layer& layer = program.layers[i];
            report.operations += layer.operations;
            if (layer.precision == "host") report.host_operations += layer.operations;
            report.cycles_by_operator[layer.op.substr(0, layer.op.find('+'))] += i < result.layer_cycles.size() ? result.layer_cycles[i] : 0;
        }
        for (Carried& carried : carried_) {
            carried.value = std::move(result.tensors.at(carried.output));
            carried.perm.reset();
            for (const simkernel::TensorSlot& slot : program.tensors)
                if (slot.name == carried.output && !slot.on_host && slot.addr.value == carried.buffer[then]) carried.perm = slot.perm;
        }
        return argmax(result.tensors.at(logits_));
    }

    static std::int64_t argmax(const Tensor& logits) {
        if (logits.count() == 0) throw Error(ErrorKind::internal, "the logits are empty");
        const std::int64_t classes = logits.shape.empty() ? 1 : logits.shape.back(), first = logits.count() - classes;
        std::int64_t best = 0;
        for (std::int64_t i = 1; i < classes; ++i)
            if (logits.value(first + i) > logits.value(first + best)) best = i;
        return best;
    }

    const GenerateOptions& options_;
    LoadedModel model_;
    std::vector<Carried> carried_;
    std::string token_, position_, logits_;
    ValueInfo token_info_, position_info_;
    std::uint64_t reserved_ = 0;
    std::unique_ptr<switchover::Target> target_;
};

}  // namespace

double GenerateReport::tokens_per_second() const {
    std::uint64_t all = 0;
    for (const std::uint64_t c : cycles) all += c;
    return all == 0 ? 0.0 : static_cast<double>(cycles.size()) * static_cast<double>(chip.clock_mhz) * 1e6 / static_cast<double>(all);
}

GenerateReport generate(const GenerateOptions& options) { return Decoder(options).run(); }

std::string to_json(const GenerateReport& r) {
    nlohmann::json out{{"schema", "assay.generate.1"}, {"model", r.model}, {"target", r.target}, {"chip", r.chip.name}, {"precision", r.precision}, {"text", r.text},
                       {"tokens", r.tokens}, {"cycles", r.cycles}, {"tokens_per_second", r.tokens_per_second()}, {"cycles_by_operator", r.cycles_by_operator},
                       {"resident_steps", r.resident_steps},
                       {"host_share", r.operations ? static_cast<double>(r.host_operations) / static_cast<double>(r.operations) : 0.0},
                       {"seconds", {{"compile", r.compile_seconds}, {"device", r.device_seconds}, {"host", r.host_seconds}, {"total", r.total_seconds}}}};
    return out.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace assay::campaign
