#include "flambeau/library/fft/transform.h"

#include <algorithm>

#include "flambeau/base/error.h"
#include "flambeau/base/parallel.h"

#ifdef FLAMBEAU_POCKETFFT
#define POCKETFFT_NO_MULTITHREADING
#define POCKETFFT_CACHE_SIZE 16
#include <pocketfft.hpp>
#endif

namespace fl::library {

#ifdef FLAMBEAU_POCKETFFT

bool fft_available() { return true; }

namespace {

/// f(sizes, offset of in, offset of out) for pieces of the largest dimension that is not transformed.
template <class F>
void in_pieces(const FftDesc& d, F f) {
  constexpr int64_t kPieceElements = 1 << 14;
  int64_t split = -1, elements = 1;
  for (size_t k = 0; k < d.sizes.size(); ++k) {
    elements *= d.sizes[k];
    const auto at = static_cast<int64_t>(k);
    if (std::ranges::find(d.axes, at) == d.axes.end() && (split < 0 || d.sizes[k] > d.sizes[split]))
      split = at;
  }
  if (elements == 0) return;
  pocketfft::shape_t sizes(d.sizes.begin(), d.sizes.end());
  if (split < 0) return f(sizes, 0, 0);
  const int64_t rows = d.sizes[split];
  const int64_t grain = std::max<int64_t>(1, kPieceElements * rows / elements);
  parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    pocketfft::shape_t piece = sizes;
    piece[split] = static_cast<size_t>(end - begin);
    f(piece, begin * d.in_strides[split], begin * d.out_strides[split]);
  });
}

pocketfft::stride_t in_bytes(const std::vector<int64_t>& strides, size_t element) {
  pocketfft::stride_t out;
  for (const int64_t s : strides) out.push_back(static_cast<ptrdiff_t>(s * static_cast<int64_t>(element)));
  return out;
}
pocketfft::shape_t axes_of(const FftDesc& d) { return {d.axes.begin(), d.axes.end()}; }

}  // namespace

template <class R>
void fft_complex(const FftDesc& d, bool forward, const std::complex<R>* in, std::complex<R>* out) {
  using C = std::complex<R>;
  in_pieces(d, [&](const pocketfft::shape_t& sizes, int64_t from, int64_t to) {
    pocketfft::c2c(sizes, in_bytes(d.in_strides, sizeof(C)), in_bytes(d.out_strides, sizeof(C)), axes_of(d),
                   forward, in + from, out + to, static_cast<R>(d.factor));
  });
}

template <class R>
void fft_from_real(const FftDesc& d, const R* in, std::complex<R>* out) {
  in_pieces(d, [&](const pocketfft::shape_t& sizes, int64_t from, int64_t to) {
    pocketfft::r2c(sizes, in_bytes(d.in_strides, sizeof(R)), in_bytes(d.out_strides, sizeof(std::complex<R>)),
                   axes_of(d), pocketfft::FORWARD, in + from, out + to, static_cast<R>(d.factor));
  });
}

template <class R>
void fft_to_real(const FftDesc& d, const std::complex<R>* in, R* out) {
  in_pieces(d, [&](const pocketfft::shape_t& sizes, int64_t from, int64_t to) {
    pocketfft::c2r(sizes, in_bytes(d.in_strides, sizeof(std::complex<R>)), in_bytes(d.out_strides, sizeof(R)),
                   axes_of(d), pocketfft::BACKWARD, in + from, out + to, static_cast<R>(d.factor));
  });
}

#else

bool fft_available() { return false; }

namespace {
[[noreturn]] void raise_missing() {
  FL_RAISE(NotImplementedError,
           "Fourier transforms need pocketfft's header, and this library was compiled without it: run "
           "tools/setup.sh and build again");
}
}  // namespace

template <class R>
void fft_complex(const FftDesc&, bool, const std::complex<R>*, std::complex<R>*) {
  raise_missing();
}
template <class R>
void fft_from_real(const FftDesc&, const R*, std::complex<R>*) {
  raise_missing();
}
template <class R>
void fft_to_real(const FftDesc&, const std::complex<R>*, R*) {
  raise_missing();
}

#endif

#define FL_INSTANTIATE(R)                                                                    \
  template void fft_complex(const FftDesc&, bool, const std::complex<R>*, std::complex<R>*); \
  template void fft_from_real(const FftDesc&, const R*, std::complex<R>*);                   \
  template void fft_to_real(const FftDesc&, const std::complex<R>*, R*);
FL_INSTANTIATE(float)
FL_INSTANTIATE(double)
#undef FL_INSTANTIATE

}  // namespace fl::library
