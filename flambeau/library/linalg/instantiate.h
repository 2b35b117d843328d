// A template of matrices.h for its four element types.
#pragma once
#define FL_FOR_LAPACK_TYPES(X) \
  X(float)                     \
  X(double)                    \
  X(std::complex<float>)       \
  X(std::complex<double>)
