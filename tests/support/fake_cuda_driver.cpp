// A stand-in for NVIDIA's driver, so that everything but machine code can be tested on a machine without a
// GPU. Kernels are run by the loop interpreter, from the text in front of their PTX. Device memory lies at
// addresses that the host can't touch: code that mistakes a device's pointer for its own crashes here as it
// would with a GPU.
#include <cuda.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "flambeau/codegen/gpu/compile.h"
#include "flambeau/loop/interpret.h"
#include "tests/support/fake_cuda.h"

namespace {

using fake::Context;
using fake::Module;
using fake::t_context;

using fl::codegen::GpuErrorSlot;

constexpr int kDevices = 2;
constexpr size_t kBytes = size_t(4) << 30;  // of each device
constexpr size_t kPage = 4096;

struct Region {
  char* device = nullptr;         // forbidden addresses
  char* host = nullptr;           // the same memory
  std::map<size_t, size_t> used;  // offset -> size

  Region() {
    const int file = memfd_create("device", 0);
    if (ftruncate(file, kBytes) != 0) std::abort();
    host = static_cast<char*>(
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0));
    device = static_cast<char*>(
        mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (host == MAP_FAILED || device == MAP_FAILED) std::abort();
    close(file);
  }
  bool has(const void* p) const {
    auto* at = static_cast<const char*>(p);
    return at >= device && at < device + kBytes;
  }
  /// The block that the address is in; nothing where there is none.
  bool in_use(const void* p, size_t bytes) const {
    const size_t at = static_cast<size_t>(static_cast<const char*>(p) - device);
    auto it = used.upper_bound(at);
    if (it == used.begin()) return false;
    --it;
    return at + bytes <= it->first + it->second;
  }
};

struct Event {
  std::chrono::steady_clock::time_point time;
  bool recorded = false;
  fake::CapturedEvent captured;
};

Region* g_regions = nullptr;
Context g_contexts[kDevices] = {{0}, {1}};
std::map<char*, size_t> g_pinned;  // page-locked blocks

Region* region_of(const void* p) {
  for (int d = 0; d < kDevices; ++d)
    if (g_regions[d].has(p)) return &g_regions[d];
  return nullptr;
}

/// Where the host finds the memory; null where a device address is in no block.
char* reach(const void* p, size_t bytes) {
  Region* r = region_of(p);
  if (!r) return static_cast<char*>(const_cast<void*>(p));
  if (!r->in_use(p, bytes)) return nullptr;
  return r->host + (static_cast<const char*>(p) - r->device);
}

template <class T>
T* as(CUdeviceptr p) {
  return reinterpret_cast<T*>(p);
}

/// Fills the slot from the interpreter's message, by the check whose text it has.
void report(const fl::loop::Kernel& k, const std::string& message, GpuErrorSlot* slot, int64_t number) {
  if (slot->state != 0) return;
  uint32_t check = 0;
  for (const auto& stage : k.stages)
    for (const fl::loop::Assert& a : stage.asserts) {
      const size_t hole = a.message.find("{}");
      const std::string before = a.message.substr(0, hole);
      if (message.starts_with(before)) {
        const std::string value = message.substr(before.size());
        slot->check = check;
        slot->kernel = number;
        if (fl::is_integral(k.insts[a.value].dtype, true))
          slot->value = fl::loop::ScalarBits::of(static_cast<int64_t>(std::atoll(value.c_str())));
        slot->state = 2;
        return;
      }
      ++check;
    }
}

std::string kernel_text(const char* image) {
  std::string out;
  while (std::strncmp(image, "//", 2) == 0) {
    const char* end = std::strchr(image, '\n');
    out.append(image + 2, end + 1);
    image = end + 1;
  }
  return out;
}

/// Whether a copy may be a part of a graph: what is on neither device has to be page-locked.
bool is_pageable(const void* p) {
  if (region_of(p)) return false;
  auto it = g_pinned.upper_bound(static_cast<char*>(const_cast<void*>(p)));
  return it == g_pinned.begin() ||
         static_cast<const char*>(p) >= std::prev(it)->first + std::prev(it)->second;
}

}  // namespace

