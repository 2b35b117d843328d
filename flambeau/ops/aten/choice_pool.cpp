#include "flambeau/ops/aten/choice_pool.h"

#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

/// The input's positions in every window of one dimension: (windows, elements), or (N, C, windows, elements)
/// where each channel has its own. A window that is shorter than others repeats its last position.
using Windows = std::vector<Tensor>;

void check_rank(const Tensor& x, int n, const char* op) {
  FL_CHECK(x.dim() == n + 1 || x.dim() == n + 2, RuntimeError,
           "{}(): Expected {}D or {}D tensor, but got one of sizes {}", op, n + 1, n + 2,
           to_string(x.sizes()));
  for (int d = x.dim() - n; d < x.dim(); ++d)
    FL_CHECK(
        x.sizes()[d] > SymInt(0), RuntimeError,
        "{}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {} with "
        "dimension {} being empty",
        op, to_string(x.sizes()), d);
  check_dtype(op, x.dtype(), Takes::RealNumber);
}

/// The maximum of each window of x (N, C, ...), and its position in the flattened image.
std::tuple<Tensor, Tensor> chosen(const Tensor& x, const Windows& windows) {
  const int n = static_cast<int>(windows.size());
  const bool per_channel = windows[0].dim() == 4;
  Tensor position;  // (.., windows of every dimension, elements of every dimension)
  Sizes counts, elements;
  for (int d = 0; d < n; ++d) {
    const Tensor& w = windows[d];
    Sizes sizes(per_channel ? 2 : 0, SymInt(1));
    if (per_channel) sizes = {w.sizes()[0], w.sizes()[1]};
    const size_t first = sizes.size();
    sizes.resize(first + 2 * n, SymInt(1));
    sizes[first + d] = w.size(-2);
    sizes[first + n + d] = w.size(-1);
    counts.push_back(w.size(-2));
    elements.push_back(w.size(-1));
    const Tensor along = reshape(w, sizes);
    position = position.defined() ? add(mul(position, x.size(d - n)), along) : along;
  }
  SymInt windows_in_all = 1, elements_in_all = 1;
  for (int d = 0; d < n; ++d) {
    windows_in_all = windows_in_all * counts[d];
    elements_in_all = elements_in_all * elements[d];
  }
  const Sizes leading{x.sizes()[0], x.sizes()[1]};
  position = reshape(position, per_channel ? Sizes{leading[0], leading[1], windows_in_all, elements_in_all}
                                           : Sizes{1, 1, windows_in_all, elements_in_all});
  position = expand(position, {leading[0], leading[1], windows_in_all, elements_in_all});
  const Tensor taken = view(gather(flatten(x, 2, -1), 2, flatten(position, 2, -1)), position.sizes());
  const auto [values, at] = max_dim(taken, -1, true);
  Sizes out = leading;
  out.insert(out.end(), counts.begin(), counts.end());
  return {reshape(values, out), reshape(gather(position, -1, at), out)};
}

template <class F>
std::tuple<Tensor, Tensor> batched(const Tensor& x, int n, F f) {
  if (x.dim() == n + 2) return f(x);
  const auto [values, indices] = f(unsqueeze(x, 0));
  return {squeeze_dim(values, 0), squeeze_dim(indices, 0)};
}

/// From floor(i in / out) to ceil((i + 1) in / out).
Tensor dividing_windows(SymInt in, SymInt out, Device device) {
  const Tensor i = arange_end(out, DType::Int64, device);
  const Tensor start = floor_divide(mul(i, in), out);
  const Tensor last = sub(floor_divide(add(mul(add(i, 1), in), out - SymInt(1)), out), 1);
  const int64_t n = in.guard_int(), m = out.guard_int();
  int64_t longest = 1;
  for (int64_t k = 0; k < m; ++k) longest = std::max(longest, ((k + 1) * n + m - 1) / m - k * n / m);
  const Tensor offset = arange_end(SymInt(longest), DType::Int64, device);
  return minimum(add(unsqueeze(start, 1), offset), unsqueeze(last, 1));
}

template <int N>
std::tuple<Tensor, Tensor> adaptive_max_pool(Tensor self, IntList output_size) {
  constexpr const char* kNames[] = {"adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d"};
  const char* op = kNames[N - 1];
  check_rank(self, N, op);
  FL_CHECK(output_size.size() == 1 || output_size.size() == N, RuntimeError,
           "{}(): expected output_size of 1 or {} numbers, got {}", op, N, to_string(output_size));
  Sizes size =
      output_size.size() == 1 ? Sizes(N, output_size[0]) : Sizes(output_size.begin(), output_size.end());
  SymInt total = 1;
  for (const SymInt s : size) {
    FL_CHECK(s >= SymInt(0), RuntimeError,
             "{}(): elements of output_size must be greater than or equal to 0 but "
             "received {}",
             op, to_string(size));
    total = total * s;
  }
  if (total == SymInt(0)) {
    Sizes out(self.sizes().begin(), self.sizes().end() - N);
    out.insert(out.end(), size.begin(), size.end());
    return {zeros(out, self.dtype(), self.device()), zeros(out, DType::Int64, self.device())};
  }
  Windows windows;
  for (int d = 0; d < N; ++d) windows.push_back(dividing_windows(self.size(d - N), size[d], self.device()));
  return batched(self, N, [&](const Tensor& x) { return chosen(x, windows); });
}

