#include "program.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <set>
#include <type_traits>

#include "flambeau/base/error.h"
#include "flambeau/loop/math.h"

namespace fl::loop {
namespace {

constexpr size_t kBlock = 256;
using Lanes = uint64_t[kBlock];  // a value in the low bytes of its lane

template <class T>
T get(const Lanes& lanes, size_t i) {
  T value;
  std::memcpy(&value, &lanes[i], sizeof(T));
  return value;
}
template <class T>
void put(Lanes& lanes, size_t i, T value) {
  lanes[i] = 0;
  std::memcpy(&lanes[i], &value, sizeof(T));
}

/// Calls f with a value of the C++ type of a dtype.
template <class F>
void visit(DType dtype, F f) {
  switch (dtype) {
    case DType::Bool:
      return f(bool{});
    case DType::Int32:
      return f(int32_t{});
    case DType::Int64:
      return f(int64_t{});
    case DType::Float32:
      return f(float{});
    case DType::Float64:
      return f(double{});
    default:
      FL_RAISE(InternalError, "expected a dtype of the core, got {}", name(dtype));
  }
}

template <class T, class R, class F>
void each(Lanes& out, const Lanes& a, F f) {
  for (size_t i = 0; i < kBlock; ++i) put<R>(out, i, static_cast<R>(f(get<T>(a, i))));
}
template <class T, class R, class F>
void each(Lanes& out, const Lanes& a, const Lanes& b, F f) {
  for (size_t i = 0; i < kBlock; ++i) put<R>(out, i, static_cast<R>(f(get<T>(a, i), get<T>(b, i))));
}

template <class T>
void compare(ScalarOp op, Lanes& out, const Lanes& a, const Lanes& b) {
  switch (op) {
    case ScalarOp::Eq:
      return each<T, bool>(out, a, b, [](T x, T y) { return x == y; });
    case ScalarOp::Ne:
      return each<T, bool>(out, a, b, [](T x, T y) { return x != y; });
    case ScalarOp::Lt:
      return each<T, bool>(out, a, b, [](T x, T y) { return x < y; });
    case ScalarOp::Le:
      return each<T, bool>(out, a, b, [](T x, T y) { return x <= y; });
    default:
      FL_RAISE(InternalError, "expected a core operation, got {}", name(op));
  }
}

template <class T>
void apply_floating(ScalarOp op, Lanes& out, const Lanes& a, const Lanes& b, const Lanes& c) {
  switch (op) {
    case ScalarOp::Neg:
      return each<T, T>(out, a, [](T x) { return -x; });
    case ScalarOp::Abs:
      return each<T, T>(out, a, [](T x) { return std::fabs(x); });
    case ScalarOp::Floor:
      return each<T, T>(out, a, [](T x) { return std::floor(x); });
    case ScalarOp::Trunc:
      return each<T, T>(out, a, [](T x) { return std::trunc(x); });
    case ScalarOp::Round:
      return each<T, T>(out, a, [](T x) { return std::nearbyint(x); });
    case ScalarOp::Sqrt:
      return each<T, T>(out, a, [](T x) { return std::sqrt(x); });
    case ScalarOp::Add:
      return each<T, T>(out, a, b, [](T x, T y) { return x + y; });
    case ScalarOp::Sub:
      return each<T, T>(out, a, b, [](T x, T y) { return x - y; });
    case ScalarOp::Mul:
      return each<T, T>(out, a, b, [](T x, T y) { return x * y; });
    case ScalarOp::Div:
      return each<T, T>(out, a, b, [](T x, T y) { return x / y; });
    case ScalarOp::Copysign:
      return each<T, T>(out, a, b, [](T x, T y) { return std::copysign(x, y); });
    case ScalarOp::Fma:
      for (size_t i = 0; i < kBlock; ++i) put<T>(out, i, std::fma(get<T>(a, i), get<T>(b, i), get<T>(c, i)));
      return;
    default:
      return compare<T>(op, out, a, b);
  }
}

template <class T>
void apply_integer(ScalarOp op, Lanes& out, const Lanes& a, const Lanes& b) {
  using U = std::make_unsigned_t<T>;
  constexpr T kBits = sizeof(T) * 8;
  switch (op) {
    case ScalarOp::Add:
      return each<U, U>(out, a, b, [](U x, U y) { return x + y; });
    case ScalarOp::Sub:
      return each<U, U>(out, a, b, [](U x, U y) { return x - y; });
    case ScalarOp::Mul:
      return each<U, U>(out, a, b, [](U x, U y) { return x * y; });
    case ScalarOp::And:
      return each<U, U>(out, a, b, [](U x, U y) { return x & y; });
    case ScalarOp::Or:
      return each<U, U>(out, a, b, [](U x, U y) { return x | y; });
    case ScalarOp::Xor:
      return each<U, U>(out, a, b, [](U x, U y) { return x ^ y; });
    case ScalarOp::Shl:
      return each<U, U>(out, a, b, [](U x, U y) { return y < U{kBits} ? x << y : U{0}; });
    case ScalarOp::Shr:
      return each<T, T>(out, a, b, [](T x, T y) { return y >= 0 && y < kBits ? x >> y : (x < 0 ? -1 : 0); });
    default:
      return compare<T>(op, out, a, b);
  }
}

void apply_bool(ScalarOp op, Lanes& out, const Lanes& a, const Lanes& b) {
  switch (op) {
    case ScalarOp::Not:
      return each<bool, bool>(out, a, [](bool x) { return !x; });
    case ScalarOp::And:
      return each<bool, bool>(out, a, b, [](bool x, bool y) { return x && y; });
    case ScalarOp::Or:
      return each<bool, bool>(out, a, b, [](bool x, bool y) { return x || y; });
    case ScalarOp::Xor:
      return each<bool, bool>(out, a, b, [](bool x, bool y) { return x != y; });
    default:
      return compare<bool>(op, out, a, b);
  }
}

/// A conversion that C++ leaves undefined (nan or out of range to an integer) is a mistake in a formula.
template <class From, class To>
To convert(From x) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && !std::is_same_v<To, bool>)
    FL_CHECK(x > -9.2e18 && x < 9.2e18 && static_cast<From>(static_cast<To>(x)) == std::trunc(x),
             InternalError, "expected a number that fits, got {}", x);
  return static_cast<To>(x);
}

}  // namespace

