#include "flambeau/loop/program_file.h"

#include <nlohmann/json.hpp>

#include "flambeau/op/op.h"

namespace fl::loop {
namespace {

using Json = nlohmann::ordered_json;

// Changes with what programs mean: kernels' text, operators' routines, fields.
constexpr int kVersion = 2;

constexpr const char* kBufferKinds[] = {"input", "output", "temporary", "view"};
constexpr const char* kOutputKinds[] = {"tensor", "number", "none"};
constexpr const char* kSourceKinds[] = {"size", "stride", "offset", "number"};

template <class Enum, size_t N>
Enum find_name(const char* const (&names)[N], const std::string& name) {
  for (size_t k = 0; k < N; ++k)
    if (name == names[k]) return static_cast<Enum>(k);
  FL_RAISE(ValueError, "a program's text: expected one of {}, got '{}'",
           fmt::join(std::begin(names), std::end(names), ", "), name);
}

// Numbers of which not all can be written in JSON.
Json number_text(double v) { return fmt::format("{:a}", v); }
double number_of(const Json& j) {
  const std::string text = j.get<std::string>();
  char* end = nullptr;
  const double v = std::strtod(text.c_str(), &end);
  FL_CHECK(!text.empty() && *end == 0, ValueError, "a program's text: expected a number, got '{}'", text);
  return v;
}

class Writer {
 public:
  Json program(const Program& p) {
    Json j;
    j["format"] = "flambeau program";
    j["version"] = kVersion;
    j["name"] = p.name;
    j["device"] = p.device.str();
    for (const char* list : {"symbols", "buffers", "steps", "outputs"}) j[list] = Json::array();
    for (const SymbolSource& s : p.symbols)
      j["symbols"].push_back({{"symbol", s.symbol.name()},
                              {"lower", s.symbol.lower()},
                              {"from", kSourceKinds[static_cast<int>(s.kind)]},
                              {"input", s.input},
                              {"dim", s.dim}});
    for (const ProgramBuffer& b : p.buffers) j["buffers"].push_back(buffer(b));
    for (const Step& s : p.steps) j["steps"].push_back(step(s));
    for (const ProgramOutput& o : p.outputs) j["outputs"].push_back(output(o));
    j["tensor_inputs"] = p.tensor_inputs;
    j["number_inputs"] = p.number_inputs;
    return j;
  }

 private:
  static Json exprs(const std::vector<Expr>& list) {
    Json j = Json::array();
    for (const Expr& e : list) j.push_back(e.str());
    return j;
  }
  static Json sizes(IntList list) {
    Json j = Json::array();
    for (SymInt s : list) j.push_back(s.expr().str());
    return j;
  }
  static Json buffer(const ProgramBuffer& b) {
    return {{"kind", kBufferKinds[static_cast<int>(b.kind)]},
            {"index", b.index},
            {"dtype", name(b.dtype)},
            {"sizes", exprs(b.sizes)},
            {"strides", exprs(b.strides)},
            {"offset", b.offset.str()},
            {"elements", b.elements.str()},
            {"by_value", b.by_value},
            {"name", b.name}};
  }
  static Json step(const Step& s) {
    if (const auto* k = std::get_if<KernelStep>(&s))
      return {{"kernel", k->kernel->str()}, {"buffers", k->buffers}};
    const auto& l = std::get<LibraryStep>(s);
    Json args = Json::array();
    for (const Value& v : l.args) args.push_back(value(v));
    return {{"library", l.op->name()}, {"args", args}, {"outs", l.outs}};
  }
  static Json output(const ProgramOutput& o) {
    Json j{{"kind", kOutputKinds[static_cast<int>(o.kind)]}};
    if (o.kind == ProgramOutput::Kind::Number) j["number"] = o.number.str();
    if (o.kind != ProgramOutput::Kind::Tensor) return j;
    j["buffer"] = o.buffer;
    j["dtype"] = name(o.spec.dtype);
    j["device"] = o.spec.device.str();
    j["sizes"] = sizes(o.spec.sizes);
    j["strides"] = sizes(o.spec.strides);
    j["offset"] = o.spec.offset.expr().str();
    return j;
  }
  static Json value(const Value& v) {
    switch (v.tag()) {
      case Value::Tag::None:
        return nullptr;
      case Value::Tag::GraphRef:
        return {{"buffer", v.graph_ref().node}};
      case Value::Tag::GraphRefList: {
        Json list = Json::array();
        for (GraphRef r : v.graph_refs()) list.push_back(r.node);
        return {{"buffers", list}};
      }
      case Value::Tag::Int:
        return {{"int", v.sym_int().expr().str()}};
      case Value::Tag::IntList:
        return {{"ints", sizes(v.ints())}};
      case Value::Tag::Float:
        return {{"float", number_text(v.to_double())}};
      case Value::Tag::FloatList: {
        Json list = Json::array();
        for (double d : v.doubles()) list.push_back(number_text(d));
        return {{"floats", list}};
      }
      case Value::Tag::Bool:
        return {{"bool", v.to_bool()}};
      case Value::Tag::BoolList:
        return {{"bools", v.bools()}};
      case Value::Tag::Complex: {
        const std::complex<double> c = v.scalar().to_complex();
        return {{"complex", {number_text(c.real()), number_text(c.imag())}}};
      }
      case Value::Tag::Str:
        return {{"str", std::string(v.str())}};
      case Value::Tag::DType:
        return {{"dtype", name(v.dtype())}};
      case Value::Tag::Device:
        return {{"device", v.device().str()}};
      case Value::Tag::MemoryFormat:
        return {{"memory_format", name(v.memory_format())}};
      case Value::Tag::Tensor:
      case Value::Tag::TensorList:
      case Value::Tag::Generator:
        break;
    }
    FL_RAISE(InternalError, "a program's step has {} as an argument", v.describe());
  }
};

class Reader {
 public:
  Program program(const Json& j) {
    FL_CHECK(j.is_object() && j.value("format", "") == "flambeau program", ValueError,
             "expected the text of a program as save_program() writes it");
    const int version = j.at("version").get<int>();
    FL_CHECK(
        version == kVersion, RuntimeError,
        "the program was saved in version {} of the format, this library reads version {}: save it again",
        version, kVersion);
    p_.name = j.at("name").get<std::string>();
    p_.device = parse_device(j.at("device").get<std::string>());
    p_.tensor_inputs = j.at("tensor_inputs").get<int>();
    p_.number_inputs = j.at("number_inputs").get<int>();
    for (const Json& s : j.at("symbols")) symbol(s);
    for (const Json& b : j.at("buffers")) p_.buffers.push_back(buffer(b));
    for (const ProgramBuffer& b : p_.buffers) {
      if (b.kind == ProgramBuffer::Kind::View) check_buffer(b.index);
      if (b.kind == ProgramBuffer::Kind::Input)
        FL_CHECK(b.index >= 0 && b.index < p_.tensor_inputs, ValueError,
                 "a program's text: buffer '{}' is input {} of {}", b.name, b.index, p_.tensor_inputs);
    }
    for (const Json& s : j.at("steps")) p_.steps.push_back(step(s));
    for (const Json& o : j.at("outputs")) p_.outputs.push_back(output(o));
    return std::move(p_);
  }

