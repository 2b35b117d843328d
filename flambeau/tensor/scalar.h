// A number as a user writes it: its kind takes part in type promotion, its size does not.
#pragma once
#include <complex>
#include <string>

#include "flambeau/sym/sym_int.h"
#include "flambeau/tensor/dtype.h"

namespace fl {

class Scalar {
 public:
  enum class Kind : uint8_t { Bool, Int, Float, Complex };
  Scalar() : Scalar(0) {}
  Scalar(bool v) : kind_(Kind::Bool), int_(v) {}
  Scalar(int v) : kind_(Kind::Int), int_(v) {}
  Scalar(int64_t v) : kind_(Kind::Int), int_(v) {}
  Scalar(SymInt v) : kind_(Kind::Int), int_(v) {}
  Scalar(double v) : kind_(Kind::Float), number_(v) {}
  Scalar(std::complex<double> v) : kind_(Kind::Complex), number_(v) {}

  Kind kind() const { return kind_; }
  bool is_float() const { return kind_ == Kind::Float; }
  bool is_complex() const { return kind_ == Kind::Complex; }
  bool is_integral() const { return kind_ <= Kind::Int; }
  DTypeCategory category() const { return static_cast<DTypeCategory>(kind_); }
  /// bool, int64, float32 (the default dtype) or complex64.
  DType default_dtype() const;

  SymInt sym_int() const;    ///< Raises TypeError on a float or complex number.
  int64_t to_int() const;    ///< Truncates a float.
  double to_double() const;  ///< Raises TypeError on a complex number.
  std::complex<double> to_complex() const;
  bool to_bool() const;
  bool operator==(const Scalar& o) const;
  std::string str() const;

 private:
  Kind kind_;
  SymInt int_;
  std::complex<double> number_{};
};

}  // namespace fl
