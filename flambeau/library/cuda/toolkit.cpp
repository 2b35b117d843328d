#include "flambeau/library/cuda/toolkit.h"

#include <sstream>

#include "flambeau/base/option.h"

namespace fl::library::cuda {

std::vector<std::string> toolkit_candidates(const std::string& file, const std::string& folders) {
  std::vector<std::string> files;
  std::istringstream list(folders);
  for (std::string folder; std::getline(list, folder, ':');) {
    if (folder.empty()) continue;
    for (const char* below : {"", "lib/", "lib64/", "cu13/lib/", "cublas/lib/", "cudnn/lib/"})
      files.push_back(folder + "/" + below + file);
  }
  files.push_back(file);
  files.push_back("/usr/local/cuda/lib64/" + file);
  return files;
}

DynamicLibrary open_toolkit_library(const std::string& file) {
  // They call the system's driver, whatever this library was told to use.
  if (!option("FLAMBEAU_CUDA_DRIVER").empty()) return DynamicLibrary({});
  for (const std::string& candidate : toolkit_candidates(file, option("FLAMBEAU_CUDA_LIBRARIES")))
    if (const DynamicLibrary library({candidate.c_str()}); library.is_open()) return library;
  return DynamicLibrary({});
}

}  // namespace fl::library::cuda
