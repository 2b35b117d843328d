#include "flambeau/ops/aten/resize.h"

#include "flambeau/ops/aten/cubic_kernel.h"
#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

using Factor = std::optional<double>;

/// One dimension of a call.
struct Resize {
  SymInt in, out;
  Factor scale;
  bool align_corners = false;

  /// How far apart the input positions of neighbouring output positions lie.
  double step() const {
    const int64_t n = in.guard_int(), m = out.guard_int();
    if (align_corners) return m > 1 ? static_cast<double>(n - 1) / static_cast<double>(m - 1) : 0.0;
    return scale && *scale > 0 ? 1 / *scale : static_cast<double>(n) / static_cast<double>(m);
  }
};

void check_image(const Tensor& self, IntList size, std::string_view op) {
  const int rank = static_cast<int>(size.size()) + 2;
  FL_CHECK(self.dim() == rank, RuntimeError, "{}: It is expected input_size equals to {}, but got size {}",
           op, rank, self.dim());
  bool positive = true;
  for (const SymInt s : size) positive = positive && s > SymInt(0);
  for (int d = 2; d < rank; ++d) positive = positive && self.sizes()[d] > SymInt(0);
  FL_CHECK(positive, RuntimeError,
           "{}: Input and output sizes should be greater than 0, but got input {} and output {}", op,
           to_string(self.sizes()), to_string(size));
}

Tensor kept_layout(const Tensor& out, const Tensor& like) {
  if (like.dim() == 4 && !like.is_contiguous() && like.is_contiguous(MemoryFormat::ChannelsLast))
    return contiguous(out, MemoryFormat::ChannelsLast);
  if (like.dim() == 5 && !like.is_contiguous() && like.is_contiguous(MemoryFormat::ChannelsLast3d))
    return contiguous(out, MemoryFormat::ChannelsLast3d);
  return contiguous(out);
}

/// A vector along one of `rank` dimensions.
Tensor along(const Tensor& vector, int dim, int rank) {
  Sizes sizes(rank, SymInt(1));
  sizes[dim] = vector.sizes()[0];
  return view(vector, sizes);
}

Tensor as_position(const Tensor& at, SymInt size) {
  return clamp_max(clamp_min(to_dtype(at, DType::Int64), 0), size - SymInt(1));
}

/// floor((y + middle) step).
Tensor nearest_along(const Tensor& x, int dim, const Resize& r, double middle) {
  const DType dtype = is_floating(x.dtype()) ? compute_dtype(x.dtype()) : DType::Float32;
  const Tensor y = to_dtype(arange_end(r.out, DType::Int64, x.device()), dtype);
  return index_select(x, dim, as_position(floor(mul(add(y, middle), r.step())), r.in));
}

/// The input position of each output position.
Tensor source(const Resize& r, const Tensor& x) {
  const Tensor y = to_dtype(arange_end(r.out, DType::Int64, x.device()), x.dtype());
  return r.align_corners ? mul(y, r.step()) : sub(mul(add(y, 0.5), r.step()), 0.5);
}

Tensor linear_along(const Tensor& x, int dim, const Resize& r) {
  const Tensor at = r.align_corners ? source(r, x) : clamp_min(source(r, x), 0);
  const Tensor low = as_position(floor(at), r.in);
  const Tensor right = along(clamp_max(clamp_min(sub(at, low), 0), 1), dim, x.dim());
  return add(mul(index_select(x, dim, low), sub(1, right)),
             mul(index_select(x, dim, as_position(add(low, 1), r.in)), right));
}

Tensor cubic_along(const Tensor& x, int dim, const Resize& r) {
  const Tensor at = source(r, x), low = floor(at);
  const std::vector<Tensor> weights = cubic_weights(sub(at, low));
  Tensor out;
  for (int k = 0; k < 4; ++k) {
    const Tensor tap =
        mul(index_select(x, dim, as_position(add(low, k - 1), r.in)), along(weights[k], dim, x.dim()));
    out = out.defined() ? add(out, tap) : tap;
  }
  return out;
}

Tensor triangle(const Tensor& d) { return clamp_min(sub(1, abs(d)), 0); }
Tensor smooth_cubic(const Tensor& d) {
  constexpr double a = -0.5;
  const Tensor x = abs(d);
  return where(lt(x, 1), cubic_near(x, a), where(lt(x, 2), cubic_far(x, a), 0));
}

