// _C._cuda: what flambeau.cuda is made of. Built without CUDA's headers it has device_count() and why()
// alone.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "flambeau/ops/functions.h"
#include "module.h"

#ifdef FLAMBEAU_CUDA
#include "flambeau/library/cuda/cudnn.h"
#include "flambeau/library/cuda/precision.h"
#include "flambeau/library/cuda/toolkit.h"
#include "flambeau/runtime/cuda/allocator.h"
#include "flambeau/runtime/cuda/device.h"
#include "flambeau/runtime/cuda/graph.h"
#include "flambeau/runtime/recorded_runs.h"

namespace fl::python {
namespace {

using namespace runtime::cuda;

uintptr_t number(CUstream s) { return reinterpret_cast<uintptr_t>(s); }
Stream stream_of(int device, uintptr_t handle) { return {reinterpret_cast<CUstream>(handle), device}; }

nb::dict facts_of(int index) {
  const DeviceFacts& f = facts(index);
  nb::dict out;
  out["name"] = f.name;
  out["major"] = f.major;
  out["minor"] = f.minor;
  out["total_memory"] = f.total_bytes;
  out["multi_processor_count"] = f.multiprocessors;
  out["max_threads_per_multi_processor"] = f.threads_per_multiprocessor;
  out["shared_memory_per_block_optin"] = f.shared_bytes_per_block;
  out["warp_size"] = f.warp_size;
  out["L2_cache_size"] = f.l2_bytes;
  out["uuid"] = nb::bytes(f.uuid.data(), f.uuid.size());
  out["pci_id"] = f.pci_id;
  return out;
}

nb::dict counter(const Counter& c) {
  nb::dict out;
  out["current"] = c.current;
  out["peak"] = c.peak;
  out["allocated"] = c.allocated;
  out["freed"] = c.freed;
  return out;
}

nb::dict pool(const PoolFigures& p) {
  nb::dict out;
  out["allocation"] = counter(p.blocks);
  out["allocated_bytes"] = counter(p.bytes);
  out["segment"] = counter(p.segments);
  out["reserved_bytes"] = counter(p.reserved_bytes);
  out["inactive_split"] = p.split_blocks;
  out["inactive_split_bytes"] = p.split_bytes;
  return out;
}

nb::dict memory_of(int index) {
  const AllocatorStats s = device_allocator(index).stats();
  nb::dict out;
  out["allocated"] = s.allocated;
  out["peak_allocated"] = s.peak;
  out["reserved"] = s.reserved;
  out["peak_reserved"] = peak_reserved(index);
  return out;
}

nb::dict figures_of(int index) {
  const MemoryFigures f = memory_figures(index);
  nb::dict out;
  out["all"] = pool(f.all);
  out["small_pool"] = pool(f.small);
  out["large_pool"] = pool(f.large);
  out["num_alloc_retries"] = f.retries;
  out["num_ooms"] = f.failures;
  return out;
}

void bind_devices(nb::module_& m) {
  m.def("device_count", &device_count);
  m.def("why", [] { return library::cuda::why_no_driver(); });
  m.def("driver_version", [] { return library::cuda::driver().version; });
  m.def("facts", &facts_of);
  m.def("attribute", [](int index, int attribute) {
    CUdevice device = 0;
    int value = 0;
    FL_CUDA(cuDeviceGet, &device, index);
    FL_CUDA(cuDeviceGetAttribute, &value, static_cast<CUdevice_attribute>(attribute), device);
    return value;
  });
  m.def("current_device", &current_device);
  m.def("set_device", &set_current_device);
  m.def("synchronize", nb::overload_cast<int>(&synchronize), nb::call_guard<nb::gil_scoped_release>());
}

void bind_memory(nb::module_& m) {
  m.def("memory", &memory_of);
  m.def("memory_figures", &figures_of);
  m.def("memory_info", &memory_info);
  m.def("reset_peak", [](int device) {
    device_allocator(device).reset_peak();
    reset_figures(device, true);
  });
  m.def("reset_accumulated", [](int device) { reset_figures(device, false); });
  m.def(
      "empty_cache", [](int device) { device_allocator(device).empty_cache(); },
      nb::call_guard<nb::gil_scoped_release>());
  m.def("set_memory_fraction", &set_memory_fraction);
  m.def("record_stream", [](const Tensor& t, int device, uintptr_t handle) {
    record_stream(t.device().index, t.storage()->data(), stream_of(device, handle));
  });
}

void bind_streams(nb::module_& m) {
  m.def("current_stream", [](int device) { return number(current_stream(device).handle); });
  m.def("set_stream", [](int device, uintptr_t s) { set_current_stream(stream_of(device, s)); });
  m.def("priority_range", [](int device) {
    int least = 0, greatest = 0;
    activate(device);
    FL_CUDA(cuCtxGetStreamPriorityRange, &least, &greatest);
    return std::pair(least, greatest);
  });
  m.def("can_access_peer", [](int device, int peer) {
    int possible = 0;
    FL_CUDA(cuDeviceCanAccessPeer, &possible, device, peer);
    return possible != 0;
  });
  m.def("pooled_stream",
        [](int device, int priority) { return number(pooled_stream(device, priority).handle); });
  m.def(
      "synchronize_stream", [](int device, uintptr_t s) { synchronize(stream_of(device, s)); },
      nb::call_guard<nb::gil_scoped_release>());
  m.def("stream_is_idle", [](int device, uintptr_t s) { return is_idle(stream_of(device, s)); });
  nb::class_<Event>(m, "Event")
      .def(nb::init<int, bool, bool>())
      .def("record", [](Event& e, int device, uintptr_t s) { e.record(stream_of(device, s)); })
      .def("make_wait", [](const Event& e, int device, uintptr_t s) { e.make_wait(stream_of(device, s)); })
      .def("query", &Event::has_happened)
      .def("synchronize", &Event::synchronize, nb::call_guard<nb::gil_scoped_release>())
      .def("elapsed_time", &Event::milliseconds_until)
      .def_prop_ro("handle", [](const Event& e) { return reinterpret_cast<uintptr_t>(e.handle()); })
      .def_prop_ro("device", &Event::device);
}

CUstreamCaptureMode capture_mode(const std::string& name) {
  if (name == "global") return CU_STREAM_CAPTURE_MODE_GLOBAL;
  if (name == "thread_local") return CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
  FL_CHECK(name == "relaxed", RuntimeError,
           "Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got {}", name);
  return CU_STREAM_CAPTURE_MODE_RELAXED;
}

void bind_graphs(nb::module_& m) {
  m.def("new_pool", &new_pool);
  m.def("is_recording", [] { return device_count() > 0 && is_recorded(current_stream(current_device())); });
  m.def("recording_figures", [] {
    const runtime::RecordingFigures f = runtime::recording_figures();
    nb::dict out;
    out["recorded"] = f.recorded;
    out["replayed"] = f.replayed;
    out["skipped"] = f.skipped;
    out["copied"] = f.copied;
    out["last_reason"] = f.last_reason;
    return out;
  });
  nb::class_<Graph>(m, "Graph")
      .def(nb::init<int>())
      .def("begin",
           [](Graph& g, PoolId pool, const std::string& mode) {
             g.begin(current_stream(g.device()), pool, capture_mode(mode));
           })
      .def("end", &Graph::end, nb::call_guard<nb::gil_scoped_release>())
      .def("abandon", &Graph::abandon, nb::call_guard<nb::gil_scoped_release>())
      .def(
          "launch", [](Graph& g) { g.launch(current_stream(g.device())); },
          nb::call_guard<nb::gil_scoped_release>())
      .def("reset", &Graph::reset, nb::call_guard<nb::gil_scoped_release>())
      .def("print", &Graph::print)
      .def_prop_ro("device", &Graph::device)
      .def_prop_ro("pool", &Graph::pool)
      .def_prop_ro("is_recorded", &Graph::is_recorded)
      .def_prop_ro("node_count", &Graph::node_count);
}

void bind_libraries(nb::module_& m) {
  using library::cuda::Tf32;
  nb::enum_<Tf32>(m, "Tf32").value("Matmul", Tf32::Matmul).value("Convolution", Tf32::Convolution);
  m.def("allow_tf32", &library::cuda::allow_tf32);
  m.def("tf32_allowed", &library::cuda::tf32_allowed);
  m.def("set_library_folders", &library::cuda::set_toolkit_folders);
  m.def("cudnn_version", [] {
    const library::cuda::Cudnn* cudnn = library::cuda::find_cudnn();
    return cudnn ? static_cast<int64_t>(cudnn->cudnnGetVersion()) : 0;
  });
}

void check_there_are_devices() {
  if (device_count() > 0) return;
  PyErr_Format(PyExc_RuntimeError, "memory is page-locked for a CUDA device, and none can be used: %s",
               library::cuda::why_no_driver().c_str());
  throw nb::python_error();
}

}  // namespace

bool is_pinned(const Storage& s) {
  return s.device().type == DeviceType::CPU && s.bytes() > 0 && device_count() > 0 &&
         runtime::cuda::is_pinned(s.data());
}

Ref<Storage> pinned_copy(const void* data, int64_t bytes) {
  check_there_are_devices();
  if (bytes == 0) return make_ref<Storage>(0, Device{});
  void* copy = allocate_pinned(static_cast<size_t>(bytes));
  std::memcpy(copy, data, static_cast<size_t>(bytes));
  return make_ref<Storage>(copy, bytes, Device{}, &release_pinned, copy);
}

// DLPack has 1 for the default stream, as 0 would be ambiguous.
constexpr int64_t kNoStream = -1, kDefaultStream = 1;

int64_t dlpack_stream(int device) {
  const auto handle = static_cast<int64_t>(number(current_stream(device).handle));
  return handle == 0 ? kDefaultStream : handle;
}

void let_stream_wait(int device, int64_t stream) {
  if (stream == kNoStream) return;
  FL_CHECK(stream > 0, ValueError, "__dlpack__(): expected the number of a CUDA stream, 1, 2 or -1, got {}",
           stream);
  const Stream reader = stream_of(device, stream == kDefaultStream ? 0 : static_cast<uintptr_t>(stream));
  const Stream writer = current_stream(device);
  if (reader == writer) return;
  Event written(device, false);
  written.record(writer);
  written.make_wait(reader);
}

void bind_cuda(nb::module_& m) {
  nb::module_ cuda = m.def_submodule("_cuda");
  cuda.attr("is_compiled") = true;
  cuda.attr("toolkit_version") = CUDA_VERSION;
  bind_devices(cuda);
  bind_libraries(cuda);
  bind_memory(cuda);
  bind_streams(cuda);
  bind_graphs(cuda);
}

}  // namespace fl::python

#else

namespace fl::python {

bool is_pinned(const Storage&) { return false; }
int64_t dlpack_stream(int) { return -1; }
void let_stream_wait(int, int64_t) {}
Ref<Storage> pinned_copy(const void*, int64_t) {
  PyErr_SetString(PyExc_AssertionError,
                  "memory is page-locked for a CUDA device, and this build has none: it was built without "
                  "CUDA's headers");
  throw nb::python_error();
}

void bind_cuda(nb::module_& m) {
  nb::module_ cuda = m.def_submodule("_cuda");
  cuda.attr("is_compiled") = false;
  cuda.def("device_count", [] { return 0; });
  cuda.def("why", [] { return "it was built without CUDA's headers"; });
}

}  // namespace fl::python

#endif
