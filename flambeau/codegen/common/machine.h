// What code generation knows about the machine that it writes for.
#pragma once
#include <string>

namespace fl::codegen {

/// Instruction sets of x86-64 that can be asked for; Host takes all that this processor has.
enum class Isa { Host, Sse2, Avx2, Avx512 };

struct Machine {
  std::string triple, cpu, features;
  int vector_bytes = 16;
  bool has_half_conversion = false;    ///< float16 <-> float32
  bool has_bfloat_conversion = false;  ///< float32 -> bfloat16
  bool has_masked_memory = false;      ///< masked loads and stores of every width cost like plain ones
  bool has_gather = false;
  bool abs_wraps = true;  ///< The absolute value of the smallest integer is itself.
  /// Vectors go to memory under masks and to scattered addresses; else such lanes go one by one.
  bool has_vector_memory = true;
};

/// The machine's description; raises ValueError where this processor lacks the instruction set.
const Machine& machine_for(Isa isa);

}  // namespace fl::codegen
