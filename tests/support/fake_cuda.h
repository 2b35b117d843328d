// What the parts of the stand-in for NVIDIA's driver share. fake_cuda_driver.cpp: memory, streams, kernels;
// fake_cuda_graphs.cpp: work that is recorded instead of being run.
#pragma once
#include <cuda.h>

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "flambeau/loop/ir.h"

namespace fake {

struct Context {
  int device;
};
struct Module {
  fl::loop::Kernel kernel;
};

extern std::recursive_mutex g_mutex;
extern thread_local Context* t_context;

/// A launch with copies of its arguments.
struct KernelCall {
  Module* module = nullptr;
  int device = 0;
  unsigned blocks = 0, threads = 0;
  std::vector<std::vector<char>> arguments;

  KernelCall() = default;
  KernelCall(CUfunction f, int device, unsigned blocks, unsigned threads, void** params);
  CUresult run() const;
};

struct Capture;
struct Stream {
  Capture* capture = nullptr;
  size_t put = 0, joined = 0;  // how much work was recorded, and how much of it the first stream waits for
  CUgraphNode tail = nullptr;
};
/// Of the handle; of the default stream, too.
Stream& stream_of(CUstream s);

struct CapturedEvent {
  Capture* capture = nullptr;
  Stream* stream = nullptr;
  size_t position = 0;
};
/// An event recorded on the stream: where it is, if the stream is recorded.
CapturedEvent place_of(CUstream s);
/// The stream waits for such an event, and is recorded from then on.
CUresult join(CUstream s, const CapturedEvent& e);

/// Runs the work at once, or makes it a part of the graph that the stream is recorded into.
CUresult put(CUstream s, std::function<CUresult()> work);
CUresult put(CUstream s, KernelCall call);
/// Whether the stream is recorded: then what the call would do is refused, and the recording is spoilt.
CUresult refuse_if_recorded(CUstream s);
/// The same for calls that wait for everything.
CUresult refuse_if_any_is_recorded();
/// For calls that no stream sees, such as the allocation of memory.
CUresult check_unsafe_call();

}  // namespace fake

#define FAKE(name) extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI name
#define LOCK std::lock_guard lock(fake::g_mutex)
