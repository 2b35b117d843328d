// Views that need strides of their own, and views in another dtype.
#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/view_geometry.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

constexpr Tag kView = Tag::View | Tag::NoInPlace | Tag::NoOut;

/// Memory that is there has to hold every element of the view; what a capture traces has none.
void check_fits(const Value& self, const TensorSpec& view) {
  if (!self.is_tensor() || !self.tensor().has_data()) return;
  FL_CHECK(view.offset >= SymInt(0), RuntimeError, "as_strided: storage offset {} is negative", view.offset);
  const int64_t needed = view.storage_bytes().guard_int(), there = self.tensor().storage()->bytes();
  FL_CHECK(needed <= there, RuntimeError,
           "as_strided: sizes {}, strides {} and storage offset {} need a storage of {} bytes, but it has {}",
           to_string(view.sizes), to_string(view.strides), view.offset, needed, there);
}

void define_as_strided(OpTable& t) {
  t.define(as_strided,
           {.doc = "A view with any sizes, strides and offset (in elements) on self's storage. In a graph "
                   "self has to be "
                   "dense. The gradient sums over elements that the view shows more than once.",
            .tags = kView,
            .infer =
                [](const InferCtx& c, int) {
                  TensorSpec s = c.spec(0);
                  const Geometry g = strided_geometry(s, c.arg(1), c.arg(2), c.arg(3));
                  s.sizes = g.size;
                  s.strides = g.stride;
                  s.offset = g.offset;
                  check_fits(c.arg(0), s);
                  return InferResult{s};
                },
            .lower =
                [](const LowerCtx& c) {
                  const TensorSpec in = c.spec(0);
                  const Geometry g = strided_geometry(in, c.arg(1), c.arg(2), c.arg(3));
                  return view_of(c, [in, g](std::span<const Expr> i) {
                    Expr position = g.offset.expr();
                    for (size_t d = 0; d < i.size(); ++d) position += i[d] * g.stride[d].expr();
                    return index_at(position, in);
                  });
                },
            .write_back =
                [](const Tensor& base, const Tensor& view, const Value* a) {
                  return as_strided_scatter(base, view, a[1].ints(), a[2].ints(), optional_int(a[3]));
                },
            .grad =
                [](GradCtx& c, const Tensor& g) {
                  const TensorSpec& in = c.in_spec(0);
                  const Tensor zero = laid_out(zeros(in.sizes, g.dtype(), g.device()), in);
                  const SymInt offset = c.arg(3).is_none() ? SymInt(0) : c.arg(3).sym_int() - in.offset;
                  return _as_strided_add(zero, g, c.arg(1).ints(), c.arg(2).ints(), offset);
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{
                      {{m.make({4, 6}, o.low, o.high), Sizes{3, 2}, Sizes{6, 2}, 1}, "", ""},
                      {{m.make({12}, o.low, o.high), Sizes{3, 4}, Sizes{2, 1}, 0}, "overlapping", ""},
                      {{m.make({6}, o.low, o.high), Sizes{}, Sizes{}, 2}, "to 0-dim", ""},
                      {{m.make({6}, o.low, o.high), Sizes{0, 9}, Sizes{9, 1}}, "empty", ""},
                      {{m.make({6}, o.low, o.high), Sizes{2}, Sizes{1, 1}},
                       "lengths",
                       "RuntimeError: mismatch in length"},
                      {{m.make({6}, o.low, o.high), Sizes{3, 2}, Sizes{2, 1}, 1},
                       "beyond the storage",
                       "RuntimeError: need a storage"}};
                },
                {.dtypes = dtypes::all})});
}

InferResult diagonal_rule(const InferCtx& c, int) {
  const TensorSpec& in = c.spec(0);
  const auto [a, b] = diagonal_dims(c.arg(2), c.arg(3), in.dim());
  const int64_t offset = c.sym_int(1).expect_int();
  TensorSpec s = in;
  const SymInt rows = in.sizes[a], columns = in.sizes[b];
  const SymInt length =
      offset >= 0 ? min(rows, columns - SymInt(offset)) : min(rows + SymInt(offset), columns);
  const bool empty = length <= SymInt(0);
  if (!empty) s.offset += offset >= 0 ? SymInt(offset) * in.strides[b] : SymInt(-offset) * in.strides[a];
  const SymInt stride = in.strides[a] + in.strides[b];
  for (const int64_t d : {std::max(a, b), std::min(a, b)}) {
    s.sizes.erase(s.sizes.begin() + d);
    s.strides.erase(s.strides.begin() + d);
  }
  s.sizes.push_back(empty ? SymInt(0) : length);
  s.strides.push_back(stride);
  return {s};
}

