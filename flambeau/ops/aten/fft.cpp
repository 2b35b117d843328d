#include "flambeau/ops/aten/fft.h"

#include <algorithm>

#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

using Norm = std::optional<std::string_view>;

// The primitives.

constexpr Tag kTags = Tag::NoInPlace | Tag::NoOut | Tag::ComputeIntensive;

InferResult complex_rule(const InferCtx& c, int) {
  const TensorSpec& in = c.spec(0);
  FL_CHECK(is_complex(in.dtype), RuntimeError, "_fft_c2c expects a complex tensor, got {}", name(in.dtype));
  return {make_spec(in.sizes, in.dtype, in.device)};
}
InferResult from_real_rule(const InferCtx& c, int) {
  const TensorSpec& in = c.spec(0);
  FL_CHECK(in.dtype == DType::Float32 || in.dtype == DType::Float64, RuntimeError,
           "_fft_r2c expects a float32 or float64 tensor, got {}", name(in.dtype));
  Sizes sizes = in.sizes;
  SymInt& last = sizes[wrap_dim(c.ints(1).back().expect_int(), in.dim())];
  last = last / SymInt(2) + SymInt(1);
  return {make_spec(sizes, complex_dtype(in.dtype), in.device)};
}
InferResult to_real_rule(const InferCtx& c, int) {
  const TensorSpec& in = c.spec(0);
  FL_CHECK(is_complex(in.dtype), RuntimeError, "_fft_c2r expects a complex tensor, got {}", name(in.dtype));
  Sizes sizes = in.sizes;
  sizes[wrap_dim(c.ints(1).back().expect_int(), in.dim())] = c.sym_int(3);
  return {make_spec(sizes, real_dtype(in.dtype), in.device)};
}

/// The adjoint of a transform is the transform in the other direction, with the same factor.
Tensor complex_gradient(GradCtx& c, const Tensor& g) {
  return _fft_c2c(g, c.arg(1).ints(), c.arg(2).to_int(), !c.arg(3).to_bool());
}

/// zeros after the end of a dimension, or the dimension cut.
Tensor with_length(const Tensor& x, int64_t dim, SymInt length) {
  const SymInt size = x.size(dim);
  if (size == length) return x;
  if (length < size) return narrow(x, dim, 0, length);
  Sizes padding;
  for (int64_t d = x.dim(); d-- > wrap_dim(dim, x.dim());) {
    padding.push_back(0);
    padding.push_back(d == wrap_dim(dim, x.dim()) ? length - size : SymInt(0));
  }
  return constant_pad_nd(x, padding, 0);
}

Tensor from_real_gradient(GradCtx& c, const Tensor& g) {
  const IntList dims = c.arg(1).ints();
  const int64_t last = dims.back().expect_int();
  const SymInt length = c.in_spec(0).sizes[wrap_dim(last, c.in_spec(0).dim())];
  return real(_fft_c2c(with_length(g, last, length), dims, c.arg(2).to_int(), false));
}

/// Elements of the half that also stand for their mirror images count twice.
Tensor to_real_gradient(GradCtx& c, const Tensor& g) {
  const IntList dims = c.arg(1).ints();
  const int64_t last = wrap_dim(dims.back().expect_int(), g.dim());
  const Tensor half = _fft_r2c(g, dims, c.arg(2).to_int());
  const SymInt kept = half.size(last), length = g.size(last);
  const Tensor at = arange_end(Scalar(kept), DType::Int64, g.device());
  const Tensor twice = logical_and(gt(at, 0), le(at, Scalar(length - kept)));
  const Tensor factor = to_dtype(add(to_dtype(twice, DType::Int64), 1), g.dtype());
  Sizes column(static_cast<size_t>(g.dim()) - static_cast<size_t>(last), SymInt(1));
  column[0] = kept;
  return mul(half, view(factor, column));
}

