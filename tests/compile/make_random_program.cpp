// The generator of random programs: runs each step while it makes it, to know what can come next.
#include "random_program.h"

#include <algorithm>

#include "flambeau/graph/graph.h"
#include "flambeau/ops/functions.h"

namespace fl::testing {
namespace {

const sym::Expr& open_size() {
  static const sym::Expr* n = new sym::Expr(sym::Expr::symbol("n"));
  return *n;
}

class Maker {
 public:
  Maker(uint64_t seed, std::vector<std::string>& broken) : random_(seed * 7919 + 17), broken_(broken) {}

  RandomProgram run() {
    p_.gradients = below(3) == 0;
    p_.large = below(12) == 0;
    const int inputs = 1 + below(3);
    for (int k = 0; k < inputs; ++k) add_input();
    values_ = make_inputs(p_, kFirstSize);
    exact_.assign(values_.size(), true);
    const int steps = 1 + below(9);
    for (int k = 0, attempts = 0; k < steps && attempts < 60; ++attempts) k += add_step();
    choose_outputs();
    return std::move(p_);
  }

 private:
  static constexpr int64_t kSizes[] = {0, 1, 1, 2, 2, 3, 4, 5, 7, 8, 17};
  static constexpr int64_t kLargeSizes[] = {1, 3, 40, 64, 129, 4100};

  int below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  template <class T>
  T pick(std::initializer_list<T> list) {
    return list.begin()[below(static_cast<int>(list.size()))];
  }

  int64_t size() {
    if (below(4) == 0) return kOpenSize;
    if (p_.large && below(2)) return kLargeSizes[below(std::size(kLargeSizes))];
    const int64_t s = kSizes[below(std::size(kSizes))];
    return s == 0 && below(4) ? 3 : s;
  }

  void add_input() {
    ProgramInput in;
    const int rank = pick({0, 1, 2, 2, 3, 3, 4});
    int64_t numel = 1;
    for (int d = 0; d < rank; ++d) {
      in.sizes.push_back(d == 0 && below(2) ? kOpenSize : size());
      numel *= in.sizes.back() < 0 ? 13 : in.sizes.back();
      if (numel > (p_.large ? 100000 : 4000)) in.sizes.back() = 2;
    }
    if (!p_.inputs.empty() && below(2)) in.sizes = p_.inputs[0].sizes;  // likely to go together
    in.dtype = pick({DType::Float32, DType::Float32, DType::Float32, DType::Float32, DType::Float64,
                     DType::Int64, DType::Bool, DType::BFloat16, DType::Int32});
    in.layout = pick({ProgramInput::Layout::Contiguous, ProgramInput::Layout::Contiguous,
                      ProgramInput::Layout::Transposed, ProgramInput::Layout::Strided});
    in.interior = below(2);
    in.seed = random_();
    p_.inputs.push_back(std::move(in));
  }

  // Values.
  int any() {
    const int n = static_cast<int>(values_.size());
    // Late ones more often, so that chains grow.
    return below(2) ? n - 1 - below(std::min(n, 2)) : below(n);
  }
  int any_of(const std::function<bool(const Tensor&)>& ok) {
    for (int k = 0; k < 12; ++k)
      if (const int v = any(); ok(values_[v])) return v;
    return -1;
  }
  int any_float() {
    return any_of([](const Tensor& t) { return is_floating(t.dtype()); });
  }
  int with_dims(int least) {
    return any_of([&](const Tensor& t) { return t.dim() >= least; });
  }
  bool exact(int v) const { return exact_[v]; }
  static Value ref(int v) { return Value(GraphRef{v, 0}); }
  int64_t size_of_dim(int v, int d) const { return values_[v].sizes()[d].expect_int(); }
  static SymInt opened(int64_t s) { return s == kFirstSize ? SymInt(open_size()) : SymInt(s); }
  int dim_of(int v) { return below(std::max(1, values_[v].dim())); }
  int signed_dim(int v) {
    const int n = std::max(1, values_[v].dim());
    return below(2 * n) - n;
  }
  bool broadcasts(int a, int b) const {
    const Sizes &x = values_[a].sizes(), &y = values_[b].sizes();
    for (size_t k = 1; k <= std::min(x.size(), y.size()); ++k) {
      const SymInt p = x[x.size() - k], q = y[y.size() - k];
      if (!p.same_as(q) && !p.same_as(1) && !q.same_as(1)) return false;
    }
    return true;
  }

