#include "flambeau/ops/prims/convolution.h"

#include "flambeau/ops/functions.h"
#include "flambeau/ops/prims/convolution_geometry.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

// Arguments of convolution, and of its gradients (whose second is the other operand, and third a list of
// sizes).
constexpr int kStride = 3, kPadding = 4, kDilation = 5, kTransposed = 6, kOutputPadding = 7, kGroups = 8;
constexpr int kGradGroups = 7;

template <class C>
ConvolutionWindow window_of(const C& c, int rank) {
  return convolution_window(c.arg(kStride), c.arg(kPadding), c.arg(kDilation), rank - 2);
}

void check_images(const InferCtx& c, const TensorSpec& input, const TensorSpec& weight, SymInt groups,
                  bool transposed) {
  FL_CHECK(
      input.dim() >= 3 && input.dim() <= 5 && input.dim() == weight.dim(), RuntimeError,
      "{}: expected input and weight of 3 to 5 dimensions each, got input of shape {} and weight of shape "
      "{}",
      c.op().schema.name, to_string(input.sizes), to_string(weight.sizes));
  FL_CHECK(input.dtype == weight.dtype, RuntimeError,
           "Input type ({}) and weight type ({}) should be the same", name(input.dtype), name(weight.dtype));
  check_dtype(c.op().schema.name, input.dtype, Takes::Number);
  FL_CHECK(groups > SymInt(0), RuntimeError, "non-positive groups is not supported: {}", groups);
  FL_CHECK(weight.sizes[0] >= groups && weight.sizes[0] % groups == SymInt(0), RuntimeError,
           "Given groups={}, expected weight to be divisible by {} at dimension 0, but got weight of size {} "
           "instead",
           groups, groups, to_string(weight.sizes));
  const SymInt channels = transposed ? weight.sizes[0] : weight.sizes[1] * groups;
  FL_CHECK(input.sizes[1] == channels, RuntimeError,
           "Given groups={}, weight of size {}, expected input{} to have {} channels, but got {} channels "
           "instead",
           groups, to_string(weight.sizes), to_string(input.sizes), channels, input.sizes[1]);
}

InferResult convolution_rule(const InferCtx& c, int) {
  const TensorSpec &input = c.spec(0), &weight = c.spec(1);
  const bool transposed = c.flag(kTransposed);
  const SymInt groups = c.sym_int(kGroups);
  check_images(c, input, weight, groups, transposed);
  const SymInt channels = transposed ? weight.sizes[1] * groups : weight.sizes[0];
  if (c.has(2)) {
    FL_CHECK(
        c.spec(2).dim() == 1 && c.spec(2).sizes[0] == channels, RuntimeError,
        "Given weight of size {}, expected bias to be 1-dimensional with {} elements, but got bias of size "
        "{} instead",
        to_string(weight.sizes), channels, to_string(c.spec(2).sizes));
    FL_CHECK(c.spec(2).dtype == input.dtype, RuntimeError,
             "Input type ({}) and bias type ({}) should be the same", name(input.dtype),
             name(c.spec(2).dtype));
  }
  const ConvolutionWindow w = window_of(c, input.dim());
  const Sizes more =
      transposed ? spatial_list(c.arg(kOutputPadding), w.spatial(), "output_padding") : Sizes();
  Sizes sizes{input.sizes[0], channels};
  for (int d = 0; d < w.spatial(); ++d) {
    const SymInt in = input.sizes[2 + d], kernel = weight.sizes[2 + d];
    FL_CHECK(
        !transposed || more[d] < w.stride[d] || more[d] < w.dilation[d], RuntimeError,
        "output padding must be smaller than either stride or dilation, but got output_padding {}, stride "
        "{} and dilation {}",
        to_string(more), to_string(w.stride), to_string(w.dilation));
    sizes.push_back(transposed ? w.large_size(d, in, kernel, more[d]) : w.small_size(d, in, kernel));
    FL_CHECK(
        sizes.back() >= SymInt(0), RuntimeError,
        "Given input size per channel: {}. Calculated output size per channel: {}. Output size is too small",
        to_string(input.sizes), to_string(sizes));
  }
  TensorSpec out = make_spec(sizes, input.dtype, input.device);
  out.strides = image_strides(sizes, input, weight);
  return {out};
}

