#include <charconv>
#include <cstdlib>

#include "flambeau/base/error.h"
#include "flambeau/graph/graph.h"
#include "flambeau/op/op.h"

namespace fl::graph {
namespace {

// Symbols of sizes are 2 or more (0 and 1 are constants), others 0 or more.
int64_t lower_bound_of(std::string_view symbol) {
  return symbol.size() > 1 && symbol[0] == 's' && std::isdigit(static_cast<unsigned char>(symbol[1])) ? 2 : 0;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

sym::Expr parse_expr(std::string_view text) {
  return sym::substitute(sym::parse(text), [](const sym::Expr& s) -> std::optional<sym::Expr> {
    if (!s.is_symbol()) return std::nullopt;
    return sym::Expr::symbol(s.name(), lower_bound_of(s.name()));
  });
}

/// Reads one line from left to right.
class Cursor {
 public:
  Cursor(std::string_view text, int line) : text_(text), line_(line) {}

  [[noreturn]] void fail(std::string_view expected) const {
    FL_RAISE(ValueError, "line {} of a graph: expected {} at '{}'", line_, expected, text_.substr(at_, 40));
  }
  void skip_space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool done() {
    skip_space();
    return at_ >= text_.size();
  }
  bool peek(char c) {
    skip_space();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool accept(char c) {
    const bool found = peek(c);
    if (found) ++at_;
    return found;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("'{}'", c));
  }
  bool accept_word(std::string_view w) {
    skip_space();
    if (text_.substr(at_, w.size()) != w) return false;
    if (at_ + w.size() < text_.size() && is_word(text_[at_ + w.size()])) return false;
    at_ += w.size();
    return true;
  }
  std::string word(std::string_view what, std::string_view more = "") {
    skip_space();
    const size_t start = at_;
    while (at_ < text_.size() && (is_word(text_[at_]) || more.find(text_[at_]) != std::string_view::npos))
      ++at_;
    if (start == at_) fail(what);
    return std::string(text_.substr(start, at_ - start));
  }
  /// Up to a comma or closing bracket that belongs to what is around.
  std::string item() {
    skip_space();
    const size_t start = at_;
    int depth = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '(' || c == '[') ++depth;
      if (depth == 0 && (c == ',' || c == ')' || c == ']')) break;
      if (c == ')' || c == ']') --depth;
    }
    size_t end = at_;
    while (end > start && text_[end - 1] == ' ') --end;
    if (end == start) fail("a value");
    return std::string(text_.substr(start, end - start));
  }
  std::string string_literal() {
    expect('"');
    std::string s;
    while (at_ < text_.size() && text_[at_] != '"') {
      char c = text_[at_++];
      if (c == '\\' && at_ < text_.size()) {
        c = text_[at_++];
        if (c == 'n') c = '\n';
      }
      s += c;
    }
    expect('"');
    return s;
  }
  template <class F>
  void list(F&& item) {
    expect('[');
    while (!accept(']')) {
      item();
      if (!peek(']')) expect(',');
    }
  }
  int line() const { return line_; }

