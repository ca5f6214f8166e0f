#pragma once
// The bursts of one load or store: its runs in index order, contiguous device bytes joined, cut at every multiple of burst_bytes. Lazy: a
// descriptor of millions of runs costs nothing until it is walked.
#include <array>
#include <cstdint>
#include <vector>

#include "aurum_contract.hpp"

namespace assay::chip {

struct Burst {
    std::uint64_t address = 0;  ///< device address
    std::uint64_t bytes = 0;    ///< at most burst_bytes, within one aligned block of burst_bytes
};

class TransferPlan {
public:
    TransferPlan() = default;
    /// For LoadFields or StoreFields. `rows`: where index i0 goes, for an indexed transfer; each of its runs is issued by itself.
    template <class Fields>
    TransferPlan(const Fields& fields, std::uint64_t burst_bytes, std::vector<std::int64_t> rows = {})
        : TransferPlan(fields.ext_addr, fields.run_bytes, fields.count, fields.ext_stride, burst_bytes, std::move(rows)) {}

    bool done() const { return left_in_run_ == 0; }
    /// The burst to issue, and the step to the next; not when done().
    Burst front() const;
    void pop();

private:
    TransferPlan(std::uint64_t address, std::uint64_t run_bytes, const std::array<std::uint32_t, 4>& count,
                 const std::array<std::int64_t, 4>& stride, std::uint64_t burst_bytes, std::vector<std::int64_t> rows);
    void next_run();
    std::uint64_t address_of_run() const;

    std::uint64_t burst_bytes_ = 1;
    std::uint64_t run_bytes_ = 0;
    std::array<std::uint32_t, 4> count_{1, 1, 1, 1};
    std::array<std::int64_t, 4> stride_{};
    std::array<std::uint32_t, 4> index_{};
    std::vector<std::int64_t> rows_;
    std::uint64_t first_address_ = 0;
    std::uint64_t run_address_ = 0;
    std::uint64_t address_ = 0;
    std::uint64_t left_in_run_ = 0;
};

}  // namespace assay::chip
