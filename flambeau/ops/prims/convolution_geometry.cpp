#include "flambeau/ops/prims/convolution_geometry.h"

namespace fl {

SymInt ConvolutionWindow::small_size(int d, SymInt large, SymInt kernel) const {
  const SymInt padded = large + padding[d] * SymInt(2),
               reach = dilation[d] * (kernel - SymInt(1)) + SymInt(1);
  FL_CHECK(
      padded >= reach, RuntimeError,
      "Calculated padded input size per channel: ({}). Kernel size: ({}). Kernel size can't be greater than "
      "actual input size",
      padded, reach);
  return (padded - reach) / stride[d] + SymInt(1);
}
SymInt ConvolutionWindow::large_size(int d, SymInt small, SymInt kernel, SymInt more) const {
  return (small - SymInt(1)) * stride[d] - padding[d] * SymInt(2) + dilation[d] * (kernel - SymInt(1)) +
         SymInt(1) + more;
}

Sizes spatial_list(const Value& list, int spatial, const char* what) {
  const IntList given = list.ints();
  FL_CHECK(given.size() == 1 || static_cast<int>(given.size()) == spatial, RuntimeError,
           "expected {} to be a single integer value or a list of {} values to match the convolution "
           "dimensions, but got {}={}",
           what, spatial, what, to_string(given));
  if (given.size() == 1) return Sizes(spatial, given[0]);
  return {given.begin(), given.end()};
}

ConvolutionWindow convolution_window(const Value& stride, const Value& padding, const Value& dilation,
                                     int spatial) {
  ConvolutionWindow w{spatial_list(stride, spatial, "stride"), spatial_list(padding, spatial, "padding"),
                      spatial_list(dilation, spatial, "dilation")};
  for (int d = 0; d < spatial; ++d) {
    FL_CHECK(w.stride[d] > SymInt(0), RuntimeError, "non-positive stride is not supported: {}",
             to_string(w.stride));
    FL_CHECK(w.padding[d] >= SymInt(0), RuntimeError, "negative padding is not supported: {}",
             to_string(w.padding));
    FL_CHECK(w.dilation[d] > SymInt(0), RuntimeError, "dilation should be greater than zero: {}",
             to_string(w.dilation));
  }
  return w;
}

namespace {
MemoryFormat channels_last_of(int rank) {
  return rank == 5 ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast;
}
}  // namespace

bool is_channels_last(const TensorSpec& s) {
  return (s.dim() == 4 || s.dim() == 5) && !is_contiguous(s) && is_contiguous(s, channels_last_of(s.dim()));
}

Sizes image_strides(IntList sizes, const TensorSpec& a, const TensorSpec& b) {
  if (!is_channels_last(a) && !is_channels_last(b)) return contiguous_strides(sizes);
  return strides_for(sizes, channels_last_of(static_cast<int>(sizes.size())));
}

namespace {
Val both(ScalarOps& s, Val a, Val b) { return a.id < 0 ? b : s.bit_and(a, b); }
Val between(ScalarOps& s, const Expr& at, const Expr& size) {
  const Val v = s.index(at);
  return s.bit_and(s.le(s.constant(DType::Int64, 0), v), s.lt(v, s.index(size)));
}
}  // namespace

Index large_point(ScalarOps& s, const ConvolutionWindow& w, std::span<const Expr> small,
                  std::span<const Expr> kernel, std::span<const Expr> large_sizes, Val* inside) {
  Index out;
  for (int d = 0; d < w.spatial(); ++d) {
    out.push_back(small[d] * w.stride[d].expr() - w.padding[d].expr() + kernel[d] * w.dilation[d].expr());
    // Without padding the window of every point lies inside.
    if (!w.padding[d].same_as(0)) *inside = both(s, *inside, between(s, out[d], large_sizes[d]));
  }
  return out;
}

Index small_point(ScalarOps& s, const ConvolutionWindow& w, std::span<const Expr> large,
                  std::span<const Expr> kernel, std::span<const Expr> small_sizes, Val* inside) {
  Index out;
  for (int d = 0; d < w.spatial(); ++d) {
    const Expr at = large[d] + w.padding[d].expr() - kernel[d] * w.dilation[d].expr();
    if (w.stride[d].same_as(1)) {
      out.push_back(at);
    } else {
      const Expr stride = w.stride[d].expr();
      out.push_back(sym::floordiv(at, stride));
      const Val on_step = s.eq(s.index(sym::mod(at, stride)), s.constant(DType::Int64, 0));
      *inside = both(s, *inside, on_step);
    }
    *inside = both(s, *inside, between(s, out[d], small_sizes[d]));
  }
  return out;
}

}  // namespace fl
