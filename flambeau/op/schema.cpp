#include "flambeau/op/schema.h"

#include <charconv>

#include "flambeau/op/dispatch.h"
#include "flambeau/op/op.h"

namespace fl {
namespace {

struct Reader {
  std::string_view text;
  size_t at = 0;
  char peek() const { return at < text.size() ? text[at] : '\0'; }
  void space() {
    while (peek() == ' ') ++at;
  }
  [[noreturn]] void fail(std::string_view expected) const {
    FL_RAISE(InternalError, "expected {} at column {} of the schema '{}'", expected, at, text);
  }
  void take(char c) {
    space();
    if (peek() != c) fail(fmt::format("'{}'", c));
    ++at;
  }
  std::string_view until(std::string_view stops) {
    const size_t begin = at;
    int depth = 0;
    while (at < text.size() && (depth > 0 || stops.find(text[at]) == std::string_view::npos)) {
      if (text[at] == '(' || text[at] == '[') ++depth;
      if (text[at] == ')' || text[at] == ']') --depth;
      ++at;
    }
    return text.substr(begin, at - begin);
  }
};

// Takes "(a!)" out of a type and fills the alias fields.
template <class T>
void read_alias(std::string_view type, T& out) {
  const size_t open = type.find('(');
  if (open == std::string_view::npos) return;
  out.alias = type[open + 1];
  out.mutated = type.find('!') != std::string_view::npos;
}

double to_number(std::string_view s) {
  double d = 0;
  auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), d);
  FL_ASSERT(error == std::errc() && end == s.data() + s.size(), "'{}' is not a number", s);
  return d;
}

bool is_number(std::string_view s) {
  double d = 0;
  auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), d);
  return error == std::errc() && end == s.data() + s.size();
}

Value default_value(std::string_view s, ArgType type) {
  if (s == "None") return {};
  if (s == "True") return true;
  if (s == "False") return false;
  if (s.front() == '"' || s.front() == '\'') return Value(s.substr(1, s.size() - 2));
  if (s == "contiguous_format" || (s == "0" && type == ArgType::MemoryFormat))
    return MemoryFormat::Contiguous;
  if (s == "preserve_format") return MemoryFormat::Preserve;
  if (s.front() == '[') {
    Sizes list;
    Reader r{s, 1};
    while (r.peek() != ']') {
      r.space();
      list.push_back(static_cast<int64_t>(to_number(r.until(",]"))));
      if (r.peek() == ',') ++r.at;
    }
    return Value(list);
  }
  const bool integral = s.find_first_of(".einf") == std::string_view::npos;
  if (type == ArgType::IntList || type == ArgType::OptIntList)
    return Value(Sizes{static_cast<int64_t>(to_number(s))});
  if (is_number(s)) {
    if (integral && type != ArgType::Float && type != ArgType::OptFloat)
      return Value(static_cast<int64_t>(to_number(s)));
    return Value(to_number(s));
  }
  FL_RAISE(InternalError, "unknown default value '{}' in a schema", s);
}

}  // namespace

std::string_view name(ArgType t) {
  static constexpr std::string_view kNames[] = {
      "Tensor",      "Tensor?", "Tensor[]",     "Tensor?[]",     "int",       "int?",     "SymInt",
      "SymInt?",     "int[]",   "int[]?",       "float",         "float?",    "float[]?", "bool",
      "bool?",       "bool[]",  "Scalar",       "Scalar?",       "str",       "str?",     "ScalarType",
      "ScalarType?", "Device?", "MemoryFormat", "MemoryFormat?", "Generator?"};
  return kNames[static_cast<int>(t)];
}

Schema parse_schema(std::string_view text) {
  Schema s;
  s.text = text;
  Reader r{text};
  const std::string_view full = r.until("(");
  const size_t dot = full.find('.');
  s.name = full.substr(0, dot);
  if (dot != std::string_view::npos) s.overload = full.substr(dot + 1);
  r.take('(');
  bool keyword_only = false;
  for (r.space(); r.peek() != ')'; r.space()) {
    if (r.peek() == '*') {
      keyword_only = true;
      ++r.at;
    } else {
      Argument a;
      const std::string_view type = r.until(" ");
      a.type = schema::type_of(type);
      read_alias(type, a);
      const size_t bracket = type.find('[');
      if (bracket != std::string_view::npos && std::isdigit(static_cast<unsigned char>(type[bracket + 1])))
        a.list_size = type[bracket + 1] - '0';
      r.space();
      a.name = r.until("=,)");
      a.keyword_only = keyword_only;
      if (r.peek() == '=') {
        ++r.at;
        a.default_value = default_value(r.until(",)"), a.type);
      }
      s.args.push_back(std::move(a));
    }
    r.space();
    if (r.peek() == ',') ++r.at;
  }
  r.take(')');
  r.take('-');
  r.take('>');
  r.space();
  const bool tuple = r.peek() == '(';
  if (tuple) ++r.at;
  while (r.at < text.size() && r.peek() != ')') {
    r.space();
    Return out;
    const std::string_view type = r.until(" ,)");
    out.type = schema::type_of(type);
    read_alias(type, out);
    r.space();
    if (r.peek() != ',' && r.peek() != ')') out.name = r.until(",)");
    s.returns.push_back(std::move(out));
    if (r.peek() == ',') ++r.at;
    r.space();
  }
  return s;
}

namespace schema {
Tensor as_tensor(const Value& v) {
  if (!v.is_number()) return v.tensor();
  const Scalar s = v.scalar();
  const DType dtype = s.kind() == Scalar::Kind::Float     ? DType::Float64
                      : s.kind() == Scalar::Kind::Complex ? DType::Complex128
                                                          : s.default_dtype();
  if (!s.is_integral() || !s.sym_int().is_symbolic()) return wrapped_number(s, dtype);
  Tensor made = call(find_op("full"), {Value(IntList()), v, Value(dtype)})[0].tensor();
  made.impl()->wrapped_number = true;
  return made;
}
}  // namespace schema

}  // namespace fl
