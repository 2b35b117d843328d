// Short-time Fourier transforms, and signals from them.
#include "flambeau/ops/aten/fft.h"
#include "flambeau/ops/functions.h"
#include "flambeau/ops/readable.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

/// The window of a call, with zeros around it up to the transform's length.
Tensor padded_window(const Tensor& window, int64_t length, int64_t n_fft, const Tensor& like,
                     std::string_view caller) {
  FL_CHECK(!window.defined() || (window.dim() == 1 && window.size(0) == SymInt(length)), RuntimeError,
           "{}: expected a 1D window tensor of size equal to win_length={}, but got window with size {}",
           caller, length, window.defined() ? to_string(window.sizes()) : "none");
  Tensor w = window;
  if (!w.defined()) w = ones({SymInt(length)}, real_dtype(like.dtype()), like.device());
  if (length == n_fft) return w;
  const int64_t left = (n_fft - length) / 2;
  return constant_pad_nd(w, Sizes{SymInt(left), SymInt(n_fft - length - left)}, 0);
}

struct Frames {
  int64_t n_fft, hop, length;
};
Frames frames_of(int64_t n_fft, std::optional<int64_t> hop, std::optional<int64_t> length,
                 std::string_view caller) {
  const Frames f{n_fft, hop.value_or(n_fft / 4), length.value_or(n_fft)};
  FL_CHECK(f.hop > 0, RuntimeError, "{}: expected hop_length > 0, but got hop_length={}", caller, f.hop);
  FL_CHECK(f.length > 0 && f.length <= n_fft, RuntimeError,
           "{}: expected 0 < win_length <= n_fft, but got win_length={} and n_fft={}", caller, f.length,
           n_fft);
  return f;
}

Tensor spectrogram(Tensor self, int64_t n_fft, std::optional<int64_t> hop_length,
                   std::optional<int64_t> win_length, Tensor window, bool center, std::string_view pad_mode,
                   bool normalized, std::optional<bool> onesided, std::optional<bool> return_complex,
                   std::optional<bool> align_to_window) {
  FL_CHECK(is_floating(self.dtype()) || is_complex(self.dtype()), RuntimeError,
           "stft: expected a tensor of floating point or complex values, got {}", name(self.dtype()));
  FL_CHECK(self.dim() == 1 || self.dim() == 2, RuntimeError, "stft: expected a 1D or 2D tensor, got {}D",
           self.dim());
  const bool is_real = !is_complex(self.dtype()) && !(window.defined() && is_complex(window.dtype()));
  FL_CHECK(
      return_complex || !is_real, RuntimeError,
      "stft requires the return_complex parameter be given for real inputs, and will further require that "
      "return_complex=True in a future PyTorch release.");
  FL_CHECK(!center || !align_to_window, RuntimeError,
           "stft align_to_window should only be set when center = false.");
  const bool half = onesided.value_or(is_real);
  FL_CHECK(!half || is_real, RuntimeError, "Cannot have onesided output if window or input is complex");
  const bool single = self.dim() == 1;
  Tensor x = single ? unsqueeze(self, 0) : self;
  FL_CHECK(n_fft > 0 && (center || SymInt(n_fft) <= x.size(1)), RuntimeError,
           "stft: expected 0 < n_fft < {}, but got n_fft={}", x.size(1), n_fft);
  const Frames f = frames_of(n_fft, hop_length, win_length, "stft");
  const SymInt around(n_fft / 2);
  if (center) {
    // Padding wants a dimension of channels.
    x = squeeze_dim(pad(unsqueeze(x, 1), Sizes{around, around}, pad_mode), 1);
  } else if (align_to_window.value_or(false)) {
    const int64_t left = (n_fft - f.length) / 2;
    x = constant_pad_nd(x, Sizes{SymInt(left), SymInt(n_fft - f.length - left)}, 0);
  }
  const Tensor w = padded_window(window, f.length, n_fft, self, "stft");
  const Tensor pieces = mul(unfold(x, 1, n_fft, f.hop), w);
  const std::optional<std::string_view> norm = normalized ? "ortho" : "backward";
  Tensor out = half ? fft_rfft(pieces, std::nullopt, -1, norm) : fft_fft(pieces, std::nullopt, -1, norm);
  out = transpose(out, 1, 2);
  if (single) out = squeeze_dim(out, 0);
  return return_complex.value_or(true) ? out : view_as_real(out);
}

/// Frames added where they overlap, in a signal of `size`.
Tensor overlapped(const Tensor& frames, SymInt size, const Frames& f) {
  return unfold_backward(frames, Sizes{frames.size(0), size}, 1, f.n_fft, f.hop);
}

