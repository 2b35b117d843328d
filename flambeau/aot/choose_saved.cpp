#include "flambeau/aot/choose_saved.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <cmath>

#include "flambeau/op/op_def.h"

namespace fl::aot {

using graph::Graph;
using graph::Node;
using graph::Recompute;

namespace {

constexpr int64_t kInfinite = int64_t{1} << 50;
constexpr int kFar = 1000;  // a value this many calls from the backward part is not worth computing again

int64_t hint(const Graph& g, SymInt s) {
  if (!s.is_symbolic()) return s.expect_int();
  const auto h = g.shape_env ? g.shape_env->hint(s.expr()) : std::nullopt;
  return h.value_or(4096);
}

int64_t bytes_of(const Graph& g, const TensorSpec& s) { return hint(g, s.numel()) * size_of(s.dtype); }

// All outputs that anybody reads.
int64_t bytes_of(const Graph& g, const Node& n) {
  int64_t bytes = 0;
  for (const TensorSpec& s : n.outs) bytes += bytes_of(g, s);
  return bytes;
}

// The lowering can compute it inside the kernel of a user.
bool is_fusible(const Node& n) {
  return n.is_input() || n.op->is(Tag::Elementwise | Tag::View | Tag::Random | Tag::Factory) ||
         (n.op->is(Tag::Reduction) && !n.op->is(Tag::ComputeIntensive));
}

bool is_banned(const Graph& g, const Node& n, int distance) {
  if (n.recompute == Recompute::Always) return false;
  if (n.recompute == Recompute::Never || n.op->is(Tag::ComputeIntensive) ||
      (n.op->library != LibraryCall::None && n.op->library != LibraryCall::Join))
    return true;
  if (n.op->is(Tag::View)) return false;
  if (distance > kFar) return true;
  if (!n.op->is(Tag::Reduction)) return false;
  // A reduction that shrinks its input is small to keep and dear to repeat.
  int64_t in = 0;
  for (const Value& a : n.args) graph::for_each_ref(a, [&](GraphRef r) { in += bytes_of(g, g.spec(r)); });
  return bytes_of(g, n) * 4 < in;
}

/// Calls between a value and the nearest backward node that its users lead to.
std::vector<int> distances(const Graph& g, const Regions& r) {
  std::vector<int> d(static_cast<size_t>(g.id_limit()), 1 << 28);
  std::vector<int32_t> order = g.inputs();
  for (const Node& n : g.calls()) order.push_back(n.id);
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    if (r.backward[*it]) {
      d[*it] = 0;
      continue;
    }
    for (int32_t user : g.users(*it))
      if (r.needed[user]) d[*it] = std::min(d[*it], d[user] + 1);
  }
  return d;
}

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using Network = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS,
    boost::property<boost::vertex_index_t, long,
                    boost::property<boost::vertex_color_t, boost::default_color_type,
                                    boost::property<boost::vertex_distance_t, long,
                                                    boost::property<boost::vertex_predecessor_t,
                                                                    Traits::edge_descriptor>>>>,
    boost::property<boost::edge_capacity_t, int64_t,
                    boost::property<boost::edge_residual_capacity_t, int64_t,
                                    boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;

/// Every forward node is an edge from its in to its out vertex; cutting it saves the node's value.
class Cut {
 public:
  explicit Cut(int32_t nodes)
      : network_(static_cast<size_t>(2 * nodes + 2)), source_(2 * nodes), sink_(2 * nodes + 1) {}
  static long in(int32_t node) { return 2L * node; }
  static long out(int32_t node) { return 2L * node + 1; }
  long source() const { return source_; }
  long sink() const { return sink_; }
  void add(long from, long to, int64_t capacity) {
    auto forward = boost::add_edge(static_cast<size_t>(from), static_cast<size_t>(to), network_).first;
    auto back = boost::add_edge(static_cast<size_t>(to), static_cast<size_t>(from), network_).first;
    boost::put(boost::edge_capacity, network_, forward, capacity);
    boost::put(boost::edge_capacity, network_, back, int64_t{0});
    boost::put(boost::edge_reverse, network_, forward, back);
    boost::put(boost::edge_reverse, network_, back, forward);
  }
  int64_t run() {
    return boost::boykov_kolmogorov_max_flow(network_, static_cast<size_t>(source_),
                                             static_cast<size_t>(sink_));
  }
  /// After run(): on the source's side.
  bool on_source_side(long vertex) const {
    return boost::get(boost::vertex_color, network_, static_cast<size_t>(vertex)) == boost::black_color;
  }

