// NVIDIA GPUs of this machine: contexts, streams and events.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "flambeau/library/cuda/driver.h"

namespace fl::runtime::cuda {

struct DeviceFacts {
  std::string name;
  int major = 0, minor = 0;  ///< compute capability
  int multiprocessors = 0, threads_per_multiprocessor = 0, shared_bytes_per_block = 0, warp_size = 32;
  int64_t total_bytes = 0, l2_bytes = 0;
  std::string uuid;    ///< 16 bytes
  std::string pci_id;  ///< "0000:1b:00.0"
};

/// 0 where there is no driver or no device.
int device_count();
/// Raises RuntimeError unless 0 <= index < device_count().
void check_device(int index);
const DeviceFacts& facts(int index);

/// The device of this thread that "cuda" without a number means.
int current_device();
void set_current_device(int index);

/// Makes the device's primary context the current one of this thread; cheap where it is.
void activate(int index);
/// Waits for everything that was put to work on the device, and raises what its kernels reported.
void synchronize(int index);

/// A stream with its device. The default one, 0, waits for all others and they for it, as CUDA has it.
struct Stream {
  CUstream handle = nullptr;
  int device = 0;
  bool operator==(const Stream&) const = default;
};
/// Of this thread.
Stream current_stream(int device);
void set_current_stream(Stream s);
/// One of 32 streams of the device and priority (0, or -1: first), made when first asked for; they live as
/// long as the process.
Stream pooled_stream(int device, int priority = 0);
/// Waits, then raises what kernels reported.
void synchronize(Stream s);
bool is_idle(Stream s);

class Event {
 public:
  Event(int device, bool timing, bool blocking = false);
  ~Event();
  Event(const Event&) = delete;
  int device() const { return device_; }
  void record(Stream s);
  void make_wait(Stream s) const;  ///< What is put into s from now on waits for the event.
  bool has_happened() const;
  void synchronize() const;
  double milliseconds_until(const Event& later) const;  ///< Raises RuntimeError unless both have happened.
  CUevent handle() const { return handle_; }

 private:
  CUevent handle_ = nullptr;
  int device_;
};

}  // namespace fl::runtime::cuda
