#include "flambeau/library/onednn.h"

#if FLAMBEAU_ONEDNN
#include <oneapi/dnnl/dnnl.hpp>

#include "flambeau/library/onednn_types.h"
#endif

namespace fl::library {

#if FLAMBEAU_ONEDNN
namespace {

using dnnl::memory;
enum Pointer { kInput, kWeight, kBias, kOutput };

/// The layout of the images that the kernel itself works in; where the caller's differs, reorders stand
/// around it.
enum class Inner { ChannelsLast, Contiguous, Blocked /* the library's choice */ };

memory::dims sizes_of(std::initializer_list<int64_t> leading, const std::array<int64_t, 3>& space,
                      int spatial) {
  memory::dims sizes(leading);
  sizes.insert(sizes.end(), space.begin(), space.begin() + spatial);
  return sizes;
}

struct Descs {
  memory::desc input, weight, bias, output;
};

Descs given_descs(const ConvolutionDesc& d) {
  const memory::data_type type = library_type(d.dtype);
  const auto strides = [&](const ConvolutionDesc::Strides& s) {
    return memory::dims(s.begin(), s.begin() + 2 + d.spatial);
  };
  Descs descs;
  descs.input = {sizes_of({d.batch, d.in_channels}, d.input, d.spatial), type, strides(d.input_strides)};
  descs.output = {sizes_of({d.batch, d.out_channels}, d.output(), d.spatial), type,
                  strides(d.output_strides)};
  const int64_t out = d.out_channels / d.groups, in = d.in_channels / d.groups;
  memory::dims weight = strides(d.weight_strides);
  if (d.groups == 1) {
    descs.weight = {sizes_of({out, in}, d.kernel, d.spatial), type, weight};
  } else {
    weight.insert(weight.begin(), weight[0] * out);
    descs.weight = {sizes_of({d.groups, out, in}, d.kernel, d.spatial), type, weight};
  }
  if (d.bias) descs.bias = {{d.out_channels}, type, memory::format_tag::a};
  return descs;
}

memory::desc with_any_format(const memory::desc& desc) {
  return {desc.get_dims(), desc.get_data_type(), memory::format_tag::any};
}

/// What the kernel is asked to take: weights always in its own format.
Descs wanted_descs(const ConvolutionDesc& d, const Descs& given, Inner inner) {
  Descs wanted = given;
  wanted.weight = with_any_format(given.weight);
  if (inner == Inner::Blocked) {
    wanted.input = with_any_format(given.input);
    wanted.output = with_any_format(given.output);
  } else {
    const auto layout = inner == Inner::ChannelsLast ? ConvolutionDesc::Layout::ChannelsLast
                                                     : ConvolutionDesc::Layout::Contiguous;
    ConvolutionDesc moved = d;
    moved.set_layout(layout, layout);
    const Descs descs = given_descs(moved);
    wanted.input = descs.input;
    wanted.output = descs.output;
  }
  return wanted;
}

struct Geometry {
  memory::dims stride, dilation, begin, end;
  explicit Geometry(const ConvolutionDesc& d) {
    for (int i = 0; i < d.spatial; ++i) {
      stride.push_back(d.stride[i]);
      dilation.push_back(d.dilation[i] - 1);
      begin.push_back(d.padding_begin[i]);
      end.push_back(d.padding_end[i]);
    }
  }
};

dnnl::primitive_attr user_scratch() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

/// The kernel of the pass for the wanted layouts; empty where there is none but the reference.
dnnl::primitive_desc_base kernel_of(const ConvolutionDesc& d, const Descs& w, float beta) {
  const dnnl::engine engine = library_engine();
  const Geometry g(d);
  const auto algorithm = dnnl::algorithm::convolution_direct;
  dnnl::primitive_attr attributes = user_scratch();
  if (d.pass == ConvolutionPass::Forward && beta != 0) {
    dnnl::post_ops after;
    after.append_sum(beta);
    attributes.set_post_ops(after);
  }
  const bool inference = d.pass == ConvolutionPass::Forward;
  const dnnl::convolution_forward::primitive_desc forward(
      engine, inference ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training, algorithm,
      w.input, w.weight, d.pass == ConvolutionPass::BackwardData ? memory::desc() : w.bias, w.output,
      g.stride, g.dilation, g.begin, g.end, attributes, true);
  if (inference || !forward) return forward;
  if (d.pass == ConvolutionPass::BackwardData)
    return dnnl::convolution_backward_data::primitive_desc(engine, algorithm, w.input, w.weight, w.output,
                                                           g.stride, g.dilation, g.begin, g.end, forward,
                                                           attributes, true);
  return dnnl::convolution_backward_weights::primitive_desc(engine, algorithm, w.input, w.weight, w.bias,
                                                            w.output, g.stride, g.dilation, g.begin, g.end,
                                                            forward, attributes, true);
}

/// An image or weight without groups, dense with its channels first or last.
bool is_plain(const memory::desc& desc, bool channels_last) {
  const memory::dims sizes = desc.get_dims();
  if (sizes.size() > 5) return false;
  std::array<int64_t, 3> space{1, 1, 1};
  std::copy(sizes.begin() + 2, sizes.end(), space.begin());
  const auto layout =
      channels_last ? ConvolutionDesc::Layout::ChannelsLast : ConvolutionDesc::Layout::Contiguous;
  const auto strides = ConvolutionDesc::strides(layout, sizes[1], static_cast<int>(sizes.size()) - 2, space);
  return desc ==
         memory::desc(sizes, desc.get_data_type(),
                      memory::dims(strides.begin(), strides.begin() + static_cast<int>(sizes.size())));
}

/// Adds reorders between the caller's layouts and the kernel's.
class Steps {
 public:
  Steps(Recipe& recipe, int64_t element_bytes) : recipe_(recipe), element_bytes_(element_bytes) {}

