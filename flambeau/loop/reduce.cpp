#include "flambeau/loop/reduce.h"

#include <limits>

#include "flambeau/loop/math.h"

namespace fl::loop {
namespace {

template <class L>
Val bound(ScalarOps& s, DType d, bool largest) {
  return s.constant(d, largest ? std::numeric_limits<L>::max() : std::numeric_limits<L>::lowest());
}

// The greatest (or least) value of the dtype, infinite for floats.
Val extreme(ScalarOps& s, DType d, bool greatest) {
  switch (d) {
    case DType::Bool:
      return s.constant(d, greatest);
    case DType::UInt8:
      return s.constant(d, greatest ? 255 : 0);
    case DType::Int8:
      return bound<int8_t>(s, d, greatest);
    case DType::Int16:
      return bound<int16_t>(s, d, greatest);
    case DType::Int32:
      return bound<int32_t>(s, d, greatest);
    case DType::Int64:
      return bound<int64_t>(s, d, greatest);
    default: {
      const double infinity = std::numeric_limits<double>::infinity();
      return s.constant(d, greatest ? infinity : -infinity);
    }
  }
}

// The least finite value: exp of a difference to it is never nan.
Val lowest_finite(ScalarOps& s, DType d) {
  return s.constant(d, d == DType::Float32 ? static_cast<double>(std::numeric_limits<float>::lowest())
                                           : std::numeric_limits<double>::lowest());
}

// Whether (x, position) comes before (m, at): more extreme, or nan, or as extreme and earlier.
Val comes_before(ScalarOps& s, ReduceOp op, Val x, Val position, Val m, Val at) {
  const Val beats = op == ReduceOp::ArgMin ? s.lt(x, m) : s.lt(m, x);
  const Val earlier = s.lt(position, at);
  Val wins = s.bit_or(beats, s.bit_and(s.eq(x, m), earlier));
  if (is_floating(x.dtype)) {
    const Val old_is_number = s.eq(m, m);
    wins = s.bit_or(wins, s.bit_and(s.is_nan(x), s.bit_or(old_is_number, earlier)));
  }
  return wins;
}

State choose(ScalarOps& s, Val condition, const State& a, const State& b) {
  State out;
  for (size_t k = 0; k < a.size(); ++k) out.push_back(s.select(condition, a[k], b[k]));
  return out;
}

// One value into a simple reduction; also how two of its states merge.
Val combine(ScalarOps& s, ReduceOp op, Val a, Val b) {
  switch (op) {
    case ReduceOp::Sum:
      return s.add(a, b);
    case ReduceOp::Prod:
      return s.mul(a, b);
    case ReduceOp::Min:
      return s.minimum(a, b);
    case ReduceOp::Max:
      return s.maximum(a, b);
    case ReduceOp::Any:
      return s.bit_or(a, b);
    default:
      return s.bit_and(a, b);
  }
}

// Welford's update. Every count is exact, and the quotient of the first point is 1.
State welford_step(ScalarOps& s, const State& state, Val x) {
  const Val count = s.add(state[2], s.like(x, 1.0));
  const Val reciprocal = s.div(s.like(x, 1.0), count);
  const Val delta = s.sub(x, state[0]);
  const Val mean = s.fma(delta, reciprocal, state[0]);
  return {mean, s.fma(delta, s.sub(x, mean), state[1]), count};
}

// Chan, Golub and LeVeque's formula; an empty side changes nothing.
State welford_merge(ScalarOps& s, const State& a, const State& b) {
  const Val count = s.add(a[2], b[2]);
  const Val weight = s.div(b[2], s.maximum(count, s.like(count, 1.0)));
  const Val delta = s.sub(b[0], a[0]);
  const Val mean = s.fma(delta, weight, a[0]);
  const Val between = s.mul(s.mul(delta, delta), s.mul(a[2], weight));
  return {mean, s.add(s.add(a[1], b[1]), between), count};
}

// One exponential a point: of the distance, which scales either the sum or the new term. A nan shows in the
// sum.
State softmax_step(ScalarOps& s, const State& state, Val x) {
  const Val rises = s.lt(state[0], x), scale = decay(s, s.sub(x, state[0]));
  const Val sum = s.select(rises, s.fma(state[1], scale, s.like(x, 1.0)), s.add(state[1], scale));
  return {s.select(rises, x, state[0]), sum};
}

}  // namespace

std::vector<DType> state_dtypes(ReduceOp op, DType operand) {
  if (op == ReduceOp::ArgMin || op == ReduceOp::ArgMax) return {operand, DType::Int64};
  return std::vector<DType>(result_count(op), operand);
}

State reduce_identity(ScalarOps& s, ReduceOp op, DType d) {
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Any:
      return {s.constant(d, 0)};
    case ReduceOp::Prod:
    case ReduceOp::All:
      return {s.constant(d, 1)};
    case ReduceOp::Min:
      return {extreme(s, d, true)};
    case ReduceOp::Max:
      return {extreme(s, d, false)};
    case ReduceOp::ArgMin:
    case ReduceOp::ArgMax:
      return {extreme(s, d, op == ReduceOp::ArgMin), bound<int64_t>(s, DType::Int64, true)};
    case ReduceOp::Welford:
      return {s.constant(d, 0), s.constant(d, 0), s.constant(d, 0)};
    default:
      return {lowest_finite(s, d), s.constant(d, 0)};
  }
}

