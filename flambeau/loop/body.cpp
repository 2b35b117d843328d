#include "flambeau/loop/body.h"

namespace fl::loop {
namespace {

// Scalar operations of one node's body: reads resolve the node's arguments.
class NodeBody : public BodyOps {
 public:
  NodeBody(BodyWriter& w, int32_t node, Val mask)
      : writer_(w), node_(w.nodes().graph->node(node)), mask_(mask) {}

  Val emit(ScalarOp op, DType dtype, Val a, Val b, Val c) override {
    return writer_.builder().emit(op, dtype, a, b, c);
  }
  Val constant(DType dtype, Literal value) override { return writer_.builder().constant(dtype, value); }
  Val index(const Expr& e) override { return writer_.builder().index(writer_.simplified(e)); }

  Val load(int arg, std::span<const Expr> index, Val mask, int item) override {
    if (arg == kPartialResults)
      return writer_.value(writer_.nodes().piece_of.at(node_.id), Index(index.begin(), index.end()));
    const Value& v = node_.args[arg];
    const GraphRef r = v.tag() == Value::Tag::GraphRefList ? v.graph_refs()[item] : v.graph_ref();
    if (v.is_number()) return number(arg, number_dtype(v));
    Val out = writer_.value(r, Index(index.begin(), index.end()), both(mask));
    return writer_.builder().cast(out, compute_dtype(out.dtype));
  }

  Expr indirect(Val index, const Expr& size, std::string_view name, Val* valid) override {
    Builder& b = writer_.builder();
    Val i = b.cast(index, DType::Int64);
    const Val n = b.index(size), zero = b.constant(DType::Int64, 0);
    const Val wrapped = b.select(b.lt(i, zero), b.add(i, n), i);
    const Val ok = b.bit_and(b.le(zero, wrapped), b.lt(wrapped, n));
    // Where another mask already excludes the point the index may be anything.
    const Val passes = mask_.id < 0 ? ok : b.bit_or(ok, b.bit_not(mask_));
    b.check(passes, i,
            fmt::format("{}: index {{}} is out of bounds for a dimension of size {{{}}}", name, size.str()));
    *valid = ok;
    return Builder::symbol_of(b.select(ok, wrapped, zero));
  }

  Expr as_index(Val v) override { return Builder::symbol_of(writer_.builder().cast(v, DType::Int64)); }

  Val number(int arg, DType dtype) override {
    Builder& b = writer_.builder();
    const Value& v = node_.args[arg];
    if (v.tag() == Value::Tag::GraphRef) return b.cast(writer_.value(v.graph_ref(), {}), dtype);
    const Scalar s = v.scalar();
    if (s.is_integral()) {
      const SymInt i = s.sym_int();
      if (i.is_symbolic()) return b.cast(b.index(i.expr()), dtype);
      return b.constant(dtype, Literal(i.expect_int()));
    }
    if (s.is_complex()) return b.constant(dtype, Literal(s.to_complex()));
    return b.constant(dtype, Literal(s.to_double()));
  }

 private:
  static DType number_dtype(const Value& v) {
    switch (v.scalar().kind()) {
      case Scalar::Kind::Float:
        return DType::Float64;
      case Scalar::Kind::Complex:
        return DType::Complex128;
      default:
        return v.scalar().default_dtype();
    }
  }
  Val both(Val mask) {
    if (mask_.id < 0) return mask;
    return mask.id < 0 ? mask_ : writer_.builder().bit_and(mask, mask_);
  }

  BodyWriter& writer_;
  const graph::Node& node_;
  Val mask_;
};

}  // namespace

void BodyWriter::set_ranges(std::vector<Range> ranges) {
  ranges_ = std::move(ranges);
  memo_.clear();
}

std::vector<Val> BodyWriter::body(int32_t node, const Lowered& l, std::span<const Expr> i,
                                  std::span<const Expr> r, Val mask) {
  NodeBody ops(*this, node, mask);
  return l.body(ops, i, r);
}

std::vector<Val> BodyWriter::finish(int32_t node, const Lowered& l, std::span<const Expr> i,
                                    std::span<const Val> results) {
  if (!l.finish) return {results.begin(), results.end()};
  NodeBody ops(*this, node, {});
  return l.finish(ops, i, results);
}

Lowered::Update BodyWriter::update(int32_t node, const Lowered& l, std::span<const Expr> i) {
  NodeBody ops(*this, node, {});
  return l.update(ops, i);
}

Val BodyWriter::value(GraphRef r, Index index, Val mask) {
  for (;;) {
    const ValueSource& s = nodes_.sources.at(r);
    if (s.kind == ValueSource::Kind::View) {
      index = s.lowered->map(index);
      const Value& arg = nodes_.graph->node(r.node).args[s.lowered->input];
      r = arg.graph_ref();
      continue;
    }
    for (Expr& e : index) e = simplified(e);
    if (s.kind == ValueSource::Kind::Buffer) return read_(r, simplified(nodes_.flat_index(r, index)), mask);
    std::string key = fmt::format("{}:{}:{}", r.node, r.index, mask.id);
    for (const Expr& e : index) key += "," + e.str();
    if (auto it = memo_.find(key); it != memo_.end()) return it->second;
    // A mask keeps the loads of the body off memory; its result there is not used.
    const std::vector<Val> values = body(r.node, *s.lowered, index, {}, mask);
    Val v = to_dtype(values[r.index], nodes_.spec(r).dtype);
    if (mask.id >= 0) v = builder_.select(mask, v, builder_.constant(v.dtype, 0));
    memo_.emplace(std::move(key), v);
    return v;
  }
}

}  // namespace fl::loop
