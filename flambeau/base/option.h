// Options that come from the environment, each described here and nowhere else.
//
//   FLAMBEAU_DUMP=graph,program,kernels,llvm,asm   texts of these stages on standard error
//   FLAMBEAU_SKIP=pass,pass                        passes over graphs to leave out
//   FLAMBEAU_VERIFY=0                              no verification of graphs after each pass
//   FLAMBEAU_CACHE_DIR, FLAMBEAU_CACHE=0           where compiled kernels are kept; off
//   FLAMBEAU_TIMING=1                              stages of each compilation in ms on standard error
//   FLAMBEAU_PROFILE=1                             time of each kernel and library call, when a program ends
//   FLAMBEAU_CUDA_LIBRARIES=folder:folder          where cuBLASLt and cuDNN lie; or Python's folder nvidia/
//   FLAMBEAU_FUZZ_COUNT, FLAMBEAU_FUZZ_SEED        length and seed of random tests
#pragma once
#include <string>
#include <string_view>

namespace fl {

/// The option's text, or the given one where it is not set.
std::string option(const char* name, std::string_view otherwise = "");
/// Whether the option is a list separated by commas that has the word.
bool option_lists(const char* name, std::string_view word);

}  // namespace fl
