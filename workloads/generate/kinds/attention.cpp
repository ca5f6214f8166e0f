#include "workloads/generate/kinds/attention.hpp"

#include <cmath>
#include <numeric>

#include "support/error.hpp"

namespace assay::workloads::generate {

double masked_score(DType type) { return type == DType::f16 ? -30000 : -1e9; }

Value causal_mask(Net& net, std::int64_t queries, std::int64_t past) {
    const auto inside = net.scope("causal_mask");
    Ints query(static_cast<std::size_t>(queries)), key(static_cast<std::size_t>(past + queries));
    std::iota(query.begin(), query.end(), past);
    std::iota(key.begin(), key.end(), 0);
    const Value q = net.table("query_position", {queries, 1}, DType::i64, Fill::values(query));
    const Value k = net.table("key_position", {1, past + queries}, DType::i64, Fill::values(key));
    const Shape shape{queries, past + queries};
    const Value seen = net.node("LessOrEqual", "", {k, q}, shape, DType::boolean, {});
    return net.node("Where", "", {seen, net.scalar(0), net.scalar(masked_score(net.float_type()))}, shape, net.float_type(), {}).with(0, 0);
}

Value split_heads(Net& net, const Value& x, std::int64_t heads) {
    return net.transpose(net.reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), {0, 2, 1, 3});
}

Value merge_heads(Net& net, const Value& x) {
    return net.reshape(net.transpose(x, {0, 2, 1, 3}), {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
}

Value attend(Net& net, const Value& q, const Value& k, const Value& v, const Value& mask) {
    const auto width = static_cast<double>(q.dim(-1));
    const Value product = net.matmul(q, net.transpose(k, {0, 1, 3, 2}));
    Value scores = net.mul(product, net.scalar(1 / std::sqrt(width)));
    if (!mask.name.empty()) scores = net.add(scores, mask);
    return net.matmul(net.softmax(scores), v);
}

Value repeat_heads(Net& net, const Value& x, std::int64_t groups) {
    if (groups == 1) return x;
    const Value wide = net.expand(net.unsqueeze(x, 2), {x.dim(0), x.dim(1), groups, x.dim(2), x.dim(3)});
    return net.reshape(wide, {x.dim(0), x.dim(1) * groups, x.dim(2), x.dim(3)});
}

Value cached(Net& net, const std::string& past_name, const std::string& present_name, const Value& x, std::int64_t past) {
    Value present = x;
    if (past > 0) {
        Shape shape = x.shape;
        shape[2] = past;
        const double deviation = std::sqrt(x.second_moment());
        present = net.concat({net.input(past_name, shape, x.type, Fill::normal(0, deviation)).with(0, x.second_moment()), x}, 2);
    }
    net.output(present, present_name);
    return present;
}

}  // namespace assay::workloads::generate
