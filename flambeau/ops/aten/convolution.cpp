#include "flambeau/ops/aten/convolution.h"

#include "flambeau/ops/functions.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

/// f on a batch; an image without one becomes a batch of one.
template <class F>
Tensor batched(const Tensor& input, int spatial, const char* op, F f) {
  FL_CHECK(input.dim() == spatial + 1 || input.dim() == spatial + 2, RuntimeError,
           "Expected {}D (unbatched) or {}D (batched) input to {}, but got input of size: {}", spatial + 1,
           spatial + 2, op, to_string(input.sizes()));
  return input.dim() == spatial + 2 ? f(input) : squeeze_dim(f(unsqueeze(input, 0)), 0);
}

constexpr const char* kNames[] = {"conv1d", "conv2d", "conv3d"};
constexpr const char* kTransposedNames[] = {"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"};

template <int Spatial>
Tensor conv(Tensor input, Tensor weight, Tensor bias, IntList stride, IntList padding, IntList dilation,
            SymInt groups) {
  return batched(input, Spatial, kNames[Spatial - 1], [&](const Tensor& x) {
    return convolution(x, weight, bias, stride, padding, dilation, false, Sizes(Spatial, SymInt(0)), groups);
  });
}

template <int Spatial>
Tensor conv_transpose(Tensor input, Tensor weight, Tensor bias, IntList stride, IntList padding,
                      IntList output_padding, SymInt groups, IntList dilation) {
  return batched(input, Spatial, kTransposedNames[Spatial - 1], [&](const Tensor& x) {
    return convolution(x, weight, bias, stride, padding, dilation, true, output_padding, groups);
  });
}

/// "same" pads so that sizes stay: evenly, what is left over at the end.
template <int Spatial>
Tensor conv_named_padding(Tensor input, Tensor weight, Tensor bias, IntList stride, std::string_view padding,
                          IntList dilation, SymInt groups) {
  FL_CHECK(padding == "valid" || padding == "same", RuntimeError,
           "Invalid padding string: '{}', expected 'valid' or 'same'", padding);
  FL_CHECK(weight.dim() == Spatial + 2, RuntimeError,
           "conv{}d: expected a weight of {} dimensions for padding='{}', got one of size {}", Spatial,
           Spatial + 2, padding, to_string(weight.sizes()));
  Sizes around(Spatial, SymInt(0)), more(2 * Spatial, SymInt(0));
  bool uneven = false;
  for (int d = 0; padding == "same" && d < Spatial; ++d) {
    FL_CHECK(stride[stride.size() == 1 ? 0 : d] == SymInt(1), RuntimeError,
             "padding='same' is not supported for strided convolutions");
    const SymInt total = dilation[dilation.size() == 1 ? 0 : d] * (weight.sizes()[2 + d] - SymInt(1));
    around[d] = total / SymInt(2);
    more[2 * (Spatial - 1 - d) + 1] = total - around[d] * SymInt(2);
    uneven = uneven || more[2 * (Spatial - 1 - d) + 1] != SymInt(0);
  }
  const Tensor padded = uneven ? constant_pad_nd(input, more, 0) : input;
  return conv<Spatial>(padded, weight, bias, stride, around, dilation, groups);
}

template <int Spatial>
Sizes image(SymInt first, SymInt second, SymInt size) {
  Sizes out{first, second};
  for (int d = 0; d < Spatial; ++d) out.push_back(size);
  return out;
}

template <int Spatial>
std::vector<Sample> conv_samples(SampleMaker& m, const Samples& o) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  const Sizes whole = image<Spatial>(2, 3, 5);
  const Sizes one(whole.begin() + 1, whole.end());
  return {{{x(whole), x(image<Spatial>(4, 3, 2)), x({4})}, "", ""},
          {{x(one), x(image<Spatial>(4, 3, 2)), Value(), Sizes{2}, Sizes{1}}, "one image", ""},
          {{x({3}), x(image<Spatial>(4, 3, 2))}, "vector", "RuntimeError: (batched) input"}};
}
template <int Spatial>
std::vector<Sample> named_samples(SampleMaker& m, const Samples& o) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  return {{{x(image<Spatial>(1, 2, 4)), x(image<Spatial>(3, 2, 3)), Value(), Sizes{1}, "same"}, "same", ""},
          {{x(image<Spatial>(1, 2, 4)), x(image<Spatial>(3, 2, 2)), x({3}), Sizes{1}, "same"}, "uneven", ""},
          {{x(image<Spatial>(1, 2, 4)), x(image<Spatial>(3, 2, 2)), Value(), Sizes{2}, "valid"}, "valid", ""},
          {{x(image<Spatial>(1, 2, 4)), x({3, 2}), Value(), Sizes{1}, "same"},
           "weight",
           "RuntimeError: expected a weight"},
          {{x(image<Spatial>(1, 2, 4)), x(image<Spatial>(3, 2, 2)), Value(), Sizes{2}, "same"},
           "strided",
           "RuntimeError: strided convolutions"}};
}
template <int Spatial>
std::vector<Sample> transposed_samples(SampleMaker& m, const Samples& o) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  return {{{x(image<Spatial>(1, 3, 3)), x(image<Spatial>(3, 2, 2)), x({2})}, "", ""},
          {{x(image<Spatial>(1, 3, 2)), x(image<Spatial>(3, 2, 3)), Value(), Sizes{2}, Sizes{1}, Sizes{1}},
           "stride, output padding",
           ""}};
}

template <int Spatial, class Conv, class Named, class Transposed>
void define_for(OpTable& t, Conv plain, Named named, Transposed transposed) {
  constexpr Tag kTags = Tag::NoInPlace | Tag::NoOut;
  const Samples options{.dtypes = dtypes::full_floats, .low = -1, .high = 1, .tolerance = 1e-4};
  t.define(plain, {.doc = "Convolution of a batch of images, or of one.",
                   .tags = kTags,
                   .decompose = conv<Spatial>,
                   .samples = samples::custom(conv_samples<Spatial>, options)});
  t.define(named, {.doc = "Convolution with no padding (\"valid\") or with padding that keeps the sizes "
                          "(\"same\").",
                   .tags = kTags,
                   .decompose = conv_named_padding<Spatial>,
                   .samples = samples::custom(named_samples<Spatial>, options)});
  t.define(transposed, {.doc = "Transposed convolution of a batch of images, or of one.",
                        .tags = kTags,
                        .decompose = conv_transpose<Spatial>,
                        .samples = samples::custom(transposed_samples<Spatial>, options)});
}

}  // namespace

void define_convolutions(OpTable& t) {
  define_for<1>(t, conv1d, conv1d_padding, conv_transpose1d);
  define_for<2>(t, conv2d, conv2d_padding, conv_transpose2d);
  define_for<3>(t, conv3d, conv3d_padding, conv_transpose3d);
}

}  // namespace fl