namespace fake {

std::recursive_mutex g_mutex;
thread_local Context* t_context = nullptr;

Stream& stream_of(CUstream s) {
  static Stream standard;
  return s ? *reinterpret_cast<Stream*>(s) : standard;
}

KernelCall::KernelCall(CUfunction f, int device, unsigned blocks, unsigned threads, void** params)
    : module(reinterpret_cast<Module*>(f)), device(device), blocks(blocks), threads(threads) {
  const auto keep = [&](size_t bytes) {
    const char* from = static_cast<const char*>(*params++);
    arguments.emplace_back(from, from + bytes);
  };
  const fl::loop::Kernel& k = module->kernel;
  for (const fl::loop::Buffer& b : k.buffers)
    keep(b.by_value ? static_cast<size_t>(fl::size_of(b.dtype)) : sizeof(void*));
  for (size_t s = 0; s < k.sizes.size(); ++s) keep(sizeof(int64_t));
  for (const fl::DType d : k.params) keep(static_cast<size_t>(fl::size_of(d)));
  keep(sizeof(void*));
  keep(sizeof(int64_t));
}

CUresult KernelCall::run() const {
  const fl::loop::Kernel& k = module->kernel;
  std::vector<void*> buffers;
  std::vector<int64_t> sizes;
  std::vector<fl::loop::ScalarBits> scalars;
  const auto* argument = arguments.data();
  const auto word = [&](const std::vector<char>& bytes) {
    int64_t out;
    std::memcpy(&out, bytes.data(), sizeof(out));
    return out;
  };
  for (const fl::loop::Buffer& b : k.buffers) {
    void* at = const_cast<char*>(argument->data());
    if (!b.by_value) {
      at = reinterpret_cast<void*>(word(*argument));
      Region* r = region_of(at);
      // Of another device, of the host, or not in use: a GPU would fault, or compute garbage.
      if (at && (r != &g_regions[device] || !(at = reach(at, 0)))) return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    buffers.push_back(at);
    ++argument;
  }
  for (size_t s = 0; s < k.sizes.size(); ++s) sizes.push_back(word(*argument++));
  for (size_t p = 0; p < k.params.size(); ++p, ++argument) {
    fl::loop::ScalarBits bits;
    std::memcpy(bits.bytes, argument->data(), argument->size());
    scalars.push_back(bits);
  }
  auto* slot = reinterpret_cast<GpuErrorSlot*>(word(argument[0]));
  try {
    fl::loop::interpret(k, buffers, sizes, scalars);
  } catch (const fl::IndexError& e) {
    report(k, e.message(), slot, word(argument[1]));
  }
  return CUDA_SUCCESS;
}

}  // namespace fake

FAKE(cuInit)(unsigned) {
  LOCK;
  if (!g_regions) g_regions = new Region[kDevices];
  return CUDA_SUCCESS;
}
FAKE(cuDriverGetVersion)(int* v) { return *v = 13000, CUDA_SUCCESS; }
FAKE(cuGetErrorName)(CUresult e, const char** s) {
  static thread_local std::string text;
  text = "CUDA_ERROR_" + std::to_string(e);
  return *s = text.c_str(), CUDA_SUCCESS;
}
FAKE(cuGetErrorString)(CUresult, const char** s) { return *s = "an error of the fake driver", CUDA_SUCCESS; }
FAKE(cuDeviceGetCount)(int* n) { return *n = kDevices, CUDA_SUCCESS; }
FAKE(cuDeviceGet)(CUdevice* d, int i) { return *d = i, CUDA_SUCCESS; }
FAKE(cuDeviceGetName)(char* s, int n, CUdevice d) {
  return std::snprintf(s, static_cast<size_t>(n), "Fake %d", d), CUDA_SUCCESS;
}
FAKE(cuDeviceGetPCIBusId)(char* s, int n, CUdevice d) {
  return std::snprintf(s, static_cast<size_t>(n), "0000:0%d:00.0", d), CUDA_SUCCESS;
}
FAKE(cuDeviceGetUuid)(CUuuid* u, CUdevice d) { return std::memset(u, d + 1, sizeof(*u)), CUDA_SUCCESS; }
FAKE(cuDeviceTotalMem)(size_t* n, CUdevice) { return *n = kBytes, CUDA_SUCCESS; }
FAKE(cuDeviceCanAccessPeer)(int* yes, CUdevice, CUdevice) { return *yes = 1, CUDA_SUCCESS; }
FAKE(cuDeviceGetAttribute)(int* v, CUdevice_attribute a, CUdevice) {
  switch (a) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return *v = 9, CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return *v = 0, CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      return *v = 32, CUDA_SUCCESS;
    default:
      return *v = 1024, CUDA_SUCCESS;
  }
}
FAKE(cuDevicePrimaryCtxRetain)(CUcontext* c, CUdevice d) {
  return *c = reinterpret_cast<CUcontext>(&g_contexts[d]), CUDA_SUCCESS;
}
FAKE(cuCtxSetCurrent)(CUcontext c) { return t_context = reinterpret_cast<Context*>(c), CUDA_SUCCESS; }
FAKE(cuCtxGetCurrent)(CUcontext* c) { return *c = reinterpret_cast<CUcontext>(t_context), CUDA_SUCCESS; }
FAKE(cuCtxSynchronize)() {
  LOCK;
  return t_context ? fake::refuse_if_any_is_recorded() : CUDA_ERROR_INVALID_CONTEXT;
}
FAKE(cuCtxEnablePeerAccess)(CUcontext, unsigned) { return CUDA_SUCCESS; }
FAKE(cuCtxGetStreamPriorityRange)(int* a, int* b) { return *a = 0, *b = -5, CUDA_SUCCESS; }

