// RNN, GRU and LSTM: every attribute of RNN-14, GRU-14 and LSTM-14.
#include <fmt/core.h>

#include <cmath>
#include <functional>

#include "workloads/host/elements.hpp"
#include "workloads/host/matrix.hpp"

namespace assay::workloads::hostops {
namespace {

using I64 = std::int64_t;
using Activation = std::function<double(double)>;

double sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

/// The activations of all directions in order; activation_alpha and _beta are consumed by the functions that have them.
std::vector<Activation> activations_of(const Call& c, std::vector<std::string> defaults, I64 directions) {
    auto names = c.texts("activations");
    if (names.empty())
        for (I64 d = 0; d < directions; ++d) names.insert(names.end(), defaults.begin(), defaults.end());
    if (names.size() != defaults.size() * static_cast<std::size_t>(directions))
        c.fail(fmt::format("{} activations, {} are expected; repair the model", names.size(), defaults.size() * static_cast<std::size_t>(directions)));
    const auto alphas = c.reals("activation_alpha"), betas = c.reals("activation_beta");
    std::size_t used_alpha = 0, used_beta = 0;
    const auto alpha = [&](float otherwise) -> double { return used_alpha < alphas.size() ? alphas[used_alpha++] : otherwise; };
    const auto beta = [&](float otherwise) -> double { return used_beta < betas.size() ? betas[used_beta++] : otherwise; };
    std::vector<Activation> out;
    for (const auto& name : names) {
        std::string n = name;
        for (char& ch : n) ch = static_cast<char>(std::tolower(static_cast<unsigned char>(ch)));
        if (n == "sigmoid") out.emplace_back(sigmoid);
        else if (n == "tanh") out.emplace_back([](double x) { return std::tanh(x); });
        else if (n == "relu") out.emplace_back([](double x) { return std::max(x, 0.0); });
        else if (n == "softsign") out.emplace_back([](double x) { return x / (1 + std::fabs(x)); });
        else if (n == "softplus") out.emplace_back([](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); });
        else if (n == "leakyrelu") out.emplace_back([a = alpha(0.01f)](double x) { return x < 0 ? a * x : x; });
        else if (n == "thresholdedrelu") out.emplace_back([a = alpha(1.0f)](double x) { return x > a ? x : 0.0; });
        else if (n == "elu") out.emplace_back([a = alpha(1.0f)](double x) { return x < 0 ? a * std::expm1(x) : x; });
        else if (n == "affine") out.emplace_back([a = alpha(1.0f), b = beta(0.0f)](double x) { return a * x + b; });
        else if (n == "scaledtanh") out.emplace_back([a = alpha(1.0f), b = beta(1.0f)](double x) { return a * std::tanh(b * x); });
        else if (n == "hardsigmoid") out.emplace_back([a = alpha(0.2f), b = beta(0.5f)](double x) { return std::max(0.0, std::min(1.0, a * x + b)); });
        else c.fail(fmt::format("activation '{}' is unknown; repair the model", name));
    }
    return out;
}

/// rows x columns to columns x rows.
std::vector<double> transposed(const double* v, I64 rows, I64 columns) {
    std::vector<double> out(static_cast<std::size_t>(rows * columns));
    for (I64 r = 0; r < rows; ++r)
        for (I64 k = 0; k < columns; ++k) out[static_cast<std::size_t>(k * rows + r)] = v[r * columns + k];
    return out;
}

enum class Cell { rnn, gru, lstm };

struct Sizes {
    I64 steps, batch, inputs, hidden, directions, gates;
};

/// One direction: x is [steps, batch, inputs]; y receives [steps, batch, hidden]; h and s hold the initial and get the last states.
class Direction {
public:
    Direction(const Call& c, Cell cell, const Sizes& z, I64 d, std::span<const Activation> f) : cell_(cell), z_(z), f_(f) {
        const I64 rows = z.gates * z.hidden;
        const auto w = reals_of(c.in(1)), r = reals_of(c.in(2));
        w_ = transposed(w.data() + d * rows * z.inputs, rows, z.inputs);
        r_ = transposed(r.data() + d * rows * z.hidden, rows, z.hidden);
        wb_.assign(static_cast<std::size_t>(rows), 0.0);
        rb_ = wb_;
        if (c.has(3)) {
            const auto b = reals_of(c.in(3));
            std::copy_n(b.begin() + d * 2 * rows, rows, wb_.begin());
            std::copy_n(b.begin() + d * 2 * rows + rows, rows, rb_.begin());
        }
        if (cell == Cell::lstm) {
            peephole_.assign(static_cast<std::size_t>(3 * z.hidden), 0.0);
            if (c.has(7)) {
                const auto p = reals_of(c.in(7));
                std::copy_n(p.begin() + d * 3 * z.hidden, 3 * z.hidden, peephole_.begin());
            }
        }
        clip_ = c.attribute("clip") ? static_cast<double>(c.real("clip", 0)) : HUGE_VAL;
        before_reset_ = c.integer("linear_before_reset", 0) == 0;
        couple_ = c.integer("input_forget", 0) != 0;
    }

