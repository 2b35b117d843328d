#include "flambeau/runtime/cuda/program_recording.h"

#include <map>
#include <mutex>

#include "flambeau/base/option.h"
#include "flambeau/library/cuda/precision.h"
#include "flambeau/runtime/cuda/graph.h"

namespace fl::runtime::cuda {
namespace {

using library::cuda::Tf32;

/// What library calls look at when they run.
struct Settings {
  bool tf32_matmul = library::cuda::tf32_allowed(Tf32::Matmul);
  bool tf32_convolution = library::cuda::tf32_allowed(Tf32::Convolution);
  bool operator==(const Settings&) const = default;
};

/// The stream that work is recorded on: the default one can't be. It never runs anything.
CUstream recording_stream(int device) {
  static std::mutex mutex;
  static auto& all = *new std::map<int, CUstream>;
  std::lock_guard lock(mutex);
  CUstream& stream = all[device];
  if (!stream) FL_CUDA(cuStreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, 0);
  return stream;
}

PoolId scratch_pool(Stream s) {
  static std::mutex mutex;
  static auto& all = *new std::map<std::pair<int, CUstream>, PoolId>;
  std::lock_guard lock(mutex);
  PoolId& pool = all[{s.device, s.handle}];
  if (pool == 0) pool = new_pool();
  return pool;
}

/// Makes a stream the current one for a while.
class StreamScope {
 public:
  explicit StreamScope(Stream s) : before_(current_stream(s.device)) { set_current_stream(s); }
  ~StreamScope() { set_current_stream(before_); }
  StreamScope(const StreamScope&) = delete;

 private:
  Stream before_;
};

class ProgramRecording final : public Recording {
 public:
  explicit ProgramRecording(int device) : stream_(current_stream(device)), graph_(device) {}

  void record(const std::function<void(const Recording&)>& work) {
    const int device = stream_.device;
    activate(device);
    const DeviceRecording permission(device);
    const Stream on{recording_stream(device), device};
    const StreamScope scope(on);
    graph_.begin(on, scratch_pool(stream_), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    try {
      work(*this);
    } catch (...) {
      graph_.abandon();
      throw;
    }
    graph_.end();
  }

  int launch_count() const override { return graph_.launch_count(); }
  void change(int number, const codegen::LaunchArgs& args) override { graph_.change(number, args); }
  bool is_current() const override {
    return current_stream(stream_.device) == stream_ && settings_ == Settings();
  }
  void run(std::span<void* const> written) override {
    static const bool blocking = option("CUDA_LAUNCH_BLOCKING") == "1";
    if (const uint64_t count = record_count(); count != record_count_) {
      record_count_ = count;
      wait_for_readers(written);
    }
    graph_.launch(stream_);
    if (blocking) synchronize(stream_);
  }

 private:
  void wait_for_readers(std::span<void* const> written) const {
    for (void* data : written)
      for (CUstream s : take_other_streams(stream_.device, data)) {
        Event read(stream_.device, false);
        read.record({s, stream_.device});
        read.make_wait(stream_);
      }
  }

  Stream stream_;  // that it is launched on
  Settings settings_;
  Graph graph_;
  uint64_t record_count_ = record_count();
};

}  // namespace

bool can_record_program(int device) { return !recording() && !is_recorded(current_stream(device)); }

std::unique_ptr<Recording> record_program(int device, const std::function<void(const Recording&)>& work) {
  auto made = std::make_unique<ProgramRecording>(device);
  made->record(work);
  return made;
}

}  // namespace fl::runtime::cuda
