#include "values.h"

#include <cmath>
#include <map>

#include "evaluator.h"

namespace fl::testing {
namespace {

std::complex<double> number(const ScalarBits& b, DType d) {
  return converted(b, d, DType::Complex128).get<std::complex<double>>();
}

/// The distance from 1 to the next number of a floating dtype; 0 for others.
double epsilon(DType d) {
  switch (real_dtype(d)) {
    case DType::Float16:
      return 0x1p-10;
    case DType::BFloat16:
      return 0x1p-7;
    case DType::Float32:
      return 0x1p-23;
    case DType::Float64:
      return 0x1p-52;
    default:
      return 0;
  }
}

bool close(double a, double b, double unit) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::abs(a - b) <= unit * (1 + std::abs(b));
}

std::optional<std::string> tensor_difference(const Tensor& a, const Tensor& b, const Tolerance& t) {
  if (a.defined() != b.defined()) return fmt::format("one is {}", a.defined() ? "defined" : "undefined");
  if (!a.defined()) return std::nullopt;
  if (a.dtype() != b.dtype()) return fmt::format("dtype {} and {}", name(a.dtype()), name(b.dtype()));
  if (a.sizes() != b.sizes())
    return fmt::format("sizes {} and {}", to_string(a.sizes()), to_string(b.sizes()));
  if (t.layout && a.numel() > SymInt(1)) {
    for (int d = 0; d < a.dim(); ++d) {
      if (a.sizes()[d] > SymInt(1) && a.strides()[d] != b.strides()[d])
        return fmt::format("strides {} and {}", to_string(a.strides()), to_string(b.strides()));
    }
  }
  const auto x = elements(a), y = elements(b);
  const double unit = t.ulps * epsilon(a.dtype());
  for (size_t k = 0; k < x.size(); ++k) {
    if (!close(x[k].real(), y[k].real(), unit) || !close(x[k].imag(), y[k].imag(), unit))
      return fmt::format("element {} of sizes {} {}: {}{:+}i and {}{:+}i", k, to_string(a.sizes()),
                         name(a.dtype()), x[k].real(), x[k].imag(), y[k].real(), y[k].imag());
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::complex<double>> elements(const Tensor& t) {
  std::vector<std::complex<double>> out;
  std::vector<Expr> index(t.dim(), Expr(0));
  const int64_t count = t.numel().expect_int();
  for (int64_t n = 0; n < count; ++n) {
    int64_t rest = n;
    for (int d = t.dim(); d-- > 0;) {
      const int64_t size = t.sizes()[d].expect_int();
      index[d] = rest % size;
      rest /= size;
    }
    out.push_back(number(read(t, index), t.dtype()));
  }
  return out;
}

std::optional<std::string> difference(const Value& a, const Value& b, const Tolerance& t) {
  if (a.is_tensor() && b.is_tensor()) return tensor_difference(a.tensor(), b.tensor(), t);
  if (a.tag() == Value::Tag::TensorList && b.tag() == Value::Tag::TensorList) {
    const auto &x = a.tensors(), &y = b.tensors();
    if (x.size() != y.size()) return fmt::format("{} and {} tensors", x.size(), y.size());
    for (size_t k = 0; k < x.size(); ++k) {
      if (auto d = tensor_difference(x[k], y[k], t)) return fmt::format("tensor {}: {}", k, *d);
    }
    return std::nullopt;
  }
  if (a.same_as(b)) return std::nullopt;
  return a.describe() + " and " + b.describe();
}

std::optional<std::string> difference(const std::vector<Value>& a, const std::vector<Value>& b,
                                      const Tolerance& t) {
  if (a.size() != b.size()) return fmt::format("{} and {} results", a.size(), b.size());
  for (size_t k = 0; k < a.size(); ++k) {
    if (auto d = difference(a[k], b[k], t)) return fmt::format("result {}: {}", k, *d);
  }
  return std::nullopt;
}

std::vector<Value> copied(const std::vector<Value>& args) {
  std::map<Storage*, Ref<Storage>> storages;
  const auto copy = [&](const Tensor& t) {
    if (!t.defined() || !t.has_data() || t.impl()->wrapped_number) return t;
    Ref<Storage>& s = storages[t.storage().get()];
    if (!s) {
      s = make_ref<Storage>(t.storage()->bytes(), t.device());
      if (s->bytes() > 0) std::memcpy(s->data(), t.storage()->data(), s->bytes());
    }
    return Tensor(t.spec(), s);
  };
  std::vector<Value> out;
  for (const Value& v : args) {
    if (v.is_tensor()) {
      out.emplace_back(copy(v.tensor()));
    } else if (v.tag() == Value::Tag::TensorList) {
      std::vector<Tensor> list;
      for (const Tensor& t : v.tensors()) list.push_back(copy(t));
      out.emplace_back(std::move(list));
    } else {
      out.push_back(v);
    }
  }
  return out;
}

std::string describe(const OpInfo& op, const Sample& s, DType dtype) {
  std::string out = fmt::format("{} [{}] {}(", s.note, name(dtype), op.name());
  for (size_t k = 0; k < s.args.size(); ++k) out += (k ? ", " : "") + s.args[k].describe();
  return out + ")";
}

}  // namespace fl::testing
