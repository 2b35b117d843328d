#include "random_kernel.h"

#include <cstdlib>
#include <map>
#include <optional>

#include "flambeau/base/error.h"
#include "flambeau/loop/builder.h"
#include "flambeau/loop/evaluate.h"

namespace fl::codegen {
namespace {

using loop::Expr;
using loop::ReduceOp;
using loop::VectorAxis;

constexpr int kLaneCounts[] = {1, 8, 32, 64, 128, 256, 1024};

class Generator {
 public:
  explicit Generator(uint64_t seed, bool wide)
      : random_(seed), is_wide_(wide), b_("fuzz" + std::to_string(seed)) {}

  RandomKernel run() {
    rank_ = static_cast<int>(below(3)) + 1;
    const VectorAxis axis = pick(
        {VectorAxis::Outer, VectorAxis::Outer, VectorAxis::OuterTree, VectorAxis::Inner, VectorAxis::None});
    const bool is_outer = axis == VectorAxis::Outer || axis == VectorAxis::OuterTree;
    for (int n = 0; n < rank_; ++n) {
      const Expr size = Expr::symbol("s" + std::to_string(n));
      b_.add_size(size);
      outer_.push_back({Expr::symbol("i" + std::to_string(n)), size});
      out_.sizes.push_back(size_value(n == rank_ - 1 && is_outer));
    }
    inner_size_ = Expr::symbol("s" + std::to_string(rank_));
    b_.add_size(inner_size_);
    out_.sizes.push_back(size_value(axis == VectorAxis::Inner));
    b_.set_outer(outer_);
    for (DType d : {pick_dtype(), pick_dtype(), pick_dtype()}) add_input(d);
    const int stages = 1 + static_cast<int>(below(3));
    for (int s = 0; s < stages; ++s) stage(below(2) == 0);
    out_.kernel = b_.finish(axis);
    if (is_wide_) out_.kernel.lanes = kLaneCounts[below(std::size(kLaneCounts))];
    const loop::Kernel& k = out_.kernel;
    for (size_t n = out_.data.size(); n < k.buffers.size(); ++n) out_.data.push_back({});
    const int64_t count = buffer_size();
    for (size_t n = 0; n < k.buffers.size(); ++n)
      if (k.buffers[n].written)
        out_.data[n] = Bytes(static_cast<size_t>(count * size_of(k.buffers[n].dtype)),
                             k.buffers[n].dtype == DType::Bool ? 1 : 0x11);
    return std::move(out_);
  }