void define_transforms(OpTable& t) {
  const DTypeSet real_types = dtypes::full_floats;
  t.define(_fft_c2c, {.doc = "The Fourier transform of complex numbers over dimensions, forward or backward.",
                      .tags = kTags,
                      .infer = complex_rule,
                      .library = LibraryCall::HostRoutine,
                      .grad = complex_gradient,
                      .samples = samples::custom(
                          [](SampleMaker& m, const Samples&) {
                            return std::vector<Sample>{
                                {{m.make({5}), Sizes{0}, 0, true}, "", ""},
                                {{m.make_transposed({2, 3, 4}), Sizes{0, 2}, 1, false}, "two", ""},
                                {{m.make({0, 3}), Sizes{1}, 0, true}, "size 0", ""}};
                          },
                          {.dtypes = dtypes::complexes})});
  t.define(_fft_r2c, {.doc = "The first half (and the middle) of the forward Fourier transform of real "
                             "numbers; the rest of the last dimension named is its mirror image.",
                      .tags = kTags,
                      .infer = from_real_rule,
                      .library = LibraryCall::HostRoutine,
                      .grad = from_real_gradient,
                      .samples = samples::custom(
                          [](SampleMaker& m, const Samples&) {
                            return std::vector<Sample>{
                                {{m.make({5}), Sizes{0}, 0}, "", ""},
                                {{m.make_transposed({2, 3, 4}), Sizes{0, 2}, 1}, "two", ""}};
                          },
                          {.dtypes = real_types, .gradient = false})});
  t.define(_fft_c2r,
           {.doc = "The real backward Fourier transform of the first half of a mirrored array, of a length.",
            .tags = kTags,
            .infer = to_real_rule,
            .library = LibraryCall::HostRoutine,
            .grad = to_real_gradient,
            .samples = samples::custom(
                [](SampleMaker& m, const Samples&) {
                  return std::vector<Sample>{{{m.make({3}), Sizes{0}, 0, 5}, "", ""},
                                             {{m.make_transposed({2, 3, 4}), Sizes{0, 2}, 1, 6}, "two", ""}};
                },
                {.dtypes = dtypes::complexes})});
}

// The forms of torch.fft.

int64_t normalization(Norm norm, bool forward, std::string_view caller) {
  if (!norm || *norm == "backward") return forward ? 0 : 2;
  if (*norm == "forward") return forward ? 2 : 0;
  FL_CHECK(*norm == "ortho", RuntimeError, "{}: Invalid normalization mode: \"{}\"", caller, *norm);
  return 1;
}

/// Integers in the default dtype; complex numbers where they are wanted.
Tensor promoted(const Tensor& x, bool wants_complex, std::string_view caller) {
  const Tensor y = as_float(x);
  FL_CHECK(size_of(y.dtype()) > 2, NotImplementedError,
           "{}: Unsupported dtype {}: expected float32 or float64, complex numbers of these, or integers",
           caller, name(y.dtype()));
  return wants_complex ? to_dtype(y, complex_dtype(y.dtype())) : y;
}
void check_real(const Tensor& x, std::string_view caller) {
  FL_CHECK(!is_complex(x.dtype()), RuntimeError, "{} expects a real input tensor, but got {}", caller,
           name(x.dtype()));
}
void check_length(SymInt n, std::string_view caller) {
  FL_CHECK(n >= SymInt(1), RuntimeError, "{}: Invalid number of data points ({}) specified", caller, n);
}

/// Which transforms a form is made of.
enum class Kind { Complex, FromReal, ToReal };
struct Form {
  const char* name;
  Kind kind;
  bool forward;
};

Tensor run_form(const Form& f, const Tensor& x, const Sizes& dims, Norm norm, SymInt last_size) {
  const int64_t factor = normalization(norm, f.forward, f.name);
  switch (f.kind) {
    case Kind::Complex:
      return dims.empty() ? x : _fft_c2c(x, dims, factor, f.forward);
    case Kind::FromReal: {
      const Tensor half = _fft_r2c(x, dims, factor);
      return f.forward ? half : conj_if_complex(half);
    }
    case Kind::ToReal:
      return _fft_c2r(f.forward ? conj_if_complex(x) : x, dims, factor, last_size);
  }
  return {};
}

Tensor one_dimension(const Form& f, Tensor self, std::optional<SymInt> n, int64_t dim, Norm norm) {
  if (f.kind == Kind::FromReal) check_real(self, f.name);
  const Tensor x = promoted(self, f.kind != Kind::FromReal, f.name);
  FL_CHECK(x.dim() > 0, IndexError, "Dimension specified as {} but tensor has no dimensions", dim);
  SymInt length = n.value_or(x.size(dim));
  SymInt taken = length;
  if (f.kind == Kind::ToReal) {
    length = n.value_or(SymInt(2) * (x.size(dim) - SymInt(1)));
    check_length(length, f.name);
    taken = length / SymInt(2) + SymInt(1);
  }
  check_length(length, f.name);
  return run_form(f, with_length(x, dim, taken), Sizes{SymInt(dim)}, norm, length);
}

struct Shape {
  Sizes dims, sizes;
};

