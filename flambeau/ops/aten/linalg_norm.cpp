// Norms and condition numbers of matrices.
#include <cmath>
#include <limits>

#include "flambeau/ops/aten/linalg.h"
#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/factorization.h"
#include "flambeau/ops/prims/matrices.h"
#include "flambeau/ops/prims/spectrum.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

using Dims = std::optional<IntList>;

/// The two dimensions of a matrix, counted from 0.
std::pair<int64_t, int64_t> matrix_dims(const Tensor& self, IntList dims) {
  FL_CHECK(self.dim() >= 2, RuntimeError,
           "linalg.matrix_norm: The input tensor A must have at least 2 dimensions, got {}.", self.dim());
  FL_CHECK(dims.size() == 2, RuntimeError, "linalg.matrix_norm: dim must be a 2-tuple. Got {}",
           to_string(dims));
  const int64_t rows = wrap_dim(dims[0].expect_int(), self.dim()),
                columns = wrap_dim(dims[1].expect_int(), self.dim());
  FL_CHECK(rows != columns, RuntimeError, "linalg.matrix_norm: dims must be different. Got ({}, {})", dims[0],
           dims[1]);
  return {rows, columns};
}

Tensor in_dtype(const Tensor& self, std::optional<DType> dtype, std::string_view caller) {
  FL_CHECK(is_floating(self.dtype()) || is_complex(self.dtype()), RuntimeError,
           "{}: Expected a floating point or complex tensor as input. Got {}", caller, name(self.dtype()));
  if (!dtype) return self;
  FL_CHECK(is_floating(*dtype) || is_complex(*dtype), RuntimeError,
           "{}: dtype should be floating point or complex. Got {}", caller, name(*dtype));
  FL_CHECK(is_complex(*dtype) == is_complex(self.dtype()), RuntimeError,
           "{}: dtype should be {} for {} inputs. Got {}", caller,
           is_complex(self.dtype()) ? "complex" : "real", is_complex(self.dtype()) ? "complex" : "real",
           name(*dtype));
  FL_CHECK(
      promote(self.dtype(), *dtype) == *dtype, RuntimeError,
      "{}: the dtype of the input ({}) should be convertible without narrowing to the specified dtype ({})",
      caller, name(self.dtype()), name(*dtype));
  return to_dtype(self, *dtype);
}

/// f of the singular values, in the place of the dimensions.
template <class F>
Tensor of_singular_values(const Tensor& x, std::pair<int64_t, int64_t> dims, bool keepdim, F f) {
  Sizes order;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (d != dims.first && d != dims.second) order.push_back(d);
  order.push_back(dims.first);
  order.push_back(dims.second);
  const Tensor out = f(linalg_svdvals(permute(x, order)));
  if (!keepdim) return out;
  return unsqueeze(unsqueeze(out, std::min(dims.first, dims.second)), std::max(dims.first, dims.second));
}

Tensor by_order(Tensor self, Scalar ord, IntList list, bool keepdim, std::optional<DType> dtype) {
  const Tensor x = in_dtype(self, dtype, "linalg.matrix_norm");
  const auto dims = matrix_dims(x, list);
  const double order = ord.to_double(), size = std::abs(order);
  FL_CHECK(size == 1 || size == 2 || std::isinf(order), RuntimeError,
           "linalg.matrix_norm: Order {} not supported.", order);
  const bool largest = order > 0;
  if (size == 2)
    return of_singular_values(x, dims, keepdim, [&](const Tensor& s) {
      return largest ? amax(s, IntList{-1}) : amin(s, IntList{-1});
    });
  // Sums of columns, or of rows, and the extreme of these.
  const int64_t added = size == 1 ? dims.first : dims.second, left = size == 1 ? dims.second : dims.first;
  const Tensor sums = vector_norm(x, 1, IntList{added}, keepdim);
  const int64_t at = !keepdim && left > added ? left - 1 : left;
  return largest ? amax(sums, IntList{at}, keepdim) : amin(sums, IntList{at}, keepdim);
}

