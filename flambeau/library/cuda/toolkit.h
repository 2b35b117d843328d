// The libraries of CUDA's toolkit, which may not be there: cuBLASLt, cuDNN. Opened by name at run time.
#pragma once
#include <string>
#include <vector>

#include "flambeau/library/cuda/dynamic_library.h"

namespace fl::library::cuda {

/// Opens the library of this file name. First in the folders that FLAMBEAU_CUDA_LIBRARIES lists, then in
/// those of set_toolkit_folders() (and below them, as Python's packages nvidia/ have it), then where the
/// system looks, then in /usr/local/cuda. Opens nothing where FLAMBEAU_CUDA_DRIVER names another driver.
DynamicLibrary open_toolkit_library(const std::string& file);

/// Folders to look in, for libraries that are opened from now on: Python's folders nvidia/.
void set_toolkit_folders(std::vector<std::string> folders);

/// The files that are tried in these folders and elsewhere, in order.
std::vector<std::string> toolkit_candidates(const std::string& file, const std::vector<std::string>& folders);

}  // namespace fl::library::cuda