FAKE(cuMemAlloc)(CUdeviceptr* out, size_t bytes) {
  LOCK;
  if (!t_context) return CUDA_ERROR_INVALID_CONTEXT;
  if (const CUresult e = fake::check_unsafe_call(); e != CUDA_SUCCESS) return e;
  Region& r = g_regions[t_context->device];
  const size_t size = (bytes + kPage - 1) / kPage * kPage;
  size_t at = 0;
  for (const auto& [offset, used] : r.used) {
    if (offset >= at + size) break;
    at = offset + used;
  }
  if (at + size > kBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  r.used[at] = size;
  // What a kernel reads before it writes shows.
  std::memset(r.host + at, 0xcb, std::min<size_t>(size, 1 << 22));
  return *out = reinterpret_cast<CUdeviceptr>(r.device + at), CUDA_SUCCESS;
}
FAKE(cuMemFree)(CUdeviceptr p) {
  LOCK;
  if (const CUresult e = fake::check_unsafe_call(); e != CUDA_SUCCESS) return e;
  Region* r = region_of(as<void>(p));
  return r && r->used.erase(static_cast<size_t>(as<char>(p) - r->device)) ? CUDA_SUCCESS
                                                                          : CUDA_ERROR_INVALID_VALUE;
}
FAKE(cuMemGetInfo)(size_t* free, size_t* total) {
  LOCK;
  *total = *free = kBytes;
  for (const auto& [offset, size] : g_regions[t_context->device].used) *free -= size;
  return CUDA_SUCCESS;
}
FAKE(cuMemHostAlloc)(void** p, size_t bytes, unsigned) {
  LOCK;
  if (const CUresult e = fake::check_unsafe_call(); e != CUDA_SUCCESS) return e;
  const size_t size = (bytes + 63) / 64 * 64;
  *p = std::aligned_alloc(64, size);
  if (*p) g_pinned[static_cast<char*>(*p)] = size;
  return *p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
FAKE(cuMemFreeHost)(void* p) {
  LOCK;
  g_pinned.erase(static_cast<char*>(p));
  return std::free(p), CUDA_SUCCESS;
}
FAKE(cuPointerGetAttribute)(void*, CUpointer_attribute, CUdeviceptr) { return CUDA_ERROR_INVALID_VALUE; }
FAKE(cuMemcpyAsync)(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s) {
  LOCK;
  if (!t_context) return CUDA_ERROR_INVALID_VALUE;
  if (is_pageable(as<void>(to)) || is_pageable(as<void>(from)))
    if (const CUresult e = fake::refuse_if_recorded(s); e != CUDA_SUCCESS) return e;
  return fake::put(s, [=] {
    char *a = reach(as<void>(to), bytes), *b = reach(as<void>(from), bytes);
    return a && b ? (std::memmove(a, b, bytes), CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE;
  });
}
FAKE(cuMemcpyPeerAsync)(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes, CUstream s) {
  return cuMemcpyAsync(to, from, bytes, s);
}
FAKE(cuMemcpy2DAsync)(const CUDA_MEMCPY2D*, CUstream) { return CUDA_ERROR_NOT_SUPPORTED; }
FAKE(cuMemsetD8Async)(CUdeviceptr to, unsigned char value, size_t bytes, CUstream s) {
  LOCK;
  return fake::put(s, [=] {
    char* a = reach(as<void>(to), bytes);
    return a ? (std::memset(a, value, bytes), CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE;
  });
}

FAKE(cuMemsetD2D8Async)
(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height, CUstream s) {
  LOCK;
  if (height == 0 || width > pitch) return CUDA_ERROR_INVALID_VALUE;
  return fake::put(s, [=] {
    char* a = reach(as<void>(to), pitch * (height - 1) + width);
    if (!a) return CUDA_ERROR_INVALID_VALUE;
    for (size_t row = 0; row < height; ++row) std::memset(a + row * pitch, value, width);
    return CUDA_SUCCESS;
  });
}

FAKE(cuStreamCreateWithPriority)(CUstream* s, unsigned, int) {
  return *s = reinterpret_cast<CUstream>(new fake::Stream), CUDA_SUCCESS;
}
FAKE(cuStreamDestroy)(CUstream s) { return delete reinterpret_cast<fake::Stream*>(s), CUDA_SUCCESS; }
FAKE(cuStreamSynchronize)(CUstream s) {
  LOCK;
  return fake::refuse_if_recorded(s);
}
FAKE(cuStreamQuery)(CUstream s) {
  LOCK;
  return fake::refuse_if_recorded(s);
}
FAKE(cuStreamWaitEvent)(CUstream s, CUevent e, unsigned) {
  LOCK;
  return fake::join(s, reinterpret_cast<Event*>(e)->captured);
}
FAKE(cuLaunchHostFunc)(CUstream s, CUhostFn f, void* data) {
  LOCK;
  return fake::put(s, [=] { return f(data), CUDA_SUCCESS; });
}
FAKE(cuEventCreate)(CUevent* e, unsigned) { return *e = reinterpret_cast<CUevent>(new Event), CUDA_SUCCESS; }
FAKE(cuEventDestroy)(CUevent e) { return delete reinterpret_cast<Event*>(e), CUDA_SUCCESS; }
FAKE(cuEventRecord)(CUevent e, CUstream s) {
  LOCK;
  auto* event = reinterpret_cast<Event*>(e);
  event->recorded = true;
  event->captured = fake::place_of(s);
  return event->time = std::chrono::steady_clock::now(), CUDA_SUCCESS;
}
FAKE(cuEventQuery)(CUevent e) {
  return reinterpret_cast<Event*>(e)->captured.capture ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
}
FAKE(cuEventSynchronize)(CUevent e) { return cuEventQuery(e); }
FAKE(cuEventElapsedTime)(float* ms, CUevent a, CUevent b) {
  const auto *from = reinterpret_cast<Event*>(a), *to = reinterpret_cast<Event*>(b);
  if (!from->recorded || !to->recorded) return CUDA_ERROR_INVALID_HANDLE;
  *ms = std::chrono::duration<float, std::milli>(to->time - from->time).count();
  return CUDA_SUCCESS;
}

FAKE(cuModuleLoadDataEx)(CUmodule* m, const void* image, unsigned, CUjit_option*, void**) {
  LOCK;
  if (const CUresult e = fake::check_unsafe_call(); e != CUDA_SUCCESS) return e;
  try {
    *m = reinterpret_cast<CUmodule>(
        new Module{fl::loop::parse_kernel(kernel_text(static_cast<const char*>(image)))});
    return CUDA_SUCCESS;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "fake driver: %s\n", e.what());
    return CUDA_ERROR_INVALID_PTX;
  }
}
FAKE(cuModuleUnload)(CUmodule m) { return delete reinterpret_cast<Module*>(m), CUDA_SUCCESS; }
FAKE(cuModuleGetFunction)(CUfunction* f, CUmodule m, const char*) {
  return *f = reinterpret_cast<CUfunction>(m), CUDA_SUCCESS;
}
FAKE(cuFuncSetAttribute)(CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; }
FAKE(cuFuncGetAttribute)(int* v, CUfunction_attribute, CUfunction) { return *v = 0, CUDA_SUCCESS; }
FAKE(cuOccupancyMaxActiveBlocksPerMultiprocessor)(int* n, CUfunction, int, size_t) {
  return *n = 1, CUDA_SUCCESS;
}
FAKE(cuLaunchKernel)
(CUfunction f, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned, unsigned,
 CUstream s, void** params, void**) {
  LOCK;
  if (!t_context) return CUDA_ERROR_INVALID_CONTEXT;
  if (blocks == 0 || threads == 0 || threads > 1024) return CUDA_ERROR_INVALID_VALUE;
  return fake::put(s, fake::KernelCall(f, t_context->device, blocks, threads, params));
}
