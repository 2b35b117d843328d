#include "flambeau/loop/ir.h"

namespace fl::loop {

std::string_view name(ReduceOp op) {
  static constexpr std::string_view kNames[] = {"sum", "prod",   "min",    "max",     "any",
                                                "all", "argmin", "argmax", "welford", "online_softmax"};
  return kNames[static_cast<int>(op)];
}

int operand_count(ReduceOp op) { return op == ReduceOp::ArgMin || op == ReduceOp::ArgMax ? 2 : 1; }

int result_count(ReduceOp op) {
  switch (op) {
    case ReduceOp::ArgMin:
    case ReduceOp::ArgMax:
    case ReduceOp::OnlineSoftmax:
      return 2;
    case ReduceOp::Welford:
      return 3;
    default:
      return 1;
  }
}

Expr symbol_of(int32_t id) { return Expr::symbol("%" + std::to_string(id), sym::kUnbounded); }

int32_t value_of(const Expr& symbol) {
  const std::string& text = symbol.name();
  return text.size() > 1 && text[0] == '%' ? static_cast<int32_t>(std::stol(text.substr(1))) : -1;
}

}  // namespace fl::loop
