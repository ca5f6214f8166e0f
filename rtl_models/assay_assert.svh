// Assertion macro of the RTL: checked at every clock edge out of reset. The name says what must hold; the message what breaks otherwise.
// Immediate, not concurrent: Verilator samples every signal of a concurrent assertion before each evaluation, the whole descriptor too.
`ifndef ASSAY_ASSERT_SVH
`define ASSAY_ASSERT_SVH
`define ASSAY_ASSERT(Name, Condition, Consequence) \
  always_ff @(posedge clk_i) begin \
    if (rst_ni) begin \
      Name: assert (Condition) else $error("%m: %s", Consequence); \
    end \
  end
`endif
