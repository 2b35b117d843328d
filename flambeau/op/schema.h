// Operator schemas: PyTorch's text, parsed once by the compiler into C++ types and once at run time into a
// Schema.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "flambeau/op/value.h"

namespace fl {

enum class ArgType : uint8_t {
  Tensor,
  OptTensor,
  TensorList,
  OptTensorList,  ///< Tensor?[]
  Int,
  OptInt,
  SymInt,  ///< a size: symbolic under tracing
  OptSymInt,
  IntList,
  OptIntList,
  Float,
  OptFloat,
  OptFloatList,
  Bool,
  OptBool,
  BoolList,
  Number,     ///< Scalar
  OptNumber,  ///< Scalar?
  Str,
  OptStr,
  DType,     ///< ScalarType
  OptDType,  ///< ScalarType?
  OptDevice,
  MemoryFormat,
  OptMemoryFormat,
  OptGenerator,
};
std::string_view name(ArgType t);

struct Argument {
  std::string name;
  ArgType type;
  std::optional<Value> default_value;
  bool keyword_only = false;
  int list_size = 0;     ///< int[2]: one int stands for two
  char alias = 0;        ///< the letter of (a) or (a!)
  bool mutated = false;  ///< (a!)
};
struct Return {
  std::string name;
  ArgType type;
  char alias = 0;
  bool mutated = false;
};
struct Schema {
  std::string text;
  std::string name;      ///< "add"
  std::string overload;  ///< "Tensor", or empty
  std::vector<Argument> args;
  std::vector<Return> returns;
  std::string full_name() const { return overload.empty() ? name : name + "." + overload; }
};
/// Raises InternalError on a text that is not a schema.
Schema parse_schema(std::string_view text);

namespace schema {

template <size_t N>
struct FixedString {
  char chars[N]{};
  constexpr FixedString(const char (&a)[N]) {
    for (size_t i = 0; i < N; ++i) chars[i] = a[i];
  }
  constexpr std::string_view view() const { return {chars, N - 1}; }
};

/// What the C++ type of an operator needs.
struct Parsed {
  std::array<ArgType, 20> args{};
  int count = 0, required = 0;
  std::array<ArgType, 8> returns{};
  int return_count = 0;
};

constexpr ArgType type_of(std::string_view t) {
  // Drop alias letters "(a!)" and list sizes "[2]".
  char out[24]{};
  size_t n = 0;
  for (size_t i = 0; i < t.size(); ++i) {
    if (t[i] == '(') {
      while (t[i] != ')') ++i;
    } else if (t[i] >= '0' && t[i] <= '9') {
      continue;
    } else {
      out[n++] = t[i];
    }
  }
  const std::string_view s(out, n);
  if (s == "Tensor") return ArgType::Tensor;
  if (s == "Tensor?") return ArgType::OptTensor;
  if (s == "Tensor[]") return ArgType::TensorList;
  if (s == "Tensor?[]") return ArgType::OptTensorList;
  if (s == "int") return ArgType::Int;
  if (s == "int?") return ArgType::OptInt;
  if (s == "SymInt") return ArgType::SymInt;
  if (s == "SymInt?") return ArgType::OptSymInt;
  if (s == "int[]" || s == "SymInt[]") return ArgType::IntList;
  if (s == "int[]?" || s == "SymInt[]?") return ArgType::OptIntList;
  if (s == "float") return ArgType::Float;
  if (s == "float?") return ArgType::OptFloat;
  if (s == "float[]?") return ArgType::OptFloatList;
  if (s == "bool") return ArgType::Bool;
  if (s == "bool?") return ArgType::OptBool;
  if (s == "bool[]") return ArgType::BoolList;
  if (s == "Scalar") return ArgType::Number;
  if (s == "Scalar?") return ArgType::OptNumber;
  if (s == "str") return ArgType::Str;
  if (s == "str?") return ArgType::OptStr;
  if (s == "ScalarType") return ArgType::DType;
  if (s == "ScalarType?") return ArgType::OptDType;
  if (s == "Device?") return ArgType::OptDevice;
  if (s == "MemoryFormat") return ArgType::MemoryFormat;
  if (s == "MemoryFormat?") return ArgType::OptMemoryFormat;
  if (s == "Generator?") return ArgType::OptGenerator;
  throw "unknown type in an operator schema";
}

constexpr Parsed parse(std::string_view s) {
  Parsed p;
  size_t i = s.find('(') + 1;
  while (s[i] != ')') {
    while (s[i] == ' ' || s[i] == ',') ++i;
    if (s[i] == '*') {
      ++i;
      continue;
    }
    if (s[i] == ')') break;
    size_t j = i;
    while (s[j] != ' ') ++j;
    p.args[p.count++] = type_of(s.substr(i, j - i));
    bool has_default = false;
    int depth = 0;
    for (i = j; depth > 0 || (s[i] != ',' && s[i] != ')'); ++i) {
      if (s[i] == '[' || s[i] == '(') ++depth;
      if (s[i] == ']' || s[i] == ')') --depth;
      if (s[i] == '=') has_default = true;
    }
    if (!has_default) p.required = p.count;
  }
  i = s.find("-> ") + 3;
  const bool tuple = s[i] == '(';
  if (tuple) ++i;
  while (i < s.size() && s[i] != ')') {
    while (s[i] == ' ' || s[i] == ',') ++i;
    size_t j = i;
    int depth = 0;
    while (j < s.size() && (depth > 0 || (s[j] != ',' && s[j] != ' ' && s[j] != ')'))) {
      if (s[j] == '(') ++depth;
      if (s[j] == ')') --depth;
      ++j;
    }
    p.returns[p.return_count++] = type_of(s.substr(i, j - i));
    while (j < s.size() && s[j] != ',' && s[j] != ')') ++j;
    i = j;
  }
  return p;
}

/// A tensor, or a number in a tensor's place.
class Operand {
 public:
  Operand(const Tensor& t) : value_(t) {}
  Operand(Tensor&& t) : value_(std::move(t)) {}
  Operand(const Scalar& s) : value_(s) {}
  Operand(bool v) : value_(v) {}
  Operand(int v) : value_(v) {}
  Operand(int64_t v) : value_(v) {}
  Operand(SymInt v) : value_(v) {}
  Operand(double v) : value_(v) {}
  operator Value() && { return std::move(value_); }

