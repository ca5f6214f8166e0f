#include "workloads/host/call.hpp"

#include <fmt/core.h>

#include "support/error.hpp"
#include "support/onnx/onnx_file.hpp"
#include "workloads/host/elements.hpp"

namespace assay::workloads::hostops {

void Call::fail(const std::string& message) const { throw Error(ErrorKind::bad_input, message); }

void Call::bad_shape(std::size_t i, const std::string& what) const { fail(fmt::format("input {} is {}: {}", i, to_string(in(i).shape), what)); }

const Tensor& Call::in(std::size_t i) const {
    const Tensor* t = find(i);
    if (!t) fail(fmt::format("input {} is missing; repair the model", i));
    return *t;
}

std::vector<std::int64_t> Call::list(std::size_t i) const { return integers_of(in(i)); }

std::int64_t Call::integer(std::size_t i) const {
    if (in(i).count() != 1) bad_shape(i, "one element is expected; repair the model");
    return in(i).integer(0);
}

double Call::real(std::size_t i) const {
    if (in(i).count() != 1) bad_shape(i, "one element is expected; repair the model");
    return in(i).value(0);
}

const onnx::AttributeProto* Call::attribute(const char* name) const {
    for (const auto& a : node.attribute())
        if (a.name() == name) return &a;
    return nullptr;
}

std::int64_t Call::integer(const char* name, std::int64_t otherwise) const {
    const auto* a = attribute(name);
    return a ? a->i() : otherwise;
}

float Call::real(const char* name, float otherwise) const {
    const auto* a = attribute(name);
    return a ? a->f() : otherwise;
}

std::string Call::text(const char* name, const std::string& otherwise) const {
    const auto* a = attribute(name);
    return a ? a->s() : otherwise;
}

std::vector<std::int64_t> Call::integers(const char* name, std::vector<std::int64_t> otherwise) const {
    const auto* a = attribute(name);
    if (!a) return otherwise;
    return {a->ints().begin(), a->ints().end()};
}

std::vector<float> Call::reals(const char* name) const {
    const auto* a = attribute(name);
    if (!a) return {};
    return {a->floats().begin(), a->floats().end()};
}

std::vector<std::string> Call::texts(const char* name) const {
    const auto* a = attribute(name);
    if (!a) return {};
    return {a->strings().begin(), a->strings().end()};
}

std::optional<Tensor> Call::tensor(const char* name) const {
    const auto* a = attribute(name);
    if (!a || !a->has_t()) return std::nullopt;
    return tensor_from_proto(a->t(), fmt::format("attribute '{}'", name));
}

void Call::work(double steps) const {
    if (steps > 0x1p40) fail(fmt::format("{:.3g} operations, allowed on the host: {:.3g}; make the model smaller", steps, 0x1p40));
}

Tensor Call::make(DType type, Shape shape) const {
    if (const std::int64_t n = element_count(shape); n > kMaxElements)
        fail(fmt::format("a result of {} elements ({}), allowed: {}; repair the model", n, to_string(shape), kMaxElements));
    return Tensor(type, std::move(shape));
}

std::size_t Call::axis(std::int64_t axis, std::size_t rank) const {
    const auto r = static_cast<std::int64_t>(rank);
    if (axis < -r || axis >= r) fail(fmt::format("axis {} is out of range for {} dimensions; repair the model", axis, rank));
    return static_cast<std::size_t>(axis < 0 ? axis + r : axis);
}

void Call::same_types(std::size_t first, std::size_t last) const {
    for (std::size_t i = first; i < last; ++i)
        if (has(i) && in(i).dtype != in(first).dtype)
            fail(fmt::format("input types {} and {} differ; add a Cast", name_of(in(first).dtype), name_of(in(i).dtype)));
}

}  // namespace assay::workloads::hostops
