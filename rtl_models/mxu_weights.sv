// Weight loader: turns the k-th weight row of a descriptor, as it comes from the scratchpad, into the registers of array row k, and
// decides which PEs take part: columns below N and, in grouped mode, those whose group is that of k.
// Grouped mode without division: (k mod period) / group_k == n / group_n means that row k owns the group_n columns from
// group_n * ((k mod period) / group_k) on; that first column is kept by counting (docs/chip-reference.md, matmul).
// decode has checked that the period is a multiple of group_k, so a period ends with a group.
// Contract: start_i begins a descriptor; each row_valid_i brings the next k; the output is registered, one cycle later.
module mxu_weights
  import aurum_pkg::*;
#(
  parameter int unsigned Cols = 8,
  parameter int unsigned PortBytes = 16
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        start_i,
  input  descriptor_t desc_i,                   // read with start_i
  input  logic        is_bf16_i,
  input  logic [31:0] n_total_i,
  input  logic        row_valid_i,
  input  logic [7:0]  row_data_i  [PortBytes],  // little endian elements
  output logic        we_o,
  output logic [31:0] row_o,
  output bf16_t       weight_o    [Cols],
  output logic        take_part_o [Cols]
);
  localparam int unsigned BYTE_W = $clog2(PortBytes);

  logic [31:0] group_k_q, group_n_q, period_q;  // group_k 0: dense
  logic [31:0] row_q;                           // k
  logic [31:0] k_in_group_q, k_in_period_q;     // k mod period mod group_k, k mod period
  logic [31:0] first_col_q;                     // first column of k's group
  logic        group_ends, period_ends;

  assign period_ends = k_in_period_q + 32'd1 == period_q;
  assign group_ends  = k_in_group_q + 32'd1 == group_k_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      we_o <= 1'b0;
    end else begin
      we_o  <= row_valid_i;
      row_o <= row_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      group_k_q     <= 32'(desc_i[MATMUL_GROUP_K_LSB+:MATMUL_GROUP_K_W]);
      group_n_q     <= 32'(desc_i[MATMUL_GROUP_N_LSB+:MATMUL_GROUP_N_W]);
      period_q      <= 32'(desc_i[MATMUL_GROUP_PERIOD_LSB+:MATMUL_GROUP_PERIOD_W]);
      row_q         <= '0;
      k_in_group_q  <= '0;
      k_in_period_q <= '0;
      first_col_q   <= '0;
    end else if (row_valid_i) begin
      row_q         <= row_q + 32'd1;
      k_in_period_q <= period_ends ? '0 : k_in_period_q + 32'd1;
      k_in_group_q  <= group_ends ? '0 : k_in_group_q + 32'd1;
      if (period_ends) first_col_q <= '0;
      else if (group_ends) first_col_q <= first_col_q + group_n_q;
    end
  end

  // Next-state arrays of this process only (in-place loops, as in mxu_array).
  bf16_t weight_d    [Cols];
  logic  take_part_d [Cols];
  always_ff @(posedge clk_i) begin
    int c;
    c = 0;
    if (row_valid_i) begin
      for (c = 0; c < int'(Cols); c++) begin
        weight_d[c] = is_bf16_i ? {row_data_i[BYTE_W'(2*c+1)], row_data_i[BYTE_W'(2*c)]} : bf16_t'(row_data_i[BYTE_W'(c)]);
        take_part_d[c] = 32'(c) < n_total_i
                         && (group_k_q == '0 || (32'(c) >= first_col_q && 32'(c) < first_col_q + group_n_q));
      end
      weight_o    <= weight_d;
      take_part_o <= take_part_d;
    end
  end
endmodule