  bool emit(const std::string& op_name, std::vector<Value> args, bool exact_op) {
    const OpInfo* op = op_table().find(op_name);
    if (!op) return broken_.push_back("no operator " + op_name), false;
    for (int i = static_cast<int>(args.size()); i < op->arg_count(); ++i)
      args.push_back(*op->schema.args[i].default_value);
    ProgramStep step{op, std::move(args), -1};
    const size_t before = values_.size();
    try {
      run_step(step, values_, kFirstSize);
    } catch (const NotImplementedError& e) {
      // PyTorch says of these dtypes, too, "not implemented for" them or "not supported on a bool tensor".
      if (e.message().find("not implemented for") == std::string::npos &&
          e.message().find("bool tensor") == std::string::npos)
        broken_.push_back(op_name + ": " + e.message());
      return false;
    } catch (const InternalError& e) {
      return broken_.push_back(op_name + ": " + e.message()), false;
    } catch (const Error&) {
      values_.resize(before);
      return false;
    }
    step.results = static_cast<int>(values_.size() - before);
    bool is_exact = exact_op;
    for (const Value& v : step.args)
      graph::for_each_ref(v, [&](GraphRef r) { is_exact = is_exact && exact_[r.node]; });
    exact_.resize(values_.size(), is_exact);
    int64_t numel = 0;
    for (size_t k = before; k < values_.size(); ++k) numel = std::max(numel, values_[k].numel().expect_int());
    if (numel > 400000) {
      // Too large to go on with; nothing was changed in place where a result is this large.
      values_.resize(before);
      exact_.resize(before);
      return false;
    }
    if (op->mutates() && !is_exact)
      for (size_t k = 0; k < values_.size(); ++k)
        if (values_[k].storage() == values_.back().storage()) exact_[k] = false;
    p_.steps.push_back(std::move(step));
    return true;
  }

  bool add_step() {
    switch (below(26)) {
      case 0:
      case 1:
      case 2:
        return unary();
      case 3:
      case 4:
      case 5:
        return binary();
      case 6:
      case 7:
      case 8:
      case 9:
        return view();
      case 10:
      case 11:
      case 12:
        return reduction();
      case 13:
      case 14:
        return normalisation();
      case 15:
      case 16:
        return rearrangement();
      case 17:
      case 18:
        return product();
      case 19:
      case 20:
      case 21:
        return in_place();
      case 22:
        return selection();
      case 23:
        return scan();
      case 24:
        return indexing();
      default:
        return conversion();
    }
  }

  bool unary() {
    if (below(8) == 0) {
      const int v = any();
      return emit(pick({"logical_not", "isnan", "signbit"}), {ref(v)}, exact(v));
    }
    if (below(6) == 0) {
      const int v = any_float();
      if (v < 0 || !exact(v)) return false;
      return emit(pick({"floor", "round", "sign", "trunc", "ceil", "frac"}), {ref(v)}, true);
    }
    const int v = below(5) ? any_float() : any();
    if (v < 0) return false;
    return emit(
        pick({"neg",      "abs",   "exp",   "sin",      "cos",        "tanh", "sigmoid",  "relu",
              "gelu",     "silu",  "sqrt",  "log",      "rsqrt",      "erf",  "square",   "reciprocal",
              "softplus", "log1p", "clone", "hardtanh", "leaky_relu", "elu",  "positive", "nan_to_num"}),
        {ref(v)}, true);
  }

  Value number() {
    return below(2) ? Value(pick({0.5, -1.25, 2.0, 3.0, 0.0}))
                    : Value(pick({int64_t{2}, int64_t{-1}, int64_t{3}}));
  }

  bool binary() {
    const int a = any();
    int b = -1;
    for (int k = 0; k < 8 && b < 0; ++k)
      if (const int v = any(); broadcasts(a, v)) b = v;
    const bool swap = below(2);
    Value x = ref(a), y = b < 0 || below(4) == 0 ? number() : ref(b);
    if (swap && y.tag() == Value::Tag::GraphRef) std::swap(x, y);
    const bool both = exact(a) && (b < 0 || exact(b));
    switch (below(4)) {
      case 0:
        if (!both) return false;
        return emit(pick({"eq.Tensor", "ne.Tensor", "lt.Tensor", "le.Tensor", "gt.Tensor", "ge.Tensor",
                          "logical_and", "logical_or", "logical_xor"}),
                    {x, y}, true);
      case 1: {
        const int c = any();
        if (y.tag() != Value::Tag::GraphRef || !broadcasts(a, c)) return false;
        return emit(pick({"addcmul", "addcdiv", "lerp.Tensor"}), {ref(a), y, ref(c)}, true);
      }
      default:
        return emit(pick({"add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor", "maximum", "minimum",
                          "add.Tensor", "mul.Tensor", "atan2", "fmax", "copysign.Tensor", "xlogy.Tensor",
                          "hypot", "rsub.Tensor", "clamp_min.Tensor", "clamp_max.Tensor"}),
                    {x, y}, true);
    }
  }

