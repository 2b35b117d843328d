// Printing and parsing of kernels. The forms are those of the example in ir.h; of the parts that it lacks:
//   kernel k(x: f32 in, y: f32 inout) sizes(s0, s1>=2) params(f32) vector outer
//   for i0 < s0, i1 < s1
//     stage
//       %0 = constant f32 1.5        %1 = param f32 0          %2 = index i64 [i0 + 1]
//       %3 = load f32 x[i0] if %9    %4, %5 = scan argmax %3, %2
//       check %9, %2, "index {} is out of bounds"
//       store add y[i1] = %3 if %9
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>

#include "flambeau/base/error.h"
#include "flambeau/loop/ir.h"
#include "flambeau/loop/reduce.h"

namespace fl::loop {
namespace {

constexpr std::string_view kModeNames[] = {"set", "add", "mul", "min", "max"};
constexpr std::string_view kVectorNames[] = {"none", "outer", "inner", "outer_tree"};

std::string number_text(double v) { return fmt::format("{}", v); }

class Printer {
 public:
  explicit Printer(const Kernel& k) : k_(k) {}

  std::string run() {
    header();
    if (!k_.outer.empty()) out_ += "for " + ranges(k_.outer) + "\n";
    for (const Stage& stage : k_.stages) print(stage);
    return std::move(out_);
  }

 private:
  void header() {
    std::string buffers, sizes, params;
    for (const Buffer& b : k_.buffers)
      buffers += fmt::format("{}{}: {} {}", buffers.empty() ? "" : ", ", b.name, info(b.dtype).short_name,
                             b.written    ? "out"
                             : b.by_value ? "value"
                                          : "in");
    for (const Expr& s : k_.sizes) {
      sizes += (sizes.empty() ? "" : ", ") + s.str();
      if (s.lower() != 0) sizes += fmt::format(">={}", s.lower());
    }
    for (DType p : k_.params) params += fmt::format("{}{}", params.empty() ? "" : ", ", info(p).short_name);
    out_ += fmt::format("kernel {}({})", k_.name, buffers);
    if (!sizes.empty()) out_ += fmt::format(" sizes({})", sizes);
    if (!params.empty()) out_ += fmt::format(" params({})", params);
    out_ += fmt::format(" vector {}", kVectorNames[static_cast<int>(k_.vector)]);
    if (k_.lanes != kReduceLanes) out_ += fmt::format(" lanes {}", k_.lanes);
    out_ += '\n';
  }
  static std::string ranges(const std::vector<Range>& all) {
    std::string out;
    for (const Range& r : all)
      out += fmt::format("{}{} < {}", out.empty() ? "" : ", ", r.variable.str(), r.size.str());
    return out;
  }
  static std::string values(const std::vector<int32_t>& ids) {
    std::string out;
    for (int32_t id : ids) out += fmt::format("{}%{}", out.empty() ? "" : ", ", id);
    return out;
  }
  std::string access(int32_t buffer, const Expr& index) const {
    return fmt::format("{}[{}]", k_.buffers[buffer].name, index.str());
  }
  static std::string mask(int32_t id) { return id < 0 ? "" : fmt::format(" if %{}", id); }
  static std::string reduction(std::string_view word, const Reduction& r) {
    return fmt::format("    {} = {} {} {}\n", values(r.results), word, name(r.op), values(r.operands));
  }

