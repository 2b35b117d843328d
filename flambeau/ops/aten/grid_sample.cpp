#include "flambeau/ops/aten/grid_sample.h"

#include "flambeau/ops/aten/cubic_kernel.h"
#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

enum class Interpolation { Linear, Nearest, Cubic };
enum class Outside { Zeros, Border, Reflection };

/// One spatial dimension: positions as numbers of pixels, (N, points).
struct Axis {
  Tensor at;
  SymInt size;
};

/// From [-1, 1] to pixels: the ends are the middles of the corner pixels, or the image's borders.
Tensor in_pixels(const Tensor& x, SymInt size, bool align_corners) {
  const double n = static_cast<double>(size.guard_int());
  if (align_corners) return mul(add(x, 1), (n - 1) / 2);
  return mul(sub(mul(add(x, 1), n), 1), 0.5);
}

/// Mirrored at low and high (twice their values) as often as it takes.
Tensor reflected(const Tensor& x, double twice_low, double twice_high) {
  if (twice_low == twice_high) return mul(x, 0);
  const double low = twice_low / 2, span = (twice_high - twice_low) / 2;
  const Tensor distance = abs(sub(x, low));
  const Tensor flips = floor(div(distance, span));
  const Tensor rest = fmod(distance, span);
  const Tensor even = eq(fmod(flips, 2), 0);
  return where(even, add(rest, low), sub(span + low, rest));
}

Tensor kept_inside(const Tensor& x, SymInt size, Outside outside, bool align_corners) {
  if (outside == Outside::Zeros) return x;
  const double n = static_cast<double>(size.guard_int());
  const Tensor inside = outside == Outside::Border ? x
                        : align_corners            ? reflected(x, 0, 2 * (n - 1))
                                                   : reflected(x, -1, 2 * n - 1);
  return clamp_max(clamp_min(inside, 0), n - 1);
}

/// The elements at whole positions (x last), 0 outside of the image: (N, C, points).
Tensor pixels(const Tensor& flat, const std::vector<Axis>& axes) {
  Tensor position, inside;
  for (const Axis& a : axes) {
    const Tensor here = logical_and(ge(a.at, 0), le(a.at, a.size - SymInt(1)));
    inside = inside.defined() ? logical_and(inside, here) : here;
    const Tensor index = to_dtype(where(here, a.at, 0), DType::Int64);
    position = position.defined() ? add(mul(position, a.size), index) : index;
  }
  const Tensor batch = view(arange_end(flat.sizes()[0], DType::Int64, flat.device()), {-1, 1});
  const Tensor taken = transpose(_index(transpose(flat, 1, 2), std::vector<Tensor>{batch, position}), 1, 2);
  return where(unsqueeze(inside, 1), taken, 0);
}

Tensor linear(const Tensor& flat, const std::vector<Axis>& axes) {
  Tensor out;
  for (int corner = 0; corner < 1 << axes.size(); ++corner) {
    std::vector<Axis> at = axes;
    Tensor weight;
    for (size_t d = 0; d < axes.size(); ++d) {
      const Tensor low = floor(axes[d].at), right = sub(axes[d].at, low);
      const bool upper = corner >> d & 1;
      at[d].at = detach(upper ? add(low, 1) : low);
      const Tensor w = upper ? right : sub(1, right);
      weight = weight.defined() ? mul(weight, w) : w;
    }
    const Tensor part = mul(pixels(flat, at), unsqueeze(weight, 1));
    out = out.defined() ? add(out, part) : part;
  }
  return out;
}

Tensor cubic(const Tensor& flat, const std::vector<Axis>& axes, Outside outside, bool align_corners) {
  const Tensor low_y = floor(axes[0].at), low_x = floor(axes[1].at);
  const std::vector<Tensor> in_y = cubic_weights(sub(axes[0].at, low_y)),
                            in_x = cubic_weights(sub(axes[1].at, low_x));
  Tensor out;
  for (int y = 0; y < 4; ++y) {
    Tensor row;
    for (int x = 0; x < 4; ++x) {
      const auto tap = [&](const Tensor& low, int k, SymInt size) {
        return Axis{detach(kept_inside(add(low, k - 1), size, outside, align_corners)), size};
      };
      const Tensor part = mul(pixels(flat, {tap(low_y, y, axes[0].size), tap(low_x, x, axes[1].size)}),
                              unsqueeze(in_x[x], 1));
      row = row.defined() ? add(row, part) : part;
    }
    row = mul(row, unsqueeze(in_y[y], 1));
    out = out.defined() ? add(out, row) : row;
  }
  return out;
}

