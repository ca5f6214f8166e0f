// The arithmetic of one processing element as a combinational unit, so that a test can drive every operand.
module mxu_pe_tb
  import aurum_pkg::*;
  import mxu_pe_i8_pkg::*;
  import mxu_pe_bf16_pkg::*;
(
  input  logic [31:0] psum_i,
  input  bf16_t       act_i,
  input  bf16_t       weight_i,
  output logic [31:0] i8_o,    // of the low bytes
  output logic [31:0] bf16_o,
  output logic [31:0] canonical_o
);
  always_comb begin
    i8_o        = pe_i8_step(psum_i, act_i[7:0], weight_i[7:0]);
    bf16_o      = pe_bf16_step(psum_i, act_i, weight_i);
    canonical_o = canonical_f32(psum_i);
  end
endmodule