Program::Program(ScalarOp op, DType dtype) : inputs_(arity(op)) {
  Val in[2];
  for (int i = 0; i < inputs_; ++i) {
    steps_.push_back({.op = ScalarOp::Load, .from = dtype, .to = dtype});
    in[i] = {i, dtype};
  }
  result_ = inputs_ == 1 ? expand(*this, op, in[0]) : expand(*this, op, in[0], in[1]);
  FL_CHECK(result_.dtype == dtype, InternalError, "expected {}, got {}", name(dtype), name(result_.dtype));
}

void Program::check(const Step& step, Val a, Val b, Val c) const {
  const int count = arity(step.op);
  const Val operands[] = {a, b, c};
  for (int i = 0; i < 3; ++i) {
    const int id = operands[i].id;
    FL_CHECK((id >= 0) == (i < count), InternalError, "expected {} operands of {}", count, name(step.op));
    FL_CHECK(id < static_cast<int>(steps_.size()), InternalError, "expected an earlier value, got {}", id);
    if (id < 0) continue;
    const bool is_condition = step.op == ScalarOp::Select && i == 0;
    const DType expected = is_condition ? DType::Bool : step.from;
    const DType actual = steps_[static_cast<size_t>(id)].to;
    FL_CHECK(actual == expected && actual == operands[i].dtype, InternalError, "expected {} in {}, got {}",
             name(expected), name(step.op), name(actual));
  }
}