/// What the three products have in common: which argument is the image and which the weight.
struct Product {
  ConvolutionWindow window;
  std::vector<Expr> image, weight;  // sizes
  Expr groups;
  DType dtype;
};
Product product_of(const LowerCtx& c, std::vector<Expr> weight, int groups) {
  return {window_of(c, c.spec(0).dim()), c.sizes(0), std::move(weight), c.arg(groups).sym_int().expr(),
          compute_dtype(c.out().dtype)};
}

Val masked_product(BodyOps& s, const Product& p, std::span<const Expr> image, std::span<const Expr> weight,
                   Val inside) {
  return s.mul(s.cast(s.load(0, image, inside), p.dtype), s.cast(s.load(1, weight, inside), p.dtype));
}

Index joined(Expr first, Expr second, std::span<const Expr> rest) {
  Index out{std::move(first), std::move(second)};
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

/// out[n, o, y] = sum over c, k of image[n, group(o) C + c, y stride - padding + k dilation] weight[o, c, k],
/// with C channels in a group.
Lowered lower_gathering(const LowerCtx& c, const Product& p) {
  Lowered l;
  l.kind = Lowered::Kind::Reduction;
  l.sizes = c.out_sizes();
  l.reduce_sizes = {p.weight[1]};
  l.reduce_sizes.insert(l.reduce_sizes.end(), p.weight.begin() + 2, p.weight.end());
  l.body = [p](BodyOps& s, std::span<const Expr> i, std::span<const Expr> r) {
    Val inside;
    const Index at =
        large_point(s, p.window, i.subspan(2), r.subspan(1), std::span(p.image).subspan(2), &inside);
    const bool one = p.groups.is_const(1);
    const Expr group = one ? Expr(0) : sym::floordiv(i[1], sym::floordiv(p.weight[0], p.groups));
    const Index image = joined(i[0], group * p.weight[1] + r[0], at);
    return std::vector<Val>{masked_product(s, p, image, joined(i[1], r[0], r.subspan(1)), inside)};
  };
  return l;
}

/// out[n, c, x] = sum over o, k of image[n, group(c) O + o, y] weight[group(c) O + o, c mod C, k] for the y
/// with x = y stride - padding + k dilation, O channels of the image in a group.
Lowered lower_spreading(const LowerCtx& c, const Product& p) {
  Lowered l;
  l.kind = Lowered::Kind::Reduction;
  l.sizes = c.out_sizes();
  const Expr in_group = sym::floordiv(p.weight[0], p.groups);
  l.reduce_sizes = {in_group};
  l.reduce_sizes.insert(l.reduce_sizes.end(), p.weight.begin() + 2, p.weight.end());
  l.body = [p, in_group](BodyOps& s, std::span<const Expr> i, std::span<const Expr> r) {
    Val inside;
    const Index at =
        small_point(s, p.window, i.subspan(2), r.subspan(1), std::span(p.image).subspan(2), &inside);
    const bool one = p.groups.is_const(1);
    const Expr channel = one ? r[0] : sym::floordiv(i[1], p.weight[1]) * in_group + r[0];
    const Expr column = one ? i[1] : sym::mod(i[1], p.weight[1]);
    return std::vector<Val>{
        masked_product(s, p, joined(i[0], channel, at), joined(channel, column, r.subspan(1)), inside)};
  };
  return l;
}

Lowered lower_convolution(const LowerCtx& c) {
  const Product p = product_of(c, c.sizes(1), kGroups);
  Lowered l = c.arg(kTransposed).to_bool() ? lower_spreading(c, p) : lower_gathering(c, p);
  if (c.has(2)) {
    l.finish = [dtype = p.dtype](BodyOps& s, std::span<const Expr> i, std::span<const Val> results) {
      const Expr channel[] = {i[1]};
      return std::vector<Val>{s.add(results[0], s.cast(s.load(2, channel), dtype))};
    };
  }
  return l;
}

Lowered lower_input_grad(const LowerCtx& c) {
  const Product p = product_of(c, c.sizes(1), kGradGroups);
  return c.arg(kTransposed).to_bool() ? lower_gathering(c, p) : lower_spreading(c, p);
}

/// out[o, c, k] = sum over n, y of small[n, o, y] large[n, group(o) C + c, y stride - padding + k dilation].
Lowered lower_weight_grad(const LowerCtx& c) {
  Lowered l;
  l.kind = Lowered::Kind::Reduction;
  l.sizes = c.out_sizes();
  const Product p = product_of(c, l.sizes, kGradGroups);
  const bool transposed = c.arg(kTransposed).to_bool();
  const int small = transposed ? 1 : 0, large = 1 - small;
  const std::vector<Expr> small_sizes = c.sizes(small), large_sizes = c.sizes(large);
  l.reduce_sizes = {small_sizes[0]};
  l.reduce_sizes.insert(l.reduce_sizes.end(), small_sizes.begin() + 2, small_sizes.end());
  l.body = [=](BodyOps& s, std::span<const Expr> i, std::span<const Expr> r) {
    Val inside;
    const Index at =
        large_point(s, p.window, r.subspan(1), i.subspan(2), std::span(large_sizes).subspan(2), &inside);
    const bool one = p.groups.is_const(1);
    const Expr group = one ? Expr(0) : sym::floordiv(i[0], sym::floordiv(p.weight[0], p.groups));
    const Val a = s.cast(s.load(small, joined(r[0], i[0], r.subspan(1)), inside), p.dtype);
    const Val b = s.cast(s.load(large, joined(r[0], group * p.weight[1] + i[1], at), inside), p.dtype);
    return std::vector<Val>{s.mul(a, b)};
  };
  return l;
}

/// output_padding with which a transposed convolution gives these sizes.
Sizes padding_to(const ConvolutionWindow& w, IntList small, IntList kernel, IntList large) {
  Sizes out;
  for (int d = 0; d < w.spatial(); ++d)
    out.push_back(large[2 + d] - w.large_size(d, small[2 + d], kernel[2 + d], 0));
  return out;
}

Tensors convolution_gradient(GradCtx& c, const Tensor& g) {
  const TensorSpec &input = c.in_spec(0), &weight = c.in_spec(1);
  const IntList stride = c.arg(kStride).ints(), padding = c.arg(kPadding).ints(),
                dilation = c.arg(kDilation).ints();
  const bool transposed = c.arg(kTransposed).to_bool();
  const SymInt groups = c.arg(kGroups).sym_int();
  Tensors out(3);
  if (c.needs(0))
    out[0] = _convolution_input_grad(g, c.in(1), input.sizes, stride, padding, dilation, transposed, groups);
  if (c.needs(1))
    out[1] =
        _convolution_weight_grad(g, c.in(0), weight.sizes, stride, padding, dilation, transposed, groups);
  if (c.is_tensor(2) && c.needs(2)) {
    Sizes dims{SymInt(0)};
    for (int d = 2; d < g.dim(); ++d) dims.push_back(d);
    out[2] = sum(g, dims);
  }
  return out;
}

/// The convolution that the gradient functions are the transposes of, applied to h.
Tensor forward_again(GradCtx& c, const Tensor& image, const Tensor& weight, IntList result) {
  const bool transposed = c.arg(kTransposed).to_bool();
  const ConvolutionWindow w = window_of(c, image.dim());
  const Sizes more =
      transposed ? padding_to(w, image.sizes(), weight.sizes(), result) : Sizes(w.spatial(), 0);
  return convolution(image, weight, Tensor(), w.stride, w.padding, w.dilation, transposed, more,
                     c.arg(kGradGroups).sym_int());
}

Tensors input_grad_gradient(GradCtx& c, const Tensor& h) {
  const IntList stride = c.arg(kStride).ints(), padding = c.arg(kPadding).ints(),
                dilation = c.arg(kDilation).ints();
  Tensors out(2);
  if (c.needs(0)) out[0] = forward_again(c, h, c.in(1), c.in_spec(0).sizes);
  if (c.needs(1))
    out[1] = _convolution_weight_grad(c.in(0), h, c.in_spec(1).sizes, stride, padding, dilation,
                                      c.arg(kTransposed).to_bool(), c.arg(kGradGroups).sym_int());
  return out;
}

Tensors weight_grad_gradient(GradCtx& c, const Tensor& h) {
  const IntList stride = c.arg(kStride).ints(), padding = c.arg(kPadding).ints(),
                dilation = c.arg(kDilation).ints();
  Tensors out(2);
  if (c.needs(0)) out[0] = forward_again(c, c.in(1), h, c.in_spec(0).sizes);
  if (c.needs(1))
    out[1] = _convolution_input_grad(c.in(0), h, c.in_spec(1).sizes, stride, padding, dilation,
                                     c.arg(kTransposed).to_bool(), c.arg(kGradGroups).sym_int());
  return out;
}

InferResult gradient_rule(const InferCtx& c, int) {
  const TensorSpec& g = c.spec(0);
  FL_CHECK(g.dim() >= 3 && g.dtype == c.spec(1).dtype, RuntimeError,
           "{}: expected operands of one dtype and at least 3 dimensions, got {} and {}", c.op().schema.name,
           name(g.dtype), name(c.spec(1).dtype));
  window_of(c, g.dim());
  TensorSpec out = make_spec(c.ints(2), g.dtype, g.device);
  out.strides = image_strides(out.sizes, g, c.spec(1));
  return {out};
}

// Contiguous, as weights are: the library brings it into that order at less cost than the parameter's update
// would.
InferResult weight_gradient_rule(const InferCtx& c, int) {
  InferResult out = gradient_rule(c, 0);
  out[0].strides = contiguous_strides(out[0].sizes);
  return out;
}

Tensor channels_last(const Tensor& x) { return clone(x, MemoryFormat::ChannelsLast); }

std::vector<Sample> convolution_samples(SampleMaker& m, const Samples& o) {
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  const Value none;
  const auto ones = [](int n) { return Value(Sizes(n, SymInt(1))); };
  const auto zero = [](int n) { return Value(Sizes(n, SymInt(0))); };
  return {
      {{x({2, 3, 6, 5}), x({4, 3, 3, 2}), x({4}), ones(2), zero(2), ones(2), false, zero(2), 1}, "", ""},
      {{x({1, 2, 5, 5}), x({3, 2, 3, 3}), none, Sizes{2, 1}, Sizes{1, 2}, Sizes{1, 2}, false, zero(2), 1},
       "stride, padding, dilation",
       ""},
      {{x({2, 4, 5}), x({6, 2, 3}), x({6}), Sizes{2}, Sizes{1}, ones(1), false, zero(1), 2}, "groups", ""},
      {{x({1, 4, 4, 4}), x({4, 1, 3, 3}), none, ones(2), Sizes{1}, ones(2), false, zero(2), 4},
       "depthwise",
       ""},
      {{x({1, 2, 3, 4, 3}), x({2, 2, 2, 2, 2}), none, ones(3), Sizes{0, 1, 0}, ones(3), false, zero(3), 1},
       "three dimensions",
       ""},
      {{channels_last(x({1, 3, 4, 4})), x({2, 3, 3, 3}), x({2}), ones(2), ones(2), ones(2), false, zero(2),
        1},
       "channels last",
       ""},
      {{x({2, 3, 4}), x({3, 2, 3}), x({2}), Sizes{2}, Sizes{1}, ones(1), true, Sizes{1}, 1},
       "transposed",
       ""},
      {{x({1, 4, 3, 3}), x({4, 1, 2, 3}), none, Sizes{1, 2}, Sizes{0, 1}, Sizes{2, 1}, true, zero(2), 2},
       "transposed, groups",
       ""},
      {{x({0, 3, 4}), x({2, 3, 3}), none, ones(1), zero(1), ones(1), false, zero(1), 1}, "empty batch", ""},
      {{x({1, 3, 4}), x({2, 2, 3}), none, ones(1), zero(1), ones(1), false, zero(1), 1},
       "channels",
       "RuntimeError: expected input[1, 3, 4] to have 2 channels"},
      {{x({1, 3, 2}), x({2, 3, 3}), none, ones(1), zero(1), ones(1), false, zero(1), 1},
       "kernel",
       "RuntimeError: can't be greater than actual input size"}};
}

std::vector<Sample> gradient_samples(SampleMaker& m, const Samples& o, bool by_input) {
  std::vector<Sample> out;
  for (const Sample& s : convolution_samples(m, o)) {
    if (!s.error.empty()) continue;
    const Tensor input = s.args[0].tensor(), weight = s.args[1].tensor();
    const Tensor result = fake_tensor(infer_outputs(convolution.info(), s.args.data())[0]);
    const Tensor g = m.make(result.sizes(), o.low, o.high);
    std::vector<Value> args{g, by_input ? weight : input, by_input ? input.sizes() : weight.sizes()};
    for (const int k : {kStride, kPadding, kDilation, kTransposed, kGroups}) args.push_back(s.args[k]);
    out.push_back({std::move(args), s.note, ""});
  }
  return out;
}

}  // namespace

