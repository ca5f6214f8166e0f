// Matrix unit of a core: executes one `matmul` descriptor at a time (docs/chip-reference.md) on a Rows x Cols weight-stationary array.
// Timing (README.md): setup + K + M*k1*k2 + Rows + 2*latency + 4 cycles from the cycle in which the descriptor is offered to done_o,
// when no request is refused and reads and write acknowledgements take `latency` cycles.
// Ports: requests are valid/ready (valid never waits for ready and holds until accepted); answers come later, in request order, at most one
// a cycle and port, and cannot be refused. The accumulator write port belongs to this unit alone and has no ready.
`include "assay_assert.svh"

module mxu
  import aurum_pkg::*;
  import mxu_pkg::*;
#(
  parameter int unsigned Rows = 8,
  parameter int unsigned Cols = 8,
  localparam int unsigned PortBytes = 2 * (Rows > Cols ? Rows : Cols)  // a row of bf16 weights or activations
) (
  input  logic        clk_i,
  input  logic        rst_ni,           // synchronous
  input  logic [15:0] setup_cycles_i,   // mxu.setup_cycles of the chip, constant
  input  logic        desc_valid_i,
  output logic        desc_ready_o,
  input  descriptor_t desc_i,
  output logic        done_o,

  output logic        spm_req_valid_o,
  input  logic        spm_req_ready_i,
  output logic [31:0] spm_req_addr_o,
  output logic [31:0] spm_req_bytes_o,
  input  logic        spm_rsp_valid_i,
  input  logic [7:0]  spm_rsp_data_i [PortBytes],

  output logic        acc_req_valid_o,
  input  logic        acc_req_ready_i,
  output logic [31:0] acc_req_addr_o,
  input  logic        acc_rsp_valid_i,
  input  f32_t        acc_rsp_data_i [Cols],

  output logic        acc_wr_valid_o,
  output logic [31:0] acc_wr_addr_o,
  output f32_t        acc_wr_data_o  [Cols],
  input  logic        acc_wr_ack_i,
  output logic [31:0] acc_bytes_o       // of every accumulator read and write: 4 N
);
  logic        take;
  shape_t      shape;
  logic [31:0] act_addr;
  logic        act_row_last, act_step;
  logic        weight_row, seg_valid, row_done, start, act_ready, psum_ready;
  logic [31:0] seg_pos;
  logic        weight_we;
  logic [31:0] weight_row_index;
  bf16_t       weight    [Cols];
  logic        take_part [Cols];
  bf16_t       act       [Rows];
  f32_t        psum      [Cols];
  logic        enter_q;

  assign acc_bytes_o = shape.n_total << 2;

  mxu_ctrl u_ctrl (
    .clk_i, .rst_ni, .setup_cycles_i, .desc_valid_i, .desc_ready_o, .desc_i, .done_o,
    .take_o(take), .shape_o(shape),
    .act_addr_i(act_addr), .act_row_last_i(act_row_last), .act_step_o(act_step),
    .spm_req_valid_o, .spm_req_ready_i, .spm_req_addr_o, .spm_req_bytes_o, .spm_rsp_valid_i,
    .weight_row_o(weight_row), .seg_valid_o(seg_valid), .seg_pos_o(seg_pos), .row_done_o(row_done),
    .acc_req_valid_o, .acc_req_ready_i, .acc_req_addr_o,
    .row_ready_i(act_ready && psum_ready), .start_o(start), .out_valid_i(acc_wr_valid_o),
    .acc_wr_addr_o, .acc_wr_ack_i
  );

  mxu_addr_gen u_addr_gen (
    .clk_i, .start_i(take), .desc_i, .step_i(act_step), .addr_o(act_addr), .row_last_o(act_row_last)
  );

  mxu_weights #(.Cols(Cols), .PortBytes(PortBytes)) u_weights (
    .clk_i, .rst_ni, .start_i(take), .desc_i, .is_bf16_i(shape.is_bf16), .n_total_i(shape.n_total),
    .row_valid_i(weight_row), .row_data_i(spm_rsp_data_i),
    .we_o(weight_we), .row_o(weight_row_index), .weight_o(weight), .take_part_o(take_part)
  );

  mxu_skew #(.Rows(Rows), .PortBytes(PortBytes), .InFlight(IN_FLIGHT)) u_skew (
    .clk_i, .rst_ni, .is_bf16_i(shape.is_bf16),
    .seg_valid_i(seg_valid), .seg_pos_i(seg_pos), .seg_elems_i(shape.k_run), .seg_data_i(spm_rsp_data_i),
    .row_done_i(row_done), .ready_o(act_ready), .start_i(start), .act_o(act)
  );

  mxu_psum_fifo #(.Cols(Cols), .InFlight(IN_FLIGHT)) u_psum_fifo (
    .clk_i, .rst_ni, .accumulate_i(shape.accumulate), .push_i(acc_rsp_valid_i), .data_i(acc_rsp_data_i),
    .ready_o(psum_ready), .start_i(start), .psum_o(psum)
  );

  always_ff @(posedge clk_i) enter_q <= rst_ni && start;

  mxu_array #(.Rows(Rows), .Cols(Cols)) u_array (
    .clk_i, .rst_ni, .is_bf16_i(shape.is_bf16), .clear_i(take),
    .weight_we_i(weight_we), .weight_row_i(weight_row_index), .weight_i(weight), .take_part_i(take_part),
    .valid_i(enter_q), .act_i(act), .psum_i(psum), .valid_o(acc_wr_valid_o), .psum_o(acc_wr_data_o)
  );

  // A requester that lets go or changes its mind would lose or duplicate an access.
  logic        spm_refused_q, acc_refused_q;
  logic [31:0] spm_addr_q, acc_addr_q;
  always_ff @(posedge clk_i) begin
    spm_refused_q <= rst_ni && spm_req_valid_o && !spm_req_ready_i;
    acc_refused_q <= rst_ni && acc_req_valid_o && !acc_req_ready_i;
    spm_addr_q    <= spm_req_addr_o;
    acc_addr_q    <= acc_req_addr_o;
  end
  `ASSAY_ASSERT(SpmHolds_A, !spm_refused_q || (spm_req_valid_o && spm_req_addr_o == spm_addr_q),
                "a scratchpad request changed before it was accepted")
  `ASSAY_ASSERT(AccHolds_A, !acc_refused_q || (acc_req_valid_o && acc_req_addr_o == acc_addr_q),
                "an accumulator request changed before it was accepted")
endmodule