Lowered lower_diagonal(const LowerCtx& c) {
  const int rank = c.spec(0).dim();
  const auto [a, b] = diagonal_dims(c.arg(2), c.arg(3), rank);
  const int64_t offset = c.arg(1).to_int();
  return view_of(c, [rank, a = a, b = b, offset](std::span<const Expr> i) {
    Index out(rank);
    size_t next = 0;
    for (int d = 0; d < rank; ++d) {
      if (d == a)
        out[d] = i.back() + Expr(offset < 0 ? -offset : 0);
      else if (d == b)
        out[d] = i.back() + Expr(offset > 0 ? offset : 0);
      else
        out[d] = i[next++];
    }
    return out;
  });
}

InferResult unfold_rule(const InferCtx& c, int) {
  TensorSpec s = c.spec(0);
  const int64_t d = dimension(c.arg(1), s.dim());
  const SymInt size = c.sym_int(2), step = c.sym_int(3);
  const SymInt whole = s.dim() == 0 ? SymInt(1) : s.sizes[d];
  FL_CHECK(size >= SymInt(0) && size <= whole, RuntimeError,
           "maximum size for tensor at dimension {} is {} but size is {}", d, whole, size);
  FL_CHECK(step > SymInt(0), RuntimeError, "step is {} but must be > 0", step);
  const SymInt stride = s.dim() == 0 ? SymInt(1) : s.strides[d];
  if (s.dim() > 0) {
    s.sizes[d] = (whole - size) / step + SymInt(1);
    s.strides[d] = stride * step;
  }
  s.sizes.push_back(size);
  s.strides.push_back(stride);
  return {s};
}

void define_diagonal_and_windows(OpTable& t) {
  t.define(
      diagonal,
      {.doc = "The elements with index dim2 = index dim1 + offset, as a last dimension in place of the two.",
       .tags = kView,
       .infer = diagonal_rule,
       .lower = lower_diagonal,
       .write_back =
           [](const Tensor& base, const Tensor& view, const Value* a) {
             return diagonal_scatter(base, view, a[1].to_int(), a[2].to_int(), a[3].to_int());
           },
       .grad =
           [](GradCtx& c, const Tensor& g) {
             return diagonal_scatter(zeros(c.in_spec(0).sizes, g.dtype(), g.device()), g, c.arg(1).to_int(),
                                     c.arg(2).to_int(), c.arg(3).to_int());
           },
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             const auto x = [&] { return m.make({3, 4}, o.low, o.high); };
             return std::vector<Sample>{
                 {{x()}, "", ""},
                 {{x(), 1}, "above", ""},
                 {{x(), -2}, "below", ""},
                 {{x(), 9}, "outside", ""},
                 {{m.make({2, 3, 4}, o.low, o.high), 0, 0, 2}, "rank 3", ""},
                 {{x(), 0, 1, 1}, "same dimensions", "RuntimeError: cannot be identical"}};
           },
           {.dtypes = dtypes::all})});
  t.define(unfold,
           {.doc = "All windows of `size` elements, `step` apart, along a dimension; the window is a new "
                   "last dimension.",
            .tags = kView,
            .infer = unfold_rule,
            .lower =
                [](const LowerCtx& c) {
                  const int rank = c.spec(0).dim();
                  const int64_t d = dimension(c.arg(1), rank);
                  const Expr step = c.arg(3).sym_int().expr();
                  return view_of(c, [rank, d, step](std::span<const Expr> i) {
                    Index out(i.begin(), i.end() - 1);
                    if (rank > 0) out[d] = i[d] * step + i.back();
                    return out;
                  });
                },
            .write_back =
                [](const Tensor& base, const Tensor& view, const Value* a) {
                  FL_CHECK(a[3].to_int() >= a[2].to_int(), NotImplementedError,
                           "writing into overlapping windows of unfold is not supported: size {}, step {}",
                           a[2].to_int(), a[3].to_int());
                  const Tensor covered = unfold(ones_like(base), a[1].to_int(), a[2].to_int(), a[3].to_int());
                  const auto place = [&](const Tensor& x) {
                    return unfold_backward(x, base.sizes(), a[1].to_int(), a[2].to_int(), a[3].to_int());
                  };
                  return where(ne(place(covered), 0), place(view), base);
                },
            .grad =
                [](GradCtx& c, const Tensor& g) {
                  return unfold_backward(g, c.in_spec(0).sizes, c.arg(1).to_int(), c.arg(2).to_int(),
                                         c.arg(3).to_int());
                },
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{{{m.make({7}, o.low, o.high), 0, 3, 2}, "", ""},
                                             {{m.make({4, 6}, o.low, o.high), 1, 2, 1}, "overlapping", ""},
                                             {{m.make({4, 6}, o.low, o.high), -2, 1, 3}, "apart", ""},
                                             {{m.make({4}, o.low, o.high), 0, 5, 1},
                                              "too long",
                                              "RuntimeError: maximum size for tensor"}};
                },
                {.dtypes = dtypes::all})});
}

