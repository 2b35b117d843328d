// Discrete Fourier transforms of any length over any dimensions of strided arrays, through pocketfft.
#pragma once
#include <complex>
#include <cstdint>
#include <vector>

namespace fl::library {

/// False where the header was not there when this was compiled; then every transform raises
/// NotImplementedError.
bool fft_available();

/// Sizes, strides in elements, and the dimensions that are transformed. Of the real transforms `sizes` are
/// the real array's, and the last of `axes` is the one that is halved on the complex side.
struct FftDesc {
  std::vector<int64_t> sizes;
  std::vector<int64_t> in_strides, out_strides;
  std::vector<int64_t> axes;
  double factor = 1;
};

/// In parallel over a dimension that is not transformed, where there is one. R is float or double.
template <class R>
void fft_complex(const FftDesc& d, bool forward, const std::complex<R>* in, std::complex<R>* out);
/// Forward.
template <class R>
void fft_from_real(const FftDesc& d, const R* in, std::complex<R>* out);
/// Backward.
template <class R>
void fft_to_real(const FftDesc& d, const std::complex<R>* in, R* out);

}  // namespace fl::library
