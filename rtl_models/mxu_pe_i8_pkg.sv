// Arithmetic of one int8 processing element: the exact product of two signed bytes is added to a 32-bit partial sum that wraps
// (docs/numerics.md). A PE that takes no part holds weight 0, which passes the partial sum unchanged.
// A function, not a module: the array calls it in a loop over columns, which the Verilated model keeps as one vectorised loop.
package mxu_pe_i8_pkg;
  import aurum_pkg::*;

  function automatic i32_t pe_i8_step(i32_t psum, i8_t act, i8_t weight);
    return psum + 32'(act) * 32'(weight);
  endfunction
endpackage