InferResult view_dtype_rule(const InferCtx& c, int) {
  TensorSpec s = c.spec(0);
  const DType to = c.arg(1).dtype();
  const int64_t from_size = size_of(s.dtype), to_size = size_of(to);
  s.dtype = to;
  if (from_size == to_size) return {s};
  FL_CHECK(s.dim() > 0, RuntimeError, "self.dim() cannot be 0 to view {} as {} (different element sizes)",
           name(c.spec(0).dtype), name(to));
  FL_CHECK(s.strides.back() == SymInt(1) || s.sizes.back() == SymInt(1), RuntimeError,
           "self.stride(-1) must be 1 to view {} as {} (different element sizes), but got {}",
           name(c.spec(0).dtype), name(to), s.strides.back());
  const bool wider = to_size > from_size;
  const SymInt ratio = wider ? to_size / from_size : from_size / to_size;
  const auto scale = [&](SymInt x, const char* what) {
    if (!wider) return x * ratio;
    FL_CHECK(x % ratio == SymInt(0), RuntimeError,
             "self.{} must be divisible by {} to view {} as {}, but got {}", what, ratio,
             name(c.spec(0).dtype), name(to), x);
    return x / ratio;
  };
  s.sizes.back() = scale(s.sizes.back(), "size(-1)");
  s.offset = scale(s.offset, "storage_offset()");
  for (size_t d = 0; d + 1 < s.strides.size(); ++d) s.strides[d] = scale(s.strides[d], "stride");
  s.strides.back() = 1;
  return {s};
}

Lowered lower_view_dtype(const LowerCtx& c) {
  const DType from = c.spec(0).dtype, to = c.out().dtype;
  FL_CHECK(size_of(from) == size_of(to) && !is_complex(from) && !is_complex(to), NotImplementedError,
           "viewing {} as {} is not supported in a graph: the element sizes differ or one is complex",
           name(from), name(to));
  Lowered l;
  l.sizes = c.out_sizes();
  l.body = [from, to](BodyOps& s, std::span<const Expr> i, std::span<const Expr>) {
    return std::vector<Val>{s.cast(s.bitcast(s.cast(s.load(0, i), from), to), compute_dtype(to))};
  };
  return l;
}

