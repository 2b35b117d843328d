#include <algorithm>
#include <numeric>

#include "flambeau/runtime/eager_call.h"

namespace fl::runtime {
namespace {

class Classifier {
 public:
  Classifier(const OpInfo& op, Device device, CallKind& out) : op_(op), device_(device), out_(out) {
    if (device.type != DeviceType::CPU) put('D', device.index);
  }

  void arg(int i, const Value& v) {
    const ArgType type = op_.schema.args[i].type;
    switch (v.tag()) {
      case Value::Tag::Tensor:
        out_.args.push_back(tensor(v.tensor(), false));
        return;
      case Value::Tag::TensorList: {
        std::vector<GraphRef> refs;
        put('L', static_cast<int64_t>(v.tensors().size()));
        for (const Tensor& t : v.tensors()) refs.push_back(t.defined() ? tensor(t, false) : none());
        out_.args.emplace_back(std::move(refs));
        return;
      }
      case Value::Tag::Int:
        if (is_open_integer(i)) {
          out_.args.emplace_back(open_integer(v.sym_int().expect_int()));
          return;
        }
        [[fallthrough]];
      case Value::Tag::Float:
      case Value::Tag::Bool:
      case Value::Tag::Complex:
        if (op_.scalar && (type == ArgType::Tensor || type == ArgType::Number || type == ArgType::OptNumber ||
                           type == ArgType::Float)) {
          out_.args.push_back(number(v.scalar()));
          return;
        }
        break;
      case Value::Tag::IntList:
        if (is_open_integer(i)) {
          Sizes list;
          put('S', static_cast<int64_t>(v.ints().size()));
          for (SymInt s : v.ints()) list.push_back(open_integer(s.expect_int()));
          out_.args.emplace_back(list);
          return;
        }
        break;
      default:
        break;
    }
    // Part of the kind.
    out_.key += static_cast<char>('A' + static_cast<int>(v.tag()));
    out_.key += v.describe();
    out_.key += ';';
    out_.args.push_back(v);
  }

  void target(const Tensor& t) {
    TensorSpec s;
    put('T', static_cast<int64_t>(t.dtype()));
    const size_t known = out_.symbols.size();
    layout(t, s);
    // What only the target's layout has is given as numbers.
    for (size_t k = known; k < out_.symbols.size(); ++k) {
      out_.number_symbols.push_back(out_.symbols[k]);
      out_.numbers.push_back(out_.values[k]);
    }
    out_.target_layouts.push_back(std::move(s));
  }

 private:
  void put(char what, int64_t number) {
    out_.key += what;
    out_.key.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }

  GraphRef none() {
    out_.key += 'N';
    return {-1, 0};
  }

  // Integers that vary from call to call: sizes of new tensors, positions of random numbers.
  bool is_open_integer(int i) const {
    const Argument& a = op_.schema.args[i];
    if (a.type == ArgType::SymInt) return op_.is(Tag::Random | Tag::Factory);
    return a.type == ArgType::IntList && a.name == "size";
  }

  SymInt symbol(int64_t value) {
    for (size_t k = 0; k < out_.values.size(); ++k)
      if (out_.values[k] == value) {
        put('s', static_cast<int64_t>(k));
        return SymInt(out_.symbols[k]);
      }
    put('n', static_cast<int64_t>(out_.values.size()));
    return fresh(value);
  }

  SymInt fresh(int64_t value) {
    out_.symbols.push_back(sym::Expr::symbol(fmt::format("s{}", out_.symbols.size()), 2));
    out_.values.push_back(value);
    return SymInt(out_.symbols.back());
  }

  SymInt open_integer(int64_t value) {
    if (value < 2) {
      put('c', value);
      return value;
    }
    const size_t known = out_.symbols.size();
    const SymInt s = symbol(value);
    if (out_.symbols.size() > known) {
      out_.number_symbols.push_back(s.expr());
      out_.numbers.push_back(value);
    }
    return s;
  }

  // Sizes and strides over symbols: equal sizes are one symbol; dense layouts follow from the sizes.
  void layout(const Tensor& t, TensorSpec& s) {
    s.dtype = t.dtype();
    s.device = t.device();
    const int n = t.dim();
    for (int d = 0; d < n; ++d) {
      const int64_t size = t.sizes()[d].expect_int();
      if (size < 2) {
        put('c', size);
        s.sizes.push_back(size);
      } else {
        s.sizes.push_back(symbol(size));
      }
    }
    SmallVector<int, 6> order(n);
    std::iota(order.rbegin(), order.rend(), 0);  // last dimension first
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return t.strides()[a].expect_int() < t.strides()[b].expect_int(); });
    if (t.is_contiguous()) std::iota(order.rbegin(), order.rend(), 0);
    s.strides.resize(n);
    int64_t dense = 1;
    SymInt symbolic = 1;
    for (int d : order) {
      const int64_t stride = t.strides()[d].expect_int(), size = t.sizes()[d].expect_int();
      put('d', d);
      // The stride of a dimension of size 1 matters, too: the layout of the result can depend on it.
      if (stride == dense) {
        s.strides[d] = symbolic;
        put('=', 0);
        dense *= std::max<int64_t>(size, 1);
        symbolic *= s.sizes[d].same_as(0) ? SymInt(1) : s.sizes[d];
      } else if (stride < 2) {
        s.strides[d] = stride;
        put('c', stride);
        if (stride == 1) {
          dense = size;
          symbolic = s.sizes[d];
        }
      } else {
        put('o', 0);
        s.strides[d] = fresh(stride);
        // Dimensions further out may be dense on top of this one.
        dense = stride * size;
        symbolic = s.strides[d] * s.sizes[d];
      }
    }
  }

  GraphRef tensor(const Tensor& t, bool is_number) {
    TensorSpec s;
    const bool wrapped = is_number || t.impl()->wrapped_number;
    put(wrapped ? 'W' : t.device() == device_ ? 'X' : 'H', static_cast<int64_t>(t.dtype()));
    layout(t, s);
    s.device = t.dim() == 0 ? t.device() : device_;
    s.wrapped_number = wrapped;
    out_.specs.push_back(std::move(s));
    out_.tensors.push_back(t);
    return {static_cast<int32_t>(out_.tensors.size()) - 1, 0};
  }

  GraphRef number(const Scalar& s) {
    const DType d = s.is_float() ? DType::Float64 : s.is_complex() ? DType::Complex128 : s.default_dtype();
    return tensor(wrapped_number(s, d), true);
  }

  const OpInfo& op_;
  const Device device_;
  CallKind& out_;
};

}  // namespace

CallKind classify(const OpInfo& op, const Value* args, Device device, std::span<const Tensor> targets) {
  CallKind out;
  Classifier c(op, device, out);
  for (int i = 0; i < op.arg_count(); ++i) c.arg(i, args[i]);
  for (const Tensor& t : targets) c.target(t);
  if (default_dtype() != DType::Float32) out.key += name(default_dtype());
  return out;
}

}  // namespace fl::runtime
