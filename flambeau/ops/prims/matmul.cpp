#include "flambeau/ops/prims/matmul.h"

#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/reduced_dims.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

void check_factors(const InferCtx& c, int rank) {
  const TensorSpec &a = c.spec(0), &b = c.spec(1);
  FL_CHECK(a.dim() == rank && b.dim() == rank, RuntimeError,
           "{}: expected two tensors of {} dimensions, got {} and {}", c.op().schema.name, rank, a.dim(),
           b.dim());
  FL_CHECK(a.dtype == b.dtype, RuntimeError, "expected {} to have the same dtype, but got: {} != {}",
           rank == 2 ? "m1 and m2" : "both batches", name(a.dtype), name(b.dtype));
  FL_CHECK(a.device == b.device, RuntimeError,
           "Expected all tensors to be on the same device, but found at least two devices, {} and {}!",
           a.device.str(), b.device.str());
  check_dtype(c.op().schema.name, a.dtype, Takes::Number);
}

InferResult mm_rule(const InferCtx& c, int) {
  check_factors(c, 2);
  const TensorSpec &a = c.spec(0), &b = c.spec(1);
  FL_CHECK(a.sizes[1] == b.sizes[0], RuntimeError,
           "mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})", a.sizes[0], a.sizes[1], b.sizes[0],
           b.sizes[1]);
  return {make_spec(Sizes{a.sizes[0], b.sizes[1]}, a.dtype, a.device)};
}

InferResult bmm_rule(const InferCtx& c, int) {
  check_factors(c, 3);
  const TensorSpec &a = c.spec(0), &b = c.spec(1);
  FL_CHECK(a.sizes[0] == b.sizes[0] && a.sizes[2] == b.sizes[1], RuntimeError,
           "Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}].",
           a.sizes[0], a.sizes[2], b.sizes[0], b.sizes[1]);
  return {make_spec(Sizes{a.sizes[0], a.sizes[1], b.sizes[2]}, a.dtype, a.device)};
}

Lowered lower_product(const LowerCtx& c) {
  Lowered l;
  l.kind = Lowered::Kind::Reduction;
  l.sizes = c.out_sizes();
  l.reduce_sizes = {c.sizes(0).back()};
  const DType dtype = compute_dtype(c.out().dtype);
  l.body = [dtype](BodyOps& s, std::span<const Expr> i, std::span<const Expr> r) {
    Index a(i.begin(), i.end()), b(i.begin(), i.end());
    a.back() = r[0];
    b[b.size() - 2] = r[0];
    return std::vector<Val>{s.mul(s.cast(s.load(0, a), dtype), s.cast(s.load(1, b), dtype))};
  };
  return l;
}

/// Whether the last two dimensions lie in memory as those of a transposed matrix.
bool is_transposed(const TensorSpec& s) {
  const int n = s.dim();
  return s.strides[n - 2].same_as(1) && known_equal(s.strides[n - 1], s.sizes[n - 2]) &&
         !s.sizes[n - 2].same_as(1);
}

/// By each factor, in the factor's own layout: a transposed one gets the transpose of a product.
Tensors product_gradient(GradCtx& c, const Tensor& g) {
  const auto product = [&](const Tensor& a, const Tensor& b) { return g.dim() == 2 ? mm(a, b) : bmm(a, b); };
  const auto swapped = [](const Tensor& x) { return transpose(x, -2, -1); };
  Tensors out(2);
  if (c.needs(0)) {
    const Tensor b = conj_if_complex(c.in(1));
    out[0] = is_transposed(c.in_spec(0)) ? swapped(product(b, swapped(g))) : product(g, swapped(b));
  }
  if (c.needs(1)) {
    const Tensor a = conj_if_complex(c.in(0));
    out[1] = is_transposed(c.in_spec(1)) ? swapped(product(swapped(g), a)) : product(swapped(a), g);
  }
  return out;
}

}  // namespace

void define_matmul(OpTable& t) {
  constexpr Tag kTags = Tag::NoInPlace | Tag::ComputeIntensive;
  const DTypeSet numbers = dtypes::integers | dtypes::floats | dtypes::complexes;
  t.define(mm,
           {.doc = "The product of two matrices, (n, k) by (k, m); half precision is added up in float32.",
            .tags = kTags,
            .infer = mm_rule,
            .lower = lower_product,
            .library = LibraryCall::Matmul,
            .saves = saves::in({0, 1}),
            .grad = product_gradient,
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
                  return std::vector<Sample>{
                      {{x({3, 4}), x({4, 5})}, "", ""},
                      {{m.make_transposed({3, 4}, o.low, o.high), m.make_transposed({4, 2}, o.low, o.high)},
                       "transposed",
                       ""},
                      {{m.make_strided({3, 4}, o.low, o.high), x({4, 1})}, "strided", ""},
                      {{x({3, 0}), x({0, 2})}, "nothing to add", ""},
                      {{x({0, 3}), x({3, 2})}, "size 0", ""},
                      {{x({2, 3}), x({4, 5})}, "sizes", "RuntimeError: cannot be multiplied (2x3 and 4x5)"},
                      {{x({2}), x({2, 5})}, "vector", "RuntimeError: 2 dimensions"}};
                },
                {.dtypes = numbers, .tolerance = 1e-4})});
  t.define(bmm, {.doc = "Products of matrices of two batches, (b, n, k) by (b, k, m).",
                 .tags = kTags,
                 .infer = bmm_rule,
                 .lower = lower_product,
                 .library = LibraryCall::Matmul,
                 .saves = saves::in({0, 1}),
                 .grad = product_gradient,
                 .samples = samples::custom(
                     [](SampleMaker& m, const Samples& o) {
                       const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
                       return std::vector<Sample>{
                           {{x({2, 3, 4}), x({2, 4, 5})}, "", ""},
                           {{m.make_transposed({2, 3, 4}, o.low, o.high), x({2, 4, 1})}, "transposed", ""},
                           {{x({0, 3, 4}), x({0, 4, 5})}, "size 0", ""},
                           {{x({2, 3, 0}), x({2, 0, 5})}, "nothing to add", ""},
                           {{x({2, 3, 4}), x({3, 4, 5})}, "batches", "RuntimeError: batch2"}};
                     },
                     {.dtypes = numbers, .tolerance = 1e-4})});
}

}  // namespace fl
