#include "flambeau/op/scalar_ops.h"

#include <cctype>
#include <string>
#include <vector>

namespace fl {

std::string_view name(ScalarOp op) {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
#define FL_NAME(n, arity) out.emplace_back(#n);
    FL_SCALAR_OPS(FL_NAME)
#undef FL_NAME
    for (std::string& n : out)
      for (char& c : n) c = static_cast<char>(std::tolower(c));
    return out;
  }();
  return names[static_cast<size_t>(op)];
}

int arity(ScalarOp op) {
  static constexpr int kArity[] = {
#define FL_ARITY(n, arity) arity,
      FL_SCALAR_OPS(FL_ARITY)
#undef FL_ARITY
  };
  return kArity[static_cast<size_t>(op)];
}

}  // namespace fl