    void run(const std::vector<double>& x, const std::vector<I64>& lengths, bool reverse, std::vector<double>& y, std::vector<double>& h,
             std::vector<double>& s) const {
        const I64 rows = z_.gates * z_.hidden;
        std::vector<double> from_x(static_cast<std::size_t>(z_.steps * z_.batch * rows)), from_h(static_cast<std::size_t>(z_.batch * rows));
        product(x.data(), w_.data(), from_x.data(), z_.steps * z_.batch, z_.inputs, rows);
        for (I64 step = 0; step < z_.steps; ++step) {
            product(h.data(), r_.data(), from_h.data(), z_.batch, z_.hidden, rows);
            for (I64 b = 0; b < z_.batch; ++b) {
                const I64 length = lengths[static_cast<std::size_t>(b)];
                if (step >= length) continue;
                const I64 t = reverse ? length - 1 - step : step;
                const double* wx = from_x.data() + (t * z_.batch + b) * rows;
                const double* rh = from_h.data() + b * rows;
                double* hb = h.data() + b * z_.hidden;
                cell_step(wx, rh, hb, cell_ == Cell::lstm ? s.data() + b * z_.hidden : nullptr);
                std::copy_n(hb, z_.hidden, y.begin() + (t * z_.batch + b) * z_.hidden);
            }
        }
    }

private:
    double clipped(double v) const { return std::min(std::max(v, -clip_), clip_); }
    double bias(I64 k) const { return wb_[static_cast<std::size_t>(k)] + rb_[static_cast<std::size_t>(k)]; }

    void cell_step(const double* wx, const double* rh, double* h, double* s) const {
        const I64 n = z_.hidden;
        if (cell_ == Cell::rnn) {
            for (I64 k = 0; k < n; ++k) h[k] = f_[0](clipped(wx[k] + rh[k] + bias(k)));
        } else if (cell_ == Cell::gru) {  // gates z, r, h
            std::vector<double> update(static_cast<std::size_t>(n)), candidate(static_cast<std::size_t>(n)), gated(static_cast<std::size_t>(n));
            for (I64 k = 0; k < n; ++k) {
                const auto i = static_cast<std::size_t>(k);
                update[i] = f_[0](clipped(wx[k] + rh[k] + bias(k)));
                gated[i] = f_[0](clipped(wx[n + k] + rh[n + k] + bias(n + k)));
            }
            if (before_reset_) {  // (r . h) R^T: the reset comes before the product
                for (I64 k = 0; k < n; ++k) gated[static_cast<std::size_t>(k)] *= h[k];
                std::vector<double> all(static_cast<std::size_t>(3 * n));
                product(gated.data(), r_.data(), all.data(), 1, n, 3 * n);
                for (I64 k = 0; k < n; ++k) candidate[static_cast<std::size_t>(k)] = wx[2 * n + k] + all[static_cast<std::size_t>(2 * n + k)] + bias(2 * n + k);
            } else {
                for (I64 k = 0; k < n; ++k) {
                    const auto i = static_cast<std::size_t>(k), at = static_cast<std::size_t>(2 * n + k);
                    candidate[i] = wx[2 * n + k] + gated[i] * (rh[2 * n + k] + rb_[at]) + wb_[at];
                }
            }
            for (I64 k = 0; k < n; ++k) {
                const auto i = static_cast<std::size_t>(k);
                h[k] = (1 - update[i]) * f_[1](clipped(candidate[i])) + update[i] * h[k];
            }
        } else {  // gates i, o, f, c; peepholes i, o, f
            for (I64 k = 0; k < n; ++k) {
                const auto p = [&](I64 gate) { return peephole_[static_cast<std::size_t>(gate * n + k)]; };
                const double i = f_[0](clipped(wx[k] + rh[k] + bias(k) + p(0) * s[k]));
                const double forget = couple_ ? 1 - i : f_[0](clipped(wx[2 * n + k] + rh[2 * n + k] + bias(2 * n + k) + p(2) * s[k]));
                s[k] = forget * s[k] + i * f_[1](clipped(wx[3 * n + k] + rh[3 * n + k] + bias(3 * n + k)));
                const double o = f_[0](clipped(wx[n + k] + rh[n + k] + bias(n + k) + p(1) * s[k]));
                h[k] = o * f_[2](s[k]);
            }
        }
    }

