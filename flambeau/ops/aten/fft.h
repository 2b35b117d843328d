// Fourier transforms, of real and complex tensors, over three primitives.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

// Primitives, through the FFT library. normalization: 0 no factor, 1 by the root of the number of elements
// transformed, 2 by the number.
inline constexpr Op<"_fft_c2c(Tensor self, int[] dim, int normalization, bool forward) -> Tensor"> _fft_c2c;
inline constexpr Op<"_fft_r2c(Tensor self, int[] dim, int normalization) -> Tensor"> _fft_r2c;
inline constexpr Op<"_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor">
    _fft_c2r;

inline constexpr Op<"fft_fft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor"> fft_fft;
inline constexpr Op<"fft_ifft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor"> fft_ifft;
inline constexpr Op<"fft_rfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor"> fft_rfft;
inline constexpr Op<"fft_irfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor"> fft_irfft;
inline constexpr Op<"fft_hfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor"> fft_hfft;
inline constexpr Op<"fft_ihfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor"> fft_ihfft;
inline constexpr Op<"fft_fft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor">
    fft_fft2;
inline constexpr Op<"fft_fftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor">
    fft_fftn;
inline constexpr Op<"fft_ifft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor">
    fft_ifft2;
inline constexpr Op<"fft_ifftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor">
    fft_ifftn;
inline constexpr Op<"fft_rfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor">
    fft_rfft2;
inline constexpr Op<"fft_rfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor">
    fft_rfftn;
inline constexpr Op<
    "fft_irfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor">
    fft_irfft2;
inline constexpr Op<"fft_irfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor">
    fft_irfftn;
inline constexpr Op<"fft_hfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor">
    fft_hfft2;
inline constexpr Op<"fft_hfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor">
    fft_hfftn;
inline constexpr Op<
    "fft_ihfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor">
    fft_ihfft2;
inline constexpr Op<"fft_ihfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor">
    fft_ihfftn;
inline constexpr Op<
    "fft_fftfreq(int n, float d=1., *, ScalarType? dtype=None, Device? device=None, bool? pin_memory=None) "
    "-> "
    "Tensor">
    fft_fftfreq;
inline constexpr Op<
    "fft_rfftfreq(int n, float d=1., *, ScalarType? dtype=None, Device? device=None, bool? pin_memory=None) "
    "-> "
    "Tensor">
    fft_rfftfreq;
inline constexpr Op<"fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor"> fft_fftshift;
inline constexpr Op<"fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor"> fft_ifftshift;
inline constexpr Op<
    "stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, "
    "bool "
    "center=True, str pad_mode=\"reflect\", bool normalized=False, bool? onesided=None, bool? "
    "return_complex=None, bool? align_to_window=None) -> Tensor">
    stft;
inline constexpr Op<
    "istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool "
    "center=True, bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) "
    "-> "
    "Tensor">
    istft;

}  // namespace fl