 private:
  Value value_;
};

/// For each schema type: what a caller passes, what a definition receives, how a Value is read, what is
/// returned.
template <ArgType T>
struct CppType;
#define FL_CPP_TYPE(tag, passed, received, reader)          \
  template <>                                               \
  struct CppType<ArgType::tag> {                            \
    using Passed = passed;                                  \
    using Received = received;                              \
    static received read(const Value& v) { return reader; } \
  };
Tensor as_tensor(const Value& v);  ///< A number becomes a wrapped number.
FL_CPP_TYPE(Tensor, Operand, Tensor, as_tensor(v))
FL_CPP_TYPE(OptTensor, Tensor, Tensor, v.tensor())
FL_CPP_TYPE(TensorList, TensorList, TensorList, v.tensors())
FL_CPP_TYPE(OptTensorList, TensorList, TensorList, v.tensors())
FL_CPP_TYPE(Int, int64_t, int64_t, v.to_int())
FL_CPP_TYPE(OptInt, std::optional<int64_t>, std::optional<int64_t>,
            v.is_none() ? std::nullopt : std::optional(v.to_int()))
FL_CPP_TYPE(SymInt, fl::SymInt, fl::SymInt, v.sym_int())
FL_CPP_TYPE(OptSymInt, std::optional<fl::SymInt>, std::optional<fl::SymInt>,
            v.is_none() ? std::nullopt : std::optional(v.sym_int()))
FL_CPP_TYPE(IntList, IntList, IntList, v.ints())
FL_CPP_TYPE(OptIntList, std::optional<IntList>, std::optional<IntList>,
            v.is_none() ? std::nullopt : std::optional(v.ints()))
FL_CPP_TYPE(Float, double, double, v.to_double())
FL_CPP_TYPE(OptFloat, std::optional<double>, std::optional<double>,
            v.is_none() ? std::nullopt : std::optional(v.to_double()))
FL_CPP_TYPE(OptFloatList, std::optional<std::vector<double>>, std::optional<std::vector<double>>,
            v.is_none() ? std::nullopt : std::optional(v.doubles()))
FL_CPP_TYPE(Bool, bool, bool, v.to_bool())
FL_CPP_TYPE(OptBool, std::optional<bool>, std::optional<bool>,
            v.is_none() ? std::nullopt : std::optional(v.to_bool()))
FL_CPP_TYPE(BoolList, std::vector<bool>, std::vector<bool>, v.bools())
FL_CPP_TYPE(Number, Scalar, Scalar, v.scalar())
FL_CPP_TYPE(OptNumber, std::optional<Scalar>, std::optional<Scalar>,
            v.is_none() ? std::nullopt : std::optional(v.scalar()))
FL_CPP_TYPE(Str, std::string_view, std::string_view, v.str())
FL_CPP_TYPE(OptStr, std::optional<std::string_view>, std::optional<std::string_view>,
            v.is_none() ? std::nullopt : std::optional(v.str()))
FL_CPP_TYPE(DType, DType, DType, v.dtype())
FL_CPP_TYPE(OptDType, std::optional<DType>, std::optional<DType>,
            v.is_none() ? std::nullopt : std::optional(v.dtype()))
FL_CPP_TYPE(OptDevice, std::optional<Device>, std::optional<Device>,
            v.is_none() ? std::nullopt : std::optional(v.device()))
FL_CPP_TYPE(MemoryFormat, MemoryFormat, MemoryFormat, v.memory_format())
FL_CPP_TYPE(OptMemoryFormat, std::optional<MemoryFormat>, std::optional<MemoryFormat>,
            v.is_none() ? std::nullopt : std::optional(v.memory_format()))
FL_CPP_TYPE(OptGenerator, Generator*, Generator*, v.generator())
#undef FL_CPP_TYPE

template <ArgType T>
struct ReturnType;
template <>
struct ReturnType<ArgType::Tensor> {
  using type = Tensor;
  static Tensor read(Value&& v) { return v.tensor(); }
};
template <>
struct ReturnType<ArgType::TensorList> {
  using type = std::vector<Tensor>;
  static std::vector<Tensor> read(Value&& v) { return v.tensors(); }
};
template <>
struct ReturnType<ArgType::Number> {
  using type = Scalar;
  static Scalar read(Value&& v) { return v.scalar(); }
};
template <>
struct ReturnType<ArgType::Bool> {
  using type = bool;
  static bool read(Value&& v) { return v.to_bool(); }
};

/// The C++ signature of a schema.
template <FixedString S>
struct Signature {
  static constexpr Parsed parsed = parse(S.view());
  static constexpr int count = parsed.count;

