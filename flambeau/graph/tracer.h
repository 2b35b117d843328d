// A tracer that turns calls into nodes.
#pragma once
#include <unordered_map>

#include "flambeau/graph/graph.h"
#include "flambeau/op/dispatch.h"

namespace fl::graph {

/// Appends every call that reaches it to a graph (or inserts it in front of a node) and gives tensors without
/// elements as results. Tensors that share memory in eager mode share a storage here.
class GraphTracer : public Tracer {
 public:
  explicit GraphTracer(Graph& g);

  void record(const OpInfo& op, Value* args, Value* outs) override;

  /// The tensor that stands for a value of the graph in the traced code.
  Tensor tensor_for(GraphRef r);
  /// Makes an existing tensor without elements stand for a value.
  void bind(const Tensor& t, GraphRef r);
  /// The value that a tensor stands for, capturing it if it is a real one.
  GraphRef ref_of(const Tensor& t);
  /// Whether the tensor already stands for a value.
  bool knows(const Tensor& t) const { return lookup(t).node >= 0; }

  /// Later calls go in front of this node; -1: to the end.
  void set_position(int32_t before) { before_ = before; }
  Graph& graph() { return graph_; }

 protected:
  /// A real tensor that the program found. Returns the tensor without elements that stands for it from now
  /// on, bound to a value. Here: raises UnsupportedError.
  virtual Tensor capture(const Tensor& real);
  /// What a call reads in the place of a real tensor; captures it on the first meeting.
  Tensor stand_in(const Tensor& t);
  /// Makes a tensor without elements that is bound to a value stand for a real one.
  void adopt(const Tensor& real, const Tensor& fake);
  /// Called with each node made.
  virtual void recorded(Node&) {}
  /// Called with each tensor that a call writes, as the caller gave it and as it stands in the trace.
  virtual void written(const Tensor& given, const Tensor& standing);

 private:
  struct Note;
  struct Alias {
    TensorSpec spec;
    GraphRef ref;
  };
  GraphRef lookup(const Tensor& t) const;
  Value graph_argument(const OpInfo& op, int i, Value* fake);
  bool expand_random(const OpInfo& op, Value* args, Value* outs);
  Tensor number_tensor(const Tensor& t);
  void run_on_fakes(const OpInfo& op, Value* args, Value* outs);

  Graph& graph_;
  int32_t before_ = -1;
  const uint64_t id_;  // tells this tracer's notes from others'
  std::unordered_map<TensorImpl*, Tensor> stand_ins_;
  std::vector<Tensor> kept_;  // real tensors stay alive, so that addresses are unique
  std::unordered_map<Storage*, std::vector<Alias>> by_storage_;
};

}  // namespace fl::graph