  bool view() {
    const int v = any();
    const Tensor& t = values_[v];
    const int n = t.dim(), d = dim_of(v);
    switch (below(11)) {
      case 0: {
        std::vector<int64_t> order(n);
        for (int k = 0; k < n; ++k) order[k] = k;
        std::shuffle(order.begin(), order.end(), random_);
        Sizes dims;
        for (int64_t k : order) dims.push_back(k);
        return emit("permute", {ref(v), Value(dims)}, true);
      }
      case 1: {
        if (n < 2) return emit("unsqueeze", {ref(v), Value(signed_dim(v))}, true);
        // Two neighbours as one dimension.
        const int at = below(n - 1);
        Sizes sizes;
        for (int k = 0; k < n; ++k) {
          if (k == at + 1) continue;
          sizes.push_back(k == at ? SymInt(-1) : opened(size_of_dim(v, k)));
        }
        return emit(below(2) ? "reshape" : "view", {ref(v), Value(sizes)}, true);
      }
      case 2:
      case 3: {
        if (n == 0) return false;
        Value start = pick({Value(), Value(0), Value(1), Value(-5), Value(2)});
        const bool from_end = start.tag() == Value::Tag::Int && start.to_int() < 0;
        // Which of the two comes first must not depend on the open size, nor whether there are that many.
        if (from_end && size_of_dim(v, d) < 5) start = Value(-1);
        const Value end = from_end ? Value() : pick({Value(), Value(), Value(-1), Value(4)});
        return emit("slice.Tensor", {ref(v), Value(d), start, end, Value(pick({1, 1, 2, 3}))}, true);
      }
      case 4: {
        Sizes sizes;
        if (below(2)) sizes.push_back(pick({2, 3}));
        for (int k = 0; k < n; ++k)
          sizes.push_back(size_of_dim(v, k) == 1 ? opened(pick({int64_t{1}, int64_t{4}, kFirstSize}))
                                                 : opened(size_of_dim(v, k)));
        return emit("expand", {ref(v), Value(sizes)}, true);
      }
      case 5:
        if (n == 0 || size_of_dim(v, d) == 0) return false;
        return emit("select.int", {ref(v), Value(d), Value(pick({0, -1, 0}))}, true);
      case 6:
        return emit("unsqueeze", {ref(v), Value(signed_dim(v))}, true);
      case 7:
        return emit("transpose.int", {ref(v), Value(signed_dim(v)), Value(signed_dim(v))}, true);
      case 8:
        if (n < 2) return false;
        return emit("diagonal", {ref(v), Value(pick({0, 1, -1})), Value(0), Value(n - 1)}, true);
      case 9:
        return emit(pick({"squeeze", "detach", "alias"}), {ref(v)}, true);
      default:
        if (n == 0 || size_of_dim(v, d) == kFirstSize) return false;
        return emit("chunk", {ref(v), Value(2), Value(d)}, true);
    }
  }

  Value dims(int v) {
    Sizes out;
    for (int d = 0; d < values_[v].dim(); ++d)
      if (below(2)) out.push_back(d);
    if (out.empty() && values_[v].dim() > 0) out.push_back(dim_of(v));
    return Value(out);
  }

  bool reduction() {
    const int v = below(3) ? any_float() : any();
    if (v < 0) return false;
    const bool integral = !is_floating(values_[v].dtype());
    const Value keep(below(2) == 0);
    switch (below(9)) {
      case 0:
      case 1:
      case 2:
        return emit("sum.dim_IntList", {ref(v), dims(v), keep}, integral);
      case 3:
        if (integral) return false;
        return emit("mean.dim", {ref(v), dims(v), keep}, false);
      case 4:
      case 5:
        return emit(pick({"amax", "amin"}), {ref(v), dims(v), keep}, true);
      case 6:
        return emit(pick({"any.dims", "all.dims"}), {ref(v), dims(v), keep}, exact(v));
      case 7:
        if (!exact(v)) return false;
        return emit(pick({"max.dim", "min.dim", "argmax", "argmin"}), {ref(v), Value(signed_dim(v)), keep},
                    true);
      default:
        return emit("sum", {ref(v)}, integral);
    }
  }

