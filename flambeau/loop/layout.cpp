#include "flambeau/loop/layout.h"

namespace fl::loop {
namespace {

// Passes over an image in memory: a convolution that finds another layout than its own reorders, which reads
// and writes; a kernel between two layouts touches a cache line for each element of one of them.
constexpr int kReorderPasses = 2, kStridedPasses = 8;
// With fewer channels a vector along them stays empty.
constexpr int64_t kFewChannels = 16;

bool equal(const Sizes& a, const Sizes& b) {
  if (a.size() != b.size()) return false;
  for (size_t d = 0; d < a.size(); ++d)
    if (!(a[d].expr() == b[d].expr())) return false;
  return true;
}

class Chooser {
 public:
  Chooser(NodeGraph& g, const std::set<int32_t>& library, LayoutRule rule)
      : g_(g), library_(library), rule_(rule) {}

  void run() {
    for (const graph::Node& n : g_.graph->calls())
      for (size_t o = 0; o < n.outs.size(); ++o) add_image(n.ref(static_cast<int>(o)));
    for (int32_t id : g_.graph->inputs())
      for (size_t o = 0; o < g_.graph->node(id).outs.size(); ++o) add_image({id, static_cast<int>(o)});
    if (images_.empty()) return;
    for (const graph::Node& n : g_.graph->calls()) {
      if (library_.contains(n.id))
        visit_library(n);
      else if (g_.sources.at(n.ref()).kind == ValueSource::Kind::Buffer)
        visit_loops(n);
    }
    settle();
  }

 private:
  // A value with memory whose sizes are those of an image: {batch, channel, space...}.
  struct Image {
    GraphRef value;
    bool free = false;  // it may be laid out anew
    int convolutions = 0, group = 0;
  };

  void add_image(GraphRef r) {
    const TensorSpec& s = g_.graph->spec(r);
    if (s.dim() < 3 || s.dim() > 5 || g_.sources.at(r).kind != ValueSource::Kind::Buffer) return;
    Image image{r};
    image.free = !g_.graph->node(r.node).is_input() && !g_.is_output.contains(r) &&
                 equal(s.strides, contiguous_strides(s.sizes));
    image.group = static_cast<int>(images_.size());
    number_[r] = image.group;
    images_.push_back(image);
  }

  // The values in memory that a value is computed from where it is read.
  void roots(GraphRef r, std::set<int>& out) {
    const ValueSource& s = g_.sources.at(r);
    if (s.kind == ValueSource::Kind::Buffer) {
      if (auto it = number_.find(r); it != number_.end()) out.insert(it->second);
      return;
    }
    for (const Value& v : g_.graph->node(r.node).args)
      graph::for_each_ref(v, [&](GraphRef a) { roots(a, out); });
  }

  void visit_library(const graph::Node& n) {
    const bool convolution = is_convolution(n.op->library) && rule_(*g_.graph, n);
    for (size_t a = 0; a < n.args.size(); ++a) {
      const std::string_view name = n.op->schema.args[a].name;
      const bool image = convolution && name != "weight" && name != "bias";
      graph::for_each_ref(n.args[a], [&](GraphRef r) { touch(r, image); });
    }
    const bool image = convolution && n.op->library != LibraryCall::ConvolutionWeight;
    for (size_t o = 0; o < n.outs.size(); ++o) touch(n.ref(static_cast<int>(o)), image);
  }
  // A routine's operand: of a convolution it counts, any other has to find what it expects.
  void touch(GraphRef r, bool image) {
    std::set<int> all;
    roots(r, all);
    const bool itself = g_.sources.at(r).kind == ValueSource::Kind::Buffer;
    for (int k : all) {
      if (!image || !itself)
        images_[k].free = false;
      else if (g_.hint(g_.graph->spec(r).sizes[1].expr()) >= kFewChannels)
        ++images_[k].convolutions;
    }
  }

  // Loops want all images that they run over in one layout.
  void visit_loops(const graph::Node& n) {
    std::set<int> all;
    for (size_t o = 0; o < n.outs.size(); ++o) roots(n.ref(static_cast<int>(o)), all);
    for (const Value& v : n.args) graph::for_each_ref(v, [&](GraphRef a) { roots(a, all); });
    std::vector<int> list(all.begin(), all.end());
    for (size_t a = 0; a < list.size(); ++a)
      for (size_t b = a + 1; b < list.size(); ++b)
        if (beside(list[a], list[b])) edges_.push_back({list[a], list[b]});
  }
  bool beside(int a, int b) const {
    const Sizes &x = g_.graph->spec(images_[a].value).sizes, &y = g_.graph->spec(images_[b].value).sizes;
    return x.size() == y.size() && x[0].expr() == y[0].expr() && x[1].expr() == y[1].expr();
  }

  int group(int k) const {
    while (images_[k].group != k) k = images_[k].group;
    return k;
  }
  int64_t space(int k) const {
    const Sizes& s = g_.graph->spec(images_[k].value).sizes;
    int64_t n = 1;
    for (size_t d = 2; d < s.size(); ++d) n *= g_.hint(s[d].expr());
    return n;
  }

  void settle() {
    for (auto [a, b] : edges_)
      if (images_[a].free && images_[b].free && group(a) != group(b)) images_[group(b)].group = group(a);
    std::vector<int> gain(images_.size(), 0);
    for (size_t k = 0; k < images_.size(); ++k)
      if (images_[k].free) gain[group(static_cast<int>(k))] += kReorderPasses * images_[k].convolutions;
    for (auto [a, b] : edges_) {
      if (images_[a].free == images_[b].free) continue;
      const int moved = images_[a].free ? a : b, fixed = images_[a].free ? b : a;
      if (space(moved) > 1 && space(fixed) > 1) gain[group(moved)] -= kStridedPasses;
    }
    for (size_t k = 0; k < images_.size(); ++k) {
      if (!images_[k].free || gain[group(static_cast<int>(k))] <= 0) continue;
      TensorSpec s = g_.graph->spec(images_[k].value);
      s.strides = channels_last_strides(s.sizes);
      g_.laid_out[images_[k].value] = std::move(s);
    }
  }

  NodeGraph& g_;
  const std::set<int32_t>& library_;
  LayoutRule rule_;
  std::vector<Image> images_;
  std::unordered_map<GraphRef, int, RefHash> number_;
  std::vector<std::pair<int, int>> edges_;
};

}  // namespace

void lay_out_images(NodeGraph& g, const std::set<int32_t>& library, LayoutRule rule) {
  Chooser(g, library, rule).run();
}

}  // namespace fl::loop
