// From a functional graph of primitives to a program: nodes, fusion, kernels, buffers.
#include <algorithm>
#include <set>

#include "flambeau/loop/program.h"
#include "flambeau/loop/write_kernel.h"

namespace fl::loop {
namespace {

std::vector<Expr> exprs(const Sizes& s) {
  std::vector<Expr> out;
  for (SymInt v : s) out.push_back(v.expr());
  return out;
}

// 1 + the largest index of a tensor with these sizes and strides; 0 if it has no elements.
Expr element_count(const std::vector<Expr>& sizes, const std::vector<Expr>& strides) {
  Expr last = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d].is_const(0)) return 0;
    last += (sizes[d] - 1) * strides[d];
  }
  return last + 1;
}

class Assembler {
 public:
  Assembler(const graph::Graph& g, const LowerOptions& options)
      : g_(g),
        options_(options),
        nodes_(make_nodes(g, {.inline_values = options.fuse,
                              .takes_channels_last = options.takes_channels_last,
                              .machine = MachineShape::of(device_of(g).value_or(Device{}))})) {}

  Program run() {
    program_.name = options_.name;
    const std::optional<Device> device = device_of(g_);
    FL_CHECK(device, NotImplementedError, "a program on several GPUs, or without memory");
    program_.device = *device;
    add_inputs();
    for (size_t k = 0; k < nodes_.nodes.size(); ++k)
      for (const Access& a : nodes_.nodes[k].reads) {
        auto& list = readers_[a.value];
        if (list.empty() || list.back() != static_cast<int>(k)) list.push_back(static_cast<int>(k));
      }
    for (const Group& group : fuse_nodes(nodes_, options_.fuse)) add_group(group);
    add_outputs();
    return std::move(program_);
  }

 private:
  void add_inputs() {
    int tensor = 0, number = 0;
    std::set<std::string> known;
    auto source = [&](SymInt s, SymbolSource::Kind kind, int input, int dim) {
      if (!s.is_symbolic() || !s.expr().is_symbol() || !known.insert(s.expr().name()).second) return;
      program_.symbols.push_back({s.expr(), kind, input, dim});
    };
    for (int32_t id : g_.inputs()) {
      const graph::Node& n = g_.node(id);
      if (n.is_number()) {
        source(SymInt(n.symbol), SymbolSource::Kind::Number, number++, -1);
        continue;
      }
      const TensorSpec& s = n.spec();
      for (int d = 0; d < s.dim(); ++d) source(s.sizes[d], SymbolSource::Kind::Size, tensor, d);
      for (int d = 0; d < s.dim(); ++d) source(s.strides[d], SymbolSource::Kind::Stride, tensor, d);
      ProgramBuffer b = describe(s, n.name);
      b.kind = ProgramBuffer::Kind::Input;
      b.index = tensor++;
      b.by_value = s.device != program_.device && s.dim() == 0 && !is_read_by_library(n);
      buffer_of_[n.ref()] = add(std::move(b));
    }
    program_.tensor_inputs = tensor;
    program_.number_inputs = number;
  }

  // Or through a view by something.
  bool is_read_by_library(const graph::Node& input) const {
    return std::ranges::any_of(g_.users(input.id), [&](int32_t user) {
      const OpInfo& op = *g_.node(user).op;
      return op.library != LibraryCall::None || op.is_view();
    });
  }

  static ProgramBuffer describe(const TensorSpec& s, std::string name) {
    ProgramBuffer b;
    b.dtype = s.dtype;
    b.sizes = exprs(s.sizes);
    b.strides = exprs(s.strides);
    b.elements = element_count(b.sizes, b.strides);
    b.name = std::move(name);
    return b;
  }

  int add(ProgramBuffer b) {
    program_.buffers.push_back(std::move(b));
    return static_cast<int>(program_.buffers.size()) - 1;
  }

  // The buffer of a value with memory.
  int buffer(GraphRef r) {
    auto it = buffer_of_.find(r);
    if (it != buffer_of_.end()) return it->second;
    std::string name = g_.has_node(r.node) ? g_.node(r.node).name : "partial";
    ProgramBuffer b = describe(nodes_.spec(r), std::move(name));
    b.kind = nodes_.is_output.contains(r) ? ProgramBuffer::Kind::Output : ProgramBuffer::Kind::Temporary;
    return buffer_of_[r] = add(std::move(b));
  }

  // The value behind views, for those that take strided memory.
  GraphRef root(GraphRef r) const {
    for (;;) {
      const ValueSource& s = nodes_.sources.at(r);
      if (s.kind != ValueSource::Kind::View) return r;
      r = g_.node(r.node).args[s.lowered->input].graph_ref();
    }
  }

  int strided_buffer(GraphRef r) {
    const GraphRef base = root(r);
    if (base == r) return buffer(r);
    auto it = buffer_of_.find(r);
    if (it != buffer_of_.end()) return it->second;
    ProgramBuffer b = describe(g_.spec(r), g_.node(r.node).name);
    b.kind = ProgramBuffer::Kind::View;
    b.index = buffer(base);
    b.offset = g_.spec(r).offset.expr() - g_.spec(base).offset.expr();
    return buffer_of_[r] = add(std::move(b));
  }