  bool normalisation() {
    const int v = any_float();
    if (v < 0) return false;
    const int n = values_[v].dim();
    switch (below(5)) {
      case 0:
      case 1:
        return emit(pick({"softmax.int", "log_softmax.int"}), {ref(v), Value(signed_dim(v))}, false);
      case 2: {
        if (n == 0) return false;
        Sizes normalized;
        for (int d = n - 1 - below(n); d < n; ++d) normalized.push_back(opened(size_of_dim(v, d)));
        return emit("layer_norm", {ref(v), Value(normalized)}, false);
      }
      case 3:
        return emit("var.correction", {ref(v), dims(v), Value(pick({0, 1})), Value(below(2) == 0)}, false);
      default:
        return emit("logsumexp", {ref(v), dims(v), Value(below(2) == 0)}, false);
    }
  }

  bool rearrangement() {
    const int v = any();
    const int n = values_[v].dim(), d = dim_of(v);
    switch (below(7)) {
      case 0:
      case 1: {
        std::vector<GraphRef> list{{v, 0}};
        for (int k = 0; k < 6 && list.size() < 3; ++k)
          if (const int w = any(); values_[w].dim() == n) list.push_back({w, 0});
        return emit(below(3) ? "cat" : "stack", {Value(list), Value(d)}, true);
      }
      case 2: {
        if (n == 0) return false;
        Sizes amounts{SymInt(pick({0, 1, 2, -1})), SymInt(pick({0, 1, 3}))};
        if (n > 1 && below(2)) amounts.push_back(1), amounts.push_back(0);
        return emit("constant_pad_nd", {ref(v), Value(amounts), Value(below(2) ? 0 : 1)}, true);
      }
      case 3:
        return emit("flip", {ref(v), dims(v)}, true);
      case 4:
        if (n == 0) return false;
        return emit("roll", {ref(v), Value(Sizes{SymInt(pick({1, -2}))}), Value(Sizes{SymInt(d)})}, true);
      case 5:
        if (n < 2) return false;
        return emit(pick({"tril", "triu"}), {ref(v), Value(pick({0, 1, -1}))}, true);
      default: {
        Sizes repeats;
        for (int k = 0; k < n; ++k) repeats.push_back(pick({1, 2, 1}));
        return emit("repeat", {ref(v), Value(repeats)}, true);
      }
    }
  }

  bool product() {
    const int a = any_of([](const Tensor& t) { return is_floating(t.dtype()) && t.dim() >= 1; });
    if (a < 0) return false;
    for (int k = 0; k < 10; ++k) {
      const int b = any();
      const Tensor &x = values_[a], &y = values_[b];
      if (x.dtype() != y.dtype() || y.dim() < 1) continue;
      if (x.dim() == 2 && y.dim() == 2 && below(3) == 0) {
        const int c = any();
        if (values_[c].dtype() == x.dtype() && emit("addmm", {ref(c), ref(a), ref(b)}, false)) return true;
      }
      if (emit(below(4) == 0 ? "linear" : "matmul", {ref(a), ref(b)}, false)) return true;
    }
    // With its own transpose.
    if (values_[a].dim() < 2) return false;
    const int n = values_[a].dim();
    if (!emit("transpose.int", {ref(a), Value(n - 1), Value(n - 2)}, true)) return false;
    return emit("matmul", {ref(a), ref(static_cast<int>(values_.size()) - 1)}, false);
  }

  bool in_place() {
    const int a = any();
    const int b = any_of([&](const Tensor& t) { return t.dim() <= values_[a].dim(); });
    switch (below(6)) {
      case 0:
        return emit(pick({"neg_", "sin_", "exp_", "relu_", "tanh_", "abs_", "square_"}), {ref(a)}, true);
      case 1:
        return emit("zero_", {ref(a)}, true);
      case 2:
        return b >= 0 && broadcasts(a, b) && castable(b, a) && emit("copy_", {ref(a), ref(b)}, true);
      case 3:
        return emit(pick({"mul_.Tensor", "add_.Tensor"}), {ref(a), number()}, true);
      default:
        return b >= 0 && broadcasts(a, b) &&
               emit(pick({"add_.Tensor", "mul_.Tensor", "sub_.Tensor"}), {ref(a), ref(b)}, true);
    }
  }
  // Floats as integers are not defined for large ones and nan.
  bool castable(int from, int to) const {
    const DType f = values_[from].dtype(), t = values_[to].dtype();
    return t == DType::Bool ? exact(from) : !is_floating(f) || is_floating(t);
  }