State reduce_step(ScalarOps& s, ReduceOp op, const State& state, const std::vector<Val>& operands) {
  switch (op) {
    case ReduceOp::ArgMin:
    case ReduceOp::ArgMax:
      return choose(s, comes_before(s, op, operands[0], operands[1], state[0], state[1]), operands, state);
    case ReduceOp::Welford:
      return welford_step(s, state, operands[0]);
    case ReduceOp::OnlineSoftmax:
      return softmax_step(s, state, operands[0]);
    default:
      return {combine(s, op, state[0], operands[0])};
  }
}

State reduce_merge(ScalarOps& s, ReduceOp op, const State& a, const State& b) {
  switch (op) {
    case ReduceOp::ArgMin:
    case ReduceOp::ArgMax:
      return choose(s, comes_before(s, op, b[0], b[1], a[0], a[1]), b, a);
    case ReduceOp::Welford:
      return welford_merge(s, a, b);
    case ReduceOp::OnlineSoftmax: {
      const Val max = s.maximum(a[0], b[0]);
      return {max, s.add(reduce_rescale(s, a, max), reduce_rescale(s, b, max))};
    }
    default:
      return {combine(s, op, a[0], b[0])};
  }
}

State reduce_with_none(ScalarOps& s, ReduceOp op, const State& state) {
  if (op == ReduceOp::Prod && is_complex(state[0].dtype))
    return reduce_merge(s, op, state, reduce_identity(s, op, state[0].dtype));
  if (op != ReduceOp::Welford) return state;
  // What its merge does where the weight is 0: infinite means become nan.
  const Val zero = s.like(state[0], 0.0);
  const Val delta = s.sub(zero, state[0]);
  const Val mean = s.fma(delta, zero, state[0]);
  const Val between = s.mul(s.mul(delta, delta), s.mul(state[2], zero));
  return {mean, s.add(s.add(state[1], zero), between), state[2]};
}

Val reduce_rescale(ScalarOps& s, const State& state, Val max) {
  return s.mul(state[1], s.exp(s.sub(state[0], max)));
}

State reduce_result(ScalarOps& s, ReduceOp op, const State& state) {
  if (op != ReduceOp::OnlineSoftmax) return state;
  const Val max = state[0], sum = state[1];
  const double infinity = std::numeric_limits<double>::infinity();
  // Any finite point adds 1 to the sum when it becomes the maximum.
  const Val none_finite = s.eq(sum, s.like(sum, 0.0));
  const Val bad = s.bit_or(none_finite, s.eq(max, s.like(max, infinity)));
  const Val nan = s.like(sum, std::numeric_limits<double>::quiet_NaN());
  return {s.select(none_finite, s.like(max, -infinity), max), s.select(bad, nan, sum)};
}

}  // namespace fl::loop