 private:
  Network network_;
  long source_, sink_;
};

class Chooser {
 public:
  Chooser(const JointProgram& joint, const Regions& regions, const PartitionOptions& options)
      : joint_(joint),
        g_(joint.program.graph),
        r_(regions),
        options_(options),
        distance_(distances(g_, regions)),
        changed_(static_cast<size_t>(g_.id_limit()), 0) {
    for (const Mutation& m : joint.info.mutations) changed_[m.input] = 1;
  }

  std::vector<char> run() {
    Cut cut(g_.id_limit());
    for (int32_t id : g_.inputs()) add_node(cut, g_.node(id));
    for (const Node& n : g_.calls()) add_node(cut, n);
    // A gradient that no tangent takes part in is read like by a backward node.
    for (const Gradient& gradient : joint_.gradients)
      if (gradient.output >= 0)
        graph::for_each_ref(g_.outputs()[gradient.output], [&](GraphRef ref) {
          if (!r_.backward[ref.node]) cut.add(Cut::out(ref.node), cut.sink(), kInfinite);
        });
    cut.run();
    std::vector<char> saved(static_cast<size_t>(g_.id_limit()), 0);
    for (int32_t id = 0; id < g_.id_limit(); ++id)
      if (g_.has_node(id) && is_forward(id) && cut.on_source_side(Cut::in(id)) &&
          !cut.on_source_side(Cut::out(id)))
        saved[id] = 1;
    return saved;
  }

 private:
  bool is_forward(int32_t id) const { return r_.needed[id] && !r_.backward[id] && !g_.node(id).is_number(); }

  void add_node(Cut& cut, const Node& n) {
    if (!is_forward(n.id)) return;
    const bool banned = !n.is_input() && (!options_.recompute || is_banned(g_, n, distance_[n.id]));
    if (n.is_input() || banned) cut.add(cut.source(), Cut::in(n.id), kInfinite);
    cut.add(Cut::in(n.id), Cut::out(n.id), capacity(n));
    for (int32_t user : g_.users(n.id)) {
      if (!r_.needed[user]) continue;
      cut.add(Cut::out(n.id), r_.backward[user] ? cut.sink() : Cut::in(user), kInfinite);
    }
  }

  // What saving costs: its memory, a little more the further it is from where it is read, for then more of
  // what lies between could be computed from something smaller.
  int64_t capacity(const Node& n) const {
    if (!n.is_input() && n.recompute == Recompute::Always) return kInfinite;
    const auto bytes = static_cast<double>(std::max<int64_t>(bytes_of(g_, n), 1));
    if (n.is_input()) {
      // Parameters and inputs are there anyway; one that changes would have to be copied.
      if (changed_[n.id]) return static_cast<int64_t>(bytes * 1000);
      return n.kind == graph::InputKind::Captured ? 1 : static_cast<int64_t>(bytes);
    }
    const int far = std::max(std::min(distance_[n.id], 100), 1);
    double cost = bytes * std::pow(1.1, far);
    bool materialised = false;
    for (int32_t user : g_.users(n.id)) materialised = materialised || !is_fusible(g_.node(user));
    if (!materialised && is_fusible(n)) cost *= 2;
    return std::min(static_cast<int64_t>(cost), kInfinite / 1024);
  }

  const JointProgram& joint_;
  const Graph& g_;
  const Regions& r_;
  const PartitionOptions& options_;
  std::vector<int> distance_;
  std::vector<char> changed_;  // inputs that the forward part changes in place
};

}  // namespace

Regions find_regions(const JointProgram& joint) {
  const Graph& g = joint.program.graph;
  const auto count = static_cast<size_t>(g.id_limit());
  Regions r{std::vector<char>(count, 0), std::vector<char>(count, 0), std::vector<char>(count, 0)};
  for (const Tangent& t : joint.tangents) r.backward[t.node] = 1;
  std::vector<int32_t> calls;
  for (const Node& n : g.calls()) {
    calls.push_back(n.id);
    for (const Value& a : n.args)
      graph::for_each_ref(a, [&](GraphRef ref) { r.backward[n.id] |= r.backward[ref.node]; });
  }
  for (int i : joint.forward_outputs())
    graph::for_each_ref(g.outputs()[i], [&](GraphRef ref) { r.forward[ref.node] = r.needed[ref.node] = 1; });
  for (const Value& o : g.outputs()) graph::for_each_ref(o, [&](GraphRef ref) { r.needed[ref.node] = 1; });
  for (auto it = calls.rbegin(); it != calls.rend(); ++it)
    for (const Value& a : g.node(*it).args)
      graph::for_each_ref(a, [&](GraphRef ref) {
        r.forward[ref.node] |= r.forward[*it];
        r.needed[ref.node] |= r.needed[*it];
      });
  return r;
}

std::vector<char> choose_saved(const JointProgram& joint, const Regions& regions,
                               const PartitionOptions& options) {
  return Chooser(joint, regions, options).run();
}

}  // namespace fl::aot