Shape shape_of(const Form& f, const Tensor& x, std::optional<IntList> s, std::optional<IntList> dim) {
  Shape out;
  if (dim) {
    std::vector<int64_t> seen;
    for (const SymInt d : *dim) {
      const int64_t at = wrap_dim(d.expect_int(), x.dim());
      FL_CHECK(std::ranges::find(seen, at) == seen.end(), RuntimeError, "{}: FFT dims must be unique",
               f.name);
      seen.push_back(at);
      out.dims.push_back(at);
    }
  }
  if (s) {
    FL_CHECK(!dim || s->size() == dim->size(), RuntimeError,
             "{}: When given, dim and shape arguments must have the same length", f.name);
    FL_CHECK(static_cast<int>(s->size()) <= x.dim(), RuntimeError,
             "{}: Got shape with {} values but input tensor only has {} dimensions.", f.name, s->size(),
             x.dim());
    if (!dim)
      for (size_t k = 0; k < s->size(); ++k)
        out.dims.push_back(x.dim() - static_cast<int64_t>(s->size() - k));
  } else if (!dim) {
    for (int64_t d = 0; d < x.dim(); ++d) out.dims.push_back(d);
  }
  for (size_t k = 0; k < out.dims.size(); ++k) {
    const SymInt wanted = s ? (*s)[k] : SymInt(-1);
    out.sizes.push_back(wanted == SymInt(-1) ? x.size(out.dims[k].expect_int()) : wanted);
    check_length(out.sizes.back(), f.name);
  }
  return out;
}

Tensor many_dimensions(const Form& f, Tensor self, std::optional<IntList> s, std::optional<IntList> dim,
                       Norm norm) {
  if (f.kind == Kind::FromReal) check_real(self, f.name);
  Tensor x = promoted(self, f.kind != Kind::FromReal, f.name);
  Shape shape = shape_of(f, x, s, dim);
  FL_CHECK(f.kind == Kind::Complex || !shape.dims.empty(), RuntimeError,
           "{} must transform at least one axis", f.name);
  SymInt last;
  if (f.kind == Kind::ToReal) {
    const bool given = s && (*s).back() != SymInt(-1);
    last = given ? shape.sizes.back() : SymInt(2) * (shape.sizes.back() - SymInt(1));
    check_length(last, f.name);
    shape.sizes.back() = last / SymInt(2) + SymInt(1);
  }
  for (size_t k = 0; k < shape.dims.size(); ++k)
    x = with_length(x, shape.dims[k].expect_int(), shape.sizes[k]);
  return run_form(f, x, shape.dims, norm, last);
}

std::vector<Sample> lengths(SampleMaker& m) {
  return {{{m.make({6})}, "", ""},
          {{m.make_transposed({2, 3, 5}), 4, 1}, "cut or padded", ""},
          {{m.make({3, 4}), 7, -1, "ortho"}, "ortho", ""},
          {{m.make({3, 4}), Value(), 0, "forward"}, "forward", ""},
          {{m.make({4}), 0}, "length 0", "RuntimeError: Invalid number of data points"},
          {{m.make({4}), Value(), 0, "none"}, "norm", "RuntimeError: Invalid normalization"}};
}
std::vector<Sample> shapes(SampleMaker& m) {
  return {{{m.make({3, 4})}, "", ""},
          {{m.make({2, 3, 4}), Sizes{4, 6}, Sizes{2, 0}}, "sizes", ""},
          {{m.make({2, 3, 4}), Value(), Sizes{0, 1}, "ortho"}, "ortho", ""},
          {{m.make({3, 4}), Value(), Sizes{1, 1}}, "twice", "RuntimeError: unique"}};
}

