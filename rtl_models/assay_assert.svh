// Assertion macro of the RTL: checked at every clock edge out of reset. The name says what must hold; the message what breaks otherwise.
`ifndef ASSAY_ASSERT_SVH
`define ASSAY_ASSERT_SVH
`define ASSAY_ASSERT(Name, Condition, Consequence) \
  Name: assert property (@(posedge clk_i) disable iff (!rst_ni) (Condition)) \
    else $error("%m: %s", Consequence);
`endif