  /// The buffer where the kernel finds the operand.
  int read(int pointer, const memory::desc& given, const memory::desc& taken) {
    if (given == taken) return pointer;
    const int buffer = recipe_.add_scratch(taken.get());
    add_reorder(given, pointer, taken, buffer, 0);
    return buffer;
  }
  /// The buffer where the kernel writes the result.
  int write(int pointer, const memory::desc& given, const memory::desc& made, bool direct) {
    return given == made && direct ? pointer : recipe_.add_scratch(made.get());
  }
  void finish(int buffer, const memory::desc& made, int pointer, const memory::desc& given, float beta) {
    if (buffer != pointer) add_reorder(made, buffer, given, pointer, beta);
  }

 private:
  void add_reorder(const memory::desc& from, int from_buffer, const memory::desc& to, int to_buffer,
                   float beta) {
    const bool to_last = is_plain(from, false) && is_plain(to, true);
    const bool from_last = is_plain(from, true) && is_plain(to, false);
    if (beta == 0 && (to_last || from_last)) {
      const memory::dims sizes = from.get_dims();
      const int64_t channels = sizes[1], bytes = element_bytes_;
      int64_t space = 1;
      for (size_t d = 2; d < sizes.size(); ++d) space *= sizes[d];
      return recipe_.add_transpose(from_buffer, to_buffer, sizes[0], to_last ? channels : space,
                                   to_last ? space : channels, bytes);
    }
    const dnnl::engine engine = library_engine();
    dnnl::primitive_attr attributes = user_scratch();
    if (beta != 0) {
      dnnl::post_ops after;
      after.append_sum(beta);
      attributes.set_post_ops(after);
    }
    const dnnl::reorder::primitive_desc reorder(engine, from, engine, to, attributes);
    recipe_.add_step(reorder.get(), {{DNNL_ARG_FROM, from_buffer}, {DNNL_ARG_TO, to_buffer}});
  }
  Recipe& recipe_;
  int64_t element_bytes_;
};

std::unique_ptr<Recipe> assemble(const ConvolutionDesc& d, int threads, const Descs& given, Inner inner) {
  const bool forward = d.pass == ConvolutionPass::Forward;
  const Descs wanted = wanted_descs(d, given, inner);
  // The kernel adds onto the result itself only where it writes to the caller's memory.
  const bool adds_itself = forward && inner != Inner::Blocked && wanted.output == given.output;
  const dnnl::primitive_desc_base kernel = kernel_of(d, wanted, adds_itself ? d.beta : 0);
  if (!kernel || is_reference(kernel)) return nullptr;

  auto recipe = std::make_unique<Recipe>(4, threads);
  Steps steps(*recipe, scalar_bytes(d.dtype));
  const auto taken = [&](int argument) { return kernel.query_md(dnnl::query::exec_arg_md, argument); };
  const bool direct = d.beta == 0 || adds_itself;
  if (forward) {
    const memory::desc made = taken(DNNL_ARG_DST);
    const int in = steps.read(kInput, given.input, taken(DNNL_ARG_SRC));
    const int weight = steps.read(kWeight, given.weight, taken(DNNL_ARG_WEIGHTS));
    const int out = steps.write(kOutput, given.output, made, direct);
    if (d.bias)
      recipe->add_step(
          kernel.get(),
          {{DNNL_ARG_SRC, in}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_BIAS, kBias}, {DNNL_ARG_DST, out}});
    else
      recipe->add_step(kernel.get(), {{DNNL_ARG_SRC, in}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DST, out}});
    steps.finish(out, made, kOutput, given.output, d.beta);
  } else if (d.pass == ConvolutionPass::BackwardData) {
    const memory::desc made = taken(DNNL_ARG_DIFF_SRC);
    const int out = steps.read(kOutput, given.output, taken(DNNL_ARG_DIFF_DST));
    const int weight = steps.read(kWeight, given.weight, taken(DNNL_ARG_WEIGHTS));
    const int in = steps.write(kInput, given.input, made, direct);
    recipe->add_step(kernel.get(),
                     {{DNNL_ARG_DIFF_DST, out}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DIFF_SRC, in}});
    steps.finish(in, made, kInput, given.input, d.beta);
  } else {
    const memory::desc made = taken(DNNL_ARG_DIFF_WEIGHTS);
    const int in = steps.read(kInput, given.input, taken(DNNL_ARG_SRC));
    const int out = steps.read(kOutput, given.output, taken(DNNL_ARG_DIFF_DST));
    const int weight = steps.write(kWeight, given.weight, made, direct);
    if (d.bias)
      recipe->add_step(kernel.get(), {{DNNL_ARG_SRC, in},
                                      {DNNL_ARG_DIFF_DST, out},
                                      {DNNL_ARG_DIFF_WEIGHTS, weight},
                                      {DNNL_ARG_DIFF_BIAS, kBias}});
    else
      recipe->add_step(kernel.get(),
                       {{DNNL_ARG_SRC, in}, {DNNL_ARG_DIFF_DST, out}, {DNNL_ARG_DIFF_WEIGHTS, weight}});
    steps.finish(weight, made, kWeight, given.weight, d.beta);
  }
  return recipe;
}

