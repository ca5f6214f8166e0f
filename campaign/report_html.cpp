// report.html: one self-contained page, no script, no network.
#include <fmt/format.h>

#include "campaign/markup.hpp"
#include "campaign/session.hpp"

namespace assay::campaign {
namespace {

std::string mark(golden::Verdict verdict) {
    return fmt::format("<span class=\"v {0}\">{0}</span>", golden::name_of(verdict));
}

std::string limit_cells(const LayerRoofline& layer) {
    return fmt::format("<td>{}</td><td class=n>{:.0f}</td><td class=n>{:.0f}</td>", name_of(layer.limit), 100 * layer.mxu_utilization, 100 * layer.memory_utilization);
}

std::string layer_rows(const SessionReport& r) {
    std::string rows;
    for (std::size_t i = 0; i < r.program.layers.size(); ++i) {
        const simkernel::Layer& layer = r.program.layers[i];
        const std::uint64_t cycles = i < r.run.layer_cycles.size() ? r.run.layer_cycles[i] : 0;
        const double share = r.run.cycles ? 100.0 * static_cast<double>(cycles) / static_cast<double>(r.run.cycles) : 0;
        const golden::TensorVerdict* t = r.judgement.of_layer(i);
        rows += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=n>{}</td><td class=n>{}</td>"
                            "<td class=n>{}</td><td class=n>{:.1f}</td><td><div class=bar style=\"width:{:.0f}px\"></div></td>{}<td>{}</td></tr>\n",
                            escape_markup(layer.name), escape_markup(layer.op), t ? escape_markup(t->shape) : "", layer.precision, t ? mark(t->verdict) : "",
                            t && t->local ? fmt::format("{:.3g}", t->local->max_ratio) : "", t && t->global ? fmt::format("{:.3g}", t->global->r_rms) : "",
                            cycles, share, share * 1.5, i < r.roofline.size() ? limit_cells(r.roofline[i]) : "<td><td><td>", escape_markup(layer.mapping));
    }
    return rows;
}

std::string output_rows(const SessionReport& r) {
    std::string rows;
    for (const golden::TensorVerdict& t : r.judgement.outputs)
        rows += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=n>{:.4g}</td><td class=n>{:.4g}</td><td>{}</td></tr>\n", escape_markup(t.name),
                            t.role, escape_markup(t.shape), mark(t.verdict), t.max_abs, t.max_rel, escape_markup(t.reason));
    return rows;
}

std::string engine_rows(const SessionReport& r) {
    std::string rows;
    for (std::size_t core = 0; core < r.run.core_counters.size(); ++core) {
        const std::string of_core = r.run.core_counters.size() > 1 ? fmt::format("core {} ", core) : "";
        for (const simkernel::Engine engine : simkernel::kAllEngine) {
            rows += fmt::format("<tr><td>{}{}</td>", of_core, simkernel::name_of(engine));
            for (const std::uint64_t value : r.run.core_counters[core][static_cast<std::size_t>(engine)]) rows += fmt::format("<td class=n>{}</td>", value);
            rows += "</tr>\n";
        }
    }
    return rows;
}

constexpr const char* kStyle =
    "body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1200px;color:#222}table{border-collapse:collapse;margin:.5em 0 1.5em}"
    "td,th{padding:.2em .6em;border-bottom:1px solid #ddd;text-align:left;vertical-align:top}td.n{text-align:right;font-variant-numeric:tabular-nums}"
    ".v{font-weight:600}.PASS,.MEASURED{color:#176b2c}.FAIL,.ERROR,.MISS{color:#b3151d}.INCONCLUSIVE,.SKIP{color:#8a6100}"
    ".bar{background:#4a78b5;height:.8em}pre{background:#f5f5f5;padding:.6em;white-space:pre-wrap}";

}  // namespace

std::string to_html(const SessionReport& r) {
    std::string html = fmt::format(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Assay: {0}</title><style>{1}</style>\n<h1>{2} {0}</h1>\n"
        "<p>Target <b>{3}</b>, chip <b>{4}</b>, precision {5}, seed {6}; data: {7}. {8} cycles at {9} MHz (uncalibrated); "
        "device {10:.3f} s of host time, peak memory {11:.0f} MiB.</p>\n",
        escape_markup(r.program.model_path), kStyle, mark(r.verdict), escape_markup(r.target), escape_markup(r.chip.name), r.precision, r.seed, escape_markup(r.data), r.run.cycles,
        r.chip.clock_mhz, r.seconds.device, static_cast<double>(r.peak_rss_bytes) / 1048576.0);
    if (!r.reason.empty()) html += fmt::format("<pre>{}</pre>\n", escape_markup(r.reason));
    if (!r.first_failing_layer.empty()) html += fmt::format("<p>First failing layer: <b>{}</b></p>\n", escape_markup(r.first_failing_layer));
    if (!r.run.findings.empty()) {
        html += "<h2>Sanitizer</h2><ul>";
        for (const simkernel::Finding& f : r.run.findings)
            html += fmt::format("<li>{} at descriptor {}: {}</li>", simkernel::name_of(f.kind), f.descriptor, escape_markup(f.text));
        html += "</ul>\n";
    }
    html += "<h2>Outputs</h2><table><tr><th>tensor<th>judged against<th>shape<th>verdict<th>max abs<th>max rel<th>why</tr>\n" + output_rows(r) + "</table>\n";
    html += "<h2>Layers</h2><table><tr><th>layer<th>op<th>shape<th>precision<th>verdict<th>error / allowance<th>global r<th>cycles<th>%<th><th>limited by<th>MXU %<th>memory %<th>mapping</tr>\n" +
            layer_rows(r) + "</table>\n";
    if (const std::string picture = roofline_svg(r.program, r.roofline, r.chip); !picture.empty())
        html += "<h2>Roofline</h2>" + picture +
                "<p>A dot a layer, its area by its cycles, coloured by what limits it. Sloped: device memory; flat: the matrix unit at one product a MAC, and the "
                "vector unit. Dots far below a roof wait: for latency or for each other.</p>\n";
    html += "<h2>Engines</h2><table><tr><th>engine";
    for (const std::string_view name : simkernel::kCounterNames) html += fmt::format("<th>{}", name);
    html += "</tr>\n" + engine_rows(r) + "</table>\n<p>Host fallback: " + escape_markup(fallback_text(r.program)) + "</p></html>\n";
    return html;
}

}  // namespace assay::campaign
