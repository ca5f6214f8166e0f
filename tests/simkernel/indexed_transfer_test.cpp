// Loads and stores whose rows a list in the scratchpad chooses: values, faults, what decode admits, and what the sanitizer sees.
#include <gtest/gtest.h>

#include <random>

#include "simkernel/exec/interpreter.hpp"
#include "simkernel/exec/sanitizer.hpp"
#include "simkernel/program.hpp"
#include "tests/simkernel/program_builder.hpp"

namespace assay::simkernel {
namespace {

using namespace testing;

constexpr std::uint64_t kTable = 0x4000, kList = 0x1000, kOut = 0x9000;
constexpr std::uint32_t kListLocal = 0x100, kRows = 0x200;

LoadFields gather(std::uint32_t rows, std::uint32_t limit, std::uint32_t run, std::int64_t row_bytes) {
    LoadFields f;
    f.index_enable = 1;
    f.index_addr = kListLocal;
    f.index_limit = limit;
    f.ext_addr = kTable;
    f.local_addr = kRows;
    f.run_bytes = run;
    f.count = {rows, 1, 1, 1};
    f.ext_stride = {row_bytes, 0, 0, 0};
    f.local_stride = {static_cast<std::int32_t>(run), 0, 0, 0};
    return f;
}

struct Machine {
    ChipConfig chip = nano();
    SparseMemory hbm{static_cast<std::uint64_t>(chip.hbm_bytes)};
    HbmOnly external{hbm};
    Interpreter interpreter{chip, external};