/// Layouts to try, the fastest first, by measurements with benchmarks/library. Gradients by an input of few
/// channels have direct kernels that leave most of a vector empty.
std::array<Inner, 3> preferred_layouts(const ConvolutionDesc& d) {
  int64_t taps = 1;
  for (int i = 0; i < d.spatial; ++i) taps *= d.kernel[i];
  const bool few_channels = d.groups == 1 && d.in_channels < 16 && taps > 1;
  const bool data_of_few = d.pass == ConvolutionPass::BackwardData && few_channels;
  const bool contiguous = d.keeps_layout() && d.input_strides[1] != 1 && d.output_strides[1] != 1;
  if (data_of_few || contiguous) return {Inner::Contiguous, Inner::ChannelsLast, Inner::Blocked};
  return {Inner::ChannelsLast, Inner::Blocked, Inner::Contiguous};
}

}  // namespace

std::unique_ptr<Recipe> build_convolution(const ConvolutionDesc& d, int threads) {
  ThreadScope scope(threads);
  for (const Inner inner : preferred_layouts(d))
    if (auto recipe = unless_refused([&] { return assemble(d, threads, given_descs(d), inner); }))
      return recipe;
  return nullptr;
}

#else

std::unique_ptr<Recipe> build_convolution(const ConvolutionDesc&, int) { return nullptr; }

#endif

}  // namespace fl::library
