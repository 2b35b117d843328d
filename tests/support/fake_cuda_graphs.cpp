// Graphs of the stand-in for NVIDIA's driver: what is put on a stream that is recorded becomes a node, and a
// launch of the graph runs the nodes in order. What the driver refuses while a stream is recorded is refused
// here, and spoils the recording.
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <thread>

#include "tests/support/fake_cuda.h"

namespace fake {

struct Node {
  std::function<CUresult()> work;
  std::unique_ptr<KernelCall> kernel;  // in the place of work

  CUresult run() const { return kernel ? kernel->run() : work(); }
  Node copy() const { return {work, kernel ? std::make_unique<KernelCall>(*kernel) : nullptr}; }
};
struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
};
/// A graph that can be launched: its own copies of the nodes.
struct Exec {
  std::vector<Node> nodes;
  std::map<CUgraphNode, size_t> number;
};
struct Capture {
  Graph* graph;
  std::thread::id thread;
  CUstreamCaptureMode mode;
  Stream* first;
  cuuint64_t id;
  std::vector<Stream*> streams;
  bool spoilt = false;
};

namespace {

std::vector<Capture*> g_captures;
std::set<CUgraphNode> g_nodes;  // of graphs that exist
cuuint64_t g_count = 0;
thread_local CUstreamCaptureMode t_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

CUgraphNode handle(Node* n) { return reinterpret_cast<CUgraphNode>(n); }

CUresult record(Stream& s, Node node) {
  if (s.capture->spoilt) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  s.capture->graph->nodes.push_back(std::make_unique<Node>(std::move(node)));
  s.tail = handle(s.capture->graph->nodes.back().get());
  g_nodes.insert(s.tail);
  ++s.put;
  return CUDA_SUCCESS;
}

CUresult spoil(Capture* c) { return c->spoilt = true, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED; }

void destroy(Graph* g) {
  for (const auto& n : g->nodes) g_nodes.erase(handle(n.get()));
  delete g;
}

}  // namespace

CapturedEvent place_of(CUstream s) {
  Stream& stream = stream_of(s);
  return {stream.capture, stream.capture ? &stream : nullptr, stream.put};
}

CUresult join(CUstream handle, const CapturedEvent& e) {
  Stream& s = stream_of(handle);
  if (!e.capture) {
    // Work from outside that a recording would have to wait for at every launch.
    return s.capture ? (spoil(s.capture), CUDA_ERROR_STREAM_CAPTURE_ISOLATION) : CUDA_SUCCESS;
  }
  if (std::ranges::find(g_captures, e.capture) == g_captures.end()) return CUDA_ERROR_CAPTURED_EVENT;
  if (!handle) return spoil(e.capture);
  if (s.capture && s.capture != e.capture)
    return spoil(e.capture), spoil(s.capture), CUDA_ERROR_STREAM_CAPTURE_MERGE;
  if (&s == e.capture->first) {
    e.stream->joined = std::max(e.stream->joined, e.position);
  } else if (!s.capture) {
    s = {e.capture};
    e.capture->streams.push_back(&s);
  }
  return CUDA_SUCCESS;
}

CUresult put(CUstream s, std::function<CUresult()> work) {
  Stream& stream = stream_of(s);
  return stream.capture ? record(stream, {std::move(work), nullptr}) : work();
}

CUresult put(CUstream s, KernelCall call) {
  Stream& stream = stream_of(s);
  return stream.capture ? record(stream, {{}, std::make_unique<KernelCall>(std::move(call))}) : call.run();
}

CUresult refuse_if_recorded(CUstream s) {
  Capture* c = stream_of(s).capture;
  return c ? spoil(c) : CUDA_SUCCESS;
}

