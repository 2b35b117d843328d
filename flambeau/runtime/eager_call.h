// One eager call of a primitive as a program with symbolic sizes, kept for the next call of its kind.
#pragma once
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "flambeau/runtime/executable.h"
#include "flambeau/sym/shape_env.h"

namespace fl::runtime {

/// What calls of one kind share: the device, dtypes, ranks, which sizes are 0, 1 or equal, memory layouts,
/// and arguments that are no sizes. Sizes and numbers themselves stay open.
struct CallKind {
  std::string key;
  std::vector<Tensor> tensors;             ///< inputs of the program, numbers as 0-dim tensors among them
  std::vector<int64_t> values;             ///< of the symbols, in order
  std::vector<int64_t> numbers;            ///< integer inputs of the program
  std::vector<Value> args;                 ///< tensors as GraphRef{k, 0}: input k; open integers as symbols
  std::vector<TensorSpec> specs;           ///< of the inputs, over the symbols
  std::vector<TensorSpec> target_layouts;  ///< of given outputs
  std::vector<sym::Expr> symbols;          ///< one for each value
  std::vector<sym::Expr> number_symbols;
};

/// Programs of one operator.
class EagerPrograms {
 public:
  /// Runs a call; targets: outputs to write to (empty: new ones).
  std::vector<Value> run(const OpInfo& op, const Value* args, Device device, std::span<const Tensor> targets);

 private:
  struct Variant {
    std::unique_ptr<Executable> executable;
    std::vector<sym::Guard> guards;
    std::unique_ptr<ExpressionTable> guard_table;
    std::vector<std::pair<int, int>> guard_entries;
  };
  const Variant* find(const std::string& key, std::span<const int64_t> values);
  const Variant& compile(const OpInfo& op, const Value* args, const CallKind& call);

  std::mutex mutex_;
  std::unordered_map<std::string, std::vector<std::unique_ptr<Variant>>> variants_;
};

/// Sorts a call into its kind.
CallKind classify(const OpInfo& op, const Value* args, Device device, std::span<const Tensor> targets);

}  // namespace fl::runtime