Tensor by_name(Tensor self, std::string_view ord, IntList list, bool keepdim, std::optional<DType> dtype) {
  const Tensor x = in_dtype(self, dtype, "linalg.matrix_norm");
  const auto dims = matrix_dims(x, list);
  FL_CHECK(ord == "fro" || ord == "nuc", RuntimeError, "linalg.matrix_norm: Order {} not supported.", ord);
  if (ord == "fro") return vector_norm(x, 2, IntList{dims.first, dims.second}, keepdim);
  return of_singular_values(x, dims, keepdim, [](const Tensor& s) { return sum(s, IntList{-1}); });
}

/// The dimensions of a norm that may be of vectors or of matrices; none: all of them.
IntList checked_dims(const Tensor& self, const Dims& dims, Sizes& all) {
  if (dims) {
    FL_CHECK(dims->size() == 1 || dims->size() == 2, RuntimeError,
             "linalg.norm: If dim is specified, it must be of length 1 or 2. Got {}", to_string(*dims));
    return *dims;
  }
  FL_CHECK(self.dim() == 1 || self.dim() == 2, RuntimeError,
           "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {}D.",
           self.dim());
  for (int64_t d = 0; d < self.dim(); ++d) all.push_back(d);
  return all;
}

Tensor any_norm(Tensor self, std::optional<Scalar> ord, Dims dims, bool keepdim, std::optional<DType> dtype) {
  if (!ord) return vector_norm(self, 2, dims, keepdim, dtype);
  Sizes all;
  const IntList list = checked_dims(self, dims, all);
  if (list.size() == 2) return by_order(self, *ord, list, keepdim, dtype);
  return vector_norm(self, *ord, list, keepdim, dtype);
}
Tensor any_named_norm(Tensor self, std::string_view ord, Dims dims, bool keepdim,
                      std::optional<DType> dtype) {
  Sizes all;
  const IntList list = checked_dims(self, dims, all);
  return by_name(self, ord, list, keepdim, dtype);
}

template <class Norm>
Tensor condition(const Tensor& self, Norm norm) {
  const auto [inverse, info] = linalg_inv_ex(self);
  // A singular matrix has no inverse, and its condition is infinite.
  return where(ne(info, 0), std::numeric_limits<double>::infinity(), mul(norm(self), norm(inverse)));
}

void check_condition(const Tensor& self, bool square) {
  check_matrix(self.spec(), "linalg.cond");
  if (square) check_square(self.spec(), "linalg.cond");
  check_lapack_dtype(self.spec(), "linalg.cond");
}

Tensor condition_number(Tensor self, std::optional<Scalar> p) {
  const double order = p ? p->to_double() : 2;
  FL_CHECK(std::abs(order) == 1 || std::abs(order) == 2 || std::isinf(order), RuntimeError,
           "linalg.cond got an invalid norm type: {}", order);
  check_condition(self, std::abs(order) != 2);
  const DType dtype = real_dtype(self.dtype());
  if (self.numel() == SymInt(0)) return zeros(batch_sizes(self.sizes()), dtype, self.device());
  if (std::abs(order) == 2) {
    const Tensor s = linalg_svdvals(self);
    const Tensor largest = select(s, -1, 0), smallest = select(s, -1, -1);
    return order > 0 ? div(largest, smallest) : div(smallest, largest);
  }
  return condition(self, [&](const Tensor& x) {
    return by_order(x, *p, IntList{-2, -1}, false, std::nullopt);
  });
}

Tensor named_condition_number(Tensor self, std::string_view p) {
  FL_CHECK(p == "fro" || p == "nuc", RuntimeError, "linalg.cond got an invalid norm type: {}", p);
  check_condition(self, true);
  if (self.numel() == SymInt(0))
    return zeros(batch_sizes(self.sizes()), real_dtype(self.dtype()), self.device());
  return condition(self, [&](const Tensor& x) {
    return by_name(x, p, IntList{-2, -1}, false, std::nullopt);
  });
}

std::vector<Sample> orders(SampleMaker& m, const Samples& o, std::vector<Value> list) {
  std::vector<Sample> out;
  for (const Value& v : list) out.push_back({{m.make({4, 3}, o.low, o.high), v}, "matrix", ""});
  return out;
}

}  // namespace

