#include "flambeau/ops/aten/columns.h"

#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/convolution_geometry.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

struct Windows {
  Sizes kernel, count;  ///< sizes of a window, numbers of windows
  /// Positions in the padded image: (kernel row, 1, window row, 1) and (1, kernel column, 1, window column).
  Tensor rows, columns;
};

Tensor positions(const ConvolutionWindow& w, int d, SymInt kernel, SymInt count, Device device) {
  const Tensor offset = mul(arange_end(kernel, DType::Int64, device), w.dilation[d]);
  const Tensor start = mul(arange_end(count, DType::Int64, device), w.stride[d]);
  const Tensor both = add(unsqueeze(offset, 1), start);
  return d == 0 ? unsqueeze(unsqueeze(both, 1), 3) : unsqueeze(unsqueeze(both, 1), 0);
}

Windows windows_of(const ConvolutionWindow& w, Sizes kernel, IntList image, Device device) {
  Windows out{std::move(kernel), {}, {}, {}};
  for (int d = 0; d < 2; ++d) out.count.push_back(w.small_size(d, image[d], out.kernel[d]));
  out.rows = positions(w, 0, out.kernel[0], out.count[0], device);
  out.columns = positions(w, 1, out.kernel[1], out.count[1], device);
  return out;
}

ConvolutionWindow window_of(IntList stride, IntList padding, IntList dilation) {
  return convolution_window(Value(stride), Value(padding), Value(dilation), 2);
}

/// Before and after the last two dimensions, the last first.
Sizes around(const ConvolutionWindow& w, int sign) {
  const SymInt rows = w.padding[0] * SymInt(sign), columns = w.padding[1] * SymInt(sign);
  return {columns, columns, rows, rows};
}

Tensor to_columns(Tensor self, IntList kernel_size, IntList dilation, IntList padding, IntList stride) {
  FL_CHECK(self.dim() == 3 || self.dim() == 4, RuntimeError,
           "im2col: Expected 3D or 4D input of one image or a batch, but got input of sizes {}",
           to_string(self.sizes()));
  if (self.dim() == 3)
    return squeeze_dim(im2col(unsqueeze(self, 0), kernel_size, dilation, padding, stride), 0);
  const ConvolutionWindow w = window_of(stride, padding, dilation);
  const IntList image(self.sizes().data() + 2, 2);
  const Windows at = windows_of(w, spatial_list(Value(kernel_size), 2, "kernel_size"), image, self.device());
  const Tensor padded = constant_pad_nd(self, around(w, 1), 0), none;
  const Tensor taken = _index(padded, std::vector<Tensor>{none, none, at.rows, at.columns});
  return reshape(taken,
                 {self.sizes()[0], self.sizes()[1] * at.kernel[0] * at.kernel[1], at.count[0] * at.count[1]});
}

Tensor from_columns(Tensor self, IntList output_size, IntList kernel_size, IntList dilation, IntList padding,
                    IntList stride) {
  FL_CHECK(self.dim() == 2 || self.dim() == 3, RuntimeError,
           "col2im: Expected 2D or 3D input of one image's columns or a batch, but got input of sizes {}",
           to_string(self.sizes()));
  if (self.dim() == 2)
    return squeeze_dim(col2im(unsqueeze(self, 0), output_size, kernel_size, dilation, padding, stride), 0);
  const ConvolutionWindow w = window_of(stride, padding, dilation);
  const Sizes image = spatial_list(Value(output_size), 2, "output_size");
  const Windows at = windows_of(w, spatial_list(Value(kernel_size), 2, "kernel_size"), image, self.device());
  const SymInt of_kernel = at.kernel[0] * at.kernel[1];
  FL_CHECK(
      self.sizes()[1] % of_kernel == SymInt(0) && self.sizes()[2] == at.count[0] * at.count[1], RuntimeError,
      "col2im: Given output_size={} and kernel_size={}, expected input's dimension 1 to be divisible by {} "
      "and dimension 2 to be {}, but got input of sizes {}",
      to_string(image), to_string(at.kernel), of_kernel, at.count[0] * at.count[1], to_string(self.sizes()));
  const SymInt channels = self.sizes()[1] / of_kernel;
  const Tensor values =
      reshape(self, {self.sizes()[0], channels, at.kernel[0], at.kernel[1], at.count[0], at.count[1]});
  const Tensor start = zeros(
      {self.sizes()[0], channels, image[0] + w.padding[0] * SymInt(2), image[1] + w.padding[1] * SymInt(2)},
      self.dtype(), self.device());
  const Tensor none;
  const Tensor sums = _index_put(start, std::vector<Tensor>{none, none, at.rows, at.columns}, values, true);
  return constant_pad_nd(sums, around(w, -1), 0);
}

}  // namespace

void define_columns(OpTable& t) {
  constexpr Tag kTags = Tag::NoInPlace | Tag::NoOut;
  t.define(im2col,
           {.doc = "The windows of each image as columns: (N, C, H, W) to (N, C kernel, windows).",
            .tags = kTags,
            .decompose = to_columns,
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
                  return std::vector<Sample>{
                      {{x({2, 3, 5, 4}), Sizes{2, 3}, Sizes{1, 1}, Sizes{0, 0}, Sizes{1, 1}}, "", ""},
                      {{x({1, 5, 6}), Sizes{2, 2}, Sizes{2, 1}, Sizes{1, 2}, Sizes{1, 2}}, "one image", ""},
                      {{x({3, 3}), Sizes{2, 2}, Sizes{1, 1}, Sizes{0, 0}, Sizes{1, 1}},
                       "rank",
                       "RuntimeError: 3D or 4D"}};
                },
                {.dtypes = dtypes::full_floats})});
  t.define(
      col2im,
      {.doc = "Columns added up at the places of an image that `im2col` took them from.",
       .tags = kTags,
       .decompose = from_columns,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
             return std::vector<Sample>{
                 {{x({2, 6, 8}), Sizes{5, 4}, Sizes{2, 3}, Sizes{1, 1}, Sizes{0, 0}, Sizes{1, 1}}, "", ""},
                 {{x({4, 25}), Sizes{5, 6}, Sizes{2, 2}, Sizes{2, 1}, Sizes{1, 2}, Sizes{1, 2}},
                  "one image",
                  ""},
                 {{x({4, 7}), Sizes{5, 6}, Sizes{2, 2}, Sizes{1, 1}, Sizes{0, 0}, Sizes{1, 1}},
                  "windows",
                  "RuntimeError: expected input's dimension 1"}};
           },
           {.dtypes = dtypes::full_floats})});
}

}  // namespace fl
