// Incoming partial sums: rows read from the accumulator wait here for their activations. start_i at cycle t puts the next row (or +0
// in every column when the descriptor does not accumulate) on psum_o at t + 1, beside the activation of array row 0.
// Contract: ready_o means start_i is allowed. No back-pressure on push_i: the requester keeps at most InFlight rows outstanding.
`include "assay_assert.svh"

module mxu_psum_fifo
  import aurum_pkg::*;
#(
  parameter int unsigned Cols = 8,
  parameter int unsigned InFlight = 128
) (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic accumulate_i,
  input  logic push_i,
  input  f32_t data_i [Cols],
  output logic ready_o,
  input  logic start_i,
  output f32_t psum_o [Cols]
);
  localparam int unsigned SLOT_W = $clog2(InFlight);
  localparam int unsigned SLOTS = 2 ** SLOT_W;

  logic [SLOT_W-1:0] write_q, read_q;
  logic [SLOT_W:0]   waiting_q;
  logic              pop;

  assign pop     = start_i && accumulate_i;
  assign ready_o = !accumulate_i || waiting_q != '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      write_q   <= '0;
      read_q    <= '0;
      waiting_q <= '0;
    end else begin
      if (push_i) write_q <= write_q + 1'b1;
      if (pop) read_q <= read_q + 1'b1;
      waiting_q <= waiting_q + (SLOT_W + 1)'(push_i) - (SLOT_W + 1)'(pop);
    end
  end

  f32_t ring_q [SLOTS][Cols];  // private to this process
  f32_t psum_d [Cols];
  always_ff @(posedge clk_i) begin
    int c;
    c = 0;
    if (start_i) begin
      for (c = 0; c < int'(Cols); c++) psum_d[c] = accumulate_i ? ring_q[read_q][c] : '0;
      psum_o <= psum_d;
    end
    if (push_i) begin
      for (c = 0; c < int'(Cols); c++) ring_q[write_q][c] = data_i[c];
    end
  end

  `ASSAY_ASSERT(NoOverrun_A, 32'(waiting_q) <= InFlight, "a partial sum is overwritten before the array took it")
  `ASSAY_ASSERT(StartReady_A, !start_i || ready_o, "a partial sum enters the array before it arrived")
endmodule
