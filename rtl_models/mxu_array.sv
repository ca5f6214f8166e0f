// The weight-stationary systolic array: Rows x Cols processing elements. A row of partial sums enters at the top, moves down one row
// a cycle and meets in row r the activation of k = r, so each column sums sequentially in k.
// Contract: valid_i with psum_i at cycle t; act_i[r] is the activation of row r at cycle t + r (mxu_skew delivers it so);
// valid_o with psum_o at cycle t + Rows + 1 (one register after the last row). No back-pressure: what enters leaves.
// Weights: clear_i removes every PE from work; weight_we_i makes the PEs of weight_row_i whose take_part_i bit is set hold weight_i.
// A PE that takes no part passes its partial sum unchanged. Both must happen while the array is empty.
// The PEs' registers are private to one process that walks the rows from last to first, so that in-place assignment is the shift;
// for the Verilated model this is also the fastest form found (README.md, "Speed of the model").
`include "assay_assert.svh"

module mxu_array
  import aurum_pkg::*;
  import mxu_pe_i8_pkg::*;
  import mxu_pe_bf16_pkg::*;
#(
  parameter int unsigned Rows = 8,
  parameter int unsigned Cols = 8
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        is_bf16_i,     // stable while anything is in the array
  input  logic        clear_i,
  input  logic        weight_we_i,
  input  logic [31:0] weight_row_i,
  input  bf16_t       weight_i    [Cols],  // int8: in the low byte
  input  logic        take_part_i [Cols],
  input  logic        valid_i,
  input  bf16_t       act_i       [Rows],
  input  f32_t        psum_i      [Cols],
  output logic        valid_o,
  output f32_t        psum_o      [Cols]
);
  localparam int unsigned ROW_W = Rows > 1 ? $clog2(Rows) : 1;

  logic [Rows-1:0] valid_q;   // row r works on a valid partial sum in this cycle's edge + 1
  logic [Rows-1:0] live_q;    // some PE of the row takes part
  bf16_t weight_q [Rows][Cols];
  logic  part_q   [Rows][Cols];
  f32_t  psum_q   [Rows][Cols];
  logic  [Rows-1:0] enter;    // row r takes a partial sum at this edge

  assign enter = Rows'({valid_q, valid_i});

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= '0;
      valid_o <= 1'b0;
    end else begin
      valid_q <= enter;
      valid_o <= valid_q[Rows-1];
    end
  end

  always_ff @(posedge clk_i) begin
    if (clear_i) live_q <= '0;
    else if (weight_we_i) live_q[weight_row_i[ROW_W-1:0]] <= 1'b1;
  end

  // Loop variables are declared and set first: Verilator then keeps them in machine registers.
  always_ff @(posedge clk_i) begin
    int r;
    int c;
    r = 0;
    c = 0;
    if (weight_we_i) begin
      for (c = 0; c < int'(Cols); c++) begin
        weight_q[weight_row_i[ROW_W-1:0]][c] = take_part_i[c] ? weight_i[c] : '0;
        part_q[weight_row_i[ROW_W-1:0]][c]   = take_part_i[c];
      end
    end
    if (valid_q[Rows-1]) psum_o <= psum_q[Rows-1];
    for (r = int'(Rows) - 1; r > 0; r--) begin
      if (enter[r]) begin
        if (!live_q[r]) begin
          for (c = 0; c < int'(Cols); c++) psum_q[r][c] = psum_q[r-1][c];
        end else if (is_bf16_i) begin
          for (c = 0; c < int'(Cols); c++) begin
            if (part_q[r][c]) psum_q[r][c] = pe_bf16_step(psum_q[r-1][c], act_i[r], weight_q[r][c]);
            else psum_q[r][c] = psum_q[r-1][c];
          end
        end else begin
          for (c = 0; c < int'(Cols); c++) psum_q[r][c] = pe_i8_step(psum_q[r-1][c], act_i[r][7:0], weight_q[r][c][7:0]);
        end
      end
    end
    if (enter[0]) begin
      if (is_bf16_i) begin
        for (c = 0; c < int'(Cols); c++) begin
          if (part_q[0][c]) psum_q[0][c] = pe_bf16_step(psum_i[c], act_i[0], weight_q[0][c]);
          else psum_q[0][c] = canonical_f32(psum_i[c]);
        end
      end else begin
        for (c = 0; c < int'(Cols); c++) psum_q[0][c] = pe_i8_step(psum_i[c], act_i[0][7:0], weight_q[0][c][7:0]);
      end
    end
  end

  // A weight that changes under a live activation would mix two descriptors in one column.
  `ASSAY_ASSERT(WeightStable_A, !((weight_we_i || clear_i) && (valid_i || valid_q != '0)), "weights changed while the array is not empty")
  `ASSAY_ASSERT(WeightRow_A, !weight_we_i || weight_row_i < Rows, "a weight row below the array")
endmodule