  void print(const Stage& stage) {
    out_ += stage.inner.empty() ? "  stage\n" : "  stage for " + ranges(stage.inner) + "\n";
    for (int32_t id : stage.insts) print(stage, id);
    for (const Reduction& r : stage.reductions) out_ += reduction("reduce", r);
    for (const Assert& a : stage.asserts) {
      std::string escaped;
      for (char c : a.message) {
        if (c == '"' || c == '\\') escaped += '\\';
        escaped += c == '\n' ? ' ' : c;
      }
      out_ += fmt::format("    check %{}, %{}, \"{}\"\n", a.condition, a.value, escaped);
    }
    for (const Store& s : stage.stores) {
      const std::string mode =
          s.mode == StoreMode::Set ? "" : fmt::format("{} ", kModeNames[static_cast<int>(s.mode)]);
      out_ += fmt::format("    store {}{} = %{}{}\n", mode, access(s.buffer, s.index), s.value, mask(s.mask));
    }
  }
  void print(const Stage& stage, int32_t id) {
    const Inst& i = k_.insts[id];
    const std::string_view type = info(i.dtype).short_name;
    switch (i.kind) {
      case InstKind::Scanned:
        if (i.b == 0) out_ += reduction("scan", stage.scans[i.a]);
        return;
      case InstKind::Reduced:
        return;
      case InstKind::Constant:
        out_ += fmt::format("    %{} = constant {} {}\n", id, type, constant(i));
        return;
      case InstKind::Param:
        out_ += fmt::format("    %{} = param {} {}\n", id, type, i.slot);
        return;
      case InstKind::Index:
        out_ += fmt::format("    %{} = index i64 [{}]\n", id, i.index.str());
        return;
      case InstKind::Load:
        out_ += fmt::format("    %{} = load {} {}{}\n", id, type, access(i.slot, i.index), mask(i.a));
        return;
      case InstKind::Operation: {
        std::vector<int32_t> operands{i.a, i.b, i.c};
        operands.resize(arity(i.op));
        out_ += fmt::format("    %{} = {} {} {}\n", id, name(i.op), type, values(operands));
      }
    }
  }
  static std::string constant(const Inst& i) {
    if (is_complex(i.dtype))
      return fmt::format("({}, {})", number_text(i.number.real()), number_text(i.number.imag()));
    if (is_floating(i.dtype)) return number_text(i.number.real());
    return fmt::format("{}", i.integer);
  }

  const Kernel& k_;
  std::string out_;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Kernel run() {
    while (next_line()) {
      if (take("kernel")) {
        header();
      } else if (take("for")) {
        k_.outer = ranges();
      } else if (take("stage")) {
        k_.stages.emplace_back();
        if (take("for")) k_.stages.back().inner = ranges();
      } else if (k_.stages.empty()) {
        fail("'kernel', 'for' or 'stage'");
      } else if (take("store")) {
        store();
      } else if (take("check")) {
        check();
      } else {
        inst();
      }
      if (!at_end()) fail("the end of the line");
    }
    if (k_.name.empty()) fail("a kernel");
    return std::move(k_);
  }

 private:
  bool next_line() {
    while (position_ < text_.size()) {
      const size_t end = std::min(text_.find('\n', position_), text_.size());
      line_ = text_.substr(position_, end - position_);
      position_ = end + 1;
      ++number_;
      at_ = 0;
      if (!at_end()) return true;
    }
    return false;
  }
  bool at_end() {
    while (at_ < line_.size() && line_[at_] == ' ') ++at_;
    return at_ == line_.size();
  }
  [[noreturn]] void fail(std::string_view expected) const {
    FL_RAISE(ValueError, "line {} of the kernel: expected {}, got '{}'", number_, expected,
             line_.substr(std::min(at_, line_.size())));
  }
  static bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }
  bool take(std::string_view token) {
    if (at_end() || line_.substr(at_, token.size()) != token) return false;
    const size_t end = at_ + token.size();
    if (is_word(token.back()) && end < line_.size() && is_word(line_[end])) return false;
    at_ = end;
    return true;
  }
  void need(std::string_view token) {
    if (!take(token)) fail(fmt::format("'{}'", token));
  }
  std::string word(std::string_view what) {
    at_end();
    const size_t begin = at_;
    while (at_ < line_.size() && (is_word(line_[at_]) || line_[at_] == '-' || line_[at_] == '+')) ++at_;
    if (begin == at_) fail(what);
    return std::string(line_.substr(begin, at_ - begin));
  }
  int64_t integer() {
    const size_t begin = (at_end(), at_);
    const std::string w = word("an integer");
    int64_t out = 0;
    auto [end, error] = std::from_chars(w.data(), w.data() + w.size(), out);
    if (error != std::errc() || end != w.data() + w.size()) {
      at_ = begin;
      fail("an integer");
    }
    return out;
  }
  double number() {
    const size_t begin = (at_end(), at_);
    const std::string w = word("a number");
    char* end = nullptr;
    const double out = std::strtod(w.c_str(), &end);
    if (*end) {
      at_ = begin;
      fail("a number");
    }
    return out;
  }
  DType dtype() {
    const size_t begin = (at_end(), at_);
    const std::string w = word("a dtype");
    for (int d = 0; d < kDTypeCount; ++d)
      if (info(static_cast<DType>(d)).short_name == w) return static_cast<DType>(d);
    at_ = begin;
    fail("a dtype such as f32");
  }
  int32_t value() {
    need("%");
    const int64_t id = integer();
    if (id < 0 || id > 1000000) fail("the number of a value");
    if (static_cast<size_t>(id) >= k_.insts.size()) k_.insts.resize(id + 1);
    return static_cast<int32_t>(id);
  }
  std::vector<int32_t> values() {
    std::vector<int32_t> out;
    do out.push_back(value());
    while (take(","));
    return out;
  }
  int32_t optional_mask() { return take("if") ? value() : -1; }