  bool selection() {
    const int c = any_of([](const Tensor& t) { return t.dtype() == DType::Bool; });
    if (c < 0) return false;
    const int a = any(), b = any();
    if (!broadcasts(a, c)) return false;
    if (below(2)) return emit("masked_fill.Tensor", {ref(a), ref(c), number()}, true);
    return broadcasts(a, b) && broadcasts(c, b) && emit("where.self", {ref(c), ref(a), ref(b)}, true);
  }

  bool scan() {
    const int v = any();
    const bool integral = !is_floating(values_[v].dtype());
    if (below(4) == 0 && exact(v))
      return emit(pick({"cummax", "cummin"}), {ref(v), Value(signed_dim(v))}, true);
    return emit("cumsum", {ref(v), Value(signed_dim(v))}, integral);
  }

  // A new input with indices below a size that is at least 2.
  int indices(std::vector<int64_t> sizes, int64_t limit) {
    // Inputs come first: later values move up by one.
    ProgramInput in;
    for (int64_t& s : sizes) s = s == kFirstSize ? kOpenSize : s;
    in.sizes = std::move(sizes);
    in.dtype = DType::Int64;
    in.index_limit = std::min<int64_t>(limit, kFirstSize);
    in.seed = random_();
    const int at = static_cast<int>(p_.inputs.size());
    for (ProgramStep& s : p_.steps)
      for (Value& v : s.args)
        v = graph::map_refs(v, [&](GraphRef r) { return GraphRef{r.node >= at ? r.node + 1 : r.node, 0}; });
    RandomProgram alone;
    alone.inputs = {in};
    values_.insert(values_.begin() + at, make_inputs(alone, kFirstSize)[0]);
    exact_.insert(exact_.begin() + at, true);
    p_.inputs.push_back(std::move(in));
    return at;
  }

  bool indexing() {
    int v = any_of([](const Tensor& t) { return t.dim() >= 1 && t.numel().expect_int() > 0; });
    if (v < 0) return false;
    const int d = dim_of(v);
    const int64_t limit = size_of_dim(v, d);
    std::vector<int64_t> like;
    for (int k = 0; k < values_[v].dim(); ++k) like.push_back(k == d ? 3 : size_of_dim(v, k));
    const int inputs = static_cast<int>(p_.inputs.size());
    auto moved = [&] { return v >= inputs ? v + 1 : v; };
    const bool integral = !is_floating(values_[v].dtype());
    switch (below(5)) {
      case 0: {
        const int i = indices(like, limit);
        return emit("gather", {ref(moved()), Value(d), ref(i)}, true);
      }
      case 1: {
        const int i = indices({4}, limit);
        return emit("index_select", {ref(moved()), Value(d), ref(i)}, true);
      }
      case 2: {
        if (values_[v].dim() != 2) return false;
        const int i = indices({2, kFirstSize}, size_of_dim(v, 0));
        return emit("embedding", {ref(moved()), ref(i)}, true);
      }
      case 3: {
        const int i = indices(like, limit);
        v = moved();
        if (!emit("gather", {ref(v), Value(d), ref(i)}, true)) return false;
        return emit("scatter_add", {ref(v), Value(d), ref(i), ref(static_cast<int>(values_.size()) - 1)},
                    integral);
      }
      default: {
        const int i = indices({3}, limit);
        v = moved();
        if (!emit("index_select", {ref(v), Value(d), ref(i)}, true)) return false;
        return emit("index_add", {ref(v), Value(d), ref(i), ref(static_cast<int>(values_.size()) - 1)},
                    integral);
      }
    }
  }

  bool conversion() {
    const int v = any();
    const DType to = pick({DType::Float32, DType::Float64, DType::BFloat16, DType::Bool, DType::Int64});
    const bool floating = is_floating(values_[v].dtype());
    if (floating && to == DType::Int64) return false;
    if (floating && to == DType::Bool && !exact(v)) return false;
    return emit("to.dtype", {ref(v), Value(to)}, true);
  }

  void choose_outputs() {
    const int n = static_cast<int>(values_.size());
    p_.outputs.push_back(n - 1);
    for (int extra = below(3); extra > 0; --extra) p_.outputs.push_back(below(n));
    for (int o : p_.outputs) p_.exact_outputs.push_back(exact_[o]);
  }

  std::mt19937_64 random_;
  std::vector<std::string>& broken_;
  RandomProgram p_;
  std::vector<Tensor> values_;
  std::vector<bool> exact_;
};

}  // namespace

RandomProgram random_program(uint64_t seed, std::vector<std::string>& broken) {
  return Maker(seed, broken).run();
}

}  // namespace fl::testing
