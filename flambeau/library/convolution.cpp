#include "flambeau/library/convolution.h"

#include <bit>
#include <optional>

#include "flambeau/base/error.h"
#include "flambeau/base/hash.h"
#include "flambeau/library/convolution_layout.h"
#include "flambeau/library/epilogue.h"
#include "flambeau/library/onednn.h"
#include "flambeau/library/plan_cache.h"

namespace fl::library {
namespace {

using View = ConvolutionOperand;
using Layout = ConvolutionDesc::Layout;
using Strides = ConvolutionDesc::Strides;

// Below this many multiplications a second thread costs more than it brings.
constexpr double kOneThreadWork = 48.0 * 48 * 48;

int64_t product(const ConvolutionDesc& d, const std::array<int64_t, 3>& sizes) {
  int64_t n = 1;
  for (int i = 0; i < d.spatial; ++i) n *= sizes[i];
  return n;
}

/// `d` with settled strides, both images in one layout where they fit one; none where an operand is not
/// dense.
std::optional<ConvolutionDesc> settled(ConvolutionDesc d) {
  const View in = input_of(d), out = output_of(d);
  const bool both_last = in.fits(Layout::ChannelsLast) && out.fits(Layout::ChannelsLast);
  const Layout first = both_last ? Layout::ChannelsLast : Layout::Contiguous;
  const std::initializer_list<Layout> order = {first, Layout::Contiguous, Layout::ChannelsLast};
  if (!settle(in, order, d.input_strides) || !settle(out, order, d.output_strides)) return std::nullopt;
  if (!settle(weight_of(d), {Layout::ChannelsLast, Layout::Contiguous}, d.weight_strides))
    return std::nullopt;
  return d;
}

/// The dense image as {batch, channel, space} or {batch, space, channel}: memory order.
struct ImageBox {
  Box box;
  std::array<int64_t, 4> by_channel{0, 0, 0, 0};

  ImageBox(const View& v) {
    const int64_t channels = v.sizes[1], space = v.sizes[2] * v.sizes[3] * v.sizes[4];
    const bool last = v.fits(Layout::ChannelsLast);
    box.sizes = {v.sizes[0], 1, last ? space : channels, last ? channels : space};
    box.strides = {channels * space, 0, last ? channels : space, 1};
    by_channel[last ? 3 : 2] = 1;
  }
};

/// The written operand is empty, or it is a sum over nothing: result = beta * result + bias.
class EmptyPlan final : public ConvolutionPlan {
 public:
  explicit EmptyPlan(const ConvolutionDesc& desc) : desc_(desc) {}
  int64_t scratch_bytes() const override { return 0; }
  std::string implementation() const override { return "empty"; }
  void run(const ConvolutionData& data, void*) const override {
    if (desc_.pass == ConvolutionPass::BackwardWeights) {
      const int64_t weights = weight_of(desc_).count();
      fill(weights, const_cast<void*>(data.weight), desc_.beta);
      if (desc_.bias) fill(desc_.out_channels, const_cast<void*>(data.bias), 0);
      return;
    }
    const bool forward = desc_.pass == ConvolutionPass::Forward;
    const ImageBox image(forward ? output_of(desc_) : input_of(desc_));
    void* result = const_cast<void*>(forward ? data.output : data.input);
    scale_add_box(desc_.dtype, image.box, result, desc_.beta, image.by_channel,
                  desc_.bias ? data.bias : nullptr);
    if (desc_.relu) relu_box(desc_.dtype, image.box, result);
  }

 private:
  void fill(int64_t count, void* data, float factor) const {
    scale_add_box(desc_.dtype, {{1, 1, 1, count}, {0, 0, 0, 1}}, data, factor, {}, nullptr);
  }
  ConvolutionDesc desc_;
};

class LibraryPlan final : public ConvolutionPlan {
 public:
  LibraryPlan(const ConvolutionDesc& desc, std::unique_ptr<Recipe> recipe, int threads)
      : desc_(desc),
        image_(desc.pass == ConvolutionPass::BackwardData ? input_of(desc) : output_of(desc)),
        recipe_(std::move(recipe)),
        threads_(threads) {}
  int64_t scratch_bytes() const override { return recipe_->scratch_bytes(); }
  std::string implementation() const override { return recipe_->implementation(); }