  // Names get the symbols that the header declares.
  Expr resolve(const Expr& e) const {
    return sym::substitute(e, [&](const Expr& s) -> std::optional<Expr> {
      if (!s.is_symbol()) return std::nullopt;
      for (const Expr& size : k_.sizes)
        if (size.name() == s.name()) return size;
      return std::nullopt;
    });
  }
  Expr expression(std::string_view terminators) {
    at_end();
    int depth = 0;
    size_t end = at_;
    for (; end < line_.size(); ++end) {
      const char c = line_[end];
      if (depth == 0 && terminators.find(c) != std::string_view::npos) break;
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    }
    const std::string_view text = line_.substr(at_, end - at_);
    try {
      const Expr e = resolve(sym::parse(text));
      at_ = end;
      return e;
    } catch (const ValueError& error) {
      FL_RAISE(ValueError, "line {} of the kernel: {}", number_, error.message());
    }
  }
  std::vector<Range> ranges() {
    std::vector<Range> out;
    do {
      const Expr variable = Expr::symbol(word("a loop variable"));
      need("<");
      out.push_back({variable, expression(",")});
    } while (take(","));
    return out;
  }

  void header() {
    k_.name = word("the kernel's name");
    need("(");
    while (!take(")")) {
      Buffer b;
      b.name = word("a buffer's name");
      need(":");
      b.dtype = dtype();
      b.by_value = take("value");
      b.written = !b.by_value && !take("in");
      if (b.written) need("out");
      k_.buffers.push_back(std::move(b));
      take(",");
    }
    if (take("sizes(")) {
      while (!take(")")) {
        const std::string name = word("a size's name");
        k_.sizes.push_back(Expr::symbol(name, take(">=") ? integer() : 0));
        take(",");
      }
    }
    if (take("params(")) {
      while (!take(")")) {
        k_.params.push_back(dtype());
        take(",");
      }
    }
    need("vector");
    for (size_t v = 0; v < std::size(kVectorNames); ++v)
      if (take(kVectorNames[v])) {
        k_.vector = static_cast<VectorAxis>(v);
        if (take("lanes")) k_.lanes = static_cast<int>(std::clamp<int64_t>(integer(), 0, INT32_MAX));
        return;
      }
    fail("none, outer, inner or outer_tree");
  }
  std::pair<int32_t, Expr> access() {
    const size_t begin = (at_end(), at_);
    const std::string w = word("a buffer's name");
    for (size_t b = 0; b < k_.buffers.size(); ++b)
      if (k_.buffers[b].name == w) {
        need("[");
        const Expr e = expression("]");
        need("]");
        return {static_cast<int32_t>(b), e};
      }
    at_ = begin;
    fail("the name of a buffer");
  }
  void store() {
    Store s;
    for (int m = 1; m < 5; ++m) {
      const size_t before = at_;
      if (!take(kModeNames[m])) continue;
      if (take("[")) {
        at_ = before;  // a buffer of this name
        continue;
      }
      s.mode = static_cast<StoreMode>(m);
      break;
    }
    std::tie(s.buffer, s.index) = access();
    need("=");
    s.value = value();
    s.mask = optional_mask();
    k_.stages.back().stores.push_back(std::move(s));
  }
  void check() {
    Assert a;
    a.condition = value();
    need(",");
    a.value = value();
    need(",");
    need("\"");
    while (at_ < line_.size() && line_[at_] != '"') {
      if (line_[at_] == '\\' && at_ + 1 < line_.size()) ++at_;
      a.message += line_[at_++];
    }
    need("\"");
    k_.stages.back().asserts.push_back(std::move(a));
  }