void define_linalg_norm(OpTable& t) {
  constexpr Tag kTags = Tag::NoInPlace;
  const auto options = [](samples::MakeSamples make) {
    return samples::custom(make, {.dtypes = samples::kLapackDTypes, .tolerance = 1e-3});
  };
  const samples::MakeSamples by_number = [](SampleMaker& m, const Samples& o) {
    const double inf = std::numeric_limits<double>::infinity();
    std::vector<Sample> out = orders(m, o, {1, -1, 2, -2, inf, -inf});
    out.push_back({{m.make({2, 4, 3}), 2, Sizes{0, 2}, true}, "kept", ""});
    out.push_back({{m.make({2, 4, 3}), 1, Sizes{2, 0}}, "dims", ""});
    out.push_back({{m.make({4, 3}), 3}, "order", "RuntimeError: Order 3 not supported"});
    return out;
  };
  const samples::MakeSamples by_text = [](SampleMaker& m, const Samples& o) {
    std::vector<Sample> out = orders(m, o, {"fro", "nuc"});
    out.push_back({{m.make({4, 3}), "sum"}, "order", "RuntimeError: Order sum not supported"});
    return out;
  };
  t.define(matrix_norm, {.doc = "Of each matrix: the largest sum of moduli of a column (1) or row (inf), the "
                                "largest singular value (2); with a minus sign the smallest.",
                         .tags = kTags,
                         .decompose = by_order,
                         .samples = options(by_number)});
  t.define(matrix_norm_named,
           {.doc = "Frobenius' norm (\"fro\"), or the sum of the singular values (\"nuc\").",
            .tags = kTags,
            .decompose = by_name,
            .samples = options(by_text)});
  t.define(linalg_norm,
           {.doc = "`linalg_vector_norm` over one dimension (without ord: any), `linalg_matrix_norm` over "
                   "two.",
            .tags = kTags,
            .decompose = any_norm,
            .samples = options([](SampleMaker& m, const Samples&) {
              return std::vector<Sample>{
                  {{m.make({2, 3, 4})}, "all", ""},
                  {{m.make({4}), 3}, "vector", ""},
                  {{m.make({4, 3}), -2}, "matrix", ""},
                  {{m.make({2, 4, 3}), 1, Sizes{1}, true}, "one dimension", ""},
                  {{m.make({2, 4, 3}), 1}, "order of three", "RuntimeError: must be 1D or 2D"}};
            })});
  t.define(linalg_norm_named, {.doc = "`linalg_matrix_norm` of a matrix, or over two dimensions.",
                               .tags = kTags,
                               .decompose = any_named_norm,
                               .samples = options([](SampleMaker& m, const Samples& o) {
                                 return orders(m, o, {"fro", "nuc"});
                               })});
  t.define(
      linalg_cond,
      {.doc = "The condition number |A| |A^-1| in a matrix norm; by singular values where that is 2 or -2.",
       .tags = kTags,
       .decompose = condition_number,
       .samples = options([](SampleMaker& m, const Samples&) {
         std::vector<Sample> out;
         for (const Value& p : std::vector<Value>{Value(), 1, -2, std::numeric_limits<double>::infinity()})
           out.push_back({{samples::regular_matrices(m, {2, 3, 3}), p}, "", ""});
         out.push_back(
             {{samples::regular_matrices(m, {3, 3}), 3}, "order", "RuntimeError: invalid norm type"});
         return out;
       })});
  t.define(linalg_cond_named, {.doc = "The condition number |A| |A^-1| in a named matrix norm.",
                               .tags = kTags,
                               .decompose = named_condition_number,
                               .samples = options([](SampleMaker& m, const Samples&) {
                                 return std::vector<Sample>{
                                     {{samples::regular_matrices(m, {2, 3, 3}), "fro"}, "", ""},
                                     {{samples::regular_matrices(m, {3, 3}), "nuc"}, "", ""}};
                               })});
}

}  // namespace fl
