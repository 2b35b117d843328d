// A program with its machine code: runs on tensors.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "flambeau/loop/program.h"
#include "flambeau/runtime/device_runtime.h"
#include "flambeau/runtime/expression_table.h"

namespace fl::runtime {

enum class KernelRunner : uint8_t {
  Native,       ///< machine code for the program's device
  Interpreter,  ///< the loop interpreter: slow, for tests
};

struct ExecutableOptions {
  KernelRunner runner = KernelRunner::Native;
  /// Runs are recorded and run again as one, where the device can (recorded_runs.h).
  bool record = false;
};

/// Immutable after it was made; run() is reentrant and takes no lock. What depends on sizes alone (the
/// arena's layout, prepared library calls) is kept for the sizes that were seen; numbers that kernels alone
/// read, such as places of random numbers, may differ in every call.
class Executable {
 public:
  /// Compiles the kernels of a program, in parallel.
  explicit Executable(loop::Program program, ExecutableOptions options = {});
  ~Executable();

  /// inputs: the tensors of the call; those that are on another device than the program's are copied there
  /// unless it takes them by value, and outputs that belong on another device are copied back. numbers: its
  /// integers. `targets`: tensors that outputs are written to instead of new ones (undefined entries: new),
  /// with the strides that the program gives that output. Sizes were checked by the caller.
  std::vector<Value> run(std::span<const Tensor> inputs, std::span<const int64_t> numbers,
                         std::span<const Tensor> targets = {}) const;

  const loop::Program& program() const { return program_; }
  int kernel_count() const;
  /// Layouts that were made for sizes, and are kept.
  int plan_count() const { return plan_count_.load(); }
  /// Bytes that kernels and library calls read and write in one run, each of their buffers once, for given
  /// symbols.
  int64_t bytes_moved(const std::function<int64_t(const sym::Expr& symbol)>& size) const;

 private:
  struct SizePlan;
  struct CompiledStep;
  struct Run;
  struct VariableLaunch;
  class RecordedRuns;
  void find_layout_symbols();
  void find_loose_sizes();
  const SizePlan& plan(std::span<const int64_t> symbols, std::unique_ptr<SizePlan>& unshared) const;
  std::unique_ptr<SizePlan> make_plan(std::vector<int64_t> symbols) const;
  void check_bytes(const SizePlan& p) const;
  void place_temporaries(SizePlan& p) const;
  void prepare_library(SizePlan& p) const;
  void place(Run& run) const;
  template <class F>
  void with_arguments(const Run& run, size_t step, F&& f) const;
  void launch(const Run& run, const Recording* recording = nullptr,
              std::vector<VariableLaunch>* variable = nullptr) const;
  void change(const Run& run, const VariableLaunch& v, Recording& recording) const;
  std::vector<Value> results(const Run& run) const;

  loop::Program program_;
  ExecutableOptions options_;
  DeviceRuntime& runtime_;
  ExpressionTable table_;
  ExpressionTable loose_;            // of what layouts do not depend on
  std::vector<int> layout_symbols_;  // numbers of the symbols that layouts depend on
  struct BufferEntries {
    int elements, offset;
    std::vector<int> sizes, strides;
  };
  std::vector<BufferEntries> buffers_;
  struct OutputEntries {
    std::vector<int> sizes, strides;
    int offset = -1, number = -1;  // number: of loose_
  };
  std::vector<OutputEntries> outputs_;
  std::vector<CompiledStep> steps_;
  void print_profile() const;
  std::unique_ptr<std::vector<std::atomic<int64_t>>> profile_;  // ns of each step, under FLAMBEAU_PROFILE=1
  mutable std::atomic<SizePlan*> plans_{nullptr};               // a list that only grows, newest first
  mutable std::atomic<int> plan_count_{0};
  mutable std::atomic<int> recorded_layouts_{0};
};

}  // namespace fl::runtime
