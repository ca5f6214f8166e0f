// sweep.csv and sweep.html.
#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "campaign/markup.hpp"
#include "campaign/sweep.hpp"

namespace assay::campaign {
namespace {

/// RFC 4180: quoted where it must be, quotes doubled, line ends kept inside.
std::string field(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"') out += '"';
        out += c;
    }
    return out + "\"";
}

struct Quantity {
    const char* title;
    double (*of)(const SweepPoint&);
};
constexpr Quantity kQuantities[] = {
    {"time at the clock, ms", [](const SweepPoint& p) { return p.milliseconds; }},
    {"utilisation of the array, %", [](const SweepPoint& p) { return 100 * p.utilisation; }},
    {"HBM traffic, MB", [](const SweepPoint& p) { return static_cast<double>(p.hbm_bytes) * 1e-6; }},
    {"energy (estimate), mJ", [](const SweepPoint& p) { return p.energy.total_pj() * 1e-9; }},
};

/// Dark enough on white, apart for colour-blind readers (Okabe and Ito).
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"};
constexpr std::size_t kMostLines = 7;

/// A round number at or above: 1, 2 or 5 times a power of ten.
double round_up(double value) {
    double step = 1e-12;
    while (step < value) {
        for (const double factor : {1.0, 2.0, 5.0})
            if (step * factor >= value) return step * factor;
        step *= 10;
    }
    return step;
}

/// One line a combination of the other axes, over the values of the first one in their order; a point without figures is a gap.
std::string plot(const SweepReport& r, const Quantity& quantity) {
    constexpr double kWidth = 460, kHeight = 260, kLeft = 62, kRight = 12, kTop = 28, kBottom = 40;
    const SweepAxis first = r.axes.empty() ? SweepAxis{"", {""}} : r.axes[0];
    std::map<std::string, std::vector<const SweepPoint*>> lines;
    std::vector<std::string> order;
    double most = 0;
    for (const SweepPoint& p : r.points) {
        std::string rest;
        for (std::size_t a = 1; a < r.axes.size(); ++a) rest += fmt::format("{}{}={}", a > 1 ? " " : "", r.axes[a].key, p.values[a]);
        if (!lines.count(rest)) {
            lines[rest].resize(first.values.size());
            order.push_back(rest);
        }
        const auto at = r.axes.empty() ? 0 : std::find(first.values.begin(), first.values.end(), p.values[0]) - first.values.begin();
        lines[rest][static_cast<std::size_t>(at)] = &p;
        if (p.measured() && order.size() <= kMostLines) most = std::max(most, quantity.of(p));
    }
    const double top = round_up(most > 0 ? most : 1);
    const auto x_of = [&](std::size_t i) { return kLeft + (static_cast<double>(i) + 0.5) * (kWidth - kLeft - kRight) / static_cast<double>(first.values.size()); };
    const auto y_of = [&](double v) { return kHeight - kBottom - v / top * (kHeight - kTop - kBottom); };
    std::string svg = fmt::format("<svg width={} height={} role=img><text x={} y=16 class=t>{}</text>\n", kWidth, kHeight, kLeft, quantity.title);
    for (int tick = 0; tick <= 4; ++tick) {
        const double v = top * tick / 4;
        svg += fmt::format("<line x1={0:.1f} x2={1:.1f} y1={2:.1f} y2={2:.1f} class=g /><text x={3:.1f} y={4:.1f} class=y>{5:.4g}</text>\n", kLeft, kWidth - kRight, y_of(v), kLeft - 6,
                           y_of(v) + 4, v);
    }
    for (std::size_t i = 0; i < first.values.size(); ++i)
        svg += fmt::format("<text x={:.1f} y={:.1f} class=x>{}</text>\n", x_of(i), kHeight - kBottom + 16, escape_markup(first.values[i]));
    svg += fmt::format("<text x={:.1f} y={:.1f} class=x>{}</text>\n", (kLeft + kWidth - kRight) / 2, kHeight - 6, escape_markup(first.key));
    for (std::size_t l = 0; l < std::min(order.size(), kMostLines); ++l) {
        std::string path;
        bool pen = false;
        for (std::size_t i = 0; i < first.values.size(); ++i) {
            const SweepPoint* p = lines[order[l]][i];
            if (!p || !p->measured()) {
                pen = false;
                continue;
            }
            path += fmt::format("{}{:.1f} {:.1f}", pen ? "L" : "M", x_of(i), y_of(quantity.of(*p)));
            svg += fmt::format("<circle cx={:.1f} cy={:.1f} r=3 fill=\"{}\"><title>{} {}: {:.6g}</title></circle>\n", x_of(i), y_of(quantity.of(*p)), kColours[l], escape_markup(first.values[i]),
                               escape_markup(order[l]), quantity.of(*p));
            pen = true;
        }
        if (!path.empty()) svg += fmt::format("<path d=\"{}\" fill=none stroke=\"{}\" stroke-width=2 />\n", path, kColours[l]);
    }
    return svg + "</svg>\n";
}

std::string legend(const SweepReport& r) {
    if (r.axes.size() < 2) return "";
    std::string text = "<p>";
    std::vector<std::string> seen;
    for (const SweepPoint& p : r.points) {
        std::string rest;
        for (std::size_t a = 1; a < r.axes.size(); ++a) rest += fmt::format("{}{}={}", a > 1 ? " " : "", r.axes[a].key, p.values[a]);
        if (std::find(seen.begin(), seen.end(), rest) != seen.end()) continue;
        if (seen.size() < kMostLines) text += fmt::format("<span class=l style=\"border-color:{}\">{}</span> ", kColours[seen.size()], escape_markup(rest));
        seen.push_back(rest);
    }
    if (seen.size() > kMostLines) text += fmt::format("The plots show the first {} of {} combinations; the table has all.", kMostLines, seen.size());
    return text + "</p>\n";
}

}  // namespace