Tensor signal_of(Tensor self, int64_t n_fft, std::optional<int64_t> hop_length,
                 std::optional<int64_t> win_length, Tensor window, bool center, bool normalized,
                 std::optional<bool> onesided, std::optional<int64_t> length, bool return_complex) {
  FL_CHECK(
      is_complex(self.dtype()), RuntimeError,
      "istft requires a complex-valued input tensor matching the output from stft with return_complex=True.");
  FL_CHECK(self.dim() == 2 || self.dim() == 3, RuntimeError,
           "istft: expected a tensor with 2 or 3 dimensions, got {}", self.dim());
  FL_CHECK(self.numel() != SymInt(0), RuntimeError, "istft: input tensor cannot be empty.");
  const bool single = self.dim() == 2;
  const Tensor spectrum = single ? unsqueeze(self, 0) : self;
  const bool half = onesided.value_or(spectrum.size(1) != SymInt(n_fft));
  FL_CHECK(spectrum.size(1) == SymInt(half ? n_fft / 2 + 1 : n_fft), RuntimeError,
           "istft: expected the frequency dimension (3rd to the last) of the input tensor to match n_fft {} "
           "when onesided={}, but got {}",
           half ? "/ 2 + 1" : "", half, spectrum.size(1));
  FL_CHECK(
      !return_complex || !half, RuntimeError,
      "cannot have onesided output if window or input is complex: return_complex=True needs onesided=False");
  FL_CHECK(return_complex || !window.defined() || !is_complex(window.dtype()), RuntimeError,
           "Complex windows are incompatible with return_complex=False");
  const Frames f = frames_of(n_fft, hop_length, win_length, "istft");
  FL_CHECK(f.hop <= f.length, RuntimeError, "istft: expected 0 < hop_length <= win_length, got {} and {}",
           f.hop, f.length);
  const Tensor w = padded_window(window, f.length, n_fft, self, "istft");
  const std::optional<std::string_view> norm = normalized ? "ortho" : "backward";
  const Tensor columns = transpose(spectrum, 1, 2);
  Tensor pieces;
  if (return_complex) {
    pieces = fft_ifft(columns, std::nullopt, -1, norm);
  } else {
    pieces = fft_irfft(half ? columns : narrow(columns, -1, 0, n_fft / 2 + 1), SymInt(n_fft), -1, norm);
  }
  const SymInt count = spectrum.size(2), size = SymInt(n_fft) + SymInt(f.hop) * (count - SymInt(1));
  const Tensor weight = expand(mul(w, w), Sizes{SymInt(1), count, SymInt(n_fft)});
  const SymInt start = center ? SymInt(n_fft / 2) : SymInt(0);
  SymInt end = size;
  if (length)
    end = start + SymInt(*length);
  else if (center)
    end = size - SymInt(n_fft / 2);
  const auto cut = [&](const Tensor& x) { return slice(x, 1, start, end, 1); };
  Tensor signal = cut(overlapped(mul(pieces, w), size, f));
  const Tensor envelope = cut(overlapped(weight, size, f));
  if (is_readable(envelope) && !is_complex(envelope.dtype()))
    FL_CHECK(
        envelope.numel() == SymInt(0) || amin(abs(envelope)).item().to_double() > 1e-11, RuntimeError,
        "istft: window overlap add min: 0 somewhere, so that the signal can't be had from this window and "
        "hop_length {}",
        f.hop);
  signal = div(signal, envelope);
  if (end > size) signal = constant_pad_nd(signal, Sizes{SymInt(0), end - size}, 0);
  return single ? squeeze_dim(signal, 0) : signal;
}

}  // namespace

void define_spectrogram(OpTable& t) {
  t.define(stft,
           {.doc = "Fourier transforms of windows that slide over a signal by hop_length: (frequencies, "
                   "windows). The signal is padded by n_fft / 2 on both sides where center is set.",
            .tags = Tag::NoInPlace | Tag::NoOut,
            .decompose = spectrogram,
            .samples = samples::custom(
                [](SampleMaker& m, const Samples&) {
                  const Value none, yes(true), no(false);
                  return std::vector<Sample>{
                      {{m.make({2, 20}), 8, 4, none, none, true, "reflect", false, none, yes}, "", ""},
                      {{m.make({20}), 8, 3, 6, m.make({6}, 0.5, 1), false, "reflect", true, no, yes},
                       "window",
                       ""},
                      {{m.make({20}), 8}, "no return_complex", "RuntimeError: return_complex"}};
                },
                {.dtypes = dtypes::full_floats, .tolerance = 1e-4, .gradient = false})});
  t.define(istft,
           {.doc = "The signal of which `stft` gives this: windows added where they overlap, divided by "
                   "their squares' sum. Raises RuntimeError where that is 0.",
            .tags = Tag::NoInPlace | Tag::NoOut,
            .decompose = signal_of,
            .samples = samples::custom(
                [](SampleMaker& m, const Samples&) {
                  return std::vector<Sample>{
                      {{m.make({2, 5, 6}), 8}, "", ""},
                      {{m.make({5, 6}), 8, 4, Value(), Value(), true, true, Value(), 25}, "longer", ""},
                      {{m.make({4, 6}), 8}, "sizes", "RuntimeError: frequency dimension"}};
                },
                {.dtypes = dtypes::complexes, .tolerance = 1e-4})});
}

}  // namespace fl
