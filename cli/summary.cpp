#include "cli/summary.hpp"

#include <fmt/format.h>

#include "cli/commands.hpp"

namespace assay::cli {

using golden::Verdict;

std::string colored(Verdict verdict) {
    const std::string name(golden::name_of(verdict));
    switch (verdict) {
        case Verdict::pass: case Verdict::measured: return green(name);
        case Verdict::fail: case Verdict::error: case Verdict::miss: return red(name);
        case Verdict::inconclusive: case Verdict::skip: return yellow(name);
    }
    return name;
}

namespace {

std::string percent(std::uint64_t part, std::uint64_t whole) {
    return whole ? fmt::format("{:.1f}", 100.0 * static_cast<double>(part) / static_cast<double>(whole)) : "-";
}

std::string shorten(const std::string& text, std::size_t width) {
    return text.size() <= width ? text : "…" + text.substr(text.size() - width + 1);
}

std::string layer_table(const campaign::SessionReport& r) {
    Table table({"layer", "op", "shape", "prec", "verdict", "err/allow", "global r", "cycles", "share %", "MXU %"},
                {false, false, false, false, false, true, true, true, true, true});
    const double peak = static_cast<double>(r.chip.mxu_rows * r.chip.mxu_cols);
    for (std::size_t i = 0; i < r.program.layers.size(); ++i) {
        const simkernel::Layer& layer = r.program.layers[i];
        const std::uint64_t cycles = i < r.run.layer_cycles.size() ? r.run.layer_cycles[i] : 0;
        const golden::TensorVerdict* t = r.judgement.of_layer(i);
        const bool matrix = layer.macs > 0 && cycles > 0;
        // Array slots used by the passes of this layer's matrix work: six passes for the three-way split.
        const double passes = layer.precision == "bf16x3" ? 6.0 : 1.0;
        table.add({shorten(layer.name, 28), shorten(layer.op, 30), t ? t->shape : "", layer.precision, t ? colored(t->verdict) : "-",
                   t && t->local ? fmt::format("{:.3g}", t->local->max_ratio) : "-", t && t->global ? fmt::format("{:.3g}", t->global->r_rms) : "-",
                   std::to_string(cycles), percent(cycles, r.run.cycles),
                   matrix ? fmt::format("{:.1f}", 100.0 * passes * static_cast<double>(layer.macs) / (peak * static_cast<double>(cycles))) : "-"});
    }
    return table.text();
}

std::string engine_table(const campaign::SessionReport& r) {
    Table table({"engine", "busy %", "wait sem %", "wait mem %", "idle %", "descriptors", "work"}, {false, true, true, true, true, true, true});
    for (std::size_t core = 0; core < r.run.core_counters.size(); ++core) {
        for (const simkernel::Engine engine : simkernel::kAllEngine) {
            const auto& c = r.run.core_counters[core][static_cast<std::size_t>(engine)];
            if (c[4] == 0) continue;
            const std::string of_core = r.run.core_counters.size() > 1 ? fmt::format("core {} ", core) : "";
            table.add({of_core + std::string(simkernel::name_of(engine)), percent(c[0], r.run.cycles), percent(c[1], r.run.cycles), percent(c[2], r.run.cycles),
                       percent(c[3], r.run.cycles), std::to_string(c[4]), std::to_string(c[5])});
        }
    }
    return table.text();
}

std::string output_table(const campaign::SessionReport& r) {
    Table table({"output", "against", "shape", "verdict", "max abs", "max rel", ""}, {false, false, false, false, true, true, false});
    for (const golden::TensorVerdict& t : r.judgement.outputs)
        table.add({shorten(t.name, 28), t.role == "published" ? "published" : "golden", t.shape, colored(t.verdict), fmt::format("{:.3g}", t.max_abs),
                   fmt::format("{:.3g}", t.max_rel), t.reason});
    return table.text();
}

}  // namespace

std::string summary(const campaign::SessionReport& r) {
    std::string text;
    if (!r.judgement.tensors.empty()) text += layer_table(r) + "\n" + engine_table(r) + "\n" + output_table(r) + "\n";
    for (const std::string& warning : r.judgement.warnings) text += fmt::format("warning: {}\n", warning);
    for (const simkernel::Finding& f : r.run.findings) {
        const std::string layer = f.descriptor < r.program.debug.size() ? r.program.layers[r.program.debug[f.descriptor].layer].name : "?";
        text += fmt::format("{}: descriptor {} (layer '{}'): {}\n", red(std::string(simkernel::name_of(f.kind))), f.descriptor, layer, f.text);
    }
    std::uint64_t macs = 0;
    for (const simkernel::Layer& layer : r.program.layers) macs += layer.macs;
    const double seconds_on_chip = static_cast<double>(r.run.cycles) / (static_cast<double>(r.chip.clock_mhz) * 1e6);
    text += fmt::format("{}  {} on {} ({}, {}): {} MAC, {} cycles = {:.3f} ms at {} MHz (uncalibrated)\n", colored(r.verdict), r.program.model_path, r.target,
                        r.chip.name, r.precision, macs, r.run.cycles, 1e3 * seconds_on_chip, r.chip.clock_mhz);
    if (r.verdict != Verdict::pass && !r.reason.empty()) text += fmt::format("  {}\n", r.reason);
    if (!r.first_failing_layer.empty()) text += fmt::format("  first failing layer: {}\n", bold(r.first_failing_layer));
    text += fmt::format("  host seconds: import {:.3f}, compile {:.3f}, golden {:.3f}, device {:.3f}, judge {:.3f}, total {:.3f}; peak memory {:.0f} MiB; fallback: {}\n",
                        r.seconds.import, r.seconds.compile, r.seconds.golden, r.seconds.device, r.seconds.judge, r.seconds.total,
                        static_cast<double>(r.peak_rss_bytes) / 1048576.0, campaign::fallback_text(r.program));
    for (const std::string& artifact : r.artifacts) text += fmt::format("  wrote {}\n", artifact);
    return text;
}

}  // namespace assay::cli
