#pragma once
// One Verilated matrix unit, seen through pointers to its pins. The bridge (rtl_mxu.cpp) is written once against this; each geometry and
// variant is an instance made from mxu_instance.cpp.in, the only file that sees generated classes.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "systemc/unit.hpp"

namespace assay::rtl {

/// Pins of mxu.sv; names as there without the direction. Arrays are `port_bytes` and `cols` long.
struct MxuPins {
    std::uint8_t* rst_n = nullptr;
    std::uint16_t* setup_cycles = nullptr;
    std::uint8_t* desc_valid = nullptr;
    std::uint32_t* desc = nullptr;  ///< kDescriptorWords words
    std::uint8_t* spm_req_ready = nullptr;
    std::uint8_t* spm_rsp_valid = nullptr;
    std::uint8_t* spm_rsp_data = nullptr;
    std::uint8_t* acc_req_ready = nullptr;
    std::uint8_t* acc_rsp_valid = nullptr;
    std::uint32_t* acc_rsp_data = nullptr;
    std::uint8_t* acc_wr_ack = nullptr;
    const std::uint8_t* done = nullptr;
    const std::uint8_t* spm_req_valid = nullptr;
    const std::uint32_t* spm_req_addr = nullptr;
    const std::uint32_t* spm_req_bytes = nullptr;
    const std::uint8_t* acc_req_valid = nullptr;
    const std::uint32_t* acc_req_addr = nullptr;
    const std::uint8_t* acc_wr_valid = nullptr;
    const std::uint32_t* acc_wr_addr = nullptr;
    const std::uint32_t* acc_wr_data = nullptr;
    const std::uint32_t* acc_bytes = nullptr;
};

class MxuModel {
public:
    virtual ~MxuModel() = default;
    /// One clock: the outputs afterwards are those of the next cycle.
    virtual void tick() = 0;
    /// A failed assertion of the RTL since construction (Verilator printed its text).
    virtual bool failed() const = 0;
    /// Starts a bounded wave file; only the traced variant has waves. Throws Error(io) when the file cannot be written.
    virtual void open_wave(const chip::WaveOptions& wave) = 0;
    /// Core cycle of the next tick, for the wave's time axis and bounds; no effect without a wave.
    virtual void set_wave_cycle(std::uint64_t cycle) = 0;

    MxuPins pins;
    int rows = 0;
    int cols = 0;
    std::size_t port_bytes = 0;
};

/// Start values of registers that reset does not set.
struct PowerUp {
    bool random = false;
    std::uint32_t seed = 1;  ///< 1 to 2^31 - 1
};

struct MxuGeometry {
    int rows = 0;
    int cols = 0;
    std::unique_ptr<MxuModel> (*make)(const PowerUp&) = nullptr;         ///< no waves
    std::unique_ptr<MxuModel> (*make_traced)(const PowerUp&) = nullptr;  ///< slower, with waves
};

}  // namespace assay::rtl
