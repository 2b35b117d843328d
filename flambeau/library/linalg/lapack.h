// LAPACK and BLAS by the names of their routines. The library is found when the first routine is called:
// OpenBLAS with OpenMP's threads, which it shares with this program, or any other LAPACK.
#pragma once
#include <complex>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

namespace fl::library {

bool lapack_available();
/// "OpenBLAS 0.3.21 ...", the file that was loaded where it tells no more, or "none".
std::string lapack_version();
/// The address of a routine, 'd' and "potrf" for dpotrf. Raises NotImplementedError where there is no LAPACK.
void* lapack_symbol(char letter, const char* name);

template <class T>
constexpr char lapack_letter = std::is_same_v<T, float>                 ? 's'
                               : std::is_same_v<T, double>              ? 'd'
                               : std::is_same_v<T, std::complex<float>> ? 'c'
                                                                        : 'z';

template <size_t N>
struct RoutineName {
  char text[N]{};
  consteval RoutineName(const char (&name)[N]) {
    for (size_t i = 0; i < N; ++i) text[i] = name[i];
  }
};

namespace detail {
template <class V>
auto fortran_argument(const V& v) {
  if constexpr (std::is_pointer_v<V>)
    return v;
  else
    return &v;
}
}  // namespace detail

/// lapack<double, "potrf">('L', n, a, lda, &info): numbers and letters go by reference, as Fortran wants
/// them, followed by the lengths of the letters.
template <class T, RoutineName name, class... A>
void lapack(const A&... args) {
  static void* const routine = lapack_symbol(lapack_letter<T>, name.text);
  constexpr size_t letters = (size_t{0} + ... + size_t{std::is_same_v<A, char>});
  [&]<size_t... I>(std::index_sequence<I...>) {
    using Function = void (*)(decltype(detail::fortran_argument(args))..., decltype(I)...);
    reinterpret_cast<Function>(routine)(detail::fortran_argument(args)...,
                                        (static_cast<void>(I), size_t{1})...);
  }
  (std::make_index_sequence<letters>{});
}

}  // namespace fl::library