void define_other_dtype(OpTable& t) {
  t.define(view_dtype, {.doc = "The same bytes as elements of another dtype.",
                        .tags = kView | Tag::NonDifferentiable,
                        .infer = view_dtype_rule,
                        .lower = lower_view_dtype,
                        .write_back = [](const Tensor& base, const Tensor& view,
                                         const Value*) { return view_dtype(view, base.dtype()); },
                        .samples = samples::custom([](SampleMaker& m, const Samples& o) {
                          const DType same = m.dtype() == DType::Float32 ? DType::Int32 : DType::Int64;
                          return std::vector<Sample>{{{m.make({3, 4}, o.low, o.high), same}, "", ""},
                                                     {{m.make_strided({3, 4}, o.low, o.high), DType::Int16},
                                                      "stride",
                                                      "RuntimeError: must be 1 to view"}};
                        })});
  t.define(view_as_real, {.doc = "Complex numbers as a last dimension of two real numbers.",
                          .tags = kView,
                          .infer =
                              [](const InferCtx& c, int) {
                                TensorSpec s = c.spec(0);
                                FL_CHECK(is_complex(s.dtype), TypeError,
                                         "view_as_real is only supported for complex tensors, got {}",
                                         name(s.dtype));
                                s.dtype = real_dtype(s.dtype);
                                for (SymInt& x : s.strides) x *= 2;
                                s.offset *= 2;
                                s.sizes.push_back(2);
                                s.strides.push_back(1);
                                return InferResult{s};
                              },
                          .lower =
                              [](const LowerCtx& c) {
                                Lowered l;
                                l.sizes = c.out_sizes();
                                l.body = [](BodyOps& s, std::span<const Expr> i, std::span<const Expr>) {
                                  const Val x = s.load(0, i.first(i.size() - 1));
                                  const Val first = s.eq(s.index(i.back()), s.constant(DType::Int64, 0));
                                  return std::vector<Val>{s.select(first, s.real(x), s.imag(x))};
                                };
                                return l;
                              },
                          .write_back = [](const Tensor&, const Tensor& view,
                                           const Value*) { return view_as_complex(contiguous(view)); },
                          .grad = [](GradCtx&, const Tensor& g) { return view_as_complex(contiguous(g)); },
                          .samples = samples::unary({.dtypes = dtypes::complexes})});
  t.define(
      view_as_complex,
      {.doc = "A last dimension of two real numbers, adjacent in memory, as complex numbers.",
       .tags = kView,
       .infer =
           [](const InferCtx& c, int) {
             TensorSpec s = c.spec(0);
             FL_CHECK(s.dtype == DType::Float32 || s.dtype == DType::Float64, RuntimeError,
                      "view_as_complex is only supported for float32 and float64 tensors, got {}",
                      name(s.dtype));
             FL_CHECK(s.dim() > 0 && s.sizes.back() == SymInt(2) && s.strides.back() == SymInt(1),
                      RuntimeError,
                      "Tensor must have a last dimension of size 2 and stride 1, got sizes {} and strides {}",
                      to_string(s.sizes), to_string(s.strides));
             s.dtype = complex_dtype(s.dtype);
             s.sizes.pop_back();
             s.strides.pop_back();
             for (SymInt& x : s.strides) {
               FL_CHECK(x % SymInt(2) == SymInt(0), RuntimeError,
                        "Tensor must have a stride divisible by 2 for all but last dimension, got {}", x);
               x /= 2;
             }
             FL_CHECK(s.offset % SymInt(2) == SymInt(0), RuntimeError,
                      "Tensor must have a storage_offset divisible by 2, got {}", s.offset);
             s.offset /= 2;
             return InferResult{s};
           },
       .lower =
           [](const LowerCtx& c) {
             Lowered l;
             l.sizes = c.out_sizes();
             l.body = [](BodyOps& s, std::span<const Expr> i, std::span<const Expr>) {
               Index re(i.begin(), i.end()), im(i.begin(), i.end());
               re.push_back(0);
               im.push_back(1);
               return std::vector<Val>{s.complex(s.load(0, re), s.load(0, im))};
             };
             return l;
           },
       .write_back = [](const Tensor&, const Tensor& view, const Value*) { return view_as_real(view); },
       .grad = [](GradCtx&, const Tensor& g) { return view_as_real(g); },
       .samples = samples::custom([](SampleMaker& m, const Samples& o) {
         return std::vector<Sample>{
             {{m.make({3, 4, 2}, o.low, o.high)}, "", ""},
             {{m.make({2}, o.low, o.high)}, "to 0-dim", ""},
             {{m.make({3}, o.low, o.high)}, "size 3", "RuntimeError: last dimension of size 2"}};
       })});
}

}  // namespace

void define_strided_view(OpTable& t) {
  define_as_strided(t);
  define_diagonal_and_windows(t);
  define_other_dtype(t);
}

}  // namespace fl
