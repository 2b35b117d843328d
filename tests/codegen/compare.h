// Runs a kernel interpreted and compiled, and compares every byte that it wrote.
#pragma once
#include <cstdint>
#include <random>
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

/// Empty where all instruction sets give what the interpreter gives (nan equal to nan, the same errors
/// raised); else what differs.
std::string difference(const loop::Kernel& k, const std::vector<Bytes>& buffers,
                       const std::vector<int64_t>& sizes, const std::vector<loop::ScalarBits>& params = {});

inline const DType kAllDTypes[] = {DType::Bool,    DType::UInt8,   DType::Int8,      DType::Int16,
                                   DType::Int32,   DType::Int64,   DType::Float16,   DType::BFloat16,
                                   DType::Float32, DType::Float64, DType::Complex64, DType::Complex128};

}  // namespace fl::codegen
