#include "campaign/sweep.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "campaign/subprocess.hpp"
#include "simkernel/chip_config.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/hash.hpp"

namespace assay::campaign {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

constexpr std::size_t kMostPoints = 10'000;

/// What a point is: everything that its figures depend on.
struct PointPlan {
    std::vector<std::string> values;
    std::string chip_name, precision, target;
    std::vector<std::string> set;  ///< chip parameters as the child gets them
    simkernel::ChipConfig chip;
    std::string problem;           ///< the chip is not sound: the point is a row without a run
    std::string id;                ///< hash of what its figures depend on
};

/// hbm.gbps of all channels to bytes a channel and cycle.
std::string bandwidth_parameter(const std::string& text, const simkernel::ChipConfig& chip) {
    double gbps = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), gbps);
    if (error != std::errc() || end != text.data() + text.size() || !(gbps > 0)) throw Error(ErrorKind::usage, fmt::format("--set hbm.gbps={}: not a positive number", text));
    const double per_byte = static_cast<double>(chip.clock_mhz) * static_cast<double>(chip.hbm_channels) / 1000;
    const double bytes = gbps / per_byte;
    if (std::abs(bytes - std::nearbyint(bytes)) > 1e-6 * bytes || bytes < 0.5)
        throw Error(ErrorKind::usage, fmt::format("--set hbm.gbps={}: is {:.3f} bytes a channel and cycle; give a multiple of {:g} ({} channels at {} MHz)", text, bytes, per_byte,
                                                  chip.hbm_channels, chip.clock_mhz));
    return fmt::format("hbm.bytes_per_cycle={}", std::llround(bytes));
}

PointPlan plan_point(const SweepOptions& options, const std::vector<std::string>& values) {
    PointPlan plan{values, options.chip, options.precision, options.target, {}, {}, "", ""};
    std::vector<std::string> bandwidths;
    for (std::size_t a = 0; a < values.size(); ++a) {
        const std::string& key = options.axes[a].key;
        if (key == "chip") plan.chip_name = values[a];
        else if (key == "precision") plan.precision = values[a];
        else if (key == "target") plan.target = values[a];
        else if (key == "hbm.gbps") bandwidths.push_back(values[a]);
        else plan.set.push_back(key + "=" + values[a]);
    }
    plan.chip = simkernel::find_chip_config(plan.chip_name);
    for (const std::string& assignment : plan.set) simkernel::set_parameter(plan.chip, assignment);
    // Last: it depends on the clock and the channels, which may be axes too.
    for (const std::string& text : bandwidths) {
        plan.set.push_back(bandwidth_parameter(text, plan.chip));
        simkernel::set_parameter(plan.chip, plan.set.back());
    }
    if (const auto problems = simkernel::check_config(plan.chip); !problems.empty()) plan.problem = fmt::format("{}", fmt::join(problems, "; "));
    return plan;
}

std::vector<PointPlan> plan_points(const SweepOptions& options) {
    std::size_t count = 1;
    std::set<std::string> keys;
    for (const SweepAxis& axis : options.axes) {
        if (!keys.insert(axis.key).second) throw Error(ErrorKind::usage, fmt::format("--set {}: given twice; list its values in one --set", axis.key));
        count *= axis.values.size();
        if (count > kMostPoints) throw Error(ErrorKind::usage, fmt::format("sweep: more than {} points; sweep fewer values at once", kMostPoints));
    }
    std::vector<PointPlan> plans;
    for (std::size_t p = 0; p < count; ++p) {
        std::vector<std::string> values(options.axes.size());
        for (std::size_t a = options.axes.size(), rest = p; a-- > 0; rest /= options.axes[a].values.size()) values[a] = options.axes[a].values[rest % options.axes[a].values.size()];
        plans.push_back(plan_point(options, values));
    }
    return plans;
}

/// Names and contents of what the model is fed.
std::string hash_inputs_of(const SweepOptions& options) {
    std::string text;
    for (const std::string& argument : options.inputs) {
        const std::size_t equals = argument.find('=');
        const fs::path path = fs::exists(argument) || equals == std::string::npos ? argument : argument.substr(equals + 1);
        std::vector<fs::path> files;
        if (fs::is_directory(path))
            for (const auto& entry : fs::directory_iterator(path)) files.push_back(entry.path());
        else files.push_back(path);
        std::sort(files.begin(), files.end());
        for (const fs::path& file : files)
            if (fs::is_regular_file(file)) text += fmt::format("{} {} {}\n", argument, file.filename().string(), sha256_file(file));
    }
    return text;
}

/// The last line of a log that says something, without the program's own prefix.
std::string last_words(const fs::path& log) {
    std::string text, line, last;
    try {
        text = read_text(log);
    } catch (const Error&) {
        return "it left no log";
    }
    std::size_t more = 0;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        line = text.substr(at, end - at);
        at = end + 1;
        if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
        if (last.empty()) last = line;
        else ++more;
    }
    if (last.starts_with("assay: ")) last = last.substr(7);
    return more > 0 ? fmt::format("{} (and {} more lines in the log)", last, more) : last;
}

