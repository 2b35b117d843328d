// One capture while it goes on: what trace() and aot/ are made of.
#pragma once
#include <memory>

#include "flambeau/graph/tracer.h"
#include "flambeau/trace/trace.h"

namespace fl::trace {

/// Meets the real tensors of a program and remembers what has to be undone.
class Session {
 public:
  Session(const Tensors& inputs, const TraceOptions& options);
  ~Session();
  Session(const Session&) = delete;

  /// Tensors without elements, one for each input; inputs that are the same tensor get the same one.
  const Tensors& inputs() const;
  /// Runs f with every operator recorded.
  void run(const std::function<void()>& f);
  graph::GraphTracer& tracer();
  graph::Graph& graph();
  sym::ShapeEnv& shape_env();
  const std::vector<CapturedInfo>& captured() const;
  /// Whether memory of this tensor was changed.
  bool was_written(const Tensor& t) const;
  /// Whether the tensor has the memory of an input or a captured tensor.
  bool is_outer(const Tensor& t) const;

  /// Whether the run changed a .grad: it went backward.
  bool changed_grads() const;

  /// Undoes what the run did to real tensors and gives the program; once.
  TracedProgram finish(const Tensors& outputs);

 private:
  class Recorder;
  std::unique_ptr<Recorder> recorder_;
};

}  // namespace fl::trace
