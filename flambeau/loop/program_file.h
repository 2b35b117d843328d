// Programs as text in a file, for caches and packages.
#pragma once
#include <string>
#include <string_view>

#include "flambeau/loop/program.h"

namespace fl::loop {

/// Everything that runs: buffers, kernels as their text, library calls by their operators' schemas. JSON; it
/// holds no machine code, so it can be moved between machines.
std::string save_program(const Program& p);

/// Reads what save_program() wrote, and verifies its kernels and references. Raises ValueError on anything
/// else, RuntimeError where the text is of another version of this library or names an operator that this one
/// has not.
Program load_program(std::string_view text);

}  // namespace fl::loop