void read_verdict(SweepPoint& point, const json& verdict, const PointPlan& plan, const EnergyTable& energy) {
    point.verdict = verdict.at("verdict");
    point.reason = verdict.at("reason");
    point.cycles = verdict.at("cycles");
    point.macs = verdict.at("macs");
    point.host_share = verdict.value("host_share", 0.0);
    if (point.cycles == 0) return;
    const auto cycles = static_cast<double>(point.cycles);
    point.milliseconds = cycles / (static_cast<double>(plan.chip.clock_mhz) * 1e3);
    point.utilisation = static_cast<double>(point.macs) / (cycles * static_cast<double>(plan.chip.mxu_rows * plan.chip.mxu_cols * plan.chip.cores));
    const json& counters = verdict.at("counters");
    point.matrix_busy = counters.at("matrix").at("busy").get<double>() / (cycles * static_cast<double>(plan.chip.cores));
    point.hbm_bytes = counters.at("load").at("work").get<std::uint64_t>() + counters.at("store").at("work").get<std::uint64_t>();
    point.energy = estimate_energy(verdict, plan.chip, energy);
}

/// Runs one point in a child. Returns true when its record is final: a child that was killed, or whose machine failed it, is tried again
/// by the next sweep.
bool run_point(SweepPoint& point, const PointPlan& plan, const SweepOptions& options, const fs::path& folder, const EnergyTable& energy) {
    const fs::path verdict = folder / (plan.id + ".verdict.json"), log = folder / (plan.id + ".log");
    std::vector<std::string> words{"run", options.model, "--target", plan.target, "--chip", plan.chip_name, "--precision", plan.precision, "--seed", std::to_string(options.seed),
                                   "--json", verdict.string(), "--no-progress", "--no-color"};
    if (!options.judge) words.insert(words.end(), {"--measure", "1"});
    for (const std::string& assignment : plan.set) words.insert(words.end(), {"--set", assignment});
    for (const std::string& input : options.inputs) words.insert(words.end(), {"--input", input});
    for (const std::string& dim : options.dims) words.insert(words.end(), {"--dim", dim});
    if (options.jobs > 1) words.insert(words.end(), {"--threads", std::to_string(std::max(1u, std::thread::hardware_concurrency() / options.jobs))});
    std::error_code error;
    fs::remove(verdict, error);
    const ChildResult child = run_assay(words, log.string());
    point.wall_seconds = child.seconds;
    point.exit_status = child.exit_status;
    if (fs::exists(verdict)) {
        const json parsed = json::parse(read_text(verdict));
        read_verdict(point, parsed, plan, energy);
    } else {
        point.reason = child.exit_status >= 128 ? fmt::format("the run was ended by signal {}", child.exit_status - 128) : last_words(log);
    }
    fs::remove(verdict, error);
    return child.exit_status <= 2 || child.exit_status == 4;
}

json point_json(const SweepPoint& p) {
    return {{"values", p.values}, {"verdict", p.verdict}, {"reason", p.reason}, {"exit_status", p.exit_status}, {"cycles", p.cycles}, {"macs", p.macs}, {"hbm_bytes", p.hbm_bytes},
            {"milliseconds", p.milliseconds}, {"utilisation", p.utilisation}, {"matrix_busy", p.matrix_busy}, {"host_share", p.host_share},
            {"energy_estimate_pj", {{"matrix", p.energy.matrix_pj}, {"vector", p.energy.vector_pj}, {"sram", p.energy.sram_pj}, {"hbm", p.energy.hbm_pj}, {"total", p.energy.total_pj()}}},
            {"wall_seconds", p.wall_seconds}};
}

/// False when there is no record, or it is not one of ours.
bool read_point(SweepPoint& p, const fs::path& file) {
    if (!fs::exists(file)) return false;
    try {
        const json j = json::parse(read_text(file));
        p.verdict = j.at("verdict");
        p.reason = j.at("reason");
        p.exit_status = j.at("exit_status");
        p.cycles = j.at("cycles");
        p.macs = j.at("macs");
        p.hbm_bytes = j.at("hbm_bytes");
        p.milliseconds = j.at("milliseconds");
        p.utilisation = j.at("utilisation");
        p.matrix_busy = j.at("matrix_busy");
        p.host_share = j.at("host_share");
        const json& e = j.at("energy_estimate_pj");
        p.energy = {e.at("matrix"), e.at("vector"), e.at("sram"), e.at("hbm")};
        p.wall_seconds = j.at("wall_seconds");
        p.reused = true;
        return true;
    } catch (const json::exception&) {
        return false;  // not written by this version: the point runs again
    }
}

std::string duration(double seconds) {
    const auto s = static_cast<long>(std::ceil(seconds));
    return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60) : fmt::format("{}:{:02}", s / 60, s % 60);
}

std::string describe(const std::vector<SweepAxis>& axes, const SweepPoint& p) {
    std::vector<std::string> words;
    for (std::size_t a = 0; a < axes.size(); ++a) words.push_back(axes[a].key + "=" + p.values[a]);
    return fmt::format("{}: {}", fmt::join(words, " "), p.measured() ? fmt::format("{} cycles", p.cycles) : p.reason);
}

