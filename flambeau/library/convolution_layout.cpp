#include "flambeau/library/convolution_layout.h"

namespace fl::library {
namespace {

using Layout = ConvolutionDesc::Layout;
using Strides = ConvolutionDesc::Strides;

ConvolutionOperand operand(int64_t first, int64_t second, int spatial, const std::array<int64_t, 3>& space,
                           const Strides& strides) {
  ConvolutionOperand o;
  o.rank = 2 + spatial;
  o.sizes[0] = first;
  o.sizes[1] = second;
  for (int i = 0; i < spatial; ++i) o.sizes[2 + i] = space[i];
  for (int i = 0; i < o.rank; ++i) o.strides[i] = strides[i];
  return o;
}

}  // namespace

Strides ConvolutionOperand::strides_of(Layout layout) const {
  return ConvolutionDesc::strides(layout, sizes[1], rank - 2, {sizes[2], sizes[3], sizes[4]});
}

bool ConvolutionOperand::fits(Layout layout) const {
  const Strides wanted = strides_of(layout);
  for (int i = 0; i < rank; ++i)
    if (sizes[i] != 1 && strides[i] != wanted[i]) return false;
  return true;
}

int64_t ConvolutionOperand::count() const {
  int64_t n = 1;
  for (int i = 0; i < rank; ++i) n *= sizes[i];
  return n;
}

ConvolutionOperand input_of(const ConvolutionDesc& d) {
  return operand(d.batch, d.in_channels, d.spatial, d.input, d.input_strides);
}
ConvolutionOperand output_of(const ConvolutionDesc& d) {
  return operand(d.batch, d.out_channels, d.spatial, d.output(), d.output_strides);
}
ConvolutionOperand weight_of(const ConvolutionDesc& d) {
  return operand(d.out_channels, d.in_channels / d.groups, d.spatial, d.kernel, d.weight_strides);
}

bool settle(const ConvolutionOperand& operand, std::initializer_list<Layout> order, Strides& strides) {
  for (const Layout layout : order) {
    if (!operand.fits(layout)) continue;
    strides = operand.strides_of(layout);
    return true;
  }
  return false;
}

}  // namespace fl::library
