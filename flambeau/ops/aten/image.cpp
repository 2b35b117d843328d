#include "flambeau/ops/aten/image.h"

#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

Tensor shuffled(Tensor self, int64_t factor) {
  FL_CHECK(self.dim() >= 3, RuntimeError,
           "pixel_shuffle expects input to have at least 3 dimensions, but got input with {} dimension(s)",
           self.dim());
  FL_CHECK(factor > 0, RuntimeError, "pixel_shuffle expects a positive upscale_factor, but got {}", factor);
  const SymInt r = factor, channels = self.size(-3), height = self.size(-2), width = self.size(-1);
  FL_CHECK(channels % (r * r) == SymInt(0), RuntimeError,
           "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
           "upscale_factor, but input.size(-3)={} is not divisible by {}",
           channels, r * r);
  Sizes split(self.sizes().begin(), self.sizes().end() - 3), order, joined = split;
  const int n = static_cast<int>(split.size());
  for (int d = 0; d < n; ++d) order.push_back(d);
  split.insert(split.end(), {channels / (r * r), r, r, height, width});
  for (const int d : {0, 3, 1, 4, 2}) order.push_back(n + d);
  joined.insert(joined.end(), {channels / (r * r), height * r, width * r});
  return reshape(permute(reshape(self, split), order), joined);
}

Tensor unshuffled(Tensor self, int64_t factor) {
  FL_CHECK(self.dim() >= 3, RuntimeError,
           "pixel_unshuffle expects input to have at least 3 dimensions, but got input with {} dimension(s)",
           self.dim());
  FL_CHECK(factor > 0, RuntimeError, "pixel_unshuffle expects a positive downscale_factor, but got {}",
           factor);
  const SymInt r = factor, channels = self.size(-3), height = self.size(-2), width = self.size(-1);
  FL_CHECK(height % r == SymInt(0) && width % r == SymInt(0), RuntimeError,
           "pixel_unshuffle expects height and width to be divisible by downscale_factor, but {} and {} are "
           "not divisible by {}",
           height, width, r);
  Sizes split(self.sizes().begin(), self.sizes().end() - 3), order, joined = split;
  const int n = static_cast<int>(split.size());
  for (int d = 0; d < n; ++d) order.push_back(d);
  split.insert(split.end(), {channels, height / r, r, width / r, r});
  for (const int d : {0, 2, 4, 1, 3}) order.push_back(n + d);
  joined.insert(joined.end(), {channels * r * r, height / r, width / r});
  return reshape(permute(reshape(self, split), order), joined);
}

Tensor channels_shuffled(Tensor self, SymInt groups) {
  FL_CHECK(self.dim() > 2, RuntimeError,
           "channel_shuffle expects input with > 2 dims, but got input with sizes {}",
           to_string(self.sizes()));
  const SymInt channels = self.sizes()[1];
  FL_CHECK(groups > SymInt(0) && channels % groups == SymInt(0), RuntimeError,
           "Number of channels must be divisible by groups. Got {} channels and {} groups.", channels,
           groups);
  const Tensor split = unflatten(self, 1, {groups, channels / groups});
  return reshape(transpose(split, 1, 2), self.sizes());
}

/// How far apart the input positions of neighbouring output positions lie.
double step(SymInt in, SymInt out, const std::optional<double>& scale) {
  if (scale && *scale > 0) return 1 / *scale;
  return static_cast<double>(in.guard_int()) / static_cast<double>(out.guard_int());
}

/// floor(y step), at most the last position. Exact where no factor is given.
Tensor nearest_positions(SymInt in, SymInt out, const std::optional<double>& scale, Device device) {
  const Tensor y = arange_end(out, DType::Int64, device);
  if (!scale) return clamp_max(floor_divide(mul(y, in), out), in - SymInt(1));
  const Tensor at = mul(to_dtype(y, DType::Float32), step(in, out, scale));
  return clamp_max(to_dtype(floor(at), DType::Int64), in - SymInt(1));
}

