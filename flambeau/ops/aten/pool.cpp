#include "flambeau/ops/aten/pool.h"

#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

/// One entry stands for every dimension.
Sizes spread(IntList list, int n, const char* what) {
  FL_CHECK(list.size() == 1 || static_cast<int>(list.size()) == n, RuntimeError,
           "{} must either be a single int, or a tuple of {} ints, got {}", what, n, to_string(list));
  return list.size() == 1 ? Sizes(n, list[0]) : Sizes(list.begin(), list.end());
}
/// No stride stands for the kernel's sizes.
Sizes strides_of(IntList stride, const Sizes& kernel) {
  return stride.empty() ? kernel : spread(stride, static_cast<int>(kernel.size()), "stride");
}

bool needs_batch(const Tensor& x, int n, const char* op) {
  FL_CHECK(x.dim() == n + 1 || x.dim() == n + 2, RuntimeError,
           "{}: Expected {}D or {}D (batch mode) tensor for input, but got one of sizes {}", op, n + 1, n + 2,
           to_string(x.sizes()));
  return x.dim() == n + 1;
}
Tensor with_batch(const Tensor& x, bool add) { return add ? unsqueeze(x, 0) : x; }
Tensor without_batch(const Tensor& x, bool added) { return added ? squeeze_dim(x, 0) : x; }

constexpr const char* kMaxNames[] = {"max_pool1d", "max_pool2d", "max_pool3d"};
constexpr const char* kAvgNames[] = {"avg_pool1d", "avg_pool2d", "avg_pool3d"};
constexpr const char* kAdaptiveNames[] = {"adaptive_avg_pool1d", "adaptive_avg_pool2d",
                                          "adaptive_avg_pool3d"};

template <int N>
std::tuple<Tensor, Tensor> max_pool_with_indices(Tensor self, IntList kernel_size, IntList stride,
                                                 IntList padding, IntList dilation, bool ceil_mode) {
  const bool added = needs_batch(self, N, kMaxNames[N - 1]);
  const Sizes kernel = spread(kernel_size, N, "kernel_size");
  const auto [values, indices] =
      _max_pool(with_batch(self, added), kernel, strides_of(stride, kernel), spread(padding, N, "padding"),
                spread(dilation, N, "dilation"), ceil_mode);
  return {without_batch(values, added), without_batch(indices, added)};
}
template <int N>
Tensor max_pool(Tensor self, IntList kernel_size, IntList stride, IntList padding, IntList dilation,
                bool ceil_mode) {
  return std::get<0>(max_pool_with_indices<N>(self, kernel_size, stride, padding, dilation, ceil_mode));
}

template <int N>
Tensor avg_pool(Tensor self, IntList kernel_size, IntList stride, IntList padding, bool ceil_mode,
                bool count_include_pad, std::optional<int64_t> divisor) {
  const bool added = needs_batch(self, N, kAvgNames[N - 1]);
  const Sizes kernel = spread(kernel_size, N, "kernel_size");
  return without_batch(_avg_pool(with_batch(self, added), kernel, strides_of(stride, kernel),
                                 spread(padding, N, "padding"), ceil_mode, count_include_pad, divisor),
                       added);
}

/// Windows over everything are a mean.
template <int N>
Tensor adaptive_avg_pool(Tensor self, IntList output_size) {
  const bool added = needs_batch(self, N, kAdaptiveNames[N - 1]);
  const Sizes size = spread(output_size, N, "output_size");
  Sizes dims;
  for (int d = 0; d < N; ++d)
    if (size[d].same_as(1)) dims.push_back(d - N);
  if (static_cast<int>(dims.size()) == N) return mean(self, dims, true);
  return without_batch(_adaptive_avg_pool(with_batch(self, added), size), added);
}

template <int N>
Sizes image(SymInt batch, SymInt channels, SymInt size) {
  Sizes out{batch, channels};
  for (int d = 0; d < N; ++d) out.push_back(size);
  return out;
}