/// Each output pixel averages what it covers: a product with a matrix of weights (out, in).
Tensor average_along(const Tensor& x, int dim, const Resize& r, double reach,
                     Tensor (*filter)(const Tensor&)) {
  const double step = r.step(), width = step >= 1 ? step : 1, support = reach * width;
  const Tensor y = to_dtype(arange_end(r.out, DType::Int64, x.device()), x.dtype());
  const Tensor center = unsqueeze(mul(add(y, 0.5), step), 1);
  const Tensor j = to_dtype(arange_end(r.in, DType::Int64, x.device()), x.dtype());
  const Tensor first = floor(clamp_min(add(sub(center, support), 0.5), 0));
  const Tensor last = floor(clamp_max(add(add(center, support), 0.5), r.in));
  Tensor weights = filter(mul(add(sub(j, center), 0.5), 1 / width));
  weights = where(logical_and(ge(j, first), lt(j, last)), weights, 0);
  weights = div(weights, sum(weights, IntList{SymInt(1)}, true));
  return transpose(matmul(transpose(x, dim, -1), transpose(weights, 0, 1)), dim, -1);
}

using Along = Tensor (*)(const Tensor&, int, const Resize&);
/// `f` along every spatial dimension, the last first.
template <class... F>
Tensor every_dimension(const Tensor& self, IntList size, bool align_corners, std::string_view op, Along f,
                       F... scales) {
  check_image(self, size, op);
  const Factor factors[] = {scales...};
  Tensor x = self;
  for (size_t k = size.size(); k-- > 0;) {
    const int dim = static_cast<int>(k) + 2;
    x = f(x, dim, Resize{self.sizes()[dim], size[k], factors[k], align_corners});
  }
  return kept_layout(x, self);
}

/// The definition of `op`; F: a Factor for each spatial dimension.
template <const auto& op, Along f, class... F>
Tensor nearest(Tensor self, IntList size, F... scales) {
  return every_dimension(self, size, false, name_of(op), f, scales...);
}
template <const auto& op, Along f, class... F>
Tensor interpolated(Tensor self, IntList size, bool align_corners, F... scales) {
  check_dtype(name_of(op), self.dtype(), Takes::Floating);
  return to_dtype(every_dimension(to_compute(self), size, align_corners, name_of(op), f, scales...),
                  self.dtype());
}

Tensor nearest_below(const Tensor& x, int dim, const Resize& r) { return nearest_along(x, dim, r, 0); }
Tensor nearest_middle(const Tensor& x, int dim, const Resize& r) { return nearest_along(x, dim, r, 0.5); }
Tensor linear_average(const Tensor& x, int dim, const Resize& r) {
  return average_along(x, dim, r, 1, triangle);
}
Tensor cubic_average(const Tensor& x, int dim, const Resize& r) {
  return average_along(x, dim, r, 2, smooth_cubic);
}

constexpr Tag kTags = Tag::NoInPlace | Tag::NoOut;

template <int N>
Sizes of_rank(Sizes one, Sizes two, Sizes three) {
  return N == 1 ? one : N == 2 ? two : three;
}
template <int N>
Samples nearest_samples() {
  return samples::custom(
      [](SampleMaker& m, const Samples& o) {
        const Sizes in = of_rank<N>({1, 2, 3}, {1, 2, 3, 4}, {1, 2, 3, 2, 4});
        const Sizes more = of_rank<N>({7}, {6, 9}, {4, 3, 6}), fewer = of_rank<N>({2}, {2, 4}, {2, 2, 3});
        return std::vector<Sample>{
            {{m.make(in, o.low, o.high), more}, "", ""},
            {{m.make(in, o.low, o.high), fewer}, "smaller", ""},
            {{m.make({2, 3}, o.low, o.high), more}, "rank", "RuntimeError: equals to"},
            {{m.make(in, o.low, o.high), Sizes(N, SymInt(0))}, "nothing", "RuntimeError: greater than 0"}};
      },
      {.dtypes = dtypes::floats});
}
template <int N>
Samples linear_samples() {
  return samples::custom(
      [](SampleMaker& m, const Samples& o) {
        const Sizes in = of_rank<N>({1, 2, 3}, {1, 2, 3, 4}, {1, 2, 3, 2, 4});
        const Sizes more = of_rank<N>({7}, {6, 9}, {4, 3, 6}), fewer = of_rank<N>({2}, {2, 3}, {2, 1, 3});
        return std::vector<Sample>{
            {{m.make(in, o.low, o.high), more, false}, "", ""},
            {{m.make(in, o.low, o.high), more, true}, "corners", ""},
            {{m.make(in, o.low, o.high), fewer, false}, "smaller", ""},
            {{m.make({2, 3}, o.low, o.high), more, false}, "rank", "RuntimeError: equals to"}};
      },
      {.dtypes = dtypes::floats, .tolerance = 1e-4});
}

