// CUDA graphs: a thread's launches, recorded once and launched as one. Tests:
// tests/runtime/cuda_graph_test.cpp.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flambeau/codegen/common/launch.h"
#include "flambeau/runtime/cuda/allocator.h"
#include "flambeau/runtime/cuda/device.h"
#include "flambeau/runtime/cuda/graph_draws.h"

namespace fl::runtime::cuda {

class Kernel;

/// Memory that is taken while it is recorded belongs to its pool (allocator.h), random numbers are new ones
/// at each launch, and what was launched is kept loaded.
class Graph {
 public:
  explicit Graph(int device) : device_(device) {}
  ~Graph();
  Graph(const Graph&) = delete;

  /// What this thread puts on the stream from now on is recorded instead of run, and so is what it puts on
  /// streams that wait for it. pool 0: one of its own. Raises RuntimeError for the default stream, and where
  /// the graph was recorded or the thread records one already.
  void begin(Stream s, PoolId pool, CUstreamCaptureMode mode);
  /// Makes the graph; in the thread of begin(). What was spoilt raises RuntimeError, and there is no graph.
  void end();
  /// Ends without a graph.
  void abandon() noexcept;
  /// Puts all of it on the stream.
  void launch(Stream s);
  /// As if it had never been recorded.
  void reset();

  int device() const { return device_; }
  bool is_recorded() const { return executable_ != nullptr; }
  PoolId pool() const { return pool_; }
  size_t node_count() const;
  /// Writes a picture for graphviz.
  void print(const std::string& path) const;

  /// For launches: a kernel was put on a stream.
  void note_launch(std::shared_ptr<const Kernel> kernel, Stream s, const codegen::LaunchArgs& args);
  /// How many kernels were recorded.
  int launch_count() const { return static_cast<int>(launches_.size()); }
  /// The kernel that was recorded as this number gets other arguments, from the next launch on.
  void change(int number, const codegen::LaunchArgs& args);
  /// Something that launches need lives as long as the graph.
  void keep(std::shared_ptr<const void> p) { kept_.push_back(std::move(p)); }

 private:
  /// Arguments with placeholders of random numbers, to be completed at every launch.
  struct Drawing {
    std::vector<void*> buffers;
    std::vector<std::vector<char>> values;  // given by value
    std::vector<int64_t> sizes;
    std::vector<codegen::ScalarBits> params;
  };
  struct Launch {
    std::shared_ptr<const Kernel> kernel;
    CUgraphNode node;
    std::unique_ptr<Drawing> drawing;
  };
  void stop();
  void draw();

  int device_;
  PoolId pool_ = 0;
  bool is_recording_ = false, holds_pool_ = false;
  Stream stream_;
  CUgraph graph_ = nullptr;
  CUgraphExec executable_ = nullptr;
  std::vector<Launch> launches_;
  std::vector<std::shared_ptr<const void>> kept_;
  std::shared_ptr<RecordedDraws> draws_;
  std::optional<DrawRecorder::Scope> scope_;
  std::mutex mutex_;  // launches
};

/// The graph that this thread records, or null.
Graph* recording();
/// Whether work put on the stream is recorded.
bool is_recorded(Stream s);
/// Raises RuntimeError where this thread records a graph; `what`: "this waits for the device".
void refuse_in_recording(std::string_view what);

/// Calls that no stream sees (memory, modules) are not refused while a graph is recorded.
class UnrecordedCalls {
 public:
  UnrecordedCalls();
  ~UnrecordedCalls();
  UnrecordedCalls(const UnrecordedCalls&) = delete;

 private:
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

/// Waiting for a whole device spoils recordings of all threads. Recordings that the library makes itself are
/// short: they hold a DeviceRecording, and waits a DeviceWait.
class DeviceRecording {
 public:
  explicit DeviceRecording(int device);
  ~DeviceRecording();
  DeviceRecording(const DeviceRecording&) = delete;

 private:
  int device_;
};
class DeviceWait {
 public:
  struct Try {};
  explicit DeviceWait(int device);
  DeviceWait(int device, Try);  ///< False where a recording goes on.
  ~DeviceWait();
  DeviceWait(const DeviceWait&) = delete;
  explicit operator bool() const { return holds_; }

 private:
  int device_;
  bool holds_ = true;
};

}  // namespace fl::runtime::cuda
