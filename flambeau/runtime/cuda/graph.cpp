#include "flambeau/runtime/cuda/graph.h"

#include <algorithm>
#include <deque>
#include <shared_mutex>

#include "flambeau/runtime/cuda/kernel.h"

namespace fl::runtime::cuda {

using library::cuda::driver;

namespace {

thread_local Graph* t_graph = nullptr;

std::shared_mutex& device_mutex(int device) {
  static std::deque<std::shared_mutex>& all =
      *new std::deque<std::shared_mutex>(static_cast<size_t>(device_count()));
  return all[static_cast<size_t>(device)];
}

const char* explanation(CUresult error) {
  switch (error) {
    case CUDA_ERROR_STREAM_CAPTURE_UNJOINED:
      return "work was put on another stream, and the first stream does not wait for it";
    case CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD:
      return "a recording is ended by the thread that began it";
    default:
      return "something was done that can't be recorded, such as a wait of the host for the device";
  }
}

}  // namespace

Graph* recording() { return t_graph; }

bool is_recorded(Stream s) {
  if (!s.handle) return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  FL_CUDA(cuStreamIsCapturing, s.handle, &status);
  return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void refuse_in_recording(std::string_view what) {
  FL_CHECK(!t_graph, RuntimeError,
           "operation not permitted when stream is capturing: {}, and this thread's work is recorded as a "
           "CUDA graph",
           what);
}

UnrecordedCalls::UnrecordedCalls() { FL_CUDA(cuThreadExchangeStreamCaptureMode, &mode_); }
UnrecordedCalls::~UnrecordedCalls() { driver().cuThreadExchangeStreamCaptureMode(&mode_); }

DeviceRecording::DeviceRecording(int device) : device_(device) { device_mutex(device).lock(); }
DeviceRecording::~DeviceRecording() { device_mutex(device_).unlock(); }
DeviceWait::DeviceWait(int device) : device_(device) { device_mutex(device).lock_shared(); }
DeviceWait::DeviceWait(int device, Try) : device_(device), holds_(device_mutex(device).try_lock_shared()) {}
DeviceWait::~DeviceWait() {
  if (holds_) device_mutex(device_).unlock_shared();
}

Graph::~Graph() {
  abandon();
  try {
    reset();
  } catch (const Error&) {
    // The process ends, and the driver has gone before.
  }
}

void Graph::begin(Stream s, PoolId pool, CUstreamCaptureMode mode) {
  FL_CHECK(!t_graph, RuntimeError, "this thread records a CUDA graph already: end that one first");
  FL_CHECK(!executable_, RuntimeError,
           "the CUDA graph was recorded already: reset() it first, or make another");
  FL_CHECK(s.handle, RuntimeError,
           "CUDA graphs must be captured on a non-default stream: the default one can't be recorded");
  if (pool == 0) pool = new_pool();
  activate(device_);
  FL_CUDA(cuStreamBeginCapture, s.handle, mode);
  pool_ = pool;
  stream_ = s;
  is_recording_ = true;
  t_graph = this;
  hold_pool(device_, pool_);
  holds_pool_ = true;
  begin_pool(device_, pool_);
  draws_ = RecordedDraws::make(device_);
  scope_.emplace(draws_.get());
}

// What begin() began, but for the recording.
void Graph::stop() {
  scope_.reset();
  t_graph = nullptr;
  is_recording_ = false;
  end_pool(device_);
}

void Graph::end() {
  FL_CHECK(is_recording_, RuntimeError, "the CUDA graph is not being recorded");
  FL_CHECK(t_graph == this, RuntimeError, "a CUDA graph is ended by the thread that began it");
  stop();
  activate(device_);
  const CUresult result = driver().cuStreamEndCapture(stream_.handle, &graph_);
  if (result != CUDA_SUCCESS) {
    graph_ = nullptr;
    reset();
    const char* name = nullptr;
    driver().cuGetErrorName(result, &name);
    FL_RAISE(RuntimeError, "the CUDA graph can't be made: {} ({})", explanation(result), name ? name : "?");
  }
  FL_CUDA(cuGraphInstantiate, &executable_, graph_, 0);
}

void Graph::abandon() noexcept {
  if (!is_recording_) return;
  if (t_graph == this) stop();
  is_recording_ = false;
  CUgraph graph = nullptr;
  driver().cuStreamEndCapture(stream_.handle, &graph);
  if (graph) driver().cuGraphDestroy(graph);
  reset();
}

void Graph::reset() {
  FL_CHECK(!is_recording_, RuntimeError, "a CUDA graph can't be reset while it is recorded");
  if (executable_) driver().cuGraphExecDestroy(std::exchange(executable_, nullptr));
  if (graph_) driver().cuGraphDestroy(std::exchange(graph_, nullptr));
  launches_.clear();
  kept_.clear();
  draws_.reset();
  if (std::exchange(holds_pool_, false)) drop_pool(device_, pool_);
}

void Graph::launch(Stream s) {
  FL_CHECK(executable_, RuntimeError,
           "the CUDA graph was not recorded, or was reset: there is nothing to replay");
  std::lock_guard lock(mutex_);
  activate(device_);
  if (draws_ && draws_->any()) draw();
  FL_CUDA(cuGraphLaunch, executable_, s.handle);
}

void Graph::draw() {
  draws_->advance();
  std::vector<int64_t> sizes;
  for (const Launch& l : launches_) {
    if (!l.drawing) continue;
    sizes = l.drawing->sizes;
    for (int64_t& s : sizes)
      if (RecordedDraws::is_placeholder(s)) s = RecordedDraws::value(s);
    l.kernel->change(executable_, l.node,
                     {l.drawing->buffers.data(), sizes.data(), l.drawing->params.data()});
  }
}

size_t Graph::node_count() const {
  size_t count = 0;
  if (graph_) FL_CUDA(cuGraphGetNodes, graph_, nullptr, &count);
  return count;
}

void Graph::print(const std::string& path) const {
  FL_CHECK(graph_, RuntimeError, "the CUDA graph was not recorded: there is nothing to print");
  FL_CUDA(cuGraphDebugDotPrint, graph_, path.c_str(), CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE);
}

void Graph::note_launch(std::shared_ptr<const Kernel> kernel, Stream s, const codegen::LaunchArgs& args) {
  const std::span<const int64_t> sizes(args.sizes, kernel->size_count());
  const bool draws = std::ranges::any_of(sizes, &RecordedDraws::is_placeholder);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUgraphNode* nodes = nullptr;
  size_t count = 0;
  if (s.handle) {
#if CUDA_VERSION >= 13000
    const CUgraphEdgeData* edges = nullptr;
    FL_CUDA(cuStreamGetCaptureInfo, s.handle, &status, nullptr, nullptr, &nodes, &edges, &count);
#else
    FL_CUDA(cuStreamGetCaptureInfo, s.handle, &status, nullptr, nullptr, &nodes, &count);
#endif
  }
  if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    FL_CHECK(!draws, RuntimeError,
             "kernel {} draws random numbers on a stream that is not recorded, while this thread records a "
             "CUDA graph",
             kernel->name());
    return;
  }
  FL_ASSERT(count == 1, "a recorded launch is one node, got {}", count);
  Launch launch{std::move(kernel), nodes[0], nullptr};
  if (draws) {
    auto d = std::make_unique<Drawing>();
    d->sizes.assign(sizes.begin(), sizes.end());
    for (size_t b = 0; b < launch.kernel->value_bytes().size(); ++b) {
      void* at = args.buffers[b];
      if (const size_t bytes = launch.kernel->value_bytes()[b]) {
        const auto* from = static_cast<const char*>(at);
        d->values.emplace_back(from, from + bytes);
        at = d->values.back().data();
      }
      d->buffers.push_back(at);
    }
    if (args.params) d->params.assign(args.params, args.params + launch.kernel->param_count());
    launch.drawing = std::move(d);
  }
  launches_.push_back(std::move(launch));
}

void Graph::change(int number, const codegen::LaunchArgs& args) {
  const Launch& l = launches_.at(static_cast<size_t>(number));
  l.kernel->change(executable_, l.node, args);
}

}  // namespace fl::runtime::cuda