void define_nearest(OpTable& t) {
  constexpr const char* kBelow = "Each output position takes the input position below it.";
  constexpr const char* kMiddle = "Each output position takes the input position below its middle.";
  t.define(upsample_nearest1d, {.doc = kBelow,
                                .tags = kTags,
                                .decompose = nearest<upsample_nearest1d, nearest_below>,
                                .samples = nearest_samples<1>()});
  t.define(upsample_nearest2d, {.doc = kBelow,
                                .tags = kTags,
                                .decompose = nearest<upsample_nearest2d, nearest_below>,
                                .samples = nearest_samples<2>()});
  t.define(upsample_nearest3d, {.doc = kBelow,
                                .tags = kTags,
                                .decompose = nearest<upsample_nearest3d, nearest_below>,
                                .samples = nearest_samples<3>()});
  t.define(upsample_nearest_exact1d, {.doc = kMiddle,
                                      .tags = kTags,
                                      .decompose = nearest<upsample_nearest_exact1d, nearest_middle>,
                                      .samples = nearest_samples<1>()});
  t.define(upsample_nearest_exact2d, {.doc = kMiddle,
                                      .tags = kTags,
                                      .decompose = nearest<upsample_nearest_exact2d, nearest_middle>,
                                      .samples = nearest_samples<2>()});
  t.define(upsample_nearest_exact3d, {.doc = kMiddle,
                                      .tags = kTags,
                                      .decompose = nearest<upsample_nearest_exact3d, nearest_middle>,
                                      .samples = nearest_samples<3>()});
}

void define_interpolations(OpTable& t) {
  constexpr const char* kLinear =
      "Linear interpolation along each dimension; align_corners puts the corners' middles on each other.";
  t.define(upsample_linear1d, {.doc = kLinear,
                               .tags = kTags,
                               .decompose = interpolated<upsample_linear1d, linear_along>,
                               .samples = linear_samples<1>()});
  t.define(upsample_bilinear2d, {.doc = kLinear,
                                 .tags = kTags,
                                 .decompose = interpolated<upsample_bilinear2d, linear_along>,
                                 .samples = linear_samples<2>()});
  t.define(upsample_trilinear3d, {.doc = kLinear,
                                  .tags = kTags,
                                  .decompose = interpolated<upsample_trilinear3d, linear_along>,
                                  .samples = linear_samples<3>()});
  t.define(upsample_bicubic2d,
           {.doc = "Interpolation by Keys's cubic kernel (a = -0.75) along both dimensions.",
            .tags = kTags,
            .decompose = interpolated<upsample_bicubic2d, cubic_along>,
            .samples = linear_samples<2>()});
  t.define(upsample_bilinear2d_aa,
           {.doc = "Each output pixel is the mean of what it covers, weighted by a triangle.",
            .tags = kTags,
            .decompose = interpolated<upsample_bilinear2d_aa, linear_average>,
            .samples = linear_samples<2>()});
  t.define(upsample_bicubic2d_aa,
           {.doc = "Each output pixel is the mean of what it covers, weighted by a cubic kernel (a = -0.5).",
            .tags = kTags,
            .decompose = interpolated<upsample_bicubic2d_aa, cubic_average>,
            .samples = linear_samples<2>()});
}

}  // namespace

void define_resize(OpTable& t) {
  define_nearest(t);
  define_interpolations(t);
}

}  // namespace fl
