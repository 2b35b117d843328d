// NVIDIA's assembler on PTX text, where it is on the PATH.
#pragma once
#include <string>

namespace fl::codegen {

bool has_assembler();
/// What it says against the text; empty: it makes machine code of it.
std::string assemble(const std::string& ptx, const std::string& options = "");

}  // namespace fl::codegen