Val Program::emit(ScalarOp op, DType dtype, Val a, Val b, Val c) {
  static const std::set<ScalarOp> comparisons = {ScalarOp::Eq, ScalarOp::Ne, ScalarOp::Lt, ScalarOp::Le};
  Step step{.op = op, .from = op == ScalarOp::Select ? b.dtype : a.dtype, .to = DType::Bool};
  if (op == ScalarOp::Cast || op == ScalarOp::Bitcast)
    step.to = dtype;
  else if (!comparisons.contains(op))
    step.to = step.from;
  check(step, a, b, c);
  step.a = a.id, step.b = b.id, step.c = c.id;
  steps_.push_back(step);
  return {static_cast<int32_t>(steps_.size()) - 1, step.to};
}

Val Program::constant(DType dtype, Literal value) {
  Step step{.op = ScalarOp::Constant, .from = dtype, .to = dtype};
  visit(dtype, [&]<class T>(T) {
    const T typed =
        value.kind == Literal::Kind::Int ? static_cast<T>(value.i) : static_cast<T>(value.c.real());
    std::memcpy(&step.bits, &typed, sizeof(T));
  });
  steps_.push_back(step);
  return {static_cast<int32_t>(steps_.size()) - 1, dtype};
}

Val Program::index(const sym::Expr&) { FL_RAISE(InternalError, "expected no index in a special function"); }

int Program::operations() const {
  int count = 0;
  for (const Step& s : steps_) count += s.op != ScalarOp::Constant && s.op != ScalarOp::Load;
  return count;
}

template <class T>
std::vector<T> Program::run(const std::vector<T>& a, const std::vector<T>& b) const {
  std::vector<T> out(a.size());
  struct alignas(64) Storage {
    Lanes lanes;
  };
  std::vector<Storage> values(steps_.size());
  static const Lanes none = {};
  auto at = [&](int i) -> const Lanes& { return i < 0 ? none : values[static_cast<size_t>(i)].lanes; };
  for (size_t i = 0; i < steps_.size(); ++i)
    if (steps_[i].op == ScalarOp::Constant)
      for (uint64_t& lane : values[i].lanes) lane = steps_[i].bits;
  for (size_t begin = 0; begin < a.size(); begin += kBlock) {
    const size_t count = std::min(kBlock, a.size() - begin);
    for (size_t i = 0; i < steps_.size(); ++i) {
      const Step& s = steps_[i];
      Lanes& to = values[i].lanes;
      const Lanes &x = at(s.a), &y = at(s.b), &z = at(s.c);
      if (s.op == ScalarOp::Constant) continue;
      if (s.op == ScalarOp::Load) {
        for (size_t j = 0; j < count; ++j) put<T>(to, j, (i == 0 ? a : b)[begin + j]);
      } else if (s.op == ScalarOp::Bitcast) {
        std::memcpy(to, x, sizeof(Lanes));
      } else if (s.op == ScalarOp::Select) {
        for (size_t j = 0; j < kBlock; ++j) to[j] = get<bool>(x, j) ? y[j] : z[j];
      } else if (s.op == ScalarOp::Cast) {
        visit(s.from, [&]<class From>(From) {
          visit(s.to,
                [&]<class To>(To) { each<From, To>(to, x, [](From v) { return convert<From, To>(v); }); });
        });
      } else {
        visit(s.from, [&]<class V>(V) {
          if constexpr (std::is_floating_point_v<V>)
            apply_floating<V>(s.op, to, x, y, z);
          else if constexpr (std::is_same_v<V, bool>)
            apply_bool(s.op, to, x, y);
          else
            apply_integer<V>(s.op, to, x, y);
        });
      }
    }
    for (size_t j = 0; j < count; ++j) out[begin + j] = get<T>(at(result_.id), j);
  }
  return out;
}
template std::vector<float> Program::run(const std::vector<float>&, const std::vector<float>&) const;
template std::vector<double> Program::run(const std::vector<double>&, const std::vector<double>&) const;

}  // namespace fl::loop
