// Judged runs of the digit classifier on several cores: the tensors of one core, under any timing, and the same judgement.
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include <gtest/gtest.h>

#include "support/error.hpp"
#include "tests/campaign/digits_fixture.hpp"

namespace assay::campaign {
namespace {

using golden::Verdict;
using testing::digits;

struct Outcome {
    std::uint64_t digest = 0, cycles = 0, verdict = 0, cores = 0;
    bool good = false;
};

/// Runs a session in a child process: SystemC elaborates once.
Outcome outcome(const std::function<void(SessionOptions&)>& change) {
    int ends[2];
    if (pipe(ends) != 0) return {};
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        SessionOptions options = digits();
        options.target_options.chip.cores = 4;
        change(options);
        const SessionReport report = run_session(options);
        Outcome made{14695981039346656037u, report.run.cycles, static_cast<std::uint64_t>(report.verdict), report.run.core_counters.size(), true};
        for (const auto& [name, tensor] : report.run.tensors)
            for (const std::byte b : tensor.bytes) made.digest = (made.digest ^ static_cast<std::uint8_t>(b)) * 1099511628211u;  // FNV-1a
        const bool written = write(ends[1], &made, sizeof made) == static_cast<ssize_t>(sizeof made);
        _exit(written ? 0 : 1);
    }
    close(ends[1]);
    Outcome got;
    if (read(ends[0], &got, sizeof got) != static_cast<ssize_t>(sizeof got)) got = {};
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    return status == 0 ? got : Outcome{};
}

TEST(SessionCores, EveryNumberOfCoresLeavesTheSameBytesInFewerCycles) {
    Outcome last;
    for (const std::uint32_t cores : {1u, 2u, 4u}) {
        const Outcome got = outcome([&](SessionOptions& o) {
            o.model.cores = cores;
            o.run.sanitize = true;
        });
        ASSERT_TRUE(got.good) << cores;
        EXPECT_EQ(got.verdict, static_cast<std::uint64_t>(Verdict::pass)) << cores;
        EXPECT_EQ(got.cores, cores);
        if (cores > 1) {
            EXPECT_EQ(got.digest, last.digest) << cores;
            EXPECT_LT(got.cycles, last.cycles) << cores;
        }
        last = got;
    }
}

TEST(SessionCores, NeitherJitterNorQuantumNorLaggingValuesNorRtlChangeTheBytes) {
    const Outcome plain = outcome([](SessionOptions&) {});
    ASSERT_TRUE(plain.good);
    EXPECT_EQ(plain.cores, 4u) << "all cores of the chip by default";
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        const Outcome jittered = outcome([&](SessionOptions& o) {
            o.target_options.jitter = true;
            o.target_options.seed = seed;
        });
        EXPECT_EQ(jittered.digest, plain.digest) << seed;
        EXPECT_EQ(jittered.verdict, plain.verdict) << seed;
    }
    for (const std::uint64_t quantum : {1u, 10'000u}) {
        const Outcome other = outcome([&](SessionOptions& o) { o.target_options.quantum_cycles = quantum; });
        EXPECT_EQ(other.digest, plain.digest) << quantum;
        EXPECT_EQ(other.cycles, plain.cycles) << quantum;
    }
    const Outcome watched = outcome([](SessionOptions& o) { o.run.sanitize = true; });  // hooks: values as they come
    EXPECT_EQ(watched.digest, plain.digest);
    EXPECT_EQ(watched.cycles, plain.cycles);
    const Outcome rtl = outcome([](SessionOptions& o) { o.target = "hybrid:mxu"; });
    EXPECT_EQ(rtl.digest, plain.digest);
    EXPECT_EQ(rtl.cycles, plain.cycles);
    const Outcome shaped = outcome([](SessionOptions& o) { o.target_options.silicon_shaped = true; });
    EXPECT_EQ(shaped.digest, plain.digest);
}

TEST(SessionCores, MoreThanTheChipHasIsAUsageError) {
    SessionOptions options = digits();
    options.target_options.chip.cores = 4;
    options.model.cores = 5;
    EXPECT_THROW((void)run_session(options), Error);
}

}  // namespace
}  // namespace assay::campaign
