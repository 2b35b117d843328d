// Runs a kernel interpreted and compiled, and compares every byte that it wrote.
#pragma once
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "flambeau/codegen/cpu/compile.h"
#include "flambeau/loop/ir.h"

namespace fl::codegen {

/// The instruction sets that this processor can run, narrowest first.
std::vector<Isa> isas();
std::string isa_name(Isa isa);

using Bytes = std::vector<unsigned char>;
/// `count` elements: special values of the dtype, then random ones of every magnitude.
Bytes sample_data(DType dtype, int64_t count, std::mt19937_64& random);
/// Small whole numbers, on which floating arithmetic is exact.
Bytes small_data(DType dtype, int64_t count, std::mt19937_64& random);

/// What a kernel left behind: its buffers, and the message of the IndexError that it raised.
struct Outcome {
  std::vector<Bytes> buffers;
  std::string error;
};
/// Of a launch on copies of the buffers.
Outcome run_on(std::vector<Bytes> buffers, const std::function<void(std::span<void* const>)>& launch);
/// Of two sets of a kernel's buffers; empty: none.
std::string first_difference(const loop::Kernel& k, const std::vector<Bytes>& expected,
                             const std::vector<Bytes>& got);

/// The kernel on the first GPU against what is expected; empty: equal. Null where CUDA is not built.
[[gnu::weak]] std::string gpu_difference(const loop::Kernel& k, const Outcome& expected,
                                         const std::vector<Bytes>& buffers, const std::vector<int64_t>& sizes,
                                         const std::vector<loop::ScalarBits>& params);

/// Empty where all instruction sets give what the interpreter gives (nan equal to nan, the same errors
/// raised), and with FLAMBEAU_TEST_DEVICE=cuda the first GPU too; else what differs. With
/// FLAMBEAU_TEST_DEVICE=ptxas it is tried whether PTX assembles.
std::string difference(const loop::Kernel& k, const std::vector<Bytes>& buffers,
                       const std::vector<int64_t>& sizes, const std::vector<loop::ScalarBits>& params = {});

inline const DType kAllDTypes[] = {DType::Bool,    DType::UInt8,   DType::Int8,      DType::Int16,
                                   DType::Int32,   DType::Int64,   DType::Float16,   DType::BFloat16,
                                   DType::Float32, DType::Float64, DType::Complex64, DType::Complex128};

}  // namespace fl::codegen
