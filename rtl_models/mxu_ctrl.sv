// Sequencer of the matrix unit: one descriptor from decode to the last write's acknowledgement. One state across descriptors: none.
//   IDLE -> SETUP (setup_cycles_i) -> WEIGHTS (K row reads, one a cycle) -> RUN (M x k1 x k2 segment reads, one a cycle, and beside them
//   one accumulator row read a cycle when accumulating) -> IDLE when the last write is acknowledged.
// Scratchpad answers come in request order: the first K are weight rows, the rest activation segments.
// A row of M starts into the array as soon as its activations and its partial sums have arrived. At most InFlight rows are requested and
// not started, on either port: the buffers behind them cannot refuse.
`include "assay_assert.svh"

module mxu_ctrl
  import aurum_pkg::*;
  import mxu_pkg::*;
(
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic [15:0] setup_cycles_i,
  input  logic        desc_valid_i,
  output logic        desc_ready_o,
  input  descriptor_t desc_i,
  output logic        take_o,            // the descriptor is taken at this edge
  output shape_t      shape_o,
  output logic        done_o,            // one cycle: retired
  // activation addresses
  input  logic [31:0] act_addr_i,
  input  logic        act_row_last_i,
  output logic        act_step_o,
  // scratchpad reads
  output logic        spm_req_valid_o,
  input  logic        spm_req_ready_i,
  output logic [31:0] spm_req_addr_o,
  output logic [31:0] spm_req_bytes_o,
  input  logic        spm_rsp_valid_i,
  output logic        weight_row_o,      // the answer is a weight row
  output logic        seg_valid_o,       // the answer is a segment at seg_pos_o
  output logic [31:0] seg_pos_o,
  output logic        row_done_o,
  // accumulator reads
  output logic        acc_req_valid_o,
  input  logic        acc_req_ready_i,
  output logic [31:0] acc_req_addr_o,
  // array
  input  logic        row_ready_i,
  output logic        start_o,
  input  logic        out_valid_i,
  // accumulator writes
  output logic [31:0] acc_wr_addr_o,
  input  logic        acc_wr_ack_i
);
  typedef enum logic [1:0] {IDLE, SETUP, WEIGHTS, RUN} state_e;
  typedef logic [31:0] word_t;

  state_e state_q;
  shape_t shape_q, shape_d;
  word_t  setup_left_q;
  word_t  weights_left_q, weight_addr_q, weight_stride_q, weight_bytes_q, run_bytes_q;
  word_t  rsp_weights_left_q, seg_pos_q;
  word_t  rows_left_q, acc_left_q, acks_left_q;       // of M: to request, to read, to be acknowledged
  word_t  act_flying_q, acc_flying_q;                 // rows requested and not started
  word_t  acc_read_addr_q, acc_write_addr_q, acc_stride_q;
  logic   spm_go, acc_go, act_row_go;

  // A count is at most Rows or rows of the accumulator SRAM (checked by decode): the low 32 bits of a product are the product.
  function automatic word_t product(word_t a, word_t b, word_t c);
    return a * b * c;
  endfunction

  always_comb begin
    shape_d.k_run      = desc_i[MATMUL_K_COUNT_LSB+:MATMUL_K_COUNT_W];
    shape_d.k_total    = product(desc_i[MATMUL_K_COUNT_LSB+:MATMUL_K_COUNT_W],
                                 desc_i[MATMUL_K_COUNT_LSB+MATMUL_K_COUNT_STEP+:MATMUL_K_COUNT_W],
                                 desc_i[MATMUL_K_COUNT_LSB+2*MATMUL_K_COUNT_STEP+:MATMUL_K_COUNT_W]);
    shape_d.m_total    = product(desc_i[MATMUL_M_COUNT_LSB+:MATMUL_M_COUNT_W],
                                 desc_i[MATMUL_M_COUNT_LSB+MATMUL_M_COUNT_STEP+:MATMUL_M_COUNT_W],
                                 desc_i[MATMUL_M_COUNT_LSB+2*MATMUL_M_COUNT_STEP+:MATMUL_M_COUNT_W]);
    shape_d.n_total    = desc_i[MATMUL_N_COUNT_LSB+:MATMUL_N_COUNT_W];
    shape_d.is_bf16    = desc_i[MATMUL_DTYPE_LSB+:MATMUL_DTYPE_W] == DTYPE_BF16;
    shape_d.accumulate = desc_i[MATMUL_ACCUMULATE_LSB];
  end

  assign desc_ready_o = state_q == IDLE;
  assign take_o       = desc_valid_i && desc_ready_o;
  assign shape_o      = shape_q;

  assign spm_req_valid_o = state_q == WEIGHTS || (state_q == RUN && rows_left_q != '0 && act_flying_q < IN_FLIGHT);
  assign spm_req_addr_o  = state_q == WEIGHTS ? weight_addr_q : act_addr_i;
  assign spm_req_bytes_o = state_q == WEIGHTS ? weight_bytes_q : run_bytes_q;
  assign spm_go          = spm_req_valid_o && spm_req_ready_i;
  assign act_step_o      = spm_go && state_q == RUN;
  assign act_row_go      = act_step_o && act_row_last_i;

  assign acc_req_valid_o = state_q == RUN && acc_left_q != '0 && acc_flying_q < IN_FLIGHT;
  assign acc_req_addr_o  = acc_read_addr_q;
  assign acc_go          = acc_req_valid_o && acc_req_ready_i;

  assign weight_row_o = spm_rsp_valid_i && rsp_weights_left_q != '0;
  assign seg_valid_o  = spm_rsp_valid_i && rsp_weights_left_q == '0;
  assign seg_pos_o    = seg_pos_q;
  assign row_done_o   = seg_valid_o && seg_pos_q + shape_q.k_run == shape_q.k_total;

  assign start_o       = row_ready_i;
  assign acc_wr_addr_o = acc_write_addr_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= IDLE;
      done_o  <= 1'b0;
    end else begin
      done_o <= 1'b0;
      unique case (state_q)
        IDLE:    if (desc_valid_i) state_q <= setup_cycles_i == '0 ? WEIGHTS : SETUP;
        SETUP:   if (setup_left_q == 32'd1) state_q <= WEIGHTS;
        WEIGHTS: if (spm_go && weights_left_q == 32'd1) state_q <= RUN;
        RUN: if (acc_wr_ack_i && acks_left_q == 32'd1) begin
          state_q <= IDLE;
          done_o  <= 1'b1;
        end
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (take_o) begin
      shape_q            <= shape_d;
      setup_left_q       <= 32'(setup_cycles_i);
      weights_left_q     <= shape_d.k_total;
      weight_addr_q      <= desc_i[MATMUL_W_ADDR_LSB+:MATMUL_W_ADDR_W];
      weight_stride_q    <= desc_i[MATMUL_W_STRIDE_LSB+:MATMUL_W_STRIDE_W];
      weight_bytes_q     <= shape_d.n_total << shape_d.is_bf16;
      run_bytes_q        <= shape_d.k_run << shape_d.is_bf16;
      rsp_weights_left_q <= shape_d.k_total;
      seg_pos_q          <= '0;
      rows_left_q        <= shape_d.m_total;
      acc_left_q         <= shape_d.accumulate ? shape_d.m_total : '0;
      acks_left_q        <= shape_d.m_total;
      act_flying_q       <= '0;
      acc_flying_q       <= '0;
      acc_read_addr_q    <= desc_i[MATMUL_ACC_ADDR_LSB+:MATMUL_ACC_ADDR_W];
      acc_write_addr_q   <= desc_i[MATMUL_ACC_ADDR_LSB+:MATMUL_ACC_ADDR_W];
      acc_stride_q       <= desc_i[MATMUL_ACC_STRIDE_LSB+:MATMUL_ACC_STRIDE_W];
    end else begin
      if (state_q == SETUP) setup_left_q <= setup_left_q - 32'd1;
      if (state_q == WEIGHTS && spm_go) begin
        weights_left_q <= weights_left_q - 32'd1;
        weight_addr_q  <= weight_addr_q + weight_stride_q;
      end
      if (act_row_go) rows_left_q <= rows_left_q - 32'd1;
      if (acc_go) begin
        acc_left_q      <= acc_left_q - 32'd1;
        acc_read_addr_q <= acc_read_addr_q + acc_stride_q;
      end
      if (weight_row_o) rsp_weights_left_q <= rsp_weights_left_q - 32'd1;
      if (seg_valid_o) seg_pos_q <= row_done_o ? '0 : seg_pos_q + shape_q.k_run;
      act_flying_q <= act_flying_q + 32'(act_row_go) - 32'(start_o);
      acc_flying_q <= acc_flying_q + 32'(acc_go) - 32'(start_o && shape_q.accumulate);
      if (out_valid_i) acc_write_addr_q <= acc_write_addr_q + acc_stride_q;
      if (acc_wr_ack_i) acks_left_q <= acks_left_q - 32'd1;
    end
  end

  `ASSAY_ASSERT(KnownType_A, !take_o || shape_d.is_bf16 || desc_i[MATMUL_DTYPE_LSB+:MATMUL_DTYPE_W] == DTYPE_I8,
                "a descriptor of another type came past decode")
  `ASSAY_ASSERT(NotEmpty_A, !take_o || (shape_d.k_total != '0 && shape_d.m_total != '0 && shape_d.n_total != '0),
                "an empty descriptor would never retire")
  `ASSAY_ASSERT(AnswerAsked_A, !spm_rsp_valid_i || state_q == WEIGHTS || state_q == RUN, "an answer without a request")
  `ASSAY_ASSERT(AckAsked_A, !acc_wr_ack_i || state_q == RUN, "an acknowledgement without a write")
endmodule
