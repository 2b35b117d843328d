#include "flambeau/tensor/scalar.h"

#include "flambeau/base/error.h"

namespace fl {

DType Scalar::default_dtype() const {
  switch (kind_) {
    case Kind::Bool:
      return DType::Bool;
    case Kind::Int:
      return DType::Int64;
    case Kind::Float:
      return fl::default_dtype();
    default:
      return complex_dtype(fl::default_dtype());
  }
}

SymInt Scalar::sym_int() const {
  FL_CHECK(is_integral(), TypeError, "expected an integer, got {}", str());
  return int_;
}

int64_t Scalar::to_int() const {
  if (is_integral()) return int_.guard_int();
  return static_cast<int64_t>(to_double());
}

double Scalar::to_double() const {
  FL_CHECK(!is_complex() || number_.imag() == 0, TypeError, "expected a real number, got {}", str());
  return is_integral() ? static_cast<double>(int_.guard_int()) : number_.real();
}

std::complex<double> Scalar::to_complex() const {
  return is_integral() ? std::complex<double>(static_cast<double>(int_.guard_int())) : number_;
}

bool Scalar::to_bool() const { return is_integral() ? int_ != SymInt(0) : number_ != 0.0; }

bool Scalar::operator==(const Scalar& o) const {
  if (kind_ != o.kind_) return false;
  return is_integral() ? int_.same_as(o.int_) : number_ == o.number_;
}

std::string Scalar::str() const {
  switch (kind_) {
    case Kind::Bool:
      return int_.guard_int() ? "True" : "False";
    case Kind::Int:
      return int_.str();
    case Kind::Float: {
      std::string s = fmt::format("{}", number_.real());
      return s;
    }
    default:
      return fmt::format("({}+{}j)", number_.real(), number_.imag());
  }
}

}  // namespace fl