    Cell cell_;
    Sizes z_;
    std::span<const Activation> f_;
    std::vector<double> w_, r_, wb_, rb_, peephole_;
    double clip_ = HUGE_VAL;
    bool before_reset_ = true, couple_ = false;
};

template <Cell kCell>
Results recurrent(const Call& c) {
    const bool batch_first = c.integer("layout", 0) != 0;
    const std::string direction = c.text("direction", "forward");
    c.require(direction == "forward" || direction == "reverse" || direction == "bidirectional", "direction is unknown; use forward, reverse or bidirectional");
    if (c.in(0).shape.size() != 3) c.bad_shape(0, "three dimensions are expected; repair the model");
    const std::size_t swap[] = {1, 0, 2};
    const Tensor x = batch_first ? permuted(c, c.in(0), swap) : c.in(0);
    if (c.in(2).shape.size() != 3) c.bad_shape(2, "three dimensions are expected; repair the model");
    Sizes z{x.shape[0], x.shape[1], x.shape[2], c.in(2).shape[2], direction == "bidirectional" ? 2 : 1, kCell == Cell::rnn ? 1 : kCell == Cell::gru ? 3 : 4};
    const auto expect = [&](std::size_t i, const Shape& shape) {
        if (c.has(i) && c.in(i).shape != shape) c.bad_shape(i, fmt::format("{} is expected; repair the model", to_string(shape)));
    };
    const I64 rows = z.gates * z.hidden;
    if (c.integer("hidden_size", z.hidden) != z.hidden) c.fail("hidden_size does not fit R; repair the model");
    expect(1, {z.directions, rows, z.inputs});
    c.in(1);
    expect(2, {z.directions, rows, z.hidden});
    expect(3, {z.directions, 2 * rows});
    expect(4, {z.batch});
    const Shape state = batch_first ? Shape{z.batch, z.directions, z.hidden} : Shape{z.directions, z.batch, z.hidden};
    expect(5, state);
    if (kCell == Cell::lstm) expect(6, state), expect(7, {z.directions, 3 * z.hidden});
    c.work(static_cast<double>(z.steps) * static_cast<double>(z.batch) * static_cast<double>(z.directions * rows) * static_cast<double>(z.inputs + z.hidden));
    c.make(DType::u8, {std::min(element_count({z.steps, z.batch, z.directions * rows}), kMaxElements + 1)});
    const auto f = activations_of(c, kCell == Cell::rnn ? std::vector<std::string>{"Tanh"} : kCell == Cell::gru ? std::vector<std::string>{"Sigmoid", "Tanh"} : std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"}, z.directions);
    const std::size_t per_direction = f.size() / static_cast<std::size_t>(z.directions);
    auto lengths = c.has(4) ? c.list(4) : std::vector<I64>(static_cast<std::size_t>(z.batch), z.steps);
    for (const I64 length : lengths)
        if (length < 0 || length > z.steps) c.fail(fmt::format("a sequence of {} of {} steps; repair the model", length, z.steps));
    const auto initial = [&](std::size_t i) {
        if (!c.has(i)) return std::vector<double>(static_cast<std::size_t>(z.directions * z.batch * z.hidden), 0.0);
        return batch_first ? reals_of(permuted(c, c.in(i), swap)) : reals_of(c.in(i));
    };
    const auto h0 = initial(5), s0 = kCell == Cell::lstm ? initial(6) : std::vector<double>{};
    const auto values = reals_of(x);
    const I64 plane = z.batch * z.hidden;
    std::vector<double> y(static_cast<std::size_t>(z.steps * z.directions * plane), 0.0), last_h, last_s;
    for (I64 d = 0; d < z.directions; ++d) {
        const bool reverse = direction == "reverse" || d == 1;
        std::vector<double> h(h0.begin() + d * plane, h0.begin() + (d + 1) * plane), s;
        if (kCell == Cell::lstm) s.assign(s0.begin() + d * plane, s0.begin() + (d + 1) * plane);
        std::vector<double> out(static_cast<std::size_t>(z.steps * plane), 0.0);
        const Direction cell(c, kCell, z, d, std::span<const Activation>(f).subspan(static_cast<std::size_t>(d) * per_direction, per_direction));
        cell.run(values, lengths, reverse, out, h, s);
        for (I64 t = 0; t < z.steps; ++t) std::copy_n(out.begin() + t * plane, plane, y.begin() + (t * z.directions + d) * plane);
        last_h.insert(last_h.end(), h.begin(), h.end());
        last_s.insert(last_s.end(), s.begin(), s.end());
    }
    const DType type = c.in(0).dtype;
    Results r = one(tensor_of(c, type, {z.steps, z.directions, z.batch, z.hidden}, std::span<const double>(y)));
    r.push_back(tensor_of(c, type, {z.directions, z.batch, z.hidden}, std::span<const double>(last_h)));
    if (kCell == Cell::lstm) r.push_back(tensor_of(c, type, {z.directions, z.batch, z.hidden}, std::span<const double>(last_s)));
    if (batch_first) {
        const std::size_t first[] = {2, 0, 1, 3};
        r[0] = permuted(c, r[0], first);
        for (std::size_t i = 1; i < r.size(); ++i) r[i] = permuted(c, r[i], swap);
    }
    return r;
}

}  // namespace

std::span<const Operator> recurrent_operators() {
    static constexpr Operator table[] = {{"GRU", recurrent<Cell::gru>, 7}, {"LSTM", recurrent<Cell::lstm>, 7}, {"RNN", recurrent<Cell::rnn>, 7}};
    return table;
}

}  // namespace assay::workloads::hostops
