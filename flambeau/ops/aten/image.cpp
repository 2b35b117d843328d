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
  if (factor == 1) return clone(self);
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
  if (factor == 1) return clone(self);
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

}  // namespace

void define_image(OpTable& t) {
  t.define(pixel_shuffle,
           {.doc = "(C r^2, H, W) as (C, H r, W r).",
            .tags = Tag::NoInPlace,
            .decompose = shuffled,
            .samples = samples::of([](SampleMaker& m, const Samples& o) {
              return std::vector<Sample>{
                  {{m.make({2, 8, 3, 2}, o.low, o.high), 2}, "", ""},
                  {{m.make({3, 3, 2}, o.low, o.high), 2}, "channels", "RuntimeError: divisible"}};
            })});
  t.define(pixel_unshuffle,
           {.doc = "(C, H r, W r) as (C r^2, H, W).",
            .tags = Tag::NoInPlace,
            .decompose = unshuffled,
            .samples = samples::of([](SampleMaker& m, const Samples& o) {
              return std::vector<Sample>{
                  {{m.make({2, 3, 4, 6}, o.low, o.high), 2}, "", ""},
                  {{m.make({2, 3, 4}, o.low, o.high), 2}, "height", "RuntimeError: divisible"}};
            })});
  t.define(channel_shuffle,
           {.doc = "Channels dealt out among groups: (groups, C / groups) transposed.",
            .tags = Tag::NoInPlace,
            .decompose = channels_shuffled,
            .samples = samples::of([](SampleMaker& m, const Samples& o) {
              return std::vector<Sample>{
                  {{m.make({2, 6, 3}, o.low, o.high), 2}, "", ""},
                  {{m.make({2, 6, 3}, o.low, o.high), 4}, "groups", "RuntimeError: divisible"}};
            })});
}

}  // namespace fl