template <int N>
std::vector<Sample> max_samples(SampleMaker& m, const Samples& o) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  const Sizes whole = image<N>(2, 3, 5);
  const Sizes one(whole.begin() + 1, whole.end());
  return {{{x(whole), Sizes{2}}, "", ""},
          {{x(whole), Sizes{3}, Sizes{2}, Sizes{1}, Sizes{1}, true}, "stride, padding, ceil", ""},
          {{x(one), Sizes{2}, Sizes{1}}, "one image", ""},
          {{x({3}), Sizes{2}}, "vector", "RuntimeError: batch mode"}};
}
template <int N>
std::vector<Sample> avg_samples(SampleMaker& m, const Samples& o) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  const Sizes whole = image<N>(2, 3, 5);
  const Sizes one(whole.begin() + 1, whole.end());
  return {{{x(whole), Sizes{2}}, "", ""},
          {{x(whole), Sizes{3}, Sizes{2}, Sizes{1}, true, false}, "stride, padding, ceil", ""},
          {{x(one), Sizes{2}, Sizes{1}}, "one image", ""}};
}
template <int N>
std::vector<Sample> adaptive_samples(SampleMaker& m, const Samples& o) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  const Sizes whole = image<N>(2, 3, 5);
  const Sizes one(whole.begin() + 1, whole.end());
  return {
      {{x(whole), Sizes{1}}, "mean", ""}, {{x(whole), Sizes{3}}, "", ""}, {{x(one), Sizes{5}}, "same", ""}};
}

template <int N, class Pair, class Max, class Adaptive>
void define_for(OpTable& t, Pair with_indices, Max values, Adaptive adaptive) {
  constexpr Tag kTags = Tag::NoInPlace | Tag::NoOut;
  const Samples options{.dtypes = dtypes::floats};
  t.define(with_indices, {.doc = "The maximum of each window and its position in the flattened spatial "
                                 "dimensions.",
                          .tags = kTags,
                          .decompose = max_pool_with_indices<N>,
                          .samples = samples::custom(max_samples<N>, options)});
  t.define(values, {.doc = "The maximum of each window. Padding counts as less than every element.",
                    .tags = kTags,
                    .decompose = max_pool<N>,
                    .samples = samples::custom(max_samples<N>, options)});
  t.define(adaptive,
           {.doc = "Means of windows that cut the spatial dimensions into the given numbers of pieces.",
            .tags = kTags,
            .decompose = adaptive_avg_pool<N>,
            .samples = samples::custom(adaptive_samples<N>, options)});
}

}  // namespace

void define_pool(OpTable& t) {
  constexpr Tag kTags = Tag::NoInPlace | Tag::NoOut;
  const Samples options{.dtypes = dtypes::floats};
  define_for<1>(t, max_pool1d_with_indices, max_pool1d, adaptive_avg_pool1d);
  define_for<2>(t, max_pool2d_with_indices, max_pool2d, adaptive_avg_pool2d);
  define_for<3>(t, max_pool3d_with_indices, max_pool3d, adaptive_avg_pool3d);
  constexpr std::string_view kDoc =
      "The mean of each window; padding counts as 0, and as elements if count_include_pad.";
  t.define(avg_pool1d, {.doc = kDoc,
                        .tags = kTags,
                        .decompose =
                            [](Tensor self, IntList kernel, IntList stride, IntList padding, bool ceil_mode,
                               bool count_include_pad) {
                              return avg_pool<1>(self, kernel, stride, padding, ceil_mode, count_include_pad,
                                                 std::nullopt);
                            },
                        .samples = samples::custom(avg_samples<1>, options)});
  t.define(avg_pool2d, {.doc = kDoc,
                        .tags = kTags,
                        .decompose = avg_pool<2>,
                        .samples = samples::custom(avg_samples<2>, options)});
  t.define(avg_pool3d, {.doc = kDoc,
                        .tags = kTags,
                        .decompose = avg_pool<3>,
                        .samples = samples::custom(avg_samples<3>, options)});
}

}  // namespace fl