void define_convolution(OpTable& t) {
  constexpr Tag kTags = Tag::NoInPlace | Tag::ComputeIntensive;
  const auto options = [](samples::MakeSamples make) {
    return samples::custom(make, {.dtypes = dtypes::floats, .low = -1, .high = 1, .tolerance = 1e-4});
  };
  t.define(
      convolution,
      {.doc = "Convolution (as cross-correlation) of images with weights by groups of channels, or its "
              "transpose, plus a bias by channel. Sizes: floor((in + 2 padding - dilation (kernel - 1) - 1) "
              "/ stride) + 1; transposed (in - 1) stride - 2 padding + dilation (kernel - 1) + 1 + "
              "output_padding. The result is channels last if an operand is.",
       .tags = kTags,
       .infer = convolution_rule,
       .lower = lower_convolution,
       .library = LibraryCall::Convolution,
       .saves = saves::in({0, 1}),
       .grad = convolution_gradient,
       .samples = options(convolution_samples)});
  t.define(
      _convolution_input_grad,
      {.doc = "The gradient of `convolution` by its input.",
       .tags = kTags | Tag::NoOut,
       .infer = gradient_rule,
       .lower = lower_input_grad,
       .library = LibraryCall::ConvolutionInput,
       .saves = saves::in({0, 1}),
       .grad = input_grad_gradient,
       .samples = options([](SampleMaker& m, const Samples& o) { return gradient_samples(m, o, true); })});
  t.define(
      _convolution_weight_grad,
      {.doc = "The gradient of `convolution` by its weight.",
       .tags = kTags | Tag::NoOut,
       .infer = weight_gradient_rule,
       .lower = lower_weight_grad,
       .library = LibraryCall::ConvolutionWeight,
       .saves = saves::in({0, 1}),
       .grad = weight_grad_gradient,
       .samples = options([](SampleMaker& m, const Samples& o) { return gradient_samples(m, o, false); })});
}

}  // namespace fl
