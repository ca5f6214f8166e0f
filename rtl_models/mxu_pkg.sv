// Constants of the matrix unit that are its own (nothing here is architectural; the contract's are in aurum_pkg).
package mxu_pkg;
  // Rows of activations (and of partial sums) requested and not yet in the array. Covers the longest read latency that a chip may
  // name (spm.latency_cycles <= 100) plus the two cycles of the buffers, so that one segment a cycle is always reached.
  localparam int unsigned IN_FLIGHT = 128;

  // Descriptor fields that the matrix unit keeps while it runs, as the sequencer wants them.
  typedef struct packed {
    logic [31:0] k_total;     // K, at least 1
    logic [31:0] k_run;       // contiguous elements of one activation read (k0)
    logic [31:0] m_total;     // M, at least 1
    logic [31:0] n_total;     // N, at least 1
    logic        is_bf16;
    logic        accumulate;
  } shape_t;
endpackage