void check_call(const Tensor& input, const Tensor& grid, int64_t interpolation, int spatial,
                std::string_view op) {
  FL_CHECK(
      input.dim() == spatial + 2 && grid.dim() == spatial + 2, RuntimeError,
      "{}(): expected {}D input and grid with same number of dimensions, but got input with sizes {} and "
      "grid with sizes {}",
      op, spatial + 2, to_string(input.sizes()), to_string(grid.sizes()));
  FL_CHECK(input.sizes()[0] == grid.sizes()[0], RuntimeError,
           "{}(): expected grid and input to have same batch size, but got input with sizes {} and grid with "
           "sizes {}",
           op, to_string(input.sizes()), to_string(grid.sizes()));
  FL_CHECK(grid.size(-1) == SymInt(spatial), RuntimeError,
           "{}(): expected grid to have size {} in last dimension, but got grid with sizes {}", op, spatial,
           to_string(grid.sizes()));
  for (int d = 2; d < input.dim(); ++d)
    FL_CHECK(
        input.sizes()[d] > SymInt(0), RuntimeError,
        "{}(): expected input to have non-empty spatial dimensions, but input has sizes {} with dimension "
        "{} being empty",
        op, to_string(input.sizes()), d);
  FL_CHECK(interpolation >= 0 && interpolation <= (spatial == 2 ? 2 : 1), RuntimeError,
           "{}(): bicubic interpolation only supports 4D input, got mode {} for {}D", op, interpolation,
           input.dim());
  check_dtype(op, input.dtype(), Takes::Floating);
  FL_CHECK(input.dtype() == grid.dtype(), RuntimeError,
           "{}(): expected input and grid to have the same dtype, but input has {} and grid has {}", op,
           name(input.dtype()), name(grid.dtype()));
}

Tensor sampled(const Tensor& input, const Tensor& grid, int64_t interpolation, int64_t padding,
               bool align_corners, int spatial, std::string_view op) {
  check_call(input, grid, interpolation, spatial, op);
  const auto outside = static_cast<Outside>(padding);
  const auto how = static_cast<Interpolation>(interpolation);
  const Tensor flat = to_compute(flatten(input, 2, -1));
  const Tensor points = to_compute(flatten(grid, 1, -2));
  std::vector<Axis> axes;
  for (int d = 0; d < spatial; ++d) {
    const SymInt size = input.sizes()[2 + d];
    const Tensor at = in_pixels(select(points, 2, spatial - 1 - d), size, align_corners);
    axes.push_back({how == Interpolation::Cubic ? at : kept_inside(at, size, outside, align_corners), size});
  }
  Tensor out;
  if (how == Interpolation::Linear) {
    out = linear(flat, axes);
  } else if (how == Interpolation::Cubic) {
    out = cubic(flat, axes, outside, align_corners);
  } else {
    for (Axis& a : axes) a.at = round(a.at);
    out = pixels(flat, axes);
  }
  Sizes sizes{input.sizes()[0], input.sizes()[1]};
  for (int d = 1; d <= spatial; ++d) sizes.push_back(grid.sizes()[d]);
  return to_dtype(contiguous(reshape(out, sizes)), input.dtype());
}

/// The definition of `op`; dims: 2 or 3 spatial dimensions, 0: as many as the input has.
template <const auto& op, int dims>
Tensor sampled_by(Tensor input, Tensor grid, int64_t mode, int64_t padding, bool corners) {
  const int spatial = dims ? dims : input.dim() == 5 ? 3 : 2;
  return sampled(input, grid, mode, padding, corners, spatial, name_of(op));
}

std::vector<Sample> sampling_samples(SampleMaker& m, const Samples& o, bool cubic_too) {
  std::vector<Sample> out;
  const auto image = [&] {
    return cubic_too ? m.make({2, 3, 4, 5}, o.low, o.high) : m.make({2, 1, 3, 4, 2}, o.low, o.high);
  };
  const auto grid = [&] {
    return cubic_too ? m.make({2, 3, 2, 2}, -1.3, 1.3) : m.make({2, 2, 3, 2, 3}, -1.3, 1.3);
  };
  for (int mode = 0; mode < (cubic_too ? 3 : 2); ++mode)
    for (int padding = 0; padding < 3; ++padding)
      for (const bool corners : {false, true})
        out.push_back({{image(), grid(), mode, padding, corners}, "", ""});
  out.push_back(
      {{image(), m.make({1, 2}, -1, 1), 0, 0, false}, "rank", "RuntimeError: same number of dimensions"});
  return out;
}

}  // namespace

void define_grid_sample(OpTable& t) {
  constexpr Tag kTags = Tag::NoInPlace | Tag::NoOut;
  constexpr const char* kDoc =
      "The input (N, C, ...) at the positions of a grid (N, ..., x y [z]) that counts from -1 at one end to "
      "1 at the other.";
  // Finite differences mean nothing where a position crosses a pixel's border.
  const auto options = [](samples::MakeSamples make) {
    return samples::custom(make, {.dtypes = dtypes::full_floats, .tolerance = 1e-4, .gradient = false});
  };
  const Samples plane =
      options([](SampleMaker& m, const Samples& o) { return sampling_samples(m, o, true); });
  const Samples space =
      options([](SampleMaker& m, const Samples& o) { return sampling_samples(m, o, false); });
  t.define(grid_sampler_2d,
           {.doc = kDoc, .tags = kTags, .decompose = sampled_by<grid_sampler_2d, 2>, .samples = plane});
  t.define(grid_sampler_3d,
           {.doc = kDoc, .tags = kTags, .decompose = sampled_by<grid_sampler_3d, 3>, .samples = space});
  t.define(grid_sampler,
           {.doc = kDoc, .tags = kTags, .decompose = sampled_by<grid_sampler, 0>, .samples = plane});
}

}  // namespace fl
