// Random programs over the operators, as data: they can be printed, run again on other sizes, and shrunk.
#pragma once
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "flambeau/op/op.h"
#include "flambeau/tensor/tensor.h"

namespace fl::testing {

/// In the sizes of an input: the size that a run chooses.
inline constexpr int64_t kOpenSize = -1;
/// Its value while a program is made; no other size that a generator picks is equal to it.
inline constexpr int64_t kFirstSize = 6;

struct ProgramInput {
  enum class Layout { Contiguous, Transposed, Strided };
  std::vector<int64_t> sizes;
  DType dtype = DType::Float32;
  Layout layout = Layout::Contiguous;
  bool interior = false;     ///< of programs with gradients: not a leaf
  bool as_float64 = false;   ///< the same numbers in float64
  int64_t index_limit = -1;  ///< of int64 ones: elements are indices below it
  uint64_t seed = 0;
};

/// One call. GraphRef{v, 0} stands for value v; the symbol n in sizes for the open size.
struct ProgramStep {
  const OpInfo* op = nullptr;
  std::vector<Value> args;
  int results = -1;  ///< -1: not known yet
};

/// Values are numbered: the inputs, then the results of the steps.
struct RandomProgram {
  std::vector<ProgramInput> inputs;
  std::vector<ProgramStep> steps;
  std::vector<int> outputs;
  std::vector<bool> exact_outputs;  ///< equal to the bit however it is computed
  bool gradients = false;
  bool large = false;

  std::string str() const;
};

/// Fresh inputs, the same values at each call. Programs with gradients: `leaves` gets the leaves.
std::vector<Tensor> make_inputs(const RandomProgram& p, int64_t n, std::vector<Tensor>* leaves = nullptr);
/// Runs the steps on the inputs.
std::vector<Tensor> run_program(const RandomProgram& p, const std::vector<Tensor>& inputs);
/// Runs one step: the values that it adds.
void run_step(const ProgramStep& s, std::vector<Tensor>& values, SymInt n);

/// Makes a program. `broken`: messages of errors that no operator may raise.
RandomProgram random_program(uint64_t seed, std::vector<std::string>& broken);
/// The same program with float64 in the place of every other floating type.
RandomProgram in_float64(RandomProgram p);
/// A smaller program for which `fails` still holds.
RandomProgram shrink(RandomProgram p, const std::function<bool(const RandomProgram&)>& fails);

}  // namespace fl::testing