std::string to_csv(const SweepReport& report) {
    std::string text;
    for (const SweepAxis& axis : report.axes) text += field(axis.key) + ",";
    text += "verdict,cycles,milliseconds,macs,utilisation,matrix_busy,hbm_bytes,energy_estimate_mj,host_share,wall_seconds,reason\n";
    for (const SweepPoint& p : report.points) {
        for (const std::string& value : p.values) text += field(value) + ",";
        if (p.measured())
            text += fmt::format("{},{},{:.6f},{},{:.6f},{:.6f},{},{:.6g},{:.6f},{:.3f},{}\n", p.verdict, p.cycles, p.milliseconds, p.macs, p.utilisation, p.matrix_busy, p.hbm_bytes,
                                p.energy.total_pj() * 1e-9, p.host_share, p.wall_seconds, field(p.reason));
        else text += fmt::format("{},,,,,,,,,{:.3f},{}\n", p.verdict, p.wall_seconds, field(p.reason));
    }
    return text;
}

std::string to_html(const SweepReport& r) {
    std::string rows, head;
    for (const SweepAxis& axis : r.axes) head += fmt::format("<th>{}</th>", escape_markup(axis.key));
    for (const SweepPoint& p : r.points) {
        rows += "<tr>";
        for (const std::string& value : p.values) rows += fmt::format("<td class=n>{}</td>", escape_markup(value));
        if (p.measured())
            rows += fmt::format("<td>{}</td><td class=n>{}</td><td class=n>{:.4g}</td><td class=n>{:.1f}</td><td class=n>{:.1f}</td><td class=n>{:.4g}</td><td class=n>{:.4g}</td><td class=n>{:.4g}</td>"
                                "<td class=n>{:.4g}</td><td class=n>{:.4g}</td><td class=n>{:.4g}</td><td>{}</td></tr>\n",
                                p.verdict, p.cycles, p.milliseconds, 100 * p.utilisation, 100 * p.matrix_busy, static_cast<double>(p.hbm_bytes) * 1e-6, p.energy.total_pj() * 1e-9,
                                p.energy.matrix_pj * 1e-9, p.energy.vector_pj * 1e-9, p.energy.sram_pj * 1e-9, p.energy.hbm_pj * 1e-9, escape_markup(p.reason));
        else rows += fmt::format("<td>{}</td><td colspan=11>{}</td></tr>\n", p.verdict.empty() ? "none" : p.verdict, escape_markup(p.reason));
    }
    std::string plots;
    for (const Quantity& quantity : kQuantities) plots += plot(r, quantity);
    return fmt::format(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Sweep of {0}</title>\n"
        "<style>body{{font:14px sans-serif;margin:24px;color:#222}}table{{border-collapse:collapse}}td,th{{padding:3px 9px;border-bottom:1px solid #ddd;text-align:left}}"
        ".n{{text-align:right}}svg{{margin:8px}}.t{{font-weight:bold;font-size:13px}}.g{{stroke:#ddd}}.y{{font-size:11px;text-anchor:end}}.x{{font-size:11px;text-anchor:middle}}"
        ".l{{border-left:14px solid;padding:0 8px}}</style>\n<h1>Sweep of {0}</h1>\n{1}{2}"
        "<p>Cycles are those of the timing model. Utilisation is MAC / (cycles &middot; rows &middot; columns &middot; cores). Energy is an <b>estimate</b>: operations of the modelled chip "
        "times published energies (table {3}); no clock tree, leakage or control.</p>\n"
        "<table><tr>{4}<th>verdict</th><th>cycles</th><th>ms</th><th>utilisation %</th><th>matrix busy %</th><th>HBM MB</th><th>energy mJ</th><th>matrix</th><th>vector</th><th>SRAM</th>"
        "<th>HBM</th><th>reason</th></tr>\n{5}</table></html>\n",
        escape_markup(r.model), legend(r), plots, escape_markup(r.energy_table), head, rows);
}

}  // namespace assay::campaign