/// Windows of `kernel` elements whose places a number in [0, 1) for each channel moves: Graham, 2014.
Tensor moved_windows(const Tensor& sample, SymInt in, SymInt out, SymInt kernel) {
  FL_CHECK(kernel + out - SymInt(1) <= in, RuntimeError,
           "fractional_max_pool(): pool size {} too large relative to input size {} and output size {}",
           kernel, in, out);
  const int64_t n = in.guard_int(), m = out.guard_int(), k = kernel.guard_int();
  const Tensor at = unsqueeze(sample, -1);
  Tensor starts = full({sample.sizes()[0], sample.sizes()[1], 1}, n - k, DType::Int64, sample.device());
  if (m > 1) {
    const double step = static_cast<double>(n - k) / static_cast<double>(m - 1);
    const Tensor i = to_dtype(arange_end(SymInt(m - 1), DType::Int64, sample.device()), sample.dtype());
    const Tensor moved = sub(trunc(mul(add(i, at), step)), trunc(mul(at, step)));
    starts = cat(std::vector<Tensor>{to_dtype(moved, DType::Int64), starts}, -1);
  }
  return add(unsqueeze(starts, -1), arange_end(kernel, DType::Int64, sample.device()));
}

template <int N>
std::tuple<Tensor, Tensor> fractional_max_pool(Tensor self, IntList kernel_size, IntList output_size,
                                               Tensor random_samples) {
  constexpr const char* op = N == 2 ? "fractional_max_pool2d" : "fractional_max_pool3d";
  check_rank(self, N, op);
  FL_CHECK(
      kernel_size.size() == N && output_size.size() == N, RuntimeError,
      "{}: kernel_size must either be a single int or tuple of {} ints, and output_size too; got {} and {}",
      op, N, to_string(kernel_size), to_string(output_size));
  const SymInt batch = self.dim() == N + 2 ? self.sizes()[0] : SymInt(1), channels = self.size(-N - 1);
  FL_CHECK(random_samples.dim() == 3 && random_samples.sizes()[0] == batch &&
               random_samples.sizes()[1] == channels && random_samples.sizes()[2] == SymInt(N),
           RuntimeError, "{}: Expect _random_samples of sizes [{}, {}, {}], got {}", op, batch, channels, N,
           to_string(random_samples.sizes()));
  FL_CHECK(random_samples.dtype() == self.dtype(), RuntimeError,
           "Expect _random_samples to have the same dtype as input");
  Windows windows;
  for (int d = 0; d < N; ++d) {
    // Of two numbers the first moves the columns.
    const int number = N == 2 ? 1 - d : d;
    windows.push_back(
        moved_windows(select(random_samples, 2, number), self.size(d - N), output_size[d], kernel_size[d]));
  }
  return batched(self, N, [&](const Tensor& x) { return chosen(x, windows); });
}

Tensor unpooled(const Tensor& self, const Tensor& indices, IntList output_size, const char* op) {
  const int n = static_cast<int>(output_size.size());
  FL_CHECK(indices.dtype() == DType::Int64, RuntimeError,
           "elements in indices should be type int64 but got: {}", name(indices.dtype()));
  FL_CHECK(
      self.dim() == n + 1 || self.dim() == n + 2, RuntimeError,
      "{}(): Input to max_unpooling{}d should be a {}d or {}d Tensor, but got a tensor with {} dimensions.",
      op, n, n + 1, n + 2, self.dim());
  bool equal = self.dim() == indices.dim();
  for (int d = 0; equal && d < self.dim(); ++d) equal = self.sizes()[d] == indices.sizes()[d];
  FL_CHECK(equal, RuntimeError,
           "Expected shape of indices to be same as that of the input tensor ({}) but got "
           "indices tensor with shape: {}",
           to_string(self.sizes()), to_string(indices.sizes()));
  Sizes sizes(self.sizes().begin(), self.sizes().end() - n), flat = sizes;
  SymInt count = 1;
  for (const SymInt s : output_size) count = count * s;
  flat.push_back(count);
  sizes.insert(sizes.end(), output_size.begin(), output_size.end());
  const Tensor start = zeros(flat, self.dtype(), self.device());
  return view(scatter(start, -1, flatten(indices, -n, -1), flatten(self, -n, -1)), sizes);
}

constexpr Tag kTags = Tag::NoInPlace | Tag::NoOut;

