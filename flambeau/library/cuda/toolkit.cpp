#include "flambeau/library/cuda/toolkit.h"

#include <mutex>
#include <sstream>

#include "flambeau/base/option.h"

namespace fl::library::cuda {
namespace {

struct Folders {
  std::mutex mutex;
  std::vector<std::string> list;
};

Folders& given_folders() {
  static Folders& folders = *new Folders;
  return folders;
}

}  // namespace

void set_toolkit_folders(std::vector<std::string> folders) {
  std::lock_guard lock(given_folders().mutex);
  given_folders().list = std::move(folders);
}

std::vector<std::string> toolkit_candidates(const std::string& file,
                                            const std::vector<std::string>& folders) {
  std::vector<std::string> files;
  for (const std::string& folder : folders)
    for (const char* below : {"", "lib/", "lib64/", "cu13/lib/", "cublas/lib/", "cudnn/lib/"})
      files.push_back(folder + "/" + below + file);
  files.push_back(file);
  files.push_back("/usr/local/cuda/lib64/" + file);
  return files;
}

DynamicLibrary open_toolkit_library(const std::string& file) {
  // They call the system's driver, whatever this library was told to use.
  if (!option("FLAMBEAU_CUDA_DRIVER").empty()) return DynamicLibrary({});
  std::vector<std::string> folders;
  std::istringstream listed(option("FLAMBEAU_CUDA_LIBRARIES"));
  for (std::string folder; std::getline(listed, folder, ':');)
    if (!folder.empty()) folders.push_back(folder);
  {
    std::lock_guard lock(given_folders().mutex);
    const std::vector<std::string>& given = given_folders().list;
    folders.insert(folders.end(), given.begin(), given.end());
  }
  for (const std::string& candidate : toolkit_candidates(file, folders))
    if (const DynamicLibrary library({candidate.c_str()}); library.is_open()) return library;
  return DynamicLibrary({});
}

}  // namespace fl::library::cuda
