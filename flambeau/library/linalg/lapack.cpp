#include "flambeau/library/linalg/lapack.h"

#include <dlfcn.h>

#include <iterator>

#include "flambeau/base/error.h"

namespace fl::library {
namespace {

struct Lapack {
  void* handle = nullptr;
  const char* file = "none";
};

const Lapack& loaded() {
  static const Lapack library = [] {
    // Debian's alternatives make the first name the variant with OpenMP's threads.
    for (const char* file : {"libopenblas.so.0", "liblapack.so.3"})
      if (void* handle = dlopen(file, RTLD_NOW | RTLD_LOCAL)) return Lapack{handle, file};
    return Lapack{};
  }();
  return library;
}

}  // namespace

bool lapack_available() { return loaded().handle != nullptr; }

std::string lapack_version() {
  if (!lapack_available()) return "none";
  const auto config = reinterpret_cast<char* (*)()>(dlsym(loaded().handle, "openblas_get_config"));
  return config ? config() : loaded().file;
}

void* lapack_symbol(char letter, const char* name) {
  FL_CHECK(lapack_available(), NotImplementedError,
           "linear algebra needs LAPACK, and neither libopenblas.so.0 nor liblapack.so.3 is installed: on "
           "Debian, apt-get install libopenblas0-openmp");
  const std::string symbol = fmt::format("{}{}_", letter, name);
  void* const address = dlsym(loaded().handle, symbol.c_str());
  FL_CHECK(address, NotImplementedError, "{} has no routine {}", loaded().file, symbol);
  return address;
}

}  // namespace fl::library