 private:
  uint64_t below(uint64_t n) { return random_() % n; }
  template <class T>
  T pick(std::initializer_list<T> list) {
    return list.begin()[below(list.size())];
  }
  DType pick_dtype() { return below(2) ? DType::Float32 : kAllDTypes[below(std::size(kAllDTypes))]; }
  int64_t size_value(bool long_axis) {
    const int64_t v = long_axis ? pick<int64_t>({0, 1, 2, 7, 16, 17, 31, 64, 65, 130, 200})
                                : pick<int64_t>({1, 1, 2, 3, 5});
    elements_ *= std::max<int64_t>(v, 1);
    return v;
  }
  int64_t inner_elements() const { return std::max<int64_t>(out_.sizes.back(), 1); }
  // Elements of a buffer: for every flat index, and for those of any_index() that no size bounds.
  int64_t buffer_size() const { return elements_ * (2 * inner_elements() + 1) + 8; }
  Expr flat(bool with_inner) {
    Expr at(0);
    for (const auto& r : outer_) at = at * r.size + r.variable;
    if (!with_inner) return at;
    if (second_inner_) at = at * 2 + *second_inner_;
    return at * inner_size_ + inner_;
  }
  void add_input(DType d) {
    inputs_.push_back(b_.add_buffer("x" + std::to_string(inputs_.size()), d, false));
    out_.data.push_back(sample_data(d, buffer_size(), random_));
  }
  // An index that stays inside of every buffer.
  Expr any_index(bool with_inner) {
    const Expr last = outer_.back().variable;
    switch (below(8)) {
      case 7:
        for (const auto* values : {&point_values_, &visible_})
          for (Val v : *values)
            if (v.dtype == DType::Int64) return sym::mod(loop::Builder::symbol_of(v), Expr(5));
        return last;
      case 0:
        return last;
      case 1:
        return Expr(static_cast<int64_t>(below(5)));
      case 2:
        return with_inner ? inner_ : outer_[0].variable;
      case 3:
        return sym::mod(last * 3 + 1, Expr(5));
      case 4:
        return sym::floordiv(flat(with_inner), Expr(2));
      default:
        return flat(with_inner);
    }
  }
  void stage(bool with_inner) {
    point_values_.clear();
    if (with_inner) {
      inner_ = Expr::symbol("r" + std::to_string(stages_));
      second_inner_.reset();
      std::vector<loop::Range> inner{{inner_, inner_size_}};
      if (below(4) == 0) {
        second_inner_ = Expr::symbol("q" + std::to_string(stages_));
        inner.insert(inner.begin(), {*second_inner_, Expr(2)});
      }
      b_.begin_stage(inner);
    } else {
      b_.begin_stage({});
    }
    ++stages_;
    const int count = 3 + static_cast<int>(below(12));
    for (int n = 0; n < count; ++n) point_values_.push_back(instruction(with_inner));
    if (with_inner && below(4) > 0) reduce();
    if (!checked_ && below(6) == 0) {
      checked_ = true;
      b_.check(of_dtype(DType::Bool), any_value_for_message(), "value {} is wrong");
    }
    const int stores = 1 + static_cast<int>(below(2));
    for (int n = 0; n < stores; ++n) store(with_inner);
    if (!with_inner) visible_.insert(visible_.end(), point_values_.begin(), point_values_.end());
    visible_.insert(visible_.end(), later_.begin(), later_.end());
    later_.clear();
  }
  Val any_value() {
    const size_t n = point_values_.size() + visible_.size();
    if (n == 0) return b_.constant(DType::Float32, 1.25);
    const size_t at = below(n);
    return at < point_values_.size() ? point_values_[at] : visible_[at - point_values_.size()];
  }
  Val any_value_for_message() {
    for (int tries = 0; tries < 6; ++tries)
      if (Val v = any_value(); !is_complex(v.dtype)) return v;
    return b_.constant(DType::Int64, 7);
  }
  Val of_dtype(DType d) {
    for (int tries = 0; tries < 6; ++tries)
      if (Val v = any_value(); v.dtype == d) return v;
    Val v = any_value();
    if (is_complex(v.dtype) && !is_complex(d)) v = b_.real(v);
    return b_.cast(v, d);
  }
  Val instruction(bool with_inner) {
    switch (below(6)) {
      case 0:
      case 1: {
        const int buffer = inputs_[below(inputs_.size())];
        return b_.load(buffer, any_index(with_inner), below(4) ? Val{} : of_dtype(DType::Bool));
      }
      case 2:
        if (below(2)) return b_.index(any_index(with_inner));
        if (below(2)) {
          out_.params.push_back(loop::ScalarBits::of(static_cast<float>(below(100)) / 7));
          return b_.param(b_.add_param(DType::Float32));
        }
        return b_.constant(pick_dtype(), static_cast<double>(below(9)) - 4.5);
      default:
        return operation();
    }
  }
  Val operation() {
    for (;;) {
      const auto op = static_cast<ScalarOp>(below(static_cast<uint64_t>(ScalarOp::Select) + 1));
      const Val a = any_value();
      DType d = compute_dtype(a.dtype);
      if (op == ScalarOp::Cast) return b_.cast(a, pick_dtype());
      if (op == ScalarOp::Bitcast) continue;
      if (op == ScalarOp::Select) {
        const Val c = of_dtype(DType::Bool);
        return b_.select(c, a, of_dtype(a.dtype));
      }
      if (!is_defined(op, d)) continue;
      return b_.emit(op, d, of_dtype(d), of_dtype(d), of_dtype(d));
    }
  }
  bool is_defined(ScalarOp op, DType d) {
    static std::map<std::pair<int, int>, bool> known;
    auto [it, is_new] = known.try_emplace({static_cast<int>(op), static_cast<int>(d)}, false);
    if (!is_new || arity(op) == 0) return it->second;
    const char* operands[] = {"", "%0", "%0, %0", "%0, %0, %0"};
    try {
      loop::parse_kernel(
          fmt::format("kernel k(x: {0} in) vector none\nstage\n%0 = load {0} x[0]\n%1 = {1} {2} {3}\n",
                      info(d).short_name, name(op), info(loop::result_dtype(op, d, d, d)).short_name,
                      operands[arity(op)]));
      it->second = true;
    } catch (const ValueError&) {
    }
    return it->second;
  }
  void reduce() {
    const auto op = static_cast<ReduceOp>(below(10));
    DType d = pick_dtype();
    switch (op) {
      case ReduceOp::Any:
      case ReduceOp::All:
        d = DType::Bool;
        break;
      case ReduceOp::Welford:
      case ReduceOp::OnlineSoftmax:
        d = below(4) ? DType::Float32 : DType::Float64;
        break;
      default:
        d = compute_dtype(d);
        if (is_complex(d) && op != ReduceOp::Sum && op != ReduceOp::Prod) d = DType::Float32;
    }
    std::vector<Val> operands{of_dtype(d)};
    if (loop::operand_count(op) == 2) operands.push_back(b_.index(inner_));
    if (!second_inner_ && below(5) == 0) {
      for (Val v : b_.scan(op, operands)) point_values_.push_back(v);
    } else {
      for (Val v : b_.reduce(op, operands)) later_.push_back(v);
    }
  }
  void store(bool with_inner) {
    const Val v = any_value();
    const int buffer = b_.add_buffer("y" + std::to_string(outputs_++), v.dtype, true);
    using loop::StoreMode;
    StoreMode mode = StoreMode::Set;
    if (below(4) == 0)
      mode = is_complex(v.dtype) ? pick({StoreMode::Add, StoreMode::Mul})
                                 : pick({StoreMode::Add, StoreMode::Mul, StoreMode::Min, StoreMode::Max});
    // Iterations may meet in one element only where the order of stores is part of the meaning.
    const Expr at = mode != StoreMode::Set && below(3) == 0 ? any_index(with_inner) : flat(with_inner);
    b_.store(buffer, at, v, mode, below(4) ? Val{} : of_dtype(DType::Bool));
  }

  std::mt19937_64 random_;
  RandomKernel out_;
  bool is_wide_;
  loop::Builder b_;
  int rank_ = 1, stages_ = 0, outputs_ = 0;
  std::vector<loop::Range> outer_;
  Expr inner_, inner_size_;
  std::optional<Expr> second_inner_;
  bool checked_ = false;
  int64_t elements_ = 1;
  std::vector<int> inputs_;
  std::vector<Val> point_values_, visible_, later_;
};

}  // namespace

RandomKernel random_kernel(uint64_t seed, bool any_lanes) { return Generator(seed, any_lanes).run(); }

int64_t number_from(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

}  // namespace fl::codegen