 private:
  std::string_view text_;
  size_t at_ = 0;
  int line_;
};

Value number_value(const std::string& t, Cursor& c) {
  if (t == "True" || t == "False") return Value(t == "True");
  if (t.starts_with("complex(")) {
    Cursor inner(std::string_view(t).substr(8), c.line());
    const double re = std::strtod(inner.item().c_str(), nullptr);
    inner.expect(',');
    const double im = std::strtod(inner.item().c_str(), nullptr);
    return Value(Scalar(std::complex<double>(re, im)));
  }
  int64_t i = 0;
  auto [end, error] = std::from_chars(t.data(), t.data() + t.size(), i);
  if (error == std::errc() && end == t.data() + t.size()) return Value(i);
  char* rest = nullptr;
  const double d = std::strtod(t.c_str(), &rest);
  if (rest == t.c_str() + t.size()) return Value(d);
  return Value(SymInt(parse_expr(t)));
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Graph run() {
    std::string_view line;
    FL_CHECK(next_line(&line), ValueError, "expected a graph, got an empty text");
    header(Cursor(line, line_));
    for (;;) {
      FL_CHECK(next_line(&line), ValueError, "a graph has to end with a line 'return ...'");
      Cursor c(line, line_);
      if (c.accept_word("return")) {
        outputs(c);
        return std::move(graph_);
      }
      if (c.accept_word("random"))
        random(c);
      else
        call(c);
    }
  }

 private:
  bool next_line(std::string_view* line) {
    while (!text_.empty()) {
      const size_t end = std::min(text_.find('\n'), text_.size());
      *line = text_.substr(0, end);
      text_.remove_prefix(std::min(end + 1, text_.size()));
      ++line_;
      if (line->find_first_not_of(' ') != std::string_view::npos) return true;
    }
    return false;
  }

  void header(Cursor c) {
    if (!c.accept_word("graph")) c.fail("'graph('");
    c.expect('(');
    while (!c.accept(')')) {
      input(c);
      if (!c.peek(')')) c.expect(',');
    }
    if (c.accept_word("where")) {
      graph_.shape_env = std::make_shared<sym::ShapeEnv>();
      do {
        const std::string symbol = c.word("a symbol");
        c.expect('=');
        graph_.shape_env->declare(sym::Expr::symbol(symbol, lower_bound_of(symbol)),
                                  std::atoll(c.word("a number").c_str()));
      } while (c.accept(','));
    }
    c.expect(':');
  }

  void input(Cursor& c) {
    c.expect('%');
    const std::string name = c.word("an input's name");
    c.expect(':');
    for (InputKind k : {InputKind::Size, InputKind::Random})
      if (c.accept_word(graph::name(k))) {
        graph_.add_symbol(k, sym::Expr::symbol(name, lower_bound_of(name)));
        return;
      }
    TensorSpec s = spec(c);
    InputKind kind = InputKind::Input;
    for (InputKind k : {InputKind::Captured, InputKind::Tangent, InputKind::Saved})
      if (c.accept_word(graph::name(k))) kind = k;
    graph_.add_input(kind, std::move(s), name);
  }

  SymInt sym_int(Cursor& c) { return SymInt(parse_expr(c.item())); }

  TensorSpec spec(Cursor& c) {
    TensorSpec s;
    s.dtype = parse_dtype(c.word("a dtype"));
    c.list([&] { s.sizes.push_back(sym_int(c)); });
    s.strides = contiguous_strides(s.sizes);
    if (!c.accept('(')) return s;
    do {
      const std::string field = c.word("strides, offset or device");
      c.expect('=');
      if (field == "strides") {
        s.strides.clear();
        c.list([&] { s.strides.push_back(sym_int(c)); });
      } else if (field == "offset") {
        s.offset = sym_int(c);
      } else if (field == "device") {
        s.device = parse_device(c.item());
      } else {
        c.fail("strides, offset or device before '='");
      }
    } while (c.accept(','));
    c.expect(')');
    return s;
  }

  void random(Cursor& c) {
    RandomState r;
    r.device = parse_device(c.word("a device", ":"));
    for (sym::Expr* e : {&r.seed_low, &r.seed_high, &r.offset}) {
      c.expect(',');
      *e = parse_expr(c.item());
    }
    c.expect(',');
    r.increment = sym_int(c);
    graph_.random.push_back(r);
  }

  void call(Cursor& c) {
    c.expect('%');
    const std::string name = c.word("a name");
    c.expect(':');
    std::vector<TensorSpec> outs;
    if (c.accept('(')) {
      c.expect(')');
    } else {
      do outs.push_back(spec(c));
      while (c.accept(','));
    }
    c.expect('=');
    const std::string op_name = c.word("an operator", ".");
    const OpInfo* op = op_table().find(op_name);
    if (!op) c.fail(fmt::format("a known operator instead of '{}'", op_name));
    c.expect('(');
    std::vector<Value> args;
    while (!c.accept(')')) {
      if (args.size() >= op->schema.args.size())
        c.fail(fmt::format("{} arguments of {}", op->schema.args.size(), op_name));
      args.push_back(value(c, op->schema.args[args.size()].type));
      if (!c.peek(')')) c.expect(',');
    }
    if (args.size() != op->schema.args.size())
      c.fail(fmt::format("{} arguments of {}, got {},", op->schema.args.size(), op_name, args.size()));
    Node& n = graph_.append(*op, std::move(args), std::move(outs));
    if (n.name != name) graph_.rename(n.id, name);
    if (n.name != name) c.fail(fmt::format("'%{}' to be defined once", name));
    if (c.accept_word("recompute")) n.recompute = Recompute::Always;
    if (c.accept_word("save")) n.recompute = Recompute::Never;
    if (!c.done()) c.fail("the end of the line");
  }

  GraphRef ref(Cursor& c) {
    c.expect('%');
    const std::string name = c.word("a name");
    const Node* n = graph_.find(name);
    if (!n) c.fail(fmt::format("'%{}' to be defined above", name));
    GraphRef r = n->ref();
    if (c.accept(':')) r.index = std::atoi(c.word("an output's number").c_str());
    if (r.index >= static_cast<int32_t>(n->outs.size())) c.fail("an output that exists");
    return r;
  }

  Value value(Cursor& c, ArgType type) {
    if (c.peek('%')) return Value(ref(c));
    if (c.peek('"')) return Value(std::string_view(c.string_literal()));
    if (c.peek('[')) return list_value(c, type);
    const std::string t = c.item();
    if (t == "None") return Value();
    switch (type) {
      case ArgType::DType:
      case ArgType::OptDType:
        return Value(parse_dtype(t));
      case ArgType::OptDevice:
        return Value(parse_device(t));
      case ArgType::MemoryFormat:
      case ArgType::OptMemoryFormat:
        return Value(memory_format(c, t));
      default:
        return number_value(t, c);
    }
  }

  static MemoryFormat memory_format(Cursor& c, const std::string& t) {
    for (MemoryFormat f : {MemoryFormat::Contiguous, MemoryFormat::Preserve, MemoryFormat::ChannelsLast,
                           MemoryFormat::ChannelsLast3d})
      if (fl::name(f) == t) return f;
    c.fail(fmt::format("a memory format instead of '{}'", t));
  }

  Value list_value(Cursor& c, ArgType type) {
    switch (type) {
      case ArgType::TensorList:
      case ArgType::OptTensorList: {
        std::vector<GraphRef> list;
        c.list([&] { list.push_back(c.accept_word("None") ? GraphRef{} : ref(c)); });
        return Value(std::move(list));
      }
      case ArgType::OptFloatList: {
        std::vector<double> list;
        c.list([&] { list.push_back(number_value(c.item(), c).to_double()); });
        return Value(std::move(list));
      }
      case ArgType::BoolList: {
        std::vector<bool> list;
        c.list([&] { list.push_back(c.item() == "True"); });
        return Value(std::move(list));
      }
      default: {
        Sizes list;
        c.list([&] { list.push_back(sym_int(c)); });
        return Value(IntList(list));
      }
    }
  }

  void outputs(Cursor& c) {
    std::vector<Value> outputs;
    while (!c.done()) {
      outputs.push_back(value(c, ArgType::SymInt));
      if (!c.done()) c.expect(',');
    }
    graph_.set_outputs(std::move(outputs));
  }

  std::string_view text_;
  int line_ = 0;
  Graph graph_;
};

}  // namespace

Graph parse_graph(std::string_view text) { return Parser(text).run(); }

}  // namespace fl::graph