  template <size_t... I>
  static auto result(std::index_sequence<I...>) {
    if constexpr (sizeof...(I) == 0)
      return std::type_identity<void>{};
    else if constexpr (sizeof...(I) == 1)
      return std::type_identity<typename ReturnType<parsed.returns[0]>::type>{};
    else
      return std::type_identity<std::tuple<typename ReturnType<parsed.returns[I]>::type...>>{};
  }
  using Result = typename decltype(result(std::make_index_sequence<parsed.return_count>{}))::type;

  template <size_t... I>
  static auto definition(std::index_sequence<I...>) {
    return std::type_identity<Result(typename CppType<parsed.args[I]>::Received...)>{};
  }
  /// What a definition (decompose) looks like.
  using Definition = typename decltype(definition(std::make_index_sequence<parsed.count>{}))::type;

  template <int N, size_t... I>
  static auto call(std::index_sequence<I...>) {
    return std::type_identity<Result(typename CppType<parsed.args[I]>::Passed...)>{};
  }
  template <int N>
  using Call = typename decltype(call<N>(std::make_index_sequence<N>{}))::type;

  template <size_t... I>
  static Result read_results(Value* outs, std::index_sequence<I...>) {
    if constexpr (sizeof...(I) == 0)
      return;
    else if constexpr (sizeof...(I) == 1)
      return ReturnType<parsed.returns[0]>::read(std::move(outs[0]));
    else
      return Result(ReturnType<parsed.returns[I]>::read(std::move(outs[I]))...);
  }
  /// Calls a definition on boxed arguments.
  template <class F, size_t... I>
  static void invoke(F* f, const Value* args, Value* outs, std::index_sequence<I...>) {
    if constexpr (parsed.return_count == 0) {
      f(CppType<parsed.args[I]>::read(args[I])...);
    } else if constexpr (parsed.return_count == 1) {
      outs[0] = Value(f(CppType<parsed.args[I]>::read(args[I])...));
    } else {
      auto r = f(CppType<parsed.args[I]>::read(args[I])...);
      [&]<size_t... R>(std::index_sequence<R...>) { ((outs[R] = Value(std::move(std::get<R>(r)))), ...); }
      (std::make_index_sequence<parsed.return_count>{});
    }
  }
};

}  // namespace schema
}  // namespace fl
