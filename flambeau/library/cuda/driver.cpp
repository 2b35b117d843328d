#include "flambeau/library/cuda/driver.h"

#include "flambeau/base/option.h"
#include "flambeau/library/cuda/dynamic_library.h"

#define FL_TEXT(x) #x
#define FL_EXPANDED_TEXT(x) FL_TEXT(x)

namespace fl::library::cuda {
namespace {

std::string load(Driver& d) {
  const std::string given = option("FLAMBEAU_CUDA_DRIVER");
  static const DynamicLibrary library({given.empty() ? "libcuda.so.1" : given.c_str()});
  if (!library.is_open()) return "the library libcuda.so.1 of NVIDIA's driver is not on this machine";
#define FL_CUDA_LOAD(function)                                                                   \
  d.function = reinterpret_cast<decltype(d.function)>(library.find(FL_EXPANDED_TEXT(function))); \
  if (!d.function) return "NVIDIA's driver is too old: it lacks " FL_EXPANDED_TEXT(function);
  FL_CUDA_FUNCTIONS(FL_CUDA_LOAD)
#undef FL_CUDA_LOAD
  if (const CUresult error = d.cuInit(0); error != CUDA_SUCCESS) {
    const char* name = nullptr;
    d.cuGetErrorName(error, &name);
    return fmt::format("NVIDIA's driver does not start: {}", name ? name : std::to_string(error).c_str());
  }
  d.cuDriverGetVersion(&d.version);
  d.cuDeviceGetCount(&d.device_count);
  return d.device_count > 0 ? "" : "NVIDIA's driver finds no device";
}

const LoadedFunctions<Driver>& loaded() { return loaded_functions<Driver, load>(); }

}  // namespace

const Driver* find_driver() { return loaded().find(); }

const Driver& driver() {
  const Driver* d = find_driver();
  FL_CHECK(d, RuntimeError, "no CUDA device can be used: {}", why_no_driver());
  return *d;
}

const std::string& why_no_driver() { return loaded().problem; }

void raise_error(CUresult error, const char* call) {
  const Driver& d = driver();
  const char *name = nullptr, *text = nullptr;
  d.cuGetErrorName(error, &name);
  d.cuGetErrorString(error, &text);
  const std::string message = fmt::format("{} failed: {} ({})", call, name ? name : "?", text ? text : "?");
  if (error == CUDA_ERROR_OUT_OF_MEMORY) throw OutOfMemoryError(message);
  throw RuntimeError(message);
}

}  // namespace fl::library::cuda