template <int N>
Samples adaptive_samples() {
  return samples::custom(
      [](SampleMaker& m, const Samples& o) {
        const Sizes image = N == 1 ? Sizes{2, 3, 7} : N == 2 ? Sizes{2, 2, 5, 4} : Sizes{1, 2, 3, 4, 5};
        const Sizes one(image.begin() + 1, image.end());
        return std::vector<Sample>{
            {{m.make(image, o.low, o.high), Sizes(N, SymInt(3))}, "", ""},
            {{m.make(one, o.low, o.high), Sizes(N, SymInt(2))}, "one image", ""},
            {{m.make({2}, o.low, o.high), Sizes(N, SymInt(2))}, "rank", "RuntimeError: Expected"}};
      },
      {.dtypes = dtypes::floats});
}

template <int N>
Samples fractional_samples() {
  return samples::custom(
      [](SampleMaker& m, const Samples& o) {
        const Sizes image = N == 2 ? Sizes{2, 2, 6, 5} : Sizes{1, 2, 5, 4, 6};
        return std::vector<Sample>{{{m.make(image, o.low, o.high), Sizes(N, SymInt(2)), Sizes(N, SymInt(3)),
                                     m.make({image[0], image[1], SymInt(N)}, 0.1, 0.9)},
                                    "",
                                    ""},
                                   {{m.make(image, o.low, o.high), Sizes(N, SymInt(4)), Sizes(N, SymInt(4)),
                                     m.make({image[0], image[1], SymInt(N)}, 0.1, 0.9)},
                                    "too large",
                                    "RuntimeError: too large"}};
      },
      {.dtypes = dtypes::full_floats, .gradient = false});
}

void define_unpool(OpTable& t) {
  t.define(
      max_unpool2d,
      {.doc = "Elements at their positions in the flattened image, among zeros.",
       .tags = kTags,
       .decompose =
           [](Tensor self, Tensor indices, IntList output_size) {
             FL_CHECK(
                 output_size.size() == 2, RuntimeError,
                 "There should be exactly two elements (height, width) in output_size, but got {} elements.",
                 output_size.size());
             return unpooled(self, indices, output_size, "max_unpool2d");
           },
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             const Tensor at = tensor_from<int64_t>({1, 3, 4, 10}, Sizes{1, 1, 2, 2});
             return std::vector<Sample>{
                 {{m.make({1, 1, 2, 2}, o.low, o.high), at, Sizes{3, 4}}, "", ""},
                 {{m.make({1, 2, 2, 2}, o.low, o.high), at, Sizes{3, 4}}, "sizes", "RuntimeError: same as"}};
           },
           {.dtypes = dtypes::floats})});
  t.define(
      max_unpool3d,
      {.doc = "Elements at their positions in the flattened volume, among zeros.",
       .tags = kTags,
       .decompose =
           [](Tensor self, Tensor indices, IntList output_size, IntList stride, IntList padding) {
             FL_CHECK(
                 output_size.size() == 3 && stride.size() == 3 && padding.size() == 3, RuntimeError,
                 "There should be exactly three elements (depth, height, width) in output_size, stride and "
                 "padding, but got {}, {} and {}",
                 to_string(output_size), to_string(stride), to_string(padding));
             for (const SymInt s : stride)
               FL_CHECK(s > SymInt(0), RuntimeError,
                        "strides should be greater than zero, but got stride: {}", to_string(stride));
             return unpooled(self, indices, output_size, "max_unpool3d");
           },
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             const Tensor at = tensor_from<int64_t>({1, 7}, Sizes{1, 1, 1, 2, 1});
             return std::vector<Sample>{{{m.make({1, 1, 1, 2, 1}, o.low, o.high), at, Sizes{2, 2, 2},
                                          Sizes{2, 2, 2}, Sizes{0, 0, 0}},
                                         "",
                                         ""}};
           },
           {.dtypes = dtypes::floats})});
}

}  // namespace

void define_choice_pool(OpTable& t) {
  constexpr const char* kAdaptive =
      "The maximum of windows that divide the input into output_size parts, and its position in the "
      "flattened image.";
  t.define(
      adaptive_max_pool1d,
      {.doc = kAdaptive, .tags = kTags, .decompose = adaptive_max_pool<1>, .samples = adaptive_samples<1>()});
  t.define(
      adaptive_max_pool2d,
      {.doc = kAdaptive, .tags = kTags, .decompose = adaptive_max_pool<2>, .samples = adaptive_samples<2>()});
  t.define(
      adaptive_max_pool3d,
      {.doc = kAdaptive, .tags = kTags, .decompose = adaptive_max_pool<3>, .samples = adaptive_samples<3>()});
  constexpr const char* kFractional =
      "The maximum of windows at places that random_samples (N, C, dimensions) in [0, 1) give, and its "
      "position in the flattened image.";
  t.define(fractional_max_pool2d, {.doc = kFractional,
                                   .tags = kTags,
                                   .decompose = fractional_max_pool<2>,
                                   .samples = fractional_samples<2>()});
  t.define(fractional_max_pool3d, {.doc = kFractional,
                                   .tags = kTags,
                                   .decompose = fractional_max_pool<3>,
                                   .samples = fractional_samples<3>()});
  define_unpool(t);
}

}  // namespace fl
