// The scalar operations that kernel bodies are made of, and the interface that one body is run against: to
// record it, to interpret it, to emit machine code for it, to bound or to print it.
#pragma once
#include <complex>
#include <cstdint>
#include <string_view>

#include "flambeau/sym/expr.h"
#include "flambeau/tensor/dtype.h"

namespace fl {

// The closed set. Unless a line says otherwise, all operands and the result have one dtype, floats follow
// IEEE 754 (nan included) with one rounding an operation, integers wrap, and bool is 0 or 1. Float16 and
// bfloat16 values exist only as operands of Cast: arithmetic on them happens in float32. Complex operands:
// Add Sub Mul Div Neg Eq Ne Select Cast Abs, with Real, Imag and Complex to take them apart.
#define FL_SCALAR_OPS(X)                                                                                \
  X(Constant, 0) /* a literal of the dtype */                                                           \
  X(Index, 0)    /* the value of an index expression, int64 */                                          \
  X(Load, 0)     /* an element of an input at an index expression */                                    \
  X(Cast, 1)     /* C++ conversion; float to bool is != 0; float to half rounds to even */              \
  X(Bitcast, 1)  /* the same bits in a dtype of equal size */                                           \
  X(Neg, 1)                                                                                             \
  X(Abs, 1)   /* of complex: the modulus, in the real dtype */                                          \
  X(Floor, 1) /* floats */                                                                              \
  X(Ceil, 1)                                                                                            \
  X(Trunc, 1)                                                                                           \
  X(Round, 1) /* half to even */                                                                        \
  X(Sqrt, 1)  /* correctly rounded */                                                                   \
  X(Not, 1)   /* bitwise; logical for bool */                                                           \
  X(Exp, 1)   /* transcendental functions of f32 and f64: at most 4 ulp */                              \
  X(Exp2, 1)                                                                                            \
  X(Expm1, 1)                                                                                           \
  X(Log, 1)                                                                                             \
  X(Log2, 1)                                                                                            \
  X(Log10, 1)                                                                                           \
  X(Log1p, 1)                                                                                           \
  X(Sin, 1)                                                                                             \
  X(Cos, 1)                                                                                             \
  X(Tan, 1)                                                                                             \
  X(Asin, 1)                                                                                            \
  X(Acos, 1)                                                                                            \
  X(Atan, 1)                                                                                            \
  X(Sinh, 1)                                                                                            \
  X(Cosh, 1)                                                                                            \
  X(Tanh, 1)                                                                                            \
  X(Asinh, 1)                                                                                           \
  X(Acosh, 1)                                                                                           \
  X(Atanh, 1)                                                                                           \
  X(Erf, 1)                                                                                             \
  X(Erfc, 1)                                                                                            \
  X(Erfinv, 1)                                                                                          \
  X(Lgamma, 1)                                                                                          \
  X(Digamma, 1)                                                                                         \
  X(Real, 1) /* complex to its real dtype */                                                            \
  X(Imag, 1)                                                                                            \
  X(Add, 2) /* bool: or */                                                                              \
  X(Sub, 2)                                                                                             \
  X(Mul, 2)     /* bool: and */                                                                         \
  X(Div, 2)     /* floats and complex; of integers: rounded to zero, x/0 is 0 and MIN/-1 is MIN */      \
  X(Rem, 2)     /* C's % and fmod, exact: sign of the dividend; integer x % 0 is 0 */                   \
  X(Minimum, 2) /* nan if either is nan */                                                              \
  X(Maximum, 2)                                                                                         \
  X(Pow, 2) /* C's pow for floats; integers: exponentiation by squaring, wraps; negative exponent of an \
               integer as PyTorch */                                                                    \
  X(Atan2, 2)                                                                                           \
  X(Hypot, 2)                                                                                           \
  X(Nextafter, 2)                                                                                       \
  X(Copysign, 2)                                                                                        \
  X(And, 2) /* bitwise */                                                                               \
  X(Or, 2)                                                                                              \
  X(Xor, 2)                                                                                             \
  X(Shl, 2)   /* shift counts outside [0, bits) give 0 (or all sign bits for Shr) */                    \
  X(Shr, 2)   /* arithmetic for signed, logical for unsigned */                                         \
  X(Mulhi, 2) /* high half of the product of two int32 taken as unsigned: for Philox */                 \
  X(Eq, 2)    /* comparisons give bool; with nan false, Ne true */                                      \
  X(Ne, 2)                                                                                              \
  X(Lt, 2)                                                                                              \
  X(Le, 2)                                                                                              \
  X(Complex, 2) /* real and imaginary part */                                                           \
  X(Fma, 3)     /* a*b + c rounded once; for polynomials, never made by contraction */                  \
  X(Select, 3)  /* bool, a, b: a where true */

enum class ScalarOp : uint8_t {
#define FL_ENUM(name, arity) name,
  FL_SCALAR_OPS(FL_ENUM)
#undef FL_ENUM
};
std::string_view name(ScalarOp op);  ///< Lower case: "fma".
int arity(ScalarOp op);

/// A value of a body: its position in the recording, and its dtype.
struct Val {
  int32_t id = -1;
  DType dtype = DType::Float32;
};

/// A number with the category that promotion gives it.
struct Literal {
  enum class Kind : uint8_t { Int, Float, Complex } kind;
  int64_t i = 0;
  std::complex<double> c{};
  Literal(int64_t v) : kind(Kind::Int), i(v) {}
  Literal(int v) : kind(Kind::Int), i(v) {}
  Literal(bool v) : kind(Kind::Int), i(v) {}
  Literal(double v) : kind(Kind::Float), c(v) {}
  Literal(std::complex<double> v) : kind(Kind::Complex), c(v) {}
};

/// Runs bodies. Implementations give emit, constant, index and load; the rest is written over them here,
/// once.
class ScalarOps {
 public:
  virtual ~ScalarOps() = default;
  /// One operation. dtype is the result's for Cast and Bitcast and ignored elsewhere.
  virtual Val emit(ScalarOp op, DType dtype, Val a, Val b = {}, Val c = {}) = 0;
  virtual Val constant(DType dtype, Literal value) = 0;
  virtual Val index(const sym::Expr& e) = 0;

#define FL_UNARY(method, op) \
  Val method(Val a) { return emit(ScalarOp::op, a.dtype, a); }
#define FL_BINARY(method, op) \
  Val method(Val a, Val b) { return emit(ScalarOp::op, a.dtype, a, b); }
  FL_UNARY(neg, Neg)
  FL_UNARY(abs, Abs)
  FL_UNARY(floor, Floor)
  FL_UNARY(ceil, Ceil)
  FL_UNARY(trunc, Trunc)
  FL_UNARY(round, Round)
  FL_UNARY(sqrt, Sqrt)
  FL_UNARY(bit_not, Not)
  FL_UNARY(exp, Exp)
  FL_UNARY(exp2, Exp2)
  FL_UNARY(expm1, Expm1)
  FL_UNARY(log, Log)
  FL_UNARY(log2, Log2)
  FL_UNARY(log10, Log10)
  FL_UNARY(log1p, Log1p)
  FL_UNARY(sin, Sin)
  FL_UNARY(cos, Cos)
  FL_UNARY(tan, Tan)
  FL_UNARY(asin, Asin)
  FL_UNARY(acos, Acos)
  FL_UNARY(atan, Atan)
  FL_UNARY(sinh, Sinh)
  FL_UNARY(cosh, Cosh)
  FL_UNARY(tanh, Tanh)
  FL_UNARY(asinh, Asinh)
  FL_UNARY(acosh, Acosh)
  FL_UNARY(atanh, Atanh)
  FL_UNARY(erf, Erf)
  FL_UNARY(erfc, Erfc)
  FL_UNARY(erfinv, Erfinv)
  FL_UNARY(lgamma, Lgamma)
  FL_UNARY(digamma, Digamma)
  FL_UNARY(real, Real)
  FL_UNARY(imag, Imag)
  FL_BINARY(add, Add)
  FL_BINARY(sub, Sub)
  FL_BINARY(mul, Mul)
  FL_BINARY(div, Div)
  FL_BINARY(rem, Rem)
  FL_BINARY(minimum, Minimum)
  FL_BINARY(maximum, Maximum)
  FL_BINARY(pow, Pow)
  FL_BINARY(atan2, Atan2)
  FL_BINARY(hypot, Hypot)
  FL_BINARY(nextafter, Nextafter)
  FL_BINARY(copysign, Copysign)
  FL_BINARY(bit_and, And)
  FL_BINARY(bit_or, Or)
  FL_BINARY(bit_xor, Xor)
  FL_BINARY(shl, Shl)
  FL_BINARY(shr, Shr)
  FL_BINARY(mulhi, Mulhi)
  FL_BINARY(eq, Eq)
  FL_BINARY(ne, Ne)
  FL_BINARY(lt, Lt)
  FL_BINARY(le, Le)
  FL_BINARY(complex, Complex)
#undef FL_UNARY
#undef FL_BINARY
  Val gt(Val a, Val b) { return lt(b, a); }
  Val ge(Val a, Val b) { return le(b, a); }
  Val fma(Val a, Val b, Val c) { return emit(ScalarOp::Fma, a.dtype, a, b, c); }
  Val select(Val condition, Val a, Val b) { return emit(ScalarOp::Select, a.dtype, condition, a, b); }
  Val cast(Val a, DType dtype) { return a.dtype == dtype ? a : emit(ScalarOp::Cast, dtype, a); }
  Val bitcast(Val a, DType dtype) { return a.dtype == dtype ? a : emit(ScalarOp::Bitcast, dtype, a); }
  /// A literal of a's dtype.
  Val like(Val a, Literal value) { return constant(a.dtype, value); }
  Val is_nan(Val a) { return ne(a, a); }
};

}  // namespace fl
