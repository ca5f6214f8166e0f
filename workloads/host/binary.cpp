// Elementwise operators of several inputs with multidirectional broadcasting: arithmetic, comparison, logic, bits, Where.
#include <fmt/core.h>

#include <cmath>

#include "workloads/host/elements.hpp"

namespace assay::workloads::hostops {
namespace {

using I64 = std::int64_t;
using U64 = std::uint64_t;

/// Both inputs at their common shape.
struct Pair {
    Pair(const Call& c, bool one_type = true)
        : shape(broadcast(c, c.in(0).shape, c.in(1).shape)), a(c, c.in(0), shape), b(c, c.in(1), shape) {
        if (one_type) c.same_types(0, 2);
    }
    Shape shape;
    Spread a, b;
};

/// f is generic over double, I64 and U64: uint64 needs its own order and division, every narrower type is exact in I64.
template <class F>
Results arithmetic(const Call& c, F&& f) {
    const Pair p(c);
    Tensor out = c.make(c.in(0).dtype, p.shape);
    if (is_float(out.dtype))
        zip<double, double>(p.a.get(), p.b.get(), out, [&](double x, double y) { return f(x, y); });
    else if (out.dtype == DType::u64)
        zip<I64, I64>(p.a.get(), p.b.get(), out, [&](I64 x, I64 y) { return static_cast<I64>(f(static_cast<U64>(x), static_cast<U64>(y))); });
    else
        zip<I64, I64>(p.a.get(), p.b.get(), out, [&](I64 x, I64 y) { return static_cast<I64>(f(x, y)); });
    return one(std::move(out));
}

template <class T>
constexpr bool kReal = std::is_same_v<T, double>;

// Sums and products of integers go through unsigned, where overflow wraps and is defined.
Results add(const Call& c) {
    return arithmetic(c, []<class T>(T x, T y) -> T {
        if constexpr (kReal<T>) return x + y;
        else return static_cast<T>(static_cast<U64>(x) + static_cast<U64>(y));
    });
}
Results sub(const Call& c) {
    return arithmetic(c, []<class T>(T x, T y) -> T {
        if constexpr (kReal<T>) return x - y;
        else return static_cast<T>(static_cast<U64>(x) - static_cast<U64>(y));
    });
}
Results mul(const Call& c) {
    return arithmetic(c, []<class T>(T x, T y) -> T {
        if constexpr (kReal<T>) return x * y;
        else return static_cast<T>(static_cast<U64>(x) * static_cast<U64>(y));
    });
}
Results div(const Call& c) {
    return arithmetic(c, [&c]<class T>(T x, T y) -> T {
        if constexpr (kReal<T>) return x / y;
        else {
            if (y == 0) c.fail("an integer division by 0; repair the model");
            if constexpr (std::is_same_v<T, I64>)
                if (y == -1) return static_cast<I64>(0 - static_cast<U64>(x));  // INT64_MIN / -1 traps
            return x / y;
        }
    });
}

/// Mod-13: with fmod = 0 the result has the divisor's sign, with fmod = 1 the dividend's.
Results mod(const Call& c) {
    const bool fmod = c.integer("fmod", 0) != 0;
    return arithmetic(c, [&c, fmod]<class T>(T x, T y) -> T {
        if constexpr (kReal<T>) {
            const double r = std::fmod(x, y);
            return !fmod && r != 0 && (r < 0) != (y < 0) ? r + y : r;
        } else {
            if (y == 0) c.fail("an integer modulo by 0; repair the model");
            if constexpr (std::is_same_v<T, I64>) {
                if (y == -1) return 0;  // INT64_MIN % -1 traps
                const I64 r = x % y;
                return !fmod && r != 0 && (r < 0) != (y < 0) ? r + y : r;
            }
            return x % y;
        }
    });
}

I64 integer_power(I64 base, I64 exponent) {
    U64 result = 1, square = static_cast<U64>(base);
    for (U64 e = static_cast<U64>(exponent); e; e >>= 1, square *= square)
        if (e & 1) result *= square;
    return static_cast<I64>(result);
}

/// Pow-12: the result has the base's type whatever the exponent's is.
Results pow_(const Call& c) {
    const Pair p(c, false);
    Tensor out = c.make(c.in(0).dtype, p.shape);
    if (is_float(out.dtype) || is_float(c.in(1).dtype))
        zip<double, double>(p.a.get(), p.b.get(), out, [](double x, double y) { return std::pow(x, y); });
    else
        zip<I64, I64>(p.a.get(), p.b.get(), out, [](I64 x, I64 y) {
            if (y >= 0) return integer_power(x, y);
            return x == 1 ? I64{1} : x == -1 ? (y % 2 ? I64{-1} : I64{1}) : I64{0};
        });
    return one(std::move(out));
}

template <class F>
Results compare(const Call& c, F&& f) {
    const Pair p(c);
    Tensor out = c.make(DType::boolean, p.shape);
    if (is_float(c.in(0).dtype))
        zip<double, I64>(p.a.get(), p.b.get(), out, [&](double x, double y) { return I64{f(x, y)}; });
    else if (c.in(0).dtype == DType::u64)
        zip<I64, I64>(p.a.get(), p.b.get(), out, [&](I64 x, I64 y) { return I64{f(static_cast<U64>(x), static_cast<U64>(y))}; });
    else
        zip<I64, I64>(p.a.get(), p.b.get(), out, [&](I64 x, I64 y) { return I64{f(x, y)}; });
    return one(std::move(out));
}

Results equal(const Call& c) {
    return compare(c, [](auto x, auto y) { return x == y; });
}
Results less(const Call& c) {
    return compare(c, [](auto x, auto y) { return x < y; });
}
Results less_or_equal(const Call& c) {
    return compare(c, [](auto x, auto y) { return x <= y; });
}
Results greater(const Call& c) {
    return compare(c, [](auto x, auto y) { return x > y; });
}
Results greater_or_equal(const Call& c) {
    return compare(c, [](auto x, auto y) { return x >= y; });
}

template <class F>
Results bits(const Call& c, F&& f) {
    const Pair p(c);
    if (is_float(c.in(0).dtype)) c.fail(fmt::format("element type {}: bits of integers are expected; repair the model", name_of(c.in(0).dtype)));
    Tensor out = c.make(c.in(0).dtype, p.shape);
    zip<I64, I64>(p.a.get(), p.b.get(), out, f);
    return one(std::move(out));
}

Results bit_and(const Call& c) {
    return bits(c, [](I64 x, I64 y) { return x & y; });
}
Results bit_or(const Call& c) {
    return bits(c, [](I64 x, I64 y) { return x | y; });
}
Results bit_xor(const Call& c) {
    return bits(c, [](I64 x, I64 y) { return x ^ y; });
}

Results bit_shift(const Call& c) {
    const std::string direction = c.text("direction", "");
    c.require(direction == "LEFT" || direction == "RIGHT", "direction must be LEFT or RIGHT; repair the model");
    const bool left = direction == "LEFT";
    return bits(c, [left](I64 x, I64 y) {
        if (y < 0 || y > 63) return I64{0};
        return static_cast<I64>(left ? static_cast<U64>(x) << y : static_cast<U64>(x) >> y);
    });
}

/// Min, Max, Sum and Mean take any number of inputs and round once at the end.
enum class Many { min, max, sum, mean };

template <class T>
T combine(Many kind, T x, T y) {
    if (kind == Many::min || kind == Many::max) {
        if constexpr (kReal<T>)
            if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<double>::quiet_NaN();
        return kind == Many::min ? std::min(x, y) : std::max(x, y);
    }
    if constexpr (kReal<T>) return x + y;
    else return static_cast<T>(static_cast<U64>(x) + static_cast<U64>(y));
}

template <class T, class In>
Results variadic(const Call& c, Many kind) {
    Shape shape = c.in(0).shape;
    for (std::size_t i = 1; i < c.input_count(); ++i) shape = broadcast(c, shape, c.in(i).shape);
    Tensor out = c.make(c.in(0).dtype, shape);
    const I64 n = out.count();
    std::vector<In> sum(static_cast<std::size_t>(n)), next(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < c.input_count(); ++i) {
        const Spread x(c, c.in(i), shape);
        load(x.get(), 0, std::span<In>(i ? next : sum));
        if (i)
            for (std::size_t k = 0; k < sum.size(); ++k) sum[k] = static_cast<In>(combine<T>(kind, static_cast<T>(sum[k]), static_cast<T>(next[k])));
    }
    if constexpr (kReal<T>)
        if (kind == Many::mean)
            for (double& v : sum) v /= static_cast<double>(c.input_count());
    store(out, 0, std::span<const In>(sum));
    return one(std::move(out));
}

template <Many kind>
Results many(const Call& c) {
    c.same_types(0, c.input_count());
    const DType type = c.in(0).dtype;
    if (is_float(type)) return variadic<double, double>(c, kind);
    c.require(kind != Many::mean, "Mean of integers is not defined; repair the model");
    return type == DType::u64 ? variadic<U64, I64>(c, kind) : variadic<I64, I64>(c, kind);
}

/// PRelu-9: the slope broadcasts to x, never x to the slope.
Results prelu(const Call& c) {
    c.same_types(0, 2);
    const Tensor& x = c.in(0);
    const Spread slope(c, c.in(1), x.shape);
    Tensor out = c.make(x.dtype, x.shape);
    if (is_float(x.dtype))
        zip<double, double>(x, slope.get(), out, [](double v, double s) { return v < 0 ? v * s : v; });
    else if (x.dtype == DType::u64)
        return one(x);
    else
        zip<I64, I64>(x, slope.get(), out, [](I64 v, I64 s) { return v < 0 ? static_cast<I64>(static_cast<U64>(v) * static_cast<U64>(s)) : v; });
    return one(std::move(out));
}

Results where(const Call& c) {
    c.same_types(1, 3);
    const Shape shape = broadcast(c, broadcast(c, c.in(0).shape, c.in(1).shape), c.in(2).shape);
    const Spread condition(c, c.in(0), shape), x(c, c.in(1), shape), y(c, c.in(2), shape);
    Tensor out = c.make(c.in(1).dtype, shape);
    with_bits(out.dtype, [&](auto bits_of) {
        using T = decltype(bits_of);
        const auto a = x.get().as<T>(), b = y.get().as<T>();
        const auto choose = condition.get().as<std::uint8_t>();
        const auto to = out.as<T>();
        for (std::size_t i = 0; i < to.size(); ++i) to[i] = choose[i] ? a[i] : b[i];
    });
    return one(std::move(out));
}

}  // namespace

std::span<const Operator> binary_operators() {
    static constexpr Operator table[] = {
        {"Add", add},
        {"And", bit_and},
        {"BitShift", bit_shift, 11},
        {"BitwiseAnd", bit_and, 18},
        {"BitwiseOr", bit_or, 18},
        {"BitwiseXor", bit_xor, 18},
        {"Div", div},
        {"Equal", equal},
        {"Greater", greater},
        {"GreaterOrEqual", greater_or_equal, 12},
        {"Less", less},
        {"LessOrEqual", less_or_equal, 12},
        {"Max", many<Many::max>},
        {"Mean", many<Many::mean>},
        {"Min", many<Many::min>},
        {"Mod", mod, 10},
        {"Mul", mul},
        {"Or", bit_or},
        {"PRelu", prelu},
        {"Pow", pow_},
        {"Sub", sub},
        {"Sum", many<Many::sum>},
        {"Where", where, 9},
        {"Xor", bit_xor},
    };
    return table;
}

}  // namespace assay::workloads::hostops