  void run(const ConvolutionData& data, void* scratch) const override {
    if (usable_threads() != threads_) [[unlikely]]
      return plan_convolution(desc_)->ConvolutionPlan::run(data, thread_workspace());
    void* const pointers[] = {const_cast<void*>(data.input), const_cast<void*>(data.weight),
                              const_cast<void*>(data.bias), const_cast<void*>(data.output)};
    recipe_->run(pointers, scratch);
    if (desc_.relu) relu_box(desc_.dtype, image_.box, pointers[3]);
    if (desc_.bias && desc_.pass == ConvolutionPass::BackwardData)
      scale_add_box(desc_.dtype, image_.box, pointers[0], 1, image_.by_channel, data.bias);
  }

 private:
  ConvolutionDesc desc_;
  ImageBox image_;
  std::unique_ptr<Recipe> recipe_;
  int threads_;
};

void check_sizes(const ConvolutionDesc& d) {
  FL_CHECK(d.spatial >= 1 && d.spatial <= 3, ValueError,
           "a convolution has 1 to 3 spatial dimensions, got {}", d.spatial);
  FL_CHECK(
      d.batch >= 0 && d.in_channels >= 0 && d.out_channels >= 0 && d.groups > 0, ValueError,
      "a convolution's sizes must not be negative and groups must be positive, got batch {}, channels {} to "
      "{}, groups {}",
      d.batch, d.in_channels, d.out_channels, d.groups);
  FL_CHECK(d.in_channels % d.groups == 0 && d.out_channels % d.groups == 0, ValueError,
           "channels {} to {} must be divisible by groups {}", d.in_channels, d.out_channels, d.groups);
  for (int i = 0; i < d.spatial; ++i)
    FL_CHECK(d.input[i] >= 0 && d.kernel[i] > 0 && d.stride[i] > 0 && d.dilation[i] > 0, ValueError,
             "spatial dimension {} expects input >= 0 and positive kernel, stride and dilation, got {}, {}, "
             "{}, {}",
             i, d.input[i], d.kernel[i], d.stride[i], d.dilation[i]);
  FL_CHECK(!d.relu || d.pass == ConvolutionPass::Forward, ValueError,
           "relu belongs to the forward pass only");
}

std::shared_ptr<const ConvolutionPlan> make_plan(const ConvolutionDesc& desc, int threads) {
  check_sizes(desc);
  const std::array<int64_t, 3> out = desc.output();
  if (!available() || desc.dtype == ScalarKind::F64) return nullptr;
  const std::optional<ConvolutionDesc> d = settled(desc);
  if (!d) return nullptr;
  const bool sums_twice = d->bias && d->beta != 0 && d->pass == ConvolutionPass::BackwardWeights;
  if (sums_twice) return nullptr;
  const int64_t outputs = output_of(*d).count(), weights = weight_of(*d).count();
  if (input_of(*d).count() == 0 || weights == 0 || outputs == 0) {
    const bool sums_bias = d->pass == ConvolutionPass::BackwardWeights && d->bias && outputs != 0;
    if (sums_bias) return nullptr;
    return std::make_shared<EmptyPlan>(*d);
  }
  const double work = static_cast<double>(d->batch * product(*d, out)) * weights;
  std::unique_ptr<Recipe> recipe = build_convolution(*d, work <= kOneThreadWork ? 1 : threads);
  if (!recipe) return nullptr;
  return std::make_shared<LibraryPlan>(*d, std::move(recipe), threads);
}

struct PlanKey {
  ConvolutionDesc desc;
  int threads;
  bool operator==(const PlanKey&) const = default;
  uint64_t hash() const { return hash_combine(desc.hash(), threads); }
};

}  // namespace

uint64_t ConvolutionDesc::hash() const {
  uint64_t h = hash_combine(static_cast<uint64_t>(dtype) * 8 + static_cast<uint64_t>(pass),
                            static_cast<uint64_t>(bias) * 2 + relu);
  h = hash_combine(h, std::bit_cast<uint32_t>(beta));
  for (const int64_t v : {int64_t{spatial}, batch, in_channels, out_channels, groups}) h = hash_combine(h, v);
  for (const auto* sizes : {&input, &kernel, &stride, &dilation, &padding_begin, &padding_end})
    for (const int64_t v : *sizes) h = hash_combine(h, v);
  for (const Strides* strides : {&input_strides, &weight_strides, &output_strides})
    for (const int64_t v : *strides) h = hash_combine(h, v);
  return h;
}

std::string ConvolutionDesc::text() const {
  const auto list = [&](const auto& values, int count) {
    return fmt::format("{}", fmt::join(values.begin(), values.begin() + count, "x"));
  };
  const char* names[] = {"forward", "backward data", "backward weights"};
  std::string t = fmt::format(
      "convolution {} {} batch {} channels {} to {} groups {} input {} kernel {} stride {} dilation {} "
      "padding {} and {}, strides input {} weight {} output {}",
      names[static_cast<int>(pass)], scalar_name(dtype), batch, in_channels, out_channels, groups,
      list(input, spatial), list(kernel, spatial), list(stride, spatial), list(dilation, spatial),
      list(padding_begin, spatial), list(padding_end, spatial), list(input_strides, 2 + spatial),
      list(weight_strides, 2 + spatial), list(output_strides, 2 + spatial));
  if (bias) t += " bias";
  if (beta != 0) t += fmt::format(" beta {}", beta);
  if (relu) t += " relu";
  return t;
}

std::array<int64_t, 3> ConvolutionDesc::output() const {
  std::array<int64_t, 3> out{1, 1, 1};
  for (int i = 0; i < spatial; ++i) {
    const int64_t reach = dilation[i] * (kernel[i] - 1) + 1;
    const int64_t padded = input[i] + padding_begin[i] + padding_end[i];
    FL_CHECK(padded >= reach, RuntimeError,
             "padded input of size {} in spatial dimension {} is smaller than the kernel's reach {}", padded,
             i, reach);
    out[i] = (padded - reach) / stride[i] + 1;
  }
  return out;
}

bool ConvolutionDesc::keeps_layout() const {
  bool plain = groups == 1;
  for (int i = 0; i < spatial; ++i) plain = plain && kernel[i] == 1 && stride[i] == 1;
  return plain;
}

ConvolutionDesc::Strides ConvolutionDesc::strides(Layout layout, int64_t second, int spatial,
                                                  const std::array<int64_t, 3>& sizes) {
  Strides s{};
  int64_t step = layout == Layout::ChannelsLast ? second : 1;
  for (int i = spatial - 1; i >= 0; --i) {
    s[2 + i] = step;
    step *= sizes[i];
  }
  s[1] = layout == Layout::ChannelsLast ? 1 : step;
  s[0] = layout == Layout::ChannelsLast ? step : step * second;
  return s;
}

void ConvolutionDesc::set_layout(Layout images, Layout weight) {
  input_strides = strides(images, in_channels, spatial, input);
  output_strides = strides(images, out_channels, spatial, output());
  weight_strides = strides(weight, in_channels / groups, spatial, kernel);
}

std::shared_ptr<const ConvolutionPlan> plan_convolution(const ConvolutionDesc& desc) {
  static auto* const cache = new PlanCache<PlanKey, ConvolutionPlan>;
  const PlanKey key{desc, usable_threads()};
  return cache->find_or_make(key, [&] { return make_plan(desc, key.threads); });
}

bool convolution_supported(const ConvolutionDesc& desc) { return plan_convolution(desc) != nullptr; }

void convolution(const ConvolutionDesc& desc, const ConvolutionData& data) {
  const std::shared_ptr<const ConvolutionPlan> plan = plan_convolution(desc);
  FL_CHECK(plan, NotImplementedError, "the library has no kernel for {}; ask convolution_supported() first",
           desc.text());
  FL_CHECK(!desc.bias || data.bias, ValueError, "{} expects a bias, got a null pointer", desc.text());
  plan->run(data, thread_workspace());
}

}  // namespace fl::library