void make_folder(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error || !fs::is_directory(folder)) throw Error(ErrorKind::io, fmt::format("--out {}: cannot be made ({})", folder.string(), error.message()));
}

}  // namespace

SweepAxis parse_axis(const std::string& text) {
    const std::size_t equals = text.find('=');
    SweepAxis axis{text.substr(0, equals), {}};
    if (equals == std::string::npos || equals == 0) throw Error(ErrorKind::usage, fmt::format("--set {}: not KEY=VALUE,VALUE,…", text));
    for (std::size_t at = equals + 1; at <= text.size();) {
        const std::size_t comma = std::min(text.find(',', at), text.size());
        if (comma == at) throw Error(ErrorKind::usage, fmt::format("--set {}: an empty value", text));
        axis.values.push_back(text.substr(at, comma - at));
        at = comma + 1;
    }
    if (std::set<std::string>(axis.values.begin(), axis.values.end()).size() != axis.values.size()) throw Error(ErrorKind::usage, fmt::format("--set {}: a value is given twice", text));
    return axis;
}

SweepReport run_sweep(const SweepOptions& options) {
    const EnergyTable energy = load_energy_table(options.energy);
    std::vector<PointPlan> plans = plan_points(options);
    const fs::path out = options.out_dir, folder = out / "points";
    make_folder(folder);
    // A record is reused only when the program, the model, its inputs, the chip and the energies are what they were.
    const std::string energies = fmt::format("{} {} {} {} {} {} {}", energy.mac_int8, energy.mac_bf16, energy.mac_fp16, energy.mac_fp8, energy.vector_element,
                                             energy.sram_byte, energy.hbm_byte);
    const std::string common = fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}", sha256_file("/proc/self/exe"), sha256_file(options.model), hash_inputs_of(options),
                                           fmt::join(options.dims, " "), options.seed, options.judge, energies);
    SweepReport report{options.model, energy.name, options.axes, {}};
    for (PointPlan& plan : plans) {
        const std::string text = fmt::format("{}\n{}\n{}\n{}", common, simkernel::to_toml(plan.chip), plan.precision, plan.target);
        plan.id = sha256(std::as_bytes(std::span(text))).substr(0, 16);
        SweepPoint point;
        point.values = plan.values;
        report.points.push_back(point);
    }
    std::vector<std::size_t> todo;
    for (std::size_t i = 0; i < plans.size(); ++i) {
        if (!plans[i].problem.empty()) {
            report.points[i].reason = plans[i].problem;
            report.points[i].exit_status = 2;
        } else if (!read_point(report.points[i], folder / (plans[i].id + ".json"))) {
            todo.push_back(i);
        }
    }
    std::atomic<std::size_t> next = 0;
    std::size_t finished = 0;
    std::mutex mutex;
    std::exception_ptr failure;
    const auto began = std::chrono::steady_clock::now();
    const auto work = [&] {
        try {
            for (std::size_t t = next++; t < todo.size(); t = next++) {
                SweepPoint& point = report.points[todo[t]];
                const PointPlan& plan = plans[todo[t]];
                if (run_point(point, plan, options, folder, energy)) write_file(folder / (plan.id + ".json"), point_json(point).dump(1) + "\n");
                const std::scoped_lock lock(mutex);
                ++finished;
                const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
                const double left = elapsed / static_cast<double>(finished) * static_cast<double>(todo.size() - finished);
                if (options.progress)
                    options.progress(fmt::format("{}/{} {}; {} left", plans.size() - todo.size() + finished, plans.size(), describe(options.axes, point), duration(left)));
            }
        } catch (...) {
            const std::scoped_lock lock(mutex);
            if (!failure) failure = std::current_exception();
            next = todo.size();
        }
    };
    std::vector<std::thread> threads;
    for (unsigned j = 1; j < std::min<std::size_t>(options.jobs, todo.size()); ++j) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
    write_file(out / "sweep.csv", to_csv(report));
    write_file(out / "sweep.json", to_json(report));
    write_file(out / "sweep.html", to_html(report));
    return report;
}

std::string to_json(const SweepReport& report) {
    json points = json::array(), axes = json::array();
    for (const SweepAxis& axis : report.axes) axes.push_back({{"key", axis.key}, {"values", axis.values}});
    for (const SweepPoint& p : report.points) {
        json point = point_json(p);
        json assignment = json::object();
        for (std::size_t a = 0; a < report.axes.size(); ++a) assignment[report.axes[a].key] = p.values[a];
        point["set"] = assignment;
        points.push_back(std::move(point));
    }
    return json{{"schema", "assay.sweep.1"}, {"model", report.model}, {"energy_table", report.energy_table},
                {"energy_basis", "estimate: operations of the modelled chip times published energies; no clock tree, leakage or control"},
                {"cycles_basis", "uncalibrated: see verdict.json"}, {"axes", axes}, {"points", points}}
               .dump(1) +
           "\n";
}

}  // namespace assay::campaign