    explicit Machine(const std::vector<std::int32_t>& list) {
        std::vector<std::uint8_t> table(10 * 16);
        for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::uint8_t>(i);
        hbm.write(kTable, std::as_bytes(std::span(table)));
        hbm.write(kList, std::as_bytes(std::span(list)));
    }
    JobResult run(const std::vector<DescriptorWords>& program) { return interpreter.run(program); }
    std::vector<std::uint8_t> bytes(std::uint64_t addr, std::size_t count) {
        std::vector<std::uint8_t> out(count);
        hbm.read(addr, std::as_writable_bytes(std::span(out)));
        return out;
    }
};

TEST(IndexedTransfer, ALoadGathersRowsAndNegativeWordsCountFromTheLimit) {
    const std::vector<std::int32_t> list{3, 0, -1, 3, 9, -10};
    Machine m(list);
    const auto n = static_cast<std::uint32_t>(list.size());
    LoadFields f = gather(n, 10, 5, 16);
    f.count = {n, 2, 1, 1};  // five bytes and five more, eight further
    f.ext_stride[1] = 8;
    f.local_stride = {10, 5, 0, 0};
    ASSERT_EQ(m.run({load(kList, kListLocal, 4 * n), descriptor(Opcode::load, f), store(kOut, kRows, 10 * n)}).status, JobStatus::done);
    const auto got = m.bytes(kOut, 10 * n);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t b = 0; b < 10; ++b) {
            const int row = list[i] < 0 ? list[i] + 10 : list[i];
            ASSERT_EQ(got[10 * i + b], static_cast<std::uint8_t>(16 * row + static_cast<int>(b < 5 ? b : b + 3))) << "row " << i << " byte " << b;
        }
}

TEST(IndexedTransfer, AStoreScattersInOrderSoThatTheLastOfEqualWordsStays) {
    const std::vector<std::int32_t> list{2, 5, 2};
    Machine m(list);
    StoreFields f;
    f.index_enable = 1;
    f.index_addr = kListLocal;
    f.index_limit = 10;
    f.ext_addr = kTable;
    f.local_addr = kRows;
    f.run_bytes = 4;
    f.count = {3, 1, 1, 1};
    f.ext_stride = {16, 0, 0, 0};
    f.local_stride = {4, 0, 0, 0};
    const std::vector<std::int32_t> rows{111, 222, 333};
    m.hbm.write(kOut, std::as_bytes(std::span(rows)));
    ASSERT_EQ(m.run({load(kList, kListLocal, 12), load(kOut, kRows, 12), descriptor(Opcode::store, f)}).status, JobStatus::done);
    std::vector<std::int32_t> table(40);
    m.hbm.read(kTable, std::as_writable_bytes(std::span(table)));
    EXPECT_EQ(table[2 * 4], 333);
    EXPECT_EQ(table[5 * 4], 222);
    EXPECT_EQ(m.bytes(kTable + 3 * 16, 1)[0], 48) << "a row that no word names is left alone";
}

TEST(IndexedTransfer, AWordOutsideTheLimitStopsTheJobBeforeAnythingMoves) {
    for (const std::int32_t bad : {10, -11, INT32_MAX, INT32_MIN}) {
        Machine m({1, bad});
        const JobResult result = m.run({load(kList, kListLocal, 8), descriptor(Opcode::load, gather(2, 10, 16, 16))});
        EXPECT_EQ(result.status, JobStatus::failed) << bad;
        EXPECT_EQ(result.code, ErrorCode::illegal_address) << bad;
        EXPECT_EQ(result.descriptor, 1u);
        EXPECT_EQ(result.address, kListLocal + 4u) << "the word's own address";
        EXPECT_NE(result.text.find(std::to_string(bad)), std::string::npos) << result.text;
        const auto row = m.interpreter.local().range(kRows, 16);
        EXPECT_TRUE(std::all_of(row.begin(), row.end(), [](std::byte b) { return b == std::byte{0}; })) << bad;
    }
}

TEST(IndexedTransfer, DecodeRefusesListsAndTablesOutOfBounds) {
    const ChipConfig chip = nano();
    Decoded d;
    const auto code = [&](const auto& change) {
        LoadFields f = gather(4, 10, 16, 16);
        change(f);
        return decode(descriptor(Opcode::load, f), chip, d).code;
    };
    EXPECT_EQ(code([](LoadFields&) {}), ErrorCode::none);
    EXPECT_EQ(code([](LoadFields& f) { f.index_addr = 2; }), ErrorCode::misaligned) << "words are aligned";
    EXPECT_EQ(code([](LoadFields& f) { f.index_addr |= kAccBit; }), ErrorCode::malformed_descriptor);
    EXPECT_EQ(code([&](LoadFields& f) { f.index_addr = static_cast<std::uint32_t>(chip.spm_bytes) - 12; }), ErrorCode::illegal_address);
    EXPECT_EQ(code([](LoadFields& f) { f.index_limit = 0; }), ErrorCode::malformed_descriptor);
    EXPECT_EQ(code([](LoadFields& f) { f.index_limit = (1u << 24) + 1; }), ErrorCode::malformed_descriptor) << "the sanitizer walks the table";
    EXPECT_EQ(code([](LoadFields& f) { f.index_enable = 0; }), ErrorCode::malformed_descriptor) << "a list that nobody reads";
}

TEST(IndexedTransfer, TheSanitizerCountsTheWholeTableAndTheList) {
    const ChipConfig chip = nano();
    const auto findings = [&](std::vector<DescriptorWords> program) {
        Sanitizer sanitizer(chip);
        sanitizer.host_wrote(kTable, 160);
        sanitizer.host_wrote(kList, 16);
        for (std::uint32_t i = 0; i < program.size(); ++i) {
            Decoded decoded;
            EXPECT_FALSE(decode(program[i], chip, decoded));
            sanitizer.dispatched(0, i, decoded);
        }
        return sanitizer.findings();
    };
    const auto list = load(kList, kListLocal, 16);
    EXPECT_TRUE(findings({list, descriptor(Opcode::load, gather(4, 10, 16, 16))}).empty());
    auto found = findings({descriptor(Opcode::load, gather(4, 10, 16, 16))});
    ASSERT_FALSE(found.empty()) << "a list that nothing wrote";
    EXPECT_EQ(found[0].kind, FindingKind::uninitialised);
    found = findings({list, descriptor(Opcode::load, gather(4, 11, 16, 16))});
    ASSERT_FALSE(found.empty()) << "a row of the table that nothing wrote";
    EXPECT_EQ(found[0].kind, FindingKind::uninitialised);
    // A store to any row of the table without a wait is a race with the gather.
    found = findings({list, load(kTable, 0x800, 16), store(kTable + 96, 0x800, 16), descriptor(Opcode::load, gather(4, 10, 16, 16))});
    EXPECT_TRUE(std::any_of(found.begin(), found.end(), [](const Finding& f) { return f.kind == FindingKind::race && f.descriptor == 3; }));
}

TEST(IndexedTransfer, IsReadableInADump) {
    EXPECT_NE(disassemble(0, descriptor(Opcode::load, gather(4, 10, 16, 16))).find("rows spm+0x100 of 10"), std::string::npos);
}

}  // namespace
}  // namespace assay::simkernel
