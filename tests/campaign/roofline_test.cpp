// What limits a layer, by hand: one product tile on nano (8 x 8, 8 lanes) with made-up retire records.
#include <gtest/gtest.h>

#include "campaign/roofline.hpp"
#include "tests/simkernel/program_builder.hpp"

namespace assay::campaign {
namespace {

namespace p = simkernel::testing;
using simkernel::Engine;

/// 8 x 8 x 8 in layer 0 (loads, matmul, drain), its store in layer 1.
simkernel::Program program() {
    simkernel::Program program;
    program.descriptors = p::gemm_program(8, 8, 8);
    program.debug = {{0, 0}, {0, 0}, {0, 0}, {0, 0}, {1, 0}};
    program.layers.resize(2);
    program.layers[0].precision = "int8";
    program.layers[0].macs = 512;
    program.layers[0].operations = 1024;
    return program;
}

switchover::TraceEvent event(std::uint32_t descriptor, Engine engine, std::uint64_t start, std::uint64_t end) {
    switchover::TraceEvent event;
    event.descriptor = descriptor;
    event.record.engine = static_cast<std::uint32_t>(engine);
    event.record.start = start;
    event.record.end = end;
    return event;
}

simkernel::ChipConfig chip() {
    simkernel::ChipConfig chip = p::nano();
    chip.hbm_channels = 1;
    chip.hbm_bytes_per_cycle = 8;
    chip.noc_bytes_per_cycle = 16;
    return chip;
}

std::vector<LayerRoofline> layers_of(std::uint64_t load, std::uint64_t matmul, std::uint64_t drain, std::uint64_t store) {
    switchover::RunResult run;
    std::uint64_t at = 0;
    const auto next = [&](std::uint32_t descriptor, Engine engine, std::uint64_t cycles) {
        run.trace.push_back(event(descriptor, engine, at, at + cycles));
        at += cycles;
    };
    next(0, Engine::load, load);
    next(1, Engine::load, load);
    next(2, Engine::matrix, matmul);
    next(3, Engine::vector, drain);
    run.layer_cycles = {at, store};
    run.cycles = at + store;
    next(4, Engine::store, store);
    return roofline(program(), run, chip());
}

double busy(const LayerRoofline& layer, Engine engine) { return layer.busy[static_cast<std::size_t>(engine)]; }

TEST(Roofline, CountsWhatALayerMovesAndComputes) {
    const auto layers = layers_of(10, 20, 40, 20);
    ASSERT_EQ(layers.size(), 2u);
    EXPECT_EQ(layers[0].cycles, 80u);
    EXPECT_EQ(layers[0].bytes, 128u);
    EXPECT_DOUBLE_EQ(layers[0].intensity, 8);
    EXPECT_DOUBLE_EQ(layers[0].attainable, 64) << "8 operations a byte at 8 bytes a cycle, below the peak of 128";
    EXPECT_DOUBLE_EQ(layers[0].achieved, 1024 / 80.0);
    EXPECT_DOUBLE_EQ(layers[0].mxu_utilization, 512 / 64.0 / 80);
    EXPECT_DOUBLE_EQ(layers[0].memory_utilization, 128 / 8.0 / 80);
    EXPECT_DOUBLE_EQ(busy(layers[0], Engine::load), 20 / 80.0);
    EXPECT_DOUBLE_EQ(busy(layers[0], Engine::vector), 40 / 80.0);
    EXPECT_DOUBLE_EQ(busy(layers[0], Engine::store), 0);
    EXPECT_DOUBLE_EQ(busy(layers[1], Engine::store), 1);
    EXPECT_EQ(layers[1].bytes, 256u);
}

TEST(Roofline, NamesTheLimit) {
    EXPECT_EQ(layers_of(10, 20, 40, 32)[0].limit, Limit::dependency) << "nobody is busy most of the time";
    EXPECT_EQ(layers_of(8, 1, 1, 32)[0].limit, Limit::hbm) << "16 cycles for 128 bytes at 8 a cycle";
    EXPECT_EQ(layers_of(40, 1, 1, 32)[0].limit, Limit::latency) << "80 cycles for them";
    EXPECT_EQ(layers_of(1, 12, 1, 32)[0].limit, Limit::mxu) << "12 cycles for 8 rows";
    EXPECT_EQ(layers_of(1, 80, 1, 32)[0].limit, Limit::latency) << "80 cycles for 8 rows";
    EXPECT_EQ(layers_of(1, 1, 80, 32)[0].limit, Limit::vpu);
    EXPECT_EQ(layers_of(1, 1, 80, 32)[1].limit, Limit::hbm) << "32 cycles for 256 bytes";
    EXPECT_EQ(layers_of(1, 1, 80, 0)[1].limit, Limit::none);
}

TEST(Roofline, WorkDoneInALayersTimeCountsForItWhosesoeverItIs) {
    switchover::RunResult run;
    run.trace = {event(4, Engine::store, 5, 25)};  // layer 1's, from layer 0's cycles into its own
    run.layer_cycles = {10, 20};
    const auto layers = roofline(program(), run, chip());
    EXPECT_DOUBLE_EQ(busy(layers[0], Engine::store), 0.5);
    EXPECT_DOUBLE_EQ(busy(layers[1], Engine::store), 0.75);
}

TEST(Roofline, SeveralCoresRaiseTheRoofsAndShareTheTime) {
    simkernel::ChipConfig two = chip();
    two.cores = 2;
    simkernel::Program both = program();
    auto common = simkernel::decode_common_fields(both.descriptors[2]);
    common.core = 1;
    simkernel::encode(common, both.descriptors[2]);
    switchover::RunResult run;
    run.trace = {event(2, Engine::matrix, 0, 10)};
    run.layer_cycles = {10, 0};
    const auto layers = roofline(both, run, two);
    EXPECT_DOUBLE_EQ(busy(layers[0], Engine::matrix), 0.5) << "one of two cores";
    EXPECT_DOUBLE_EQ(layers[0].mxu_utilization, 512 / 128.0 / 10);
    EXPECT_DOUBLE_EQ(layers[0].attainable, 64) << "HBM is as narrow for two";
    EXPECT_DOUBLE_EQ(roofs(two, 2).memory, 8);
    EXPECT_DOUBLE_EQ(roofs(two, 2).vpu, 2 * static_cast<double>(two.vpu_lanes));
}

TEST(Roofline, HostStepsAndRunsWithoutRecords) {
    simkernel::Program with_host = program();
    with_host.host_steps.emplace_back().layer = 1;
    switchover::RunResult run;
    EXPECT_TRUE(roofline(with_host, run, chip()).empty());
    EXPECT_EQ(roofline_svg(with_host, {}, chip()), "");
    run.layer_cycles = {10, 0};
    EXPECT_EQ(roofline(with_host, run, chip())[1].limit, Limit::host);
}

TEST(Roofline, PictureHasADotALayerThatComputesAndMoves) {
    const auto layers = layers_of(10, 20, 40, 20);
    const std::string svg = roofline_svg(program(), layers, chip());
    EXPECT_NE(svg.find("limited by dependency"), std::string::npos) << svg;
    EXPECT_EQ(svg.find("limited by HBM"), std::string::npos) << "the store computes nothing";
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    EXPECT_EQ(svg.find("inf"), std::string::npos);
}

}  // namespace
}  // namespace assay::campaign