  void add_group(const Group& group) {
    const LoopNode& first = nodes_.nodes[group.nodes[0]];
    if (first.kind == LoopNode::Kind::Library) return add_library(g_.node(first.node));
    for (WrittenKernel& w : write_kernels(nodes_, group, readers_)) {
      KernelStep step;
      for (size_t k = 0; k < w.buffers.size(); ++k) {
        step.buffers.push_back(buffer(w.buffers[k]));
        w.kernel.buffers[k].by_value = program_.buffers[step.buffers.back()].by_value;
      }
      step.kernel = std::make_shared<const Kernel>(std::move(w.kernel));
      program_.steps.emplace_back(std::move(step));
    }
  }

  void add_library(const graph::Node& n) {
    LibraryStep step;
    step.op = n.op;
    for (const Value& v : n.args)
      step.args.push_back(graph::map_refs(v, [&](GraphRef r) { return GraphRef{strided_buffer(r), 0}; }));
    for (size_t o = 0; o < n.outs.size(); ++o) step.outs.push_back(buffer(n.ref(static_cast<int>(o))));
    program_.steps.emplace_back(std::move(step));
  }

  void add_outputs() {
    for (const Value& v : g_.outputs()) {
      ProgramOutput o;
      if (v.tag() == Value::Tag::GraphRef) {
        const GraphRef r = v.graph_ref(), base = root(r);
        o.buffer = buffer(base);
        o.spec = g_.spec(r);
        o.spec.offset = o.spec.offset - g_.spec(base).offset;
      } else if (v.is_none()) {
        o.kind = ProgramOutput::Kind::None;
      } else {
        o.kind = ProgramOutput::Kind::Number;
        o.number = v.sym_int().expr();
      }
      program_.outputs.push_back(std::move(o));
    }
  }

  const graph::Graph& g_;
  const LowerOptions& options_;
  NodeGraph nodes_;
  Program program_;
  Readers readers_;
  std::unordered_map<GraphRef, int, RefHash> buffer_of_;
};

std::string list(const std::vector<Expr>& e) {
  std::string out = "[";
  for (size_t k = 0; k < e.size(); ++k) out += (k ? ", " : "") + e[k].str();
  return out + "]";
}

}  // namespace

std::string Program::str() const {
  static constexpr const char* kKinds[] = {"in", "out", "temporary", "view"};
  std::string out = fmt::format("program {}\n", name);
  for (size_t k = 0; k < buffers.size(); ++k) {
    const ProgramBuffer& b = buffers[k];
    out += fmt::format("  b{}: {}{} strides {} {}", k, info(b.dtype).short_name, list(b.sizes),
                       list(b.strides), kKinds[static_cast<int>(b.kind)]);
    if (b.kind == ProgramBuffer::Kind::Input || b.kind == ProgramBuffer::Kind::View)
      out += fmt::format(" {}", b.index);
    out += fmt::format("  # {}\n", b.name);
  }
  auto names = [](const std::vector<int>& ids) {
    std::string s;
    for (int b : ids) s += fmt::format("{}b{}", s.empty() ? "" : ", ", b);
    return s;
  };
  for (const Step& s : steps) {
    if (const auto* k = std::get_if<KernelStep>(&s)) {
      out += fmt::format("  kernel {}({})\n", k->kernel->name, names(k->buffers));
    } else {
      const auto& l = std::get<LibraryStep>(s);
      std::string args;
      for (const Value& v : l.args) {
        Value shown = graph::map_refs(v, [](GraphRef r) { return r; });
        args += (args.empty() ? "" : ", ") + shown.describe();
      }
      out += fmt::format("  library {}({}) -> {}\n", l.op->name(), args, names(l.outs));
    }
  }
  out += "  return";
  for (const ProgramOutput& o : outputs) {
    if (o.kind == ProgramOutput::Kind::Tensor) out += fmt::format(" b{}", o.buffer);
    if (o.kind == ProgramOutput::Kind::Number) out += " " + o.number.str();
    if (o.kind == ProgramOutput::Kind::None) out += " None";
  }
  return out + "\n";
}

std::optional<Device> device_of(const graph::Graph& g) {
  Device out;
  for (int32_t id = 0; id < g.id_limit(); ++id) {
    if (!g.has_node(id)) continue;
    for (const TensorSpec& s : g.node(id).outs) {
      if (s.device.type == DeviceType::Meta) return std::nullopt;
      if (s.device.type == DeviceType::CPU || s.device == out) continue;
      if (out.type != DeviceType::CPU) return std::nullopt;
      out = s.device;
    }
  }
  return out;
}

Program lower(const graph::Graph& g, const LowerOptions& options) {
  // Lowerings compare sizes.
  sym::ShapeEnv::Scope scope(g.shape_env ? g.shape_env.get() : sym::ShapeEnv::active());
  return Assembler(g, options).run();
}

}  // namespace fl::loop