 private:
  void symbol(const Json& j) {
    SymbolSource s;
    s.symbol = Expr::symbol(j.at("symbol").get<std::string>(), j.at("lower").get<int64_t>());
    s.kind = find_name<SymbolSource::Kind>(kSourceKinds, j.at("from").get<std::string>());
    s.input = j.at("input").get<int>();
    s.dim = j.at("dim").get<int>();
    const int inputs = s.kind == SymbolSource::Kind::Number ? p_.number_inputs : p_.tensor_inputs;
    FL_CHECK(s.input >= 0 && s.input < inputs, ValueError,
             "a program's text: symbol {} comes from input {} of {}", s.symbol.name(), s.input, inputs);
    p_.symbols.push_back(s);
  }
  // Symbols as the program declares them, with their bounds.
  Expr expr(const Json& j) const {
    const Expr e = sym::parse(j.get<std::string>());
    return sym::substitute(e, [&](const Expr& s) -> std::optional<Expr> {
      if (!s.is_symbol()) return std::nullopt;
      for (const SymbolSource& known : p_.symbols)
        if (known.symbol.name() == s.name()) return known.symbol;
      FL_RAISE(ValueError, "a program's text: symbol {} is not declared", s.name());
    });
  }
  std::vector<Expr> exprs(const Json& j) const {
    std::vector<Expr> out;
    for (const Json& e : j) out.push_back(expr(e));
    return out;
  }
  Sizes sizes(const Json& j) const {
    Sizes out;
    for (const Json& e : j) out.push_back(SymInt(expr(e)));
    return out;
  }
  ProgramBuffer buffer(const Json& j) const {
    ProgramBuffer b;
    b.kind = find_name<ProgramBuffer::Kind>(kBufferKinds, j.at("kind").get<std::string>());
    b.index = j.at("index").get<int>();
    b.dtype = parse_dtype(j.at("dtype").get<std::string>());
    b.sizes = exprs(j.at("sizes"));
    b.strides = exprs(j.at("strides"));
    b.offset = expr(j.at("offset"));
    b.elements = expr(j.at("elements"));
    b.by_value = j.at("by_value").get<bool>();
    b.name = j.at("name").get<std::string>();
    FL_CHECK(b.sizes.size() == b.strides.size(), ValueError,
             "a program's text: buffer '{}' has {} sizes and {} strides", b.name, b.sizes.size(),
             b.strides.size());
    return b;
  }
  int check_buffer(int id) const {
    FL_CHECK(id >= 0 && id < static_cast<int>(p_.buffers.size()), ValueError,
             "a program's text: buffer {} of {}", id, p_.buffers.size());
    return id;
  }
  std::vector<int> buffers(const Json& j) const {
    std::vector<int> out;
    for (const Json& id : j) out.push_back(check_buffer(id.get<int>()));
    return out;
  }
  Step step(const Json& j) const {
    if (j.contains("kernel")) {
      KernelStep k;
      k.kernel = std::make_shared<const Kernel>(parse_kernel(j.at("kernel").get<std::string>()));
      k.buffers = buffers(j.at("buffers"));
      FL_CHECK(k.buffers.size() == k.kernel->buffers.size(), ValueError,
               "a program's text: kernel {} has {} buffers, got {}", k.kernel->name, k.kernel->buffers.size(),
               k.buffers.size());
      for (size_t n = 0; n < k.buffers.size(); ++n)
        FL_CHECK(p_.buffers[k.buffers[n]].dtype == k.kernel->buffers[n].dtype, ValueError,
                 "a program's text: kernel {} expects {} as buffer {}, got {}", k.kernel->name,
                 name(k.kernel->buffers[n].dtype), n, name(p_.buffers[k.buffers[n]].dtype));
      return k;
    }
    LibraryStep l;
    const std::string op = j.at("library").get<std::string>();
    l.op = op_table().find(op);
    FL_CHECK(l.op && l.op->library != LibraryCall::None, RuntimeError,
             "the program calls a routine '{}' that this library has not: save it again", op);
    for (const Json& v : j.at("args")) l.args.push_back(value(v));
    l.outs = buffers(j.at("outs"));
    FL_CHECK(l.args.size() == l.op->schema.args.size(), ValueError,
             "a program's text: {} takes {} arguments, got {}", op, l.op->schema.args.size(), l.args.size());
    return l;
  }
  ProgramOutput output(const Json& j) const {
    ProgramOutput o;
    o.kind = find_name<ProgramOutput::Kind>(kOutputKinds, j.at("kind").get<std::string>());
    if (o.kind == ProgramOutput::Kind::Number) o.number = expr(j.at("number"));
    if (o.kind != ProgramOutput::Kind::Tensor) return o;
    o.buffer = check_buffer(j.at("buffer").get<int>());
    o.spec.dtype = parse_dtype(j.at("dtype").get<std::string>());
    o.spec.device = parse_device(j.at("device").get<std::string>());
    o.spec.sizes = sizes(j.at("sizes"));
    o.spec.strides = sizes(j.at("strides"));
    o.spec.offset = SymInt(expr(j.at("offset")));
    return o;
  }
  static MemoryFormat format(const std::string& text) {
    for (const MemoryFormat f : {MemoryFormat::Contiguous, MemoryFormat::Preserve, MemoryFormat::ChannelsLast,
                                 MemoryFormat::ChannelsLast3d})
      if (name(f) == text) return f;
    FL_RAISE(ValueError, "a program's text: expected a memory format, got '{}'", text);
  }
  Value value(const Json& j) const {
    if (j.is_null()) return {};
    FL_CHECK(j.is_object() && j.size() == 1, ValueError, "a program's text: expected an argument, got {}",
             j.dump());
    const std::string kind = j.begin().key();
    const Json& v = j.begin().value();
    if (kind == "buffer") return GraphRef{check_buffer(v.get<int>()), 0};
    if (kind == "buffers") {
      std::vector<GraphRef> list;
      for (const Json& id : v) {
        const int32_t node = id.get<int>();
        list.push_back({node == -1 ? -1 : check_buffer(node), 0});
      }
      return list;
    }
    if (kind == "int") return SymInt(expr(v));
    if (kind == "ints") return sizes(v);
    if (kind == "float") return number_of(v);
    if (kind == "floats") {
      std::vector<double> list;
      for (const Json& d : v) list.push_back(number_of(d));
      return list;
    }
    if (kind == "bool") return v.get<bool>();
    if (kind == "bools") return v.get<std::vector<bool>>();
    if (kind == "complex") return Scalar(std::complex<double>(number_of(v.at(0)), number_of(v.at(1))));
    if (kind == "str") return std::string_view(v.get_ref<const std::string&>());
    if (kind == "dtype") return parse_dtype(v.get<std::string>());
    if (kind == "device") return parse_device(v.get<std::string>());
    if (kind == "memory_format") return format(v.get<std::string>());
    FL_RAISE(ValueError, "a program's text: unknown kind of argument '{}'", kind);
  }

  Program p_;
};

}  // namespace

std::string save_program(const Program& p) { return Writer().program(p).dump(1); }

Program load_program(std::string_view text) {
  try {
    return Reader().program(Json::parse(text));
  } catch (const nlohmann::json::exception& e) {
    FL_RAISE(ValueError, "a program's text cannot be read: {}", e.what());
  }
}

}  // namespace fl::loop
