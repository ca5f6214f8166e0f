// Arithmetic of one bf16 processing element: psum + act * weight as one fused multiply-add (docs/numerics.md):
//   exact product with unbounded exponent, exact sum, one rounding to nearest even, then subnormal results become signed zero
//   (tininess after rounding, as x86 FTZ). Subnormal inputs, the partial sum too, read as signed zero. Every NaN result is canonical.
// IEEE 754-2019 except for the two flushes. Bit-exact with host fmaf() under FTZ|DAZ, apart from the payload of NaNs.
package mxu_pe_bf16_pkg;
  import aurum_pkg::*;

  // A format is a row of data: bf16 in, fp32 accumulated.
  localparam int unsigned EXP_W = 8;                     // of both formats
  localparam int unsigned IN_MAN_W = 7;
  localparam int unsigned ACC_MAN_W = 23;
  localparam int signed EXP_BIAS = 2 ** (EXP_W - 1) - 1;
  localparam int signed EXP_MAX = 2 ** EXP_W - 1;        // infinities and NaNs
  localparam int unsigned IN_SIG_W = IN_MAN_W + 1;
  localparam int unsigned PROD_W = 2 * IN_SIG_W;
  localparam int unsigned SIG_W = ACC_MAN_W + 1;
  // Both addends are significands of SIG_W bits. The smaller is shifted right under the larger; bits that leave the frame collapse into one
  // sticky bit. A few guard bits would round the same: only addends at most one exponent apart cancel by more than two bits, and those lose
  // no bit. A frame of nearly one host word makes the sticky bit rare, which is what costs time in the Verilated model.
  localparam int unsigned GUARD_W = 36;
  localparam int unsigned FRAME_W = SIG_W + GUARD_W + 1;  // one bit for the carry
  typedef logic [FRAME_W-1:0] frame_t;

  // Exponent of the product, in the accumulator's biased scale, when its PROD_W bits are the top bits of a SIG_W significand
  // whose leading bit weighs 2: (ea - bias) + (ew - bias) + bias + 1.
  localparam int signed PROD_EXP_OFFSET = 1 - EXP_BIAS;

  function automatic f32_t pe_bf16_step(f32_t psum, bf16_t act, bf16_t weight);
    // verilator no_inline_task
    logic [EXP_W-1:0] act_exp, weight_exp, psum_exp;
    logic act_zero, weight_zero, psum_zero, act_top, weight_top, psum_top;
    logic act_nan, weight_nan, psum_nan, prod_sign, psum_sign, prod_zero, prod_inf;
    logic [PROD_W-1:0] prod;
    logic [SIG_W-1:0] prod_sig, psum_sig, big_sig, small_sig;
    logic prod_is_big, big_sign, small_sign, sign;
    int signed prod_exp, exp, distance;
    frame_t big_frame, small_frame, sum, norm;
    logic [SIG_W:0] rounded;

    act_exp     = act[IN_MAN_W+:EXP_W];
    weight_exp  = weight[IN_MAN_W+:EXP_W];
    psum_exp    = psum[ACC_MAN_W+:EXP_W];
    act_zero    = act_exp == '0;  // subnormals read as zero
    weight_zero = weight_exp == '0;
    psum_zero   = psum_exp == '0;
    act_top     = act_exp == '1;
    weight_top  = weight_exp == '1;
    psum_top    = psum_exp == '1;
    act_nan     = act_top && act[IN_MAN_W-1:0] != '0;
    weight_nan  = weight_top && weight[IN_MAN_W-1:0] != '0;
    psum_nan    = psum_top && psum[ACC_MAN_W-1:0] != '0;
    prod_sign   = act[$bits(bf16_t)-1] ^ weight[$bits(bf16_t)-1];
    psum_sign   = psum[$bits(f32_t)-1];
    prod_zero   = act_zero || weight_zero;
    prod_inf    = act_top || weight_top;

    // Special cases (IEEE 754-2019 6.1, 6.2, 6.3, 7.2), in order of precedence:
    //   a NaN operand, infinity * zero, infinity - infinity -> canonical NaN; an infinite addend -> that infinity;
    //   zero + zero -> the common sign, else +0; zero product + finite -> the partial sum.
    if (act_top || weight_top || psum_top) begin
      if (act_nan || weight_nan || psum_nan || (prod_inf && prod_zero) || (prod_inf && psum_top && prod_sign != psum_sign))
        return F32_CANONICAL_NAN;
      return {prod_inf ? prod_sign : psum_sign, {EXP_W{1'b1}}, {ACC_MAN_W{1'b0}}};
    end
    if (prod_zero) begin
      if (psum_zero) return {prod_sign & psum_sign, {EXP_W + ACC_MAN_W{1'b0}}};
      return psum;
    end

    // Align: the addend of greater exponent stays. A zero partial sum (exponent 0) exceeds only products that flush in the end.
    prod        = PROD_W'({1'b1, act[IN_MAN_W-1:0]}) * PROD_W'({1'b1, weight[IN_MAN_W-1:0]});
    prod_sig    = {prod, {SIG_W - PROD_W{1'b0}}};
    psum_sig    = psum_zero ? '0 : {1'b1, psum[ACC_MAN_W-1:0]};
    prod_exp    = int'(act_exp) + int'(weight_exp) + PROD_EXP_OFFSET;
    prod_is_big = prod_exp >= int'(psum_exp);
    exp         = prod_is_big ? prod_exp : int'(psum_exp);
    distance    = prod_is_big ? prod_exp - int'(psum_exp) : int'(psum_exp) - prod_exp;
    big_sig     = prod_is_big ? prod_sig : psum_sig;
    small_sig   = prod_is_big ? psum_sig : prod_sig;
    big_sign    = prod_is_big ? prod_sign : psum_sign;
    small_sign  = prod_is_big ? psum_sign : prod_sign;
    big_frame   = {1'b0, big_sig, {GUARD_W{1'b0}}};
    small_frame = {1'b0, small_sig, {GUARD_W{1'b0}}};
    if (distance > int'(GUARD_W)) begin
      if (distance >= int'(FRAME_W)) small_frame = frame_t'(small_sig != '0);
      else small_frame = (small_frame >> distance) | frame_t'((small_frame & ~({FRAME_W{1'b1}} << distance)) != '0);
    end else begin
      small_frame = small_frame >> distance;
    end

    // Add magnitudes. A product has up to one leading zero, so the "smaller" addend may still win when the exponents are near.
    sign = big_sign;
    if (big_sign == small_sign) sum = big_frame + small_frame;
    else if (big_frame >= small_frame) sum = big_frame - small_frame;
    else begin
      sum  = small_frame - big_frame;
      sign = small_sign;
    end
    if (sum == '0) return '0;  // exact cancellation rounds to +0

    // Normalise: leading one to the top bit. The top bit of the frame is worth one exponent more than the significand's.
    exp  = exp + 1;
    norm = sum;
    if (norm[FRAME_W-1-:32] == '0) begin norm = norm << 32; exp = exp - 32; end
    if (norm[FRAME_W-1-:16] == '0) begin norm = norm << 16; exp = exp - 16; end
    if (norm[FRAME_W-1-:8] == '0) begin norm = norm << 8; exp = exp - 8; end
    if (norm[FRAME_W-1-:4] == '0) begin norm = norm << 4; exp = exp - 4; end
    if (norm[FRAME_W-1-:2] == '0) begin norm = norm << 2; exp = exp - 2; end
    if (!norm[FRAME_W-1]) begin norm = norm << 1; exp = exp - 1; end

    // Round to nearest even at unbounded exponent, then overflow to infinity or flush what is still subnormal.
    rounded = {1'b0, norm[FRAME_W-1-:SIG_W]};
    if (norm[FRAME_W-SIG_W-1] && (norm[FRAME_W-SIG_W-2:0] != '0 || norm[FRAME_W-SIG_W])) rounded = rounded + 1'b1;
    if (rounded[SIG_W]) exp = exp + 1;  // the fraction is then zero, whichever bits are taken
    if (exp >= EXP_MAX) return {sign, {EXP_W{1'b1}}, {ACC_MAN_W{1'b0}}};
    if (exp <= 0) return {sign, {EXP_W + ACC_MAN_W{1'b0}}};
    return {sign, EXP_W'(exp), rounded[ACC_MAN_W-1:0]};
  endfunction

  // What the accumulator holds for a value that enters the array without meeting any PE: subnormals flush, NaNs are canonical.
  function automatic f32_t canonical_f32(f32_t value);
    if (value[ACC_MAN_W+:EXP_W] == '0) return {value[$bits(f32_t)-1], {EXP_W + ACC_MAN_W{1'b0}}};
    if (value[ACC_MAN_W+:EXP_W] == '1 && value[ACC_MAN_W-1:0] != '0) return F32_CANONICAL_NAN;
    return value;
  endfunction
endpackage
