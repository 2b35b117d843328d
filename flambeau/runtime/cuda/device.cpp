#include "flambeau/runtime/cuda/device.h"

#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <vector>

#include "flambeau/runtime/cuda/graph.h"
#include "flambeau/runtime/cuda/reports.h"

namespace fl::runtime::cuda {

using library::cuda::driver;
using library::cuda::find_driver;

namespace {

constexpr int kPoolSize = 32;

struct Pool {
  std::array<CUstream, kPoolSize> streams{};
  int next = 0;
};

struct State {
  CUdevice device = 0;
  CUcontext context = nullptr;
  DeviceFacts facts;
  std::once_flag started;
  std::mutex mutex;           // guards the pools
  std::array<Pool, 2> pools;  // by priority 0, -1
};

std::deque<State>& states() {
  static std::deque<State>& all = *new std::deque<State>(static_cast<size_t>(device_count()));
  return all;
}

int attribute(CUdevice device, CUdevice_attribute what) {
  int value = 0;
  FL_CUDA(cuDeviceGetAttribute, &value, what, device);
  return value;
}

void start(State& s, int index) {
  FL_CUDA(cuDeviceGet, &s.device, index);
  FL_CUDA(cuDevicePrimaryCtxRetain, &s.context, s.device);
  DeviceFacts& f = s.facts;
  std::array<char, 256> text{};
  FL_CUDA(cuDeviceGetName, text.data(), static_cast<int>(text.size()), s.device);
  f.name = text.data();
  FL_CUDA(cuDeviceGetPCIBusId, text.data(), static_cast<int>(text.size()), s.device);
  f.pci_id = text.data();
  CUuuid uuid{};
  FL_CUDA(cuDeviceGetUuid, &uuid, s.device);
  f.uuid.assign(uuid.bytes, sizeof(uuid.bytes));
  size_t bytes = 0;
  FL_CUDA(cuDeviceTotalMem, &bytes, s.device);
  f.total_bytes = static_cast<int64_t>(bytes);
  f.major = attribute(s.device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  f.minor = attribute(s.device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  f.multiprocessors = attribute(s.device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  f.threads_per_multiprocessor = attribute(s.device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  f.shared_bytes_per_block = attribute(s.device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  f.warp_size = attribute(s.device, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  f.l2_bytes = attribute(s.device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
}

State& state(int index) {
  check_device(index);
  State& s = states()[static_cast<size_t>(index)];
  std::call_once(s.started, start, s, index);
  return s;
}

thread_local int t_device = 0;
thread_local int t_active = -1;
thread_local std::vector<CUstream> t_streams;  // by device

}  // namespace

int device_count() {
  const library::cuda::Driver* d = find_driver();
  return d ? d->device_count : 0;
}

void check_device(int index) {
  driver();  // says why there is none
  FL_CHECK(index >= 0 && index < device_count(), RuntimeError,
           "invalid device ordinal: expected a CUDA device in [0, {}), got {}", device_count(), index);
}

const DeviceFacts& facts(int index) { return state(index).facts; }

int current_device() { return t_device; }

void set_current_device(int index) {
  check_device(index);
  t_device = index;
}

void activate(int index) {
  CUcontext context = nullptr;
  if (t_active == index) {
    // Another library of this process may have chosen its own since.
    driver().cuCtxGetCurrent(&context);
    if (context == states()[static_cast<size_t>(index)].context) return;
  }
  FL_CUDA(cuCtxSetCurrent, state(index).context);
  t_active = index;
}

void synchronize(int index) {
  refuse_in_recording("this waits for the device");
  activate(index);
  {
    const DeviceWait permission(index);
    FL_CUDA(cuCtxSynchronize);
  }
  raise_reports(index);
}

Stream current_stream(int device) {
  const auto at = static_cast<size_t>(device);
  return {at < t_streams.size() ? t_streams[at] : nullptr, device};
}

void set_current_stream(Stream s) {
  check_device(s.device);
  const auto at = static_cast<size_t>(s.device);
  if (at >= t_streams.size()) t_streams.resize(at + 1, nullptr);
  t_streams[at] = s.handle;
}

Stream pooled_stream(int device, int priority) {
  State& s = state(device);
  activate(device);
  std::lock_guard lock(s.mutex);
  Pool& pool = s.pools[priority < 0 ? 1 : 0];
  CUstream& stream = pool.streams[static_cast<size_t>(pool.next)];
  pool.next = (pool.next + 1) % kPoolSize;
  if (!stream) {
    int least = 0, greatest = 0;
    FL_CUDA(cuCtxGetStreamPriorityRange, &least, &greatest);
    FL_CUDA(cuStreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, priority < 0 ? greatest : 0);
  }
  return {stream, device};
}

void synchronize(Stream s) {
  activate(s.device);
  if (recording() && is_recorded(s)) refuse_in_recording("this waits for the device");
  FL_CUDA(cuStreamSynchronize, s.handle);
  raise_reports(s.device);
}

bool is_idle(Stream s) {
  activate(s.device);
  if (recording() && is_recorded(s)) refuse_in_recording("this asks whether the stream's work is done");
  const CUresult result = driver().cuStreamQuery(s.handle);
  if (result == CUDA_ERROR_NOT_READY) return false;
  if (result != CUDA_SUCCESS) library::cuda::raise_error(result, "cuStreamQuery");
  return true;
}

Event::Event(int device, bool timing, bool blocking) : device_(device) {
  activate(device);
  unsigned flags = timing ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
  if (blocking) flags |= CU_EVENT_BLOCKING_SYNC;
  FL_CUDA(cuEventCreate, &handle_, flags);
}

Event::~Event() { driver().cuEventDestroy(handle_); }

void Event::record(Stream s) {
  FL_CHECK(s.device == device_, RuntimeError, "an event of cuda:{} can't be recorded on a stream of cuda:{}",
           device_, s.device);
  activate(device_);
  FL_CUDA(cuEventRecord, handle_, s.handle);
}

void Event::make_wait(Stream s) const {
  activate(s.device);
  FL_CUDA(cuStreamWaitEvent, s.handle, handle_, 0);
}

bool Event::has_happened() const {
  const CUresult result = driver().cuEventQuery(handle_);
  if (result == CUDA_ERROR_NOT_READY) return false;
  if (result != CUDA_SUCCESS) library::cuda::raise_error(result, "cuEventQuery");
  return true;
}

void Event::synchronize() const {
  FL_CUDA(cuEventSynchronize, handle_);
  raise_reports(device_);
}

double Event::milliseconds_until(const Event& later) const {
  float out = 0;
  FL_CUDA(cuEventElapsedTime, &out, handle_, later.handle_);
  return out;
}

}  // namespace fl::runtime::cuda
