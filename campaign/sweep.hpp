#pragma once
// A sweep: one model over a full factorial of chip parameters, presets, precisions and targets. Each point is a child process (SystemC
// elaborates once a process); a finished point is a file, so that a killed sweep continues where it was.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "campaign/energy.hpp"

namespace assay::campaign {

/// One swept quantity. The key is a chip parameter, or "chip", "precision", "target", or "hbm.gbps" (all channels together, GB/s of 1e9).
struct SweepAxis {
    std::string key;
    std::vector<std::string> values;
};

struct SweepOptions {
    std::string model;
    std::vector<std::string> inputs, dims;
    std::string chip = "aurum-edge", precision = "native", target = "tlm", energy = "7nm";
    std::vector<SweepAxis> axes;
    std::uint64_t seed = 0;
    bool judge = false;     ///< judge every tensor too; else points are only measured
    unsigned jobs = 1;      ///< points at once
    std::string out_dir;
    std::function<void(const std::string&)> progress;  ///< a line a finished point, with the time left; may be empty
};

struct SweepPoint {
    std::vector<std::string> values;  ///< by axis
    std::string verdict;              ///< of the run; "" when it did not get that far
    std::string reason;               ///< why there are no figures: what the compiler or the run said, one line
    bool reused = false;              ///< from an earlier, interrupted sweep
    int exit_status = 0;
    std::uint64_t cycles = 0, macs = 0, hbm_bytes = 0;
    double milliseconds = 0;          ///< of the device, at the clock
    double utilisation = 0;           ///< MAC / (cycles · rows · cols · cores)
    double matrix_busy = 0;           ///< share of cycles
    double host_share = 0;            ///< of the arithmetic, on the host fallback
    Energy energy;                    ///< an estimate
    double wall_seconds = 0;
    bool measured() const { return cycles > 0; }
};

struct SweepReport {
    std::string model, energy_table;
    std::vector<SweepAxis> axes;
    std::vector<SweepPoint> points;  ///< the last axis changes fastest
};

/// "mxu.cols=32,64,128" into an axis. Throws Error(usage).
SweepAxis parse_axis(const std::string& text);

/// Runs what is not finished. Writes sweep.csv, sweep.json and sweep.html into out_dir. Throws Error(usage) before anything runs when an
/// axis or value is not of the chip, or there are more than 10,000 points. A point that fails is a row.
SweepReport run_sweep(const SweepOptions& options);

std::string to_csv(const SweepReport& report);
std::string to_json(const SweepReport& report);
/// Table and plots, one self-contained page.
std::string to_html(const SweepReport& report);

}  // namespace assay::campaign
