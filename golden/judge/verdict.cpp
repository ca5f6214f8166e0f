#include "golden/judge/verdict.hpp"

#include <algorithm>

namespace assay::golden {

std::string_view name_of(Verdict verdict) {
    switch (verdict) {
        case Verdict::fail:
            return "FAIL";
        case Verdict::error:
            return "ERROR";
        case Verdict::miss:
            return "MISS";
        case Verdict::inconclusive:
            return "INCONCLUSIVE";
        case Verdict::pass:
            return "PASS";
        case Verdict::measured:
            return "MEASURED";
        case Verdict::skip:
            return "SKIP";
    }
    return "?";
}

Verdict worse(Verdict a, Verdict b) { return std::min(a, b); }  // declared worst first

Verdict worst(std::span<const Verdict> verdicts) {
    Verdict out = Verdict::skip;
    for (const Verdict v : verdicts) out = worse(out, v);
    return out == Verdict::skip ? Verdict::miss : out;
}

const TensorVerdict* RunVerdict::of_layer(std::size_t layer) const {
    const TensorVerdict* found = nullptr;
    for (const TensorVerdict& t : tensors)
        if (t.layer_index == layer && (!found || worse(t.verdict, found->verdict) != found->verdict)) found = &t;
    return found;
}

}  // namespace assay::golden