void check_image(const Tensor& self, int rank, IntList size, const char* op) {
  FL_CHECK(self.dim() == rank, RuntimeError, "{}: It is expected input_size equals to {}, but got size {}",
           op, rank, self.dim());
  FL_CHECK(static_cast<int>(size.size()) == rank - 2, RuntimeError,
           "It is expected output_size equals to {}, but got size {}", rank - 2, size.size());
  for (const SymInt s : size)
    FL_CHECK(s > SymInt(0), RuntimeError,
             "Input and output sizes should be greater than 0, but got output {}", to_string(size));
}

Tensor kept_layout(const Tensor& out, const Tensor& like) {
  const bool last =
      like.dim() == 4 && !like.is_contiguous() && like.is_contiguous(MemoryFormat::ChannelsLast);
  return last ? contiguous(out, MemoryFormat::ChannelsLast) : out;
}

Tensor nearest_2d(Tensor self, IntList size, std::optional<double> scale_h, std::optional<double> scale_w) {
  check_image(self, 4, size, "upsample_nearest2d");
  const Tensor rows = nearest_positions(self.size(2), size[0], scale_h, self.device());
  const Tensor columns = nearest_positions(self.size(3), size[1], scale_w, self.device());
  const Tensor none;
  return kept_layout(_index(self, std::vector<Tensor>{none, none, unsqueeze(rows, 1), columns}), self);
}

/// Two positions along a dimension and the weight of the second.
struct Between {
  Tensor low, high, weight;
};
Between linear_positions(SymInt in, SymInt out, bool align_corners, const std::optional<double>& scale,
                         const Tensor& like) {
  const DType dtype = compute_dtype(like.dtype());
  const Tensor y = to_dtype(arange_end(out, DType::Int64, like.device()), dtype);
  Tensor at;
  if (align_corners) {
    const int64_t n = out.guard_int();
    at = mul(y, n > 1 ? static_cast<double>(in.guard_int() - 1) / static_cast<double>(n - 1) : 0.0);
  } else {
    at = clamp_min(sub(mul(add(y, 0.5), step(in, out, scale)), 0.5), 0);
  }
  const Tensor low = clamp_max(to_dtype(floor(at), DType::Int64), in - SymInt(1));
  return {low, clamp_max(add(low, 1), in - SymInt(1)), clamp_max(clamp_min(sub(at, low), 0), 1)};
}

Tensor bilinear_2d(Tensor self, IntList size, bool align_corners, std::optional<double> scale_h,
                   std::optional<double> scale_w) {
  check_image(self, 4, size, "upsample_bilinear2d");
  FL_CHECK(is_floating(self.dtype()), NotImplementedError,
           "\"upsample_bilinear2d\" not implemented for {} tensors", name(self.dtype()));
  const Between h = linear_positions(self.size(2), size[0], align_corners, scale_h, self);
  const Between w = linear_positions(self.size(3), size[1], align_corners, scale_w, self);
  const Tensor none;
  const auto at = [&](const Tensor& rows, const Tensor& columns) {
    return to_compute(_index(self, std::vector<Tensor>{none, none, unsqueeze(rows, 1), columns}));
  };
  const Tensor down = unsqueeze(h.weight, 1), right = w.weight, up = sub(1, down), left = sub(1, right);
  const Tensor top = add(mul(at(h.low, w.low), left), mul(at(h.low, w.high), right));
  const Tensor bottom = add(mul(at(h.high, w.low), left), mul(at(h.high, w.high), right));
  return kept_layout(to_dtype(add(mul(top, up), mul(bottom, down)), self.dtype()), self);
}

