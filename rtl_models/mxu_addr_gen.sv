// Addresses of the activation segments of one matmul descriptor: m2, m1, m0 outermost to innermost, then k2, k1; a segment is the k0
// contiguous elements of one (m, k2, k1). Additions only: each level keeps the address at which it began.
// Contract: start_i takes the descriptor; addr_o is the current segment from the next cycle on; step_i goes to the next one.
// row_last_o: the current segment is the last of its m. Legal after the last segment too, when the address means nothing.
module mxu_addr_gen
  import aurum_pkg::*;
(
  input  logic        clk_i,
  input  logic        start_i,
  input  descriptor_t desc_i,
  input  logic        step_i,
  output logic [31:0] addr_o,
  output logic        row_last_o
);
  typedef logic [31:0] word_t;

  word_t m0_count_q, m1_count_q, k1_count_q, k2_count_q;
  word_t m0_stride_q, m1_stride_q, m2_stride_q, k1_stride_q, k2_stride_q;
  word_t m0_q, m1_q, k1_q, k2_q;                            // indices
  word_t m2_base_q, m1_base_q, m0_base_q, k2_base_q;        // address at index 0 of the levels inside
  logic  k1_last, k2_last, m0_last, m1_last;

  assign k1_last    = k1_q + 32'd1 == k1_count_q;
  assign k2_last    = k2_q + 32'd1 == k2_count_q;
  assign m0_last    = m0_q + 32'd1 == m0_count_q;
  assign m1_last    = m1_q + 32'd1 == m1_count_q;
  assign row_last_o = k1_last && k2_last;

  // Base address of the next m.
  word_t next_m2, next_m1, next_m0;
  assign next_m2 = m0_last && m1_last ? m2_base_q + m2_stride_q : m2_base_q;
  assign next_m1 = !m0_last ? m1_base_q : m1_last ? next_m2 : m1_base_q + m1_stride_q;
  assign next_m0 = m0_last ? next_m1 : m0_base_q + m0_stride_q;

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      m0_count_q  <= desc_i[MATMUL_M_COUNT_LSB+:MATMUL_M_COUNT_W];
      m1_count_q  <= desc_i[MATMUL_M_COUNT_LSB+MATMUL_M_COUNT_STEP+:MATMUL_M_COUNT_W];
      m0_stride_q <= desc_i[MATMUL_A_M_STRIDE_LSB+:MATMUL_A_M_STRIDE_W];
      m1_stride_q <= desc_i[MATMUL_A_M_STRIDE_LSB+MATMUL_A_M_STRIDE_STEP+:MATMUL_A_M_STRIDE_W];
      m2_stride_q <= desc_i[MATMUL_A_M_STRIDE_LSB+2*MATMUL_A_M_STRIDE_STEP+:MATMUL_A_M_STRIDE_W];
      k1_count_q  <= desc_i[MATMUL_K_COUNT_LSB+MATMUL_K_COUNT_STEP+:MATMUL_K_COUNT_W];
      k2_count_q  <= desc_i[MATMUL_K_COUNT_LSB+2*MATMUL_K_COUNT_STEP+:MATMUL_K_COUNT_W];
      k1_stride_q <= desc_i[MATMUL_A_K_STRIDE_LSB+:MATMUL_A_K_STRIDE_W];
      k2_stride_q <= desc_i[MATMUL_A_K_STRIDE_LSB+MATMUL_A_K_STRIDE_STEP+:MATMUL_A_K_STRIDE_W];
      m0_q        <= '0;
      m1_q        <= '0;
      k1_q        <= '0;
      k2_q        <= '0;
      m2_base_q   <= desc_i[MATMUL_A_ADDR_LSB+:MATMUL_A_ADDR_W];
      m1_base_q   <= desc_i[MATMUL_A_ADDR_LSB+:MATMUL_A_ADDR_W];
      m0_base_q   <= desc_i[MATMUL_A_ADDR_LSB+:MATMUL_A_ADDR_W];
      k2_base_q   <= desc_i[MATMUL_A_ADDR_LSB+:MATMUL_A_ADDR_W];
      addr_o      <= desc_i[MATMUL_A_ADDR_LSB+:MATMUL_A_ADDR_W];
    end else if (step_i) begin
      if (!k1_last) begin
        k1_q   <= k1_q + 32'd1;
        addr_o <= addr_o + k1_stride_q;
      end else if (!k2_last) begin
        k1_q      <= '0;
        k2_q      <= k2_q + 32'd1;
        k2_base_q <= k2_base_q + k2_stride_q;
        addr_o    <= k2_base_q + k2_stride_q;
      end else begin
        k1_q      <= '0;
        k2_q      <= '0;
        m0_q      <= m0_last ? '0 : m0_q + 32'd1;
        if (m0_last) m1_q <= m1_last ? '0 : m1_q + 32'd1;
        m2_base_q <= next_m2;
        m1_base_q <= next_m1;
        m0_base_q <= next_m0;
        k2_base_q <= next_m0;
        addr_o    <= next_m0;
      end
    end
  end
endmodule
