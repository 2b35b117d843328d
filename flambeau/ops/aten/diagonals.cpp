#include "flambeau/ops/aten/diagonals.h"

#include <algorithm>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

using samples::of;
constexpr Tag kPlain = Tag::NoInPlace;
constexpr Tag kView = Tag::NoInPlace | Tag::NoOut;

void define_diagonals(OpTable& t) {
  t.define(diag,
           {.doc = "The diagonal of a matrix, or a matrix with a vector on its diagonal and 0 elsewhere.",
            .tags = kPlain,
            .decompose =
                [](Tensor self, int64_t diagonal_number) {
                  FL_CHECK(self.dim() == 1 || self.dim() == 2, RuntimeError,
                           "diag(): Supports 1D or 2D tensors. Got {}D", self.dim());
                  if (self.dim() == 1) return diag_embed(self, diagonal_number);
                  return clone(diagonal(self, diagonal_number, 0, 1), MemoryFormat::Contiguous);
                },
            .samples = of([](SampleMaker& m, const Samples& o) {
              return std::vector<Sample>{{{m.make({3, 4}, o.low, o.high)}, "", ""},
                                         {{m.make({3, 4}, o.low, o.high), 1}, "above", ""},
                                         {{m.make({3}, o.low, o.high), -1}, "vector", ""},
                                         {{m.make({}, o.low, o.high)}, "0-dim", "RuntimeError: 1D or 2D"}};
            })});
  t.define(diagflat,
           {.doc = "All elements as the diagonal of a matrix, 0 elsewhere.",
            .tags = kPlain | Tag::NoOut,
            .decompose = [](Tensor self,
                            int64_t offset) { return diag_embed(reshape(self, {SymInt(-1)}), offset); },
            .samples = of([](SampleMaker& m, const Samples& o) {
              return std::vector<Sample>{{{m.make({2, 2}, o.low, o.high)}, "", ""},
                                         {{m.make({}, o.low, o.high), -2}, "0-dim", ""}};
            })});
}

/// The rows and columns of the elements in columns first to first + length of each row; `total` of them.
Tensor positions(const Tensor& first, const Tensor& length, int64_t total, DType dtype, Device device) {
  if (total == 0) return zeros({SymInt(2), SymInt(0)}, dtype, device);
  const Tensor ends = cumsum(length, 0), k = arange_end(total, DType::Int64, device);
  const Tensor row = searchsorted(ends, k, false, true);
  const Tensor column = add(gather(sub(first, sub(ends, length)), 0, row), k);
  return to_dtype(stack(std::vector<Tensor>{row, column}, 0), dtype);
}

/// How many elements lie in columns [0, r + offset) of rows r.
int64_t count_below(int64_t row, int64_t col, int64_t offset) {
  int64_t total = 0;
  for (int64_t r = 0; r < row; ++r) total += std::clamp<int64_t>(r + offset, 0, col);
  return total;
}
/// min(max(r + offset, 0), col) for each row r.
Tensor bound_of_rows(int64_t row, int64_t col, int64_t offset, Device device) {
  return clamp(add(arange_end(row, DType::Int64, device), offset), Scalar(0), Scalar(col));
}

void check_indices(int64_t row, int64_t col, DType dtype) {
  FL_CHECK(row >= 0, RuntimeError, "row must be non-negative, got {}", row);
  FL_CHECK(col >= 0, RuntimeError, "col must be non-negative, got {}", col);
  FL_CHECK(dtype == DType::Int64 || dtype == DType::Int32, RuntimeError,
           "indices of a triangle are int32 or int64, got {}", name(dtype));
}

void define_triangles(OpTable& t) {
  const Samples triangles = samples::custom(
      [](SampleMaker&, const Samples&) {
        return std::vector<Sample>{{{3, 4}, "", ""},
                                   {{4, 3, 1}, "above", ""},
                                   {{3, 3, -2, DType::Int32}, "below, int32", ""},
                                   {{0, 3}, "none", ""},
                                   {{-1, 3}, "negative", "RuntimeError: non-negative"}};
      },
      {.gradient = false});
  constexpr Tag kTags = Tag::NonDifferentiable | Tag::NoOut;
  t.define(tril_indices,
           {.doc = "The rows and the columns of the elements not above a diagonal, in row-major order.",
            .tags = kTags,
            .decompose =
                [](int64_t row, int64_t col, int64_t offset, std::optional<DType> dtype,
                   std::optional<Device> device, std::optional<bool>) {
                  const DType d = dtype.value_or(DType::Int64);
                  check_indices(row, col, d);
                  const Device where_to = device.value_or(Device{});
                  const Tensor length = bound_of_rows(row, col, offset + 1, where_to);
                  return positions(zeros_like(length), length, count_below(row, col, offset + 1), d,
                                   where_to);
                },
            .samples = triangles});
  t.define(triu_indices,
           {.doc = "The rows and the columns of the elements not below a diagonal, in row-major order.",
            .tags = kTags,
            .decompose =
                [](int64_t row, int64_t col, int64_t offset, std::optional<DType> dtype,
                   std::optional<Device> device, std::optional<bool>) {
                  const DType d = dtype.value_or(DType::Int64);
                  check_indices(row, col, d);
                  const Device where_to = device.value_or(Device{});
                  const Tensor first = bound_of_rows(row, col, offset, where_to);
                  const int64_t total = row * col - count_below(row, col, offset);
                  return positions(first, sub(full_like(first, col), first), total, d, where_to);
                },
            .samples = triangles});
}