void define_shuffles(OpTable& t) {
  const auto options = [](samples::MakeSamples make) {
    return samples::custom(make, {.dtypes = dtypes::all});
  };
  t.define(pixel_shuffle,
           {.doc = "(C r^2, H, W) as (C, H r, W r).",
            .tags = Tag::NoInPlace,
            .decompose = shuffled,
            .samples = options([](SampleMaker& m, const Samples& o) {
              return std::vector<Sample>{
                  {{m.make({2, 8, 3, 2}, o.low, o.high), 2}, "", ""},
                  {{m.make({3, 3, 2}, o.low, o.high), 2}, "channels", "RuntimeError: divisible"}};
            })});
  t.define(pixel_unshuffle,
           {.doc = "(C, H r, W r) as (C r^2, H, W).",
            .tags = Tag::NoInPlace,
            .decompose = unshuffled,
            .samples = options([](SampleMaker& m, const Samples& o) {
              return std::vector<Sample>{
                  {{m.make({2, 3, 4, 6}, o.low, o.high), 2}, "", ""},
                  {{m.make({2, 3, 4}, o.low, o.high), 2}, "height", "RuntimeError: divisible"}};
            })});
  t.define(channel_shuffle,
           {.doc = "Channels dealt out among groups: (groups, C / groups) transposed.",
            .tags = Tag::NoInPlace,
            .decompose = channels_shuffled,
            .samples = options([](SampleMaker& m, const Samples& o) {
              return std::vector<Sample>{
                  {{m.make({2, 6, 3}, o.low, o.high), 2}, "", ""},
                  {{m.make({2, 6, 3}, o.low, o.high), 4}, "groups", "RuntimeError: divisible"}};
            })});
}

void define_resolutions(OpTable& t) {
  constexpr Tag kTags = Tag::NoInPlace | Tag::NoOut;
  t.define(
      upsample_nearest1d,
      {.doc = "Each output position takes the input position below it.",
       .tags = kTags,
       .decompose =
           [](Tensor self, IntList size, std::optional<double> scale) {
             check_image(self, 3, size, "upsample_nearest1d");
             return index_select(self, 2, nearest_positions(self.size(2), size[0], scale, self.device()));
           },
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             return std::vector<Sample>{{{m.make({1, 2, 3}, o.low, o.high), Sizes{7}}, "", ""},
                                        {{m.make({1, 2, 3}, o.low, o.high), Sizes{6}, 2.0}, "scale", ""}};
           },
           {.dtypes = dtypes::floats})});
  t.define(upsample_nearest2d,
           {.doc = "Each output position takes the input position below it, along both dimensions.",
            .tags = kTags,
            .decompose = nearest_2d,
            .samples = samples::custom(
                [](SampleMaker& m, const Samples& o) {
                  return std::vector<Sample>{
                      {{m.make({1, 2, 3, 4}, o.low, o.high), Sizes{6, 9}}, "", ""},
                      {{m.make({1, 2, 5, 4}, o.low, o.high), Sizes{3, 4}}, "smaller", ""},
                      {{m.make({1, 2, 3, 4}, o.low, o.high), Sizes{6, 8}, 2.0, 2.0}, "scale", ""},
                      {{m.make({2, 3}, o.low, o.high), Sizes{6, 9}}, "rank", "RuntimeError: equals to 4"}};
                },
                {.dtypes = dtypes::floats})});
  t.define(
      upsample_bilinear2d,
      {.doc = "Linear interpolation along both dimensions; align_corners puts the corners on each other.",
       .tags = kTags,
       .decompose = bilinear_2d,
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             return std::vector<Sample>{
                 {{m.make({1, 2, 3, 4}, o.low, o.high), Sizes{6, 9}, false}, "", ""},
                 {{m.make({1, 2, 3, 4}, o.low, o.high), Sizes{5, 7}, true}, "corners", ""},
                 {{m.make({1, 2, 5, 4}, o.low, o.high), Sizes{3, 2}, false}, "smaller", ""},
                 {{m.make({1, 2, 3, 4}, o.low, o.high), Sizes{6, 8}, false, 2.0, 2.0}, "scale", ""}};
           },
           {.dtypes = dtypes::floats, .tolerance = 1e-4})});
}

}  // namespace

void define_image(OpTable& t) {
  define_shuffles(t);
  define_resolutions(t);
}

}  // namespace fl
