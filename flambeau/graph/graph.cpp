#include "flambeau/graph/graph.h"

#include <algorithm>

#include "flambeau/base/error.h"
#include "flambeau/op/op_def.h"

namespace fl::graph {

std::string_view name(InputKind k) {
  static constexpr std::string_view kNames[] = {"input", "captured", "tangent", "saved", "size", "random"};
  return kNames[static_cast<int>(k)];
}

Graph::Graph(const Graph& o)
    : shape_env(o.shape_env),
      random(o.random),
      takes_place_of(o.takes_place_of),
      links_(o.links_),
      inputs_(o.inputs_),
      outputs_(o.outputs_),
      by_name_(o.by_name_),
      next_suffix_(o.next_suffix_),
      first_(o.first_),
      last_(o.last_),
      call_count_(o.call_count_) {
  nodes_.reserve(o.nodes_.size());
  for (const auto& n : o.nodes_) nodes_.push_back(n ? std::make_unique<Node>(*n) : nullptr);
}

Graph& Graph::operator=(Graph o) noexcept {
  std::swap(shape_env, o.shape_env);
  std::swap(random, o.random);
  std::swap(nodes_, o.nodes_);
  std::swap(links_, o.links_);
  std::swap(inputs_, o.inputs_);
  std::swap(outputs_, o.outputs_);
  std::swap(by_name_, o.by_name_);
  std::swap(next_suffix_, o.next_suffix_);
  std::swap(first_, o.first_);
  std::swap(last_, o.last_);
  std::swap(call_count_, o.call_count_);
  return *this;
}

// "add", then "add_1", "add_2": as torch.fx names nodes.
std::string Graph::free_name(std::string_view wanted) {
  std::string base(wanted.empty() ? "value" : wanted);
  for (char& c : base)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') c = '_';
  if (std::isdigit(static_cast<unsigned char>(base[0]))) base = "_" + base;
  if (!by_name_.contains(base)) return base;
  // The number at the end of the name given counts on.
  const size_t underscore = base.rfind('_');
  if (underscore != std::string::npos && underscore > 0 && underscore + 1 < base.size() &&
      base.size() - underscore < 9 &&
      std::all_of(base.begin() + static_cast<int64_t>(underscore) + 1, base.end(),
                  [](unsigned char c) { return std::isdigit(c); }))
    base.resize(underscore);
  int32_t& suffix = next_suffix_[base];
  for (;;) {
    std::string candidate = fmt::format("{}_{}", base, ++suffix);
    if (!by_name_.contains(candidate)) return candidate;
  }
}

Node& Graph::make(std::string_view name) {
  const auto id = static_cast<int32_t>(nodes_.size());
  nodes_.push_back(std::make_unique<Node>());
  links_.emplace_back();
  Node& n = *nodes_.back();
  n.id = id;
  n.name = free_name(name);
  by_name_[n.name] = id;
  return n;
}

Node& Graph::add_input(InputKind kind, TensorSpec spec, std::string_view name) {
  FL_ASSERT(kind != InputKind::Size && kind != InputKind::Random);
  Node& n = make(name);
  n.kind = kind;
  n.outs.push_back(std::move(spec));
  inputs_.push_back(n.id);
  return n;
}

Node& Graph::add_symbol(InputKind kind, const sym::Expr& symbol) {
  FL_ASSERT(kind == InputKind::Size || kind == InputKind::Random);
  FL_ASSERT(symbol.is_symbol(), "got {}", symbol.str());
  Node& n = make(symbol.name());
  n.kind = kind;
  n.symbol = symbol;
  inputs_.push_back(n.id);
  return n;
}

Node& Graph::append(const OpInfo& op, std::vector<Value> args, std::vector<TensorSpec> outs) {
  return insert(-1, op, std::move(args), std::move(outs));
}

Node& Graph::insert(int32_t before, const OpInfo& op, std::vector<Value> args, std::vector<TensorSpec> outs) {
  FL_ASSERT(args.size() == op.schema.args.size(), "{} takes {} arguments, got {}", op.name(),
            op.schema.args.size(), args.size());
  Node& n = make(op.schema.name);
  n.op = &op;
  n.args = std::move(args);
  n.outs = std::move(outs);
  link(n.id, before);
  add_users(n);
  ++call_count_;
  return n;
}

// before < 0: at the end.
void Graph::link(int32_t id, int32_t before) {
  FL_ASSERT(before < 0 || (has_node(before) && !node(before).is_input()));
  const int32_t previous = before < 0 ? last_ : links_[before].previous;
  links_[id].previous = previous;
  links_[id].next = before;
  (previous < 0 ? first_ : links_[previous].next) = id;
  (before < 0 ? last_ : links_[before].previous) = id;
}

void Graph::add_users(const Node& n) {
  for (const Value& a : n.args)
    for_each_ref(a, [&](GraphRef r) {
      FL_ASSERT(has_node(r.node), "{} reads node {}, which does not exist", n.name, r.node);
      auto& users = links_[r.node].users;
      // A node's references are added together, so a repetition is at the end.
      if (users.empty() || users.back() != n.id) users.push_back(n.id);
    });
}

void Graph::remove_users(const Node& n) {
  for (const Value& a : n.args) for_each_ref(a, [&](GraphRef r) { std::erase(links_[r.node].users, n.id); });
}

void Graph::set_args(int32_t id, std::vector<Value> args) {
  Node& n = node(id);
  FL_ASSERT(n.op && args.size() == n.args.size());
  remove_users(n);
  n.args = std::move(args);
  n.checked = false;
  add_users(n);
}

void Graph::replace_uses(GraphRef from, GraphRef to) {
  auto replaced = [&](const Value& v) { return map_refs(v, [&](GraphRef r) { return r == from ? to : r; }); };
  for (int32_t user : std::vector<int32_t>(links_[from.node].users)) {
    if (user == to.node) continue;
    std::vector<Value> args = node(user).args;
    for (Value& a : args) a = replaced(a);
    set_args(user, std::move(args));
  }
  for (Value& o : outputs_) o = replaced(o);
}

bool Graph::is_output(int32_t id) const {
  bool found = false;
  for (const Value& o : outputs_) for_each_ref(o, [&](GraphRef r) { found |= r.node == id; });
  return found;
}

void Graph::erase(int32_t id) {
  Node& n = node(id);
  FL_ASSERT(links_[id].users.empty() && !is_output(id), "{} is still used", n.name);
  if (n.is_input()) {
    std::erase(inputs_, id);
  } else {
    remove_users(n);
    const Links& l = links_[id];
    (l.previous < 0 ? first_ : links_[l.previous].next) = l.next;
    (l.next < 0 ? last_ : links_[l.next].previous) = l.previous;
    --call_count_;
  }
  by_name_.erase(n.name);
  nodes_[id] = nullptr;
}

void Graph::rename(int32_t id, std::string_view name) {
  Node& n = node(id);
  by_name_.erase(n.name);
  n.name = free_name(name);
  by_name_[n.name] = id;
}

void Graph::reorder(const std::vector<int32_t>& order) {
  FL_ASSERT(static_cast<int32_t>(order.size()) == call_count_, "{} calls, got {}", call_count_, order.size());
  first_ = last_ = -1;
  for (int32_t id : order) link(id, -1);
}

const Node* Graph::find(std::string_view name) const {
  auto it = by_name_.find(std::string(name));
  return it == by_name_.end() ? nullptr : nodes_[it->second].get();
}

}  // namespace fl::graph