  void inst() {
    const std::vector<int32_t> ids = values();
    need("=");
    Stage& stage = k_.stages.back();
    if (take("reduce")) return reduction(ids, InstKind::Reduced, stage.reductions);
    if (take("scan")) {
      stage.insts.insert(stage.insts.end(), ids.begin(), ids.end());
      return reduction(ids, InstKind::Scanned, stage.scans);
    }
    if (ids.size() != 1) fail("reduce or scan");
    stage.insts.push_back(ids[0]);
    Inst i = single();
    k_.insts[ids[0]] = std::move(i);
  }
  Inst single() {
    Inst i;
    if (take("constant")) {
      i.kind = InstKind::Constant;
      i.dtype = dtype();
      if (is_complex(i.dtype)) {
        need("(");
        const double re = number();
        need(",");
        i.number = {re, number()};
        need(")");
      } else if (is_floating(i.dtype)) {
        i.number = number();
      } else {
        i.integer = integer();
      }
    } else if (take("param")) {
      i.kind = InstKind::Param;
      i.dtype = dtype();
      i.slot = static_cast<int32_t>(integer());
    } else if (take("index")) {
      i.kind = InstKind::Index;
      i.dtype = dtype();
      need("[");
      i.index = expression("]");
      need("]");
    } else if (take("load")) {
      i.kind = InstKind::Load;
      i.dtype = dtype();
      std::tie(i.slot, i.index) = access();
      i.a = optional_mask();
    } else {
      operation(i);
    }
    return i;
  }
  void operation(Inst& i) {
    const size_t begin = (at_end(), at_);
    const std::string w = word("an operation");
    for (int o = 0; o <= static_cast<int>(ScalarOp::Select); ++o) {
      i.op = static_cast<ScalarOp>(o);
      if (name(i.op) != w || arity(i.op) == 0) continue;
      i.dtype = dtype();
      const std::vector<int32_t> operands = values();
      if (static_cast<int>(operands.size()) != arity(i.op))
        fail(fmt::format("{} operands of {}", arity(i.op), w));
      i.a = operands[0];
      if (operands.size() > 1) i.b = operands[1];
      if (operands.size() > 2) i.c = operands[2];
      return;
    }
    at_ = begin;
    fail("an operation");
  }
  void reduction(const std::vector<int32_t>& ids, InstKind kind, std::vector<Reduction>& list) {
    const size_t begin = (at_end(), at_);
    const std::string w = word("a reduction");
    for (int o = 0; o <= static_cast<int>(ReduceOp::OnlineSoftmax); ++o) {
      const auto op = static_cast<ReduceOp>(o);
      if (name(op) != w) continue;
      Reduction r{op, values(), ids};
      if (static_cast<int>(ids.size()) != result_count(op))
        fail(fmt::format("{} results of {}", result_count(op), w));
      const std::vector<DType> dtypes = state_dtypes(op, k_.insts[r.operands[0]].dtype);
      for (size_t n = 0; n < ids.size(); ++n) {
        Inst& i = k_.insts[ids[n]];
        i.kind = kind;
        i.dtype = dtypes[n];
        i.a = static_cast<int32_t>(list.size());
        i.b = static_cast<int32_t>(n);
      }
      list.push_back(std::move(r));
      return;
    }
    at_ = begin;
    fail("a reduction");
  }

  std::string_view text_, line_;
  size_t position_ = 0, at_ = 0;
  int number_ = 0;
  Kernel k_;
};

}  // namespace

std::string Kernel::str() const { return Printer(*this).run(); }

Kernel parse_kernel(std::string_view text) {
  Kernel k = Parser(text).run();
  verify(k);
  return k;
}

}  // namespace fl::loop
