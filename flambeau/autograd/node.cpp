#include "flambeau/autograd/node.h"

#include <array>
#include <cctype>

namespace fl {

namespace {
uint64_t next_sequence() {
  thread_local uint64_t next = 0;
  return next++;
}

/// References given up while an outer release_iteratively of this thread is at work.
thread_local std::vector<Ref<Node>>* pending_releases = nullptr;
}  // namespace

Node::Node() : sequence_(next_sequence()) {}

void release_iteratively(Ref<Node> node) {
  if (!node || node->use_count() > 1) return;
  if (pending_releases) {
    pending_releases->push_back(std::move(node));
    return;
  }
  std::vector<Ref<Node>> pending;
  pending_releases = &pending;
  node = nullptr;
  while (!pending.empty()) {
    node = std::move(pending.back());
    pending.pop_back();
    node = nullptr;
  }
  pending_releases = nullptr;
}

void Node::drop_edges() {
  for (Edge& e : edges_) release_iteratively(std::move(e.node));
}

std::mutex& Node::mutex() const {
  static std::array<std::mutex, 64> mutexes;
  const auto address = reinterpret_cast<uintptr_t>(this);
  return mutexes[(address >> 6 ^ address >> 12) % mutexes.size()];
}

std::string short_name(std::string s) {
  size_t end = s.size();
  while (end > 0 && std::isdigit(static_cast<unsigned char>(s[end - 1]))) --end;
  constexpr std::string_view suffix = "Backward";
  if (end > suffix.size() && std::string_view(s).substr(0, end).ends_with(suffix))
    s.resize(end - suffix.size());
  return s;
}

}  // namespace fl