#define FL_FORM(form, kind_of, is_forward, about, types)                                                     \
  t.define(                                                                                                  \
      fft_##form,                                                                                            \
      {.doc = about " of one dimension, which is cut or padded with zeros to n elements. norm: \"backward\"" \
                    " divides the inverse by n, \"forward\" the other, \"ortho\" both by the root.",         \
       .tags = Tag::NoInPlace,                                                                               \
       .decompose =                                                                                          \
           [](Tensor self, std::optional<SymInt> n, int64_t dim, Norm norm) {                                \
             return one_dimension({#form, kind_of, is_forward}, self, n, dim, norm);                         \
           },                                                                                                \
       .samples = samples::custom([](SampleMaker& m, const Samples&) { return lengths(m); }, types)});       \
  t.define(fft_##form##2,                                                                                    \
           {.doc = about " of two dimensions.",                                                              \
            .tags = Tag::NoInPlace,                                                                          \
            .decompose =                                                                                     \
                [](Tensor self, std::optional<IntList> s, IntList dim, Norm norm) {                          \
                  return many_dimensions({#form "2", kind_of, is_forward}, self, s, dim, norm);              \
                },                                                                                           \
            .samples = samples::custom([](SampleMaker& m, const Samples&) { return shapes(m); }, types)});   \
  t.define(fft_##form##n,                                                                                    \
           {.doc = about " of the dimensions named, of the last ones as many as s has, or of all.",          \
            .tags = Tag::NoInPlace,                                                                          \
            .decompose =                                                                                     \
                [](Tensor self, std::optional<IntList> s, std::optional<IntList> dim, Norm norm) {           \
                  return many_dimensions({#form "n", kind_of, is_forward}, self, s, dim, norm);              \
                },                                                                                           \
            .samples = samples::custom([](SampleMaker& m, const Samples&) { return shapes(m); }, types)})

void define_forms(OpTable& t) {
  // Complex results: their gradients are tested in Python.
  const Samples any{.dtypes = dtypes::full_floats | dtypes::complexes | DTypeSet{DType::Int64},
                    .gradient = false};
  const Samples real_only{.dtypes = dtypes::full_floats | DTypeSet{DType::Int64}, .gradient = false};
  const Samples to_real{.dtypes = dtypes::full_floats | dtypes::complexes};
  FL_FORM(fft, Kind::Complex, true, "The Fourier transform", any);
  FL_FORM(ifft, Kind::Complex, false, "The inverse Fourier transform", any);
  FL_FORM(rfft, Kind::FromReal, true, "The Fourier transform's first half, of real numbers,", real_only);
  FL_FORM(irfft, Kind::ToReal, false,
          "The inverse of rfft, a real array with n elements (or an even number),", to_real);
  FL_FORM(hfft, Kind::ToReal, true, "The Fourier transform of a mirrored array's first half, a real array,",
          to_real);
  FL_FORM(ihfft, Kind::FromReal, false, "The inverse of hfft, the first half of a mirrored array,",
          real_only);
}
#undef FL_FORM

// Frequencies and their order.

Tensor frequencies(const Tensor& whole, int64_t n, double d, std::optional<DType> dtype) {
  return mul(to_dtype(whole, dtype.value_or(default_dtype())), 1 / (static_cast<double>(n) * d));
}

/// Rolled by half of each dimension, rounded down or up.
Tensor shifted(const Tensor& x, std::optional<IntList> dim, bool up) {
  Sizes dims, by;
  if (dim)
    dims.assign(dim->begin(), dim->end());
  else
    for (int64_t d = 0; d < x.dim(); ++d) dims.push_back(d);
  for (const SymInt d : dims) by.push_back((x.size(d.expect_int()) + SymInt(up ? 1 : 0)) / SymInt(2));
  return dims.empty() ? clone(x) : roll(x, by, dims);
}

void define_frequencies(OpTable& t) {
  constexpr Tag kFactory = Tag::Factory | Tag::NonDifferentiable | Tag::NoInPlace;
  const Samples counts = samples::custom([](SampleMaker& m, const Samples&) {
    return std::vector<Sample>{{{5, 0.5, m.dtype()}, "odd", ""}, {{6, 2.0, m.dtype()}, "even", ""}};
  });
  t.define(fft_fftfreq, {.doc = "The frequencies of fft's n elements at a sample spacing of d.",
                         .tags = kFactory,
                         .decompose =
                             [](int64_t n, double d, std::optional<DType> dtype, std::optional<Device>,
                                std::optional<bool>) {
                               const Tensor at = arange(-(n / 2), (n + 1) / 2, 1, DType::Int64);
                               return frequencies(shifted(at, std::nullopt, true), n, d, dtype);
                             },
                         .samples = counts});
  t.define(fft_rfftfreq, {.doc = "The frequencies of rfft's n / 2 + 1 elements at a sample spacing of d.",
                          .tags = kFactory,
                          .decompose =
                              [](int64_t n, double d, std::optional<DType> dtype, std::optional<Device>,
                                 std::optional<bool>) {
                                return frequencies(arange(0, n / 2 + 1, 1, DType::Int64), n, d, dtype);
                              },
                          .samples = counts});
  const Samples arrays = samples::custom(
      [](SampleMaker& m, const Samples&) {
        return std::vector<Sample>{{{m.make({3, 4})}, "all", ""}, {{m.make({3, 5}), Sizes{1}}, "one", ""}};
      },
      {.dtypes = dtypes::all});
  t.define(fft_fftshift,
           {.doc = "Frequency 0 moved to the middle of each dimension.",
            .tags = Tag::NoInPlace | Tag::NoOut,
            .decompose = [](Tensor self, std::optional<IntList> dim) { return shifted(self, dim, false); },
            .samples = arrays});
  t.define(fft_ifftshift,
           {.doc = "The inverse of `fft_fftshift`.",
            .tags = Tag::NoInPlace | Tag::NoOut,
            .decompose = [](Tensor self, std::optional<IntList> dim) { return shifted(self, dim, true); },
            .samples = arrays});
}

}  // namespace

void define_fft(OpTable& t) {
  define_transforms(t);
  define_forms(t);
  define_frequencies(t);
}

}  // namespace fl
