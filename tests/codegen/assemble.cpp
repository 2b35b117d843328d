#include "assemble.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include <fmt/format.h>

namespace fl::codegen {

bool has_assembler() {
  static const bool found = std::system("ptxas --version > /dev/null 2>&1") == 0;
  return found;
}

std::string assemble(const std::string& ptx, const std::string& options) {
  const std::string path = fmt::format("/tmp/flambeau_{}.ptx", ::getpid());
  std::ofstream(path) << ptx;
  const std::string command = fmt::format("ptxas -arch=sm_90 {} -o /dev/null {} 2>&1", options, path);
  std::string out;
  FILE* pipe = ::popen(command.c_str(), "r");
  char line[512];
  while (pipe && std::fgets(line, sizeof line, pipe)) out += line;
  const int status = pipe ? ::pclose(pipe) : -1;
  std::remove(path.c_str());
  return status == 0 && options.empty() ? "" : out.empty() && status != 0 ? "ptxas failed" : out;
}

}  // namespace fl::codegen