CUresult refuse_if_any_is_recorded() {
  for (Capture* c : g_captures) spoil(c);
  return g_captures.empty() ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult check_unsafe_call() {
  CUresult result = CUDA_SUCCESS;
  if (t_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return result;
  for (Capture* c : g_captures) {
    const bool own = c->thread == std::this_thread::get_id();
    const bool matters =
        own ? c->mode != CU_STREAM_CAPTURE_MODE_RELAXED
            : t_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (matters) result = spoil(c);
  }
  return result;
}

}  // namespace fake

using namespace fake;

FAKE(cuStreamBeginCapture)(CUstream s, CUstreamCaptureMode mode) {
  LOCK;
  if (!s) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;  // the default stream
  Stream& stream = stream_of(s);
  if (stream.capture) return CUDA_ERROR_ILLEGAL_STATE;
  auto* c = new Capture{new Graph, std::this_thread::get_id(), mode, &stream, ++g_count, {&stream}};
  stream = {c};
  g_captures.push_back(c);
  return CUDA_SUCCESS;
}
FAKE(cuStreamEndCapture)(CUstream s, CUgraph* out) {
  LOCK;
  Capture* c = stream_of(s).capture;
  if (!c || c->first != &stream_of(s)) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && c->thread != std::this_thread::get_id())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  const bool joined =
      std::ranges::all_of(c->streams, [&](Stream* x) { return x == c->first || x->joined >= x->put; });
  const CUresult result = c->spoilt ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                          : !joined ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                                    : CUDA_SUCCESS;
  *out = result == CUDA_SUCCESS ? reinterpret_cast<CUgraph>(c->graph) : nullptr;
  if (!*out) destroy(c->graph);
  for (Stream* x : c->streams) *x = {};
  std::erase(g_captures, c);
  delete c;
  return result;
}
FAKE(cuStreamIsCapturing)(CUstream s, CUstreamCaptureStatus* status) {
  LOCK;
  const Capture* c = stream_of(s).capture;
  *status = !c           ? CU_STREAM_CAPTURE_STATUS_NONE
            : !c->spoilt ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                         : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  return CUDA_SUCCESS;
}
#if CUDA_VERSION >= 13000
FAKE(cuStreamGetCaptureInfo)
(CUstream s, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph, const CUgraphNode** nodes,
 const CUgraphEdgeData** edges, size_t* count) {
  if (edges) *edges = nullptr;
#else
FAKE(cuStreamGetCaptureInfo)
(CUstream s, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph, const CUgraphNode** nodes,
 size_t* count) {
#endif
  LOCK;
  cuStreamIsCapturing(s, status);
  const Stream& stream = stream_of(s);
  if (!stream.capture) return CUDA_SUCCESS;
  if (id) *id = stream.capture->id;
  if (graph) *graph = reinterpret_cast<CUgraph>(stream.capture->graph);
  if (nodes) *nodes = &stream.tail;
  if (count) *count = stream.tail ? 1 : 0;
  return CUDA_SUCCESS;
}
FAKE(cuThreadExchangeStreamCaptureMode)(CUstreamCaptureMode* mode) {
  return std::swap(*mode, t_mode), CUDA_SUCCESS;
}

FAKE(cuGraphInstantiate)(CUgraphExec* out, CUgraph g, unsigned long long) {
  LOCK;
  auto* exec = new Exec;
  for (const auto& n : reinterpret_cast<fake::Graph*>(g)->nodes) {
    exec->number[handle(n.get())] = exec->nodes.size();
    exec->nodes.push_back(n->copy());
  }
  return *out = reinterpret_cast<CUgraphExec>(exec), CUDA_SUCCESS;
}
FAKE(cuGraphGetNodes)(CUgraph g, CUgraphNode* nodes, size_t* count) {
  LOCK;
  const auto& all = reinterpret_cast<fake::Graph*>(g)->nodes;
  if (nodes)
    for (size_t k = 0; k < std::min(*count, all.size()); ++k) nodes[k] = handle(all[k].get());
  return *count = all.size(), CUDA_SUCCESS;
}
FAKE(cuGraphLaunch)(CUgraphExec e, CUstream s) {
  LOCK;
  const auto* exec = reinterpret_cast<Exec*>(e);
  return put(s, [exec] {
    for (const Node& n : exec->nodes)
      if (const CUresult result = n.run(); result != CUDA_SUCCESS) return result;
    return CUDA_SUCCESS;
  });
}
FAKE(cuGraphExecKernelNodeSetParams)(CUgraphExec e, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* p) {
  LOCK;
  auto* exec = reinterpret_cast<Exec*>(e);
  const auto at = exec->number.find(node);
  // The graph that the node belongs to has to exist.
  if (at == exec->number.end() || !g_nodes.contains(node)) return CUDA_ERROR_INVALID_VALUE;
  Node& n = exec->nodes[at->second];
  if (!n.kernel) return CUDA_ERROR_INVALID_VALUE;
  *n.kernel = KernelCall(p->func, n.kernel->device, p->gridDimX, p->blockDimX, p->kernelParams);
  return CUDA_SUCCESS;
}
FAKE(cuGraphDestroy)(CUgraph g) {
  LOCK;
  return destroy(reinterpret_cast<fake::Graph*>(g)), CUDA_SUCCESS;
}
FAKE(cuGraphExecDestroy)(CUgraphExec e) {
  LOCK;
  return delete reinterpret_cast<Exec*>(e), CUDA_SUCCESS;
}
FAKE(cuGraphDebugDotPrint)(CUgraph g, const char* path, unsigned) {
  LOCK;
  std::FILE* file = std::fopen(path, "w");
  if (!file) return CUDA_ERROR_OPERATING_SYSTEM;
  std::fputs("digraph {\n", file);
  for (const auto& n : reinterpret_cast<fake::Graph*>(g)->nodes)
    std::fprintf(file, "  \"%s\"\n", n->kernel ? n->kernel->module->kernel.name.c_str() : "work");
  std::fputs("}\n", file);
  return std::fclose(file), CUDA_SUCCESS;
}
