#include "flambeau/library/cuda/assembler.h"

#include <cstdint>
#include <optional>

#include "flambeau/library/cuda/toolkit.h"

namespace fl::library::cuda {
namespace {

// As nvJitLink.h of CUDA 12 and 13 has it; every library has the names of its major version's first release.
constexpr int kPtx = 2;  // NVJITLINK_INPUT_PTX
using Handle = void*;

struct Library {
  int (*create)(Handle*, uint32_t, const char**) = nullptr;
  int (*destroy)(Handle*) = nullptr;
  int (*add)(Handle, int type, const void*, size_t, const char* name) = nullptr;
  int (*complete)(Handle) = nullptr;
  int (*size)(Handle, size_t*) = nullptr;
  int (*get)(Handle, void*) = nullptr;
  std::string version;
};

std::optional<Library> open(const std::string& major) {
  const DynamicLibrary file = open_toolkit_library("libnvJitLink.so." + major);
  Library out;
  const auto find = [&](auto& function, const char* name) {
    void* found = file.find((std::string("__nvJitLink") + name + "_" + major + "_0").c_str());
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
    return found != nullptr;
  };
  if (!file.is_open() || !find(out.create, "Create") || !find(out.destroy, "Destroy") ||
      !find(out.add, "AddData") || !find(out.complete, "Complete") || !find(out.size, "GetLinkedCubinSize") ||
      !find(out.get, "GetLinkedCubin"))
    return std::nullopt;
  out.version = "nvJitLink " + major;
  return out;
}

const std::optional<Library>& library() {
  static const std::optional<Library>& found = *[] {
    auto* out = new std::optional<Library>(open("13"));
    if (!*out) *out = open("12");
    return out;
  }();
  return found;
}

struct Link {
  const Library& l;
  Handle handle = nullptr;
  ~Link() {
    if (handle) l.destroy(&handle);
  }
};

}  // namespace

std::string assemble(const std::string& ptx, int capability) {
  if (!library()) return {};
  Link link{*library()};
  const std::string arch = "-arch=sm_" + std::to_string(capability);
  const char* options[] = {arch.c_str()};
  size_t size = 0;
  // The text with the zero at its end.
  if (link.l.create(&link.handle, 1, options) != 0 ||
      link.l.add(link.handle, kPtx, ptx.c_str(), ptx.size() + 1, "kernel") != 0 ||
      link.l.complete(link.handle) != 0 || link.l.size(link.handle, &size) != 0)
    return {};
  std::string cubin(size, '\0');
  return link.l.get(link.handle, cubin.data()) == 0 ? cubin : std::string();
}

std::string assembler_version() { return library() ? library()->version : std::string(); }

}  // namespace fl::library::cuda