/// Powers 0 to n - 1 of each element, a row each, by running products.
Tensor powers(Tensor x, std::optional<int64_t> count, bool increasing) {
  FL_CHECK(x.dim() == 1, RuntimeError, "x must be a one-dimensional tensor.");
  const SymInt n = count ? SymInt(*count) : x.size(0);
  FL_CHECK(n >= SymInt(0), RuntimeError, "N must be non-negative.");
  const DType dtype = is_integral(x.dtype(), true) ? DType::Int64 : x.dtype();
  if (n == SymInt(0)) return zeros({x.size(0), SymInt(0)}, dtype, x.device());
  if (n == SymInt(1)) return ones({x.size(0), n}, dtype, x.device());
  const Tensor out = linalg_vander(x, n);
  return increasing ? out : flip(out, {SymInt(1)});
}

/// The first dimension of size 3 where none is given.
Tensor vector_product(Tensor self, Tensor other, std::optional<int64_t> dim) {
  FL_CHECK(self.dim() == other.dim(), RuntimeError,
           "linalg.cross: inputs must have the same number of dimensions.");
  const Sizes sizes = broadcast_sizes(self.sizes(), other.sizes());
  int64_t d = -1;
  if (dim) {
    d = *dim;
  } else {
    const auto at = std::find_if(sizes.begin(), sizes.end(), [](SymInt s) { return s == SymInt(3); });
    FL_CHECK(at != sizes.end(), RuntimeError, "no dimension of size 3 in input");
    d = at - sizes.begin();
  }
  return linalg_cross(self, other, d);
}

void define_products_of_neighbours(OpTable& t) {
  t.define(vander, {.doc = "The powers of each element of a vector, a row each, from the highest one down.",
                    .tags = kPlain | Tag::NoOut,
                    .decompose = powers,
                    .samples = of(
                        [](SampleMaker& m, const Samples& o) {
                          return std::vector<Sample>{
                              {{m.make({4}, o.low, o.high)}, "", ""},
                              {{m.make({3}, o.low, o.high), 5, true}, "increasing", ""},
                              {{m.make({3}, o.low, o.high), 1}, "one", ""},
                              {{m.make({2, 2}, o.low, o.high)}, "matrix", "RuntimeError: one-dimensional"}};
                        },
                        dtypes::integers | dtypes::full_floats)});
  t.define(cross, {.doc = "The vector product along a dimension of size 3, the first one unless given.",
                   .tags = kPlain,
                   .decompose = vector_product,
                   .samples = of(
                       [](SampleMaker& m, const Samples& o) {
                         const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
                         return std::vector<Sample>{
                             {{x({2, 3}), x({2, 3})}, "", ""},
                             {{x({3, 3}), x({3, 3}), -1}, "last", ""},
                             {{x({1, 3}), x({4, 3}), 1}, "broadcast", ""},
                             {{x({2, 2}), x({2, 2})}, "no 3", "RuntimeError: of size 3"}};
                       },
                       dtypes::integers | dtypes::floats | dtypes::complexes)});
}

Tensor conjugate_transpose(const Tensor& self, const char* what) {
  FL_CHECK(self.dim() >= 2, RuntimeError,
           "tensor.{} is only supported on matrices or batches of matrices. Got {}-D tensor.", what,
           self.dim());
  return conj_if_complex(transpose(self, -2, -1));
}

void define_adjoints(OpTable& t) {
  t.define(H, {.doc = "The conjugate transpose of a matrix; a 0-dim tensor's conjugate.",
               .tags = kView,
               .decompose =
                   [](Tensor self) {
                     FL_CHECK(self.dim() == 2 || self.dim() == 0, RuntimeError,
                              "tensor.H is only supported on matrices (2-D tensors). Got {}-D tensor.",
                              self.dim());
                     return self.dim() == 0 ? conj_if_complex(self) : conjugate_transpose(self, "H");
                   },
               .samples = of([](SampleMaker& m, const Samples& o) {
                 return std::vector<Sample>{{{m.make({2, 3}, o.low, o.high)}, "", ""},
                                            {{m.make({3}, o.low, o.high)}, "vector", "RuntimeError: 1-D"}};
               })});
  const Samples matrices = of([](SampleMaker& m, const Samples& o) {
    return std::vector<Sample>{{{m.make({2, 3, 4}, o.low, o.high)}, "", ""},
                               {{m.make({3}, o.low, o.high)}, "vector", "RuntimeError: 1-D"}};
  });
  t.define(mH, {.doc = "The conjugate transposes of a batch of matrices.",
                .tags = kView,
                .decompose = [](Tensor self) { return conjugate_transpose(self, "mH"); },
                .samples = matrices});
  t.define(adjoint, {.doc = "As mH.",
                     .tags = kView,
                     .decompose = [](Tensor self) { return conjugate_transpose(self, "adjoint()"); },
                     .samples = matrices});
}

}  // namespace

void define_diagonals_and_triangles(OpTable& t) {
  define_diagonals(t);
  define_triangles(t);
  define_products_of_neighbours(t);
  define_adjoints(t);
}

}  // namespace fl
