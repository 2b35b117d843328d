// The executable meaning of kernels, one point at a time: what generated code is tested against.
#pragma once
#include <span>

#include "flambeau/base/error.h"
#include "flambeau/loop/ir.h"
#include "flambeau/loop/scalar_bits.h"

namespace fl::loop {

/// An index from data that lies outside. PyTorch's operators disagree on its type: in Python it is both an
/// IndexError and a RuntimeError.
class OutOfBoundsError : public IndexError {
 public:
  using IndexError::IndexError;
};

/// Runs the kernel on buffers in the order of k.buffers. Raises OutOfBoundsError with the message of the
/// first check that failed, after everything has run.
void interpret(const Kernel& k, std::span<void* const> buffers, std::span<const int64_t> sizes,
               std::span<const ScalarBits> params = {});

/// The message of a failed check of a kernel with these symbols for sizes: the value in place of "{}", and
/// numbers in place of expressions over the sizes, which are given in the same order (none: what they are is
/// not known any more).
std::string failure_message(std::string_view message, DType dtype, const ScalarBits& value,
                            std::span<const Expr> symbols, std::span<const int64_t> sizes);

}  // namespace fl::loop
