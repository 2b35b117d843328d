// Fourier transforms.
#include <cmath>

#include "flambeau/library/fft/transform.h"
#include "flambeau/runtime/routine.h"

namespace fl::runtime {
namespace {

/// The transform between these layouts; the real side counts the elements.
library::FftDesc desc_of(const CallArguments& call, int self, const OperandLayout& counted) {
  const OperandLayout &in = call.operands[self], &out = call.result(0);
  library::FftDesc d{counted.sizes, in.strides, out.strides, {}, 1};
  double elements = 1;
  for (const SymInt axis : call.find("dim")->ints()) {
    d.axes.push_back(wrap_dim(axis.expect_int(), static_cast<int64_t>(in.sizes.size())));
    elements *= static_cast<double>(counted.sizes[d.axes.back()]);
  }
  const int64_t normalization = call.integer("normalization", 0);
  d.factor = normalization == 0 ? 1 : normalization == 1 ? 1 / std::sqrt(elements) : 1 / elements;
  return d;
}

/// f.operator()<R>(in, out) for the real type of `dtype`.
template <class F>
PreparedCall in_real_type(DType dtype, int self, F f) {
  if (real_dtype(dtype) == DType::Float64)
    return [f, self](void* const* operands, void* const* results) {
      f.template operator()<double>(operands[self], results[0]);
    };
  return [f, self](void* const* operands, void* const* results) {
    f.template operator()<float>(operands[self], results[0]);
  };
}

PreparedCall prepare_complex(const CallArguments& call) {
  const int self = call.required_operand("self");
  const library::FftDesc d = desc_of(call, self, call.result(0));
  return in_real_type(call.result(0).dtype, self,
                      [d, forward = call.flag("forward", true)]<class R>(const void* in, void* out) {
                        using C = std::complex<R>;
                        library::fft_complex<R>(d, forward, static_cast<const C*>(in), static_cast<C*>(out));
                      });
}

PreparedCall prepare_from_real(const CallArguments& call) {
  const int self = call.required_operand("self");
  const library::FftDesc d = desc_of(call, self, call.operands[self]);
  return in_real_type(call.result(0).dtype, self, [d]<class R>(const void* in, void* out) {
    library::fft_from_real<R>(d, static_cast<const R*>(in), static_cast<std::complex<R>*>(out));
  });
}

PreparedCall prepare_to_real(const CallArguments& call) {
  const int self = call.required_operand("self");
  const library::FftDesc d = desc_of(call, self, call.result(0));
  return in_real_type(call.result(0).dtype, self, [d]<class R>(const void* in, void* out) {
    library::fft_to_real<R>(d, static_cast<const std::complex<R>*>(in), static_cast<R*>(out));
  });
}

}  // namespace

std::span<const NamedRoutine> fft_routines() {
  static constexpr NamedRoutine kTable[] = {
      {"_fft_c2c", prepare_complex},
      {"_fft_r2c", prepare_from_real},
      {"_fft_c2r", prepare_to_real},
  };
  return kTable;
}

}  // namespace fl::runtime
