// Error types by blame, and the checks that raise them.
#pragma once
#include <fmt/format.h>

#include <exception>
#include <string>
#include <utility>

namespace fl {

/// Base of every error. The subclass names the Python exception that PyTorch raises in the same place.
class Error : public std::exception {
 public:
  explicit Error(std::string message) : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }
  const std::string& message() const { return message_; }

 private:
  std::string message_;
};

#define FL_ERROR_TYPE(name, base) \
  class name : public base {      \
   public:                        \
    using base::base;             \
  };
FL_ERROR_TYPE(RuntimeError, Error)
FL_ERROR_TYPE(ValueError, Error)
FL_ERROR_TYPE(TypeError, Error)
FL_ERROR_TYPE(IndexError, Error)
FL_ERROR_TYPE(NotImplementedError, RuntimeError)
FL_ERROR_TYPE(OutOfMemoryError, RuntimeError)
FL_ERROR_TYPE(DeserializationError, RuntimeError)
/// torch.linalg.LinAlgError: a singular matrix, an iteration that does not converge.
FL_ERROR_TYPE(LinAlgError, RuntimeError)
/// Capture met something that a graph cannot hold (a value read during tracing, say).
FL_ERROR_TYPE(UnsupportedError, RuntimeError)
/// A mistake of this library; the message carries the place in the source.
FL_ERROR_TYPE(InternalError, Error)
#undef FL_ERROR_TYPE

}  // namespace fl

/// FL_CHECK(condition, ErrorType, format, values...): what was expected, what came, what to do.
#define FL_CHECK(condition, Type, ...)              \
  do {                                              \
    if (!(condition)) [[unlikely]]                  \
      throw ::fl::Type(::fmt::format(__VA_ARGS__)); \
  } while (0)

#define FL_RAISE(Type, ...) throw ::fl::Type(::fmt::format(__VA_ARGS__))

/// A condition that only a mistake in this library can break.
#define FL_ASSERT(condition, ...)                                                                          \
  do {                                                                                                     \
    if (!(condition)) [[unlikely]]                                                                         \
      throw ::fl::InternalError(::fmt::format("{}:{}: internal check '{}' failed. {}", __FILE__, __LINE__, \
                                              #condition, ::fmt::format("" __VA_ARGS__)));                 \
  } while (0)
