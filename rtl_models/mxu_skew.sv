// Activation buffer and skew: collects rows of activations from segments, holds them until they enter the array, and delivers the
// activation of array row r exactly r cycles after that of row 0.
// Contract: a segment (seg_valid_i) puts seg_elems_i elements at position seg_pos_i of the row being collected; row_done_i with it ends
// the row. ready_o: a complete row waits. start_i (only when ready_o) at cycle t: act_o[r] is valid at cycle t + 1 + r.
// Elements past K are whatever the slot held: the PEs of those rows take no part.
// No back-pressure on segments: the requester keeps at most InFlight rows requested and not started, and a slot is used again only
// InFlight + Rows rows later, when the last array row has read it.
`include "assay_assert.svh"

module mxu_skew
  import aurum_pkg::*;
#(
  parameter int unsigned Rows = 8,
  parameter int unsigned PortBytes = 16,
  parameter int unsigned InFlight = 128
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        is_bf16_i,
  input  logic        seg_valid_i,
  input  logic [31:0] seg_pos_i,
  input  logic [31:0] seg_elems_i,
  input  logic [7:0]  seg_data_i [PortBytes],  // little endian elements
  input  logic        row_done_i,
  output logic        ready_o,
  input  logic        start_i,
  output bf16_t       act_o      [Rows]        // int8: in the low byte
);
  localparam int unsigned SLOT_W = $clog2(InFlight + Rows);
  localparam int unsigned SLOTS = 2 ** SLOT_W;  // a power of two, so that pointers wrap by themselves
  localparam int unsigned ROW_W = Rows > 1 ? $clog2(Rows) : 1;
  localparam int unsigned BYTE_W = $clog2(PortBytes);

  logic [SLOT_W-1:0] write_q, read_q;
  logic [SLOT_W:0]   waiting_q;

  assign ready_o = waiting_q != '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      write_q   <= '0;
      read_q    <= '0;
      waiting_q <= '0;
    end else begin
      if (row_done_i) write_q <= write_q + 1'b1;
      if (start_i) read_q <= read_q + 1'b1;
      waiting_q <= waiting_q + (SLOT_W + 1)'(row_done_i) - (SLOT_W + 1)'(start_i);
    end
  end

  // Array row r reads the slot that row 0 read r cycles ago, bubbles included: the slot numbers shift down with the partial sums.
  // Registers of this process only (in-place loops, as in mxu_array); act_o is the one that others read.
  bf16_t             ring_q [SLOTS][Rows];
  logic [SLOT_W-1:0] slot_q [Rows];
  bf16_t             act_d  [Rows];
  always_ff @(posedge clk_i) begin
    int r;
    int elems;
    r     = 0;
    elems = 0;
    for (r = int'(Rows) - 1; r > 0; r--) slot_q[r] = slot_q[r-1];
    slot_q[0] = read_q;
    for (r = 0; r < int'(Rows); r++) act_d[r] = ring_q[slot_q[r]][r];
    act_o <= act_d;
    if (seg_valid_i) begin
      elems = int'(seg_elems_i);
      if (is_bf16_i) begin
        for (r = 0; r < elems; r++)
          ring_q[write_q][ROW_W'(seg_pos_i + 32'(r))] = {seg_data_i[BYTE_W'(2*r+1)], seg_data_i[BYTE_W'(2*r)]};
      end else begin
        for (r = 0; r < elems; r++) ring_q[write_q][ROW_W'(seg_pos_i + 32'(r))] = bf16_t'(seg_data_i[BYTE_W'(r)]);
      end
    end
  end

  `ASSAY_ASSERT(RowFits_A, !seg_valid_i || seg_pos_i + seg_elems_i <= Rows, "a segment runs past the array's last row")
  `ASSAY_ASSERT(NoOverrun_A, 32'(waiting_q) <= InFlight, "a row is overwritten before the array read it")
  `ASSAY_ASSERT(StartReady_A, !start_i || ready_o, "a row enters the array before it arrived")
endmodule
