#include "arguments.h"

#include <algorithm>

#include "sym_float.h"

namespace fl::python {
namespace {

/// PyTorch's second names of parameters, for functions written for NumPy.
bool is_alias(std::string_view name, PyObject* keyword) {
  const auto is = [&](const char* text) { return PyUnicode_CompareWithASCIIString(keyword, text) == 0; };
  if (name == "self") return is("input") || is("x");
  if (name == "dim") return is("axis");
  if (name == "keepdim") return is("keepdims");
  if (name == "other") return is("x2");
  return false;
}

bool is_list_of_ints(ArgType t) { return t == ArgType::IntList || t == ArgType::OptIntList; }
bool accepts_none(ArgType t) { return name(t).back() == '?'; }

bool to_tensor_list(nb::handle h, bool optional, Value& out) {
  if (!PyList_Check(h.ptr()) && !PyTuple_Check(h.ptr())) return false;
  std::vector<Tensor> list;
  for (nb::handle item : h) {
    const Tensor* t = as_tensor(item);
    if (!t && !(optional && item.is_none())) return false;
    list.push_back(t ? *t : Tensor());
  }
  out = Value(std::move(list));
  return true;
}

bool to_int_list(nb::handle h, int list_size, bool lenient, Value& out) {
  std::optional<Sizes> list = as_int_list(h);
  if (!list && (list_size > 0 || lenient)) {
    if (const auto i = as_size(h)) list.emplace(static_cast<size_t>(std::max(list_size, 1)), *i);
  }
  if (list) out = Value(*list);
  return list.has_value();
}

bool to_float(nb::handle h, double& out) {
  const std::optional<Scalar> s = as_number(h);
  if (!s) {
    const Tensor* t = as_tensor(h);
    if (!t || t->dim() != 0 || t->requires_grad() || is_complex(t->dtype())) return false;
    out = t->item().to_double();
    return true;
  }
  if (s->is_complex() || s->kind() == Scalar::Kind::Bool) return false;
  out = s->to_double();
  return true;
}

bool to_float_list(nb::handle h, Value& out) {
  if (!PyList_Check(h.ptr()) && !PyTuple_Check(h.ptr())) return false;
  std::vector<double> list;
  for (nb::handle item : h) {
    if (!to_float(item, list.emplace_back())) return false;
  }
  out = Value(std::move(list));
  return true;
}

bool to_bool_list(nb::handle h, Value& out) {
  if (!PyList_Check(h.ptr()) && !PyTuple_Check(h.ptr())) return false;
  std::vector<bool> list;
  for (nb::handle item : h) {
    if (!PyBool_Check(item.ptr())) return false;
    list.push_back(item.ptr() == Py_True);
  }
  out = Value(std::move(list));
  return true;
}

template <class T>
bool assign(const std::optional<T>& from, Value& out) {
  if (from) out = Value(*from);
  return from.has_value();
}

bool to_number(nb::handle h, bool tensors, Value& out) {
  if (assign(as_number(h), out)) return true;
  const Tensor* t = as_tensor(h);
  if (!t || !tensors || t->dim() != 0 || t->requires_grad()) return false;
  out = Value(t->item());
  return true;
}

/// The value of a parameter that was given as keyword, or null. Counts it in `used`.
PyObject* find_keyword(const CallArguments& call, const Argument& parameter, size_t& used) {
  for (size_t k = 0; k < call.keyword_count(); ++k) {
    PyObject* keyword = PyTuple_GET_ITEM(call.keywords, static_cast<Py_ssize_t>(k));
    if (PyUnicode_CompareWithASCIIString(keyword, parameter.name.c_str()) == 0 ||
        is_alias(parameter.name, keyword)) {
      ++used;
      return call.values[call.positional + k];
    }
  }
  return nullptr;
}

/// x.view(2, 3), zeros(2, 3): a list of integers that is the only positional parameter may come without
/// brackets.
bool takes_bare_integers(const OpInfo& op, size_t parameter, size_t next, const CallArguments& call,
                         BindOptions options) {
  const std::vector<Argument>& all = op.schema.args;
  if (parameter != (options.method ? 1 : 0) || !is_list_of_ints(all[parameter].type)) return false;
  if (call.positional <= next || !as_size(call.values[next])) return false;
  return parameter + 1 == all.size() || all[parameter + 1].keyword_only;
}

/// Whether the schema says SymInt[] and not int[]: sizes, not dimensions or counts.
bool is_list_of_sizes(const OpInfo& op, const Argument& a) {
  const std::string &text = op.schema.text, name = ' ' + a.name;
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    if (std::string_view(",=)").find(text[at + name.size()]) == std::string_view::npos) continue;
    return text.compare(text.find_last_of("( ", at - 1) + 1, 6, "SymInt") == 0;
  }
  return false;
}

bool is_symbolic(SymInt i) { return i.is_symbolic(); }

/// Operators that are the same for a number and for a tensor that stands for it. (pow, say, knows squares.)
bool takes_symbolic_number(const OpInfo& op, const Argument& a) {
  constexpr std::string_view kOperators = " add sub mul div rsub eq ne lt le gt ge where masked_fill fill ";
  if (a.type != ArgType::Tensor || (a.name != "self" && a.name != "other" && a.name != "value")) return false;
  std::string_view name = op.schema.name;
  if (name.ends_with('_')) name.remove_suffix(1);
  return kOperators.find(fmt::format(" {} ", name)) != std::string_view::npos;
}

std::string unknown_keyword(const OpInfo& op, const CallArguments& call) {
  for (size_t k = 0; k < call.keyword_count(); ++k) {
    PyObject* keyword = PyTuple_GET_ITEM(call.keywords, static_cast<Py_ssize_t>(k));
    bool known = false;
    for (const Argument& a : op.schema.args)
      known |= PyUnicode_CompareWithASCIIString(keyword, a.name.c_str()) == 0 || is_alias(a.name, keyword);
    if (!known) return fmt::format("unexpected keyword argument '{}'", PyUnicode_AsUTF8(keyword));
  }
  return "an argument was given twice";
}

}  // namespace

int self_position(const OpInfo& op) {
  for (size_t k = 0; k < op.schema.args.size(); ++k)
    if (op.schema.args[k].name == "self" && op.schema.args[k].type == ArgType::Tensor)
      return static_cast<int>(k);
  return -1;
}

bool to_value(nb::handle h, const Argument& parameter, BindOptions options, Value& out) {
  if (h.is_none() && accepts_none(parameter.type)) {
    out = Value();
    return true;
  }
  switch (parameter.type) {
    case ArgType::Tensor:
    case ArgType::OptTensor:
      if (const Tensor* t = as_tensor(h)) {
        out = Value(*t);
        return true;
      }
      if (!(parameter.name == "self" ? options.number_as_self : options.number_as_other)) return false;
      return parameter.type == ArgType::Tensor && assign(as_number(h), out);
    case ArgType::TensorList:
      return to_tensor_list(h, false, out);
    case ArgType::OptTensorList:
      return to_tensor_list(h, true, out);
    case ArgType::Int:
    case ArgType::OptInt:
    case ArgType::SymInt:
    case ArgType::OptSymInt:
      return assign(options.lenient ? as_size(h) : as_sym_int(h), out);
    case ArgType::IntList:
    case ArgType::OptIntList:
      return to_int_list(h, parameter.list_size, options.lenient, out);
    case ArgType::Float:
    case ArgType::OptFloat: {
      double d;
      if (!to_float(h, d)) return false;
      out = Value(d);
      return true;
    }
    case ArgType::OptFloatList:
      return to_float_list(h, out);
    case ArgType::Bool:
    case ArgType::OptBool:
      if (!PyBool_Check(h.ptr())) return false;
      out = Value(h.ptr() == Py_True);
      return true;
    case ArgType::BoolList:
      return to_bool_list(h, out);
    case ArgType::Number:
    case ArgType::OptNumber:
      return to_number(h, options.lenient, out);
    case ArgType::Str:
    case ArgType::OptStr:
      if (!PyUnicode_Check(h.ptr())) return false;
      out = Value(PyUnicode_AsUTF8(h.ptr()));
      return true;
    case ArgType::DType:
    case ArgType::OptDType:
      return assign(as_dtype(h), out);
    case ArgType::OptDevice:
      return assign(as_device(h), out);
    case ArgType::MemoryFormat:
    case ArgType::OptMemoryFormat:
      return assign(as_memory_format(h), out);
    case ArgType::OptGenerator:
      if (!nb::isinstance<GeneratorObject>(h)) return false;
      out = Value(nb::cast<GeneratorObject&>(h).generator.get());
      return true;
  }
  return false;
}

void specialize_numbers(const OpInfo& op, Arguments& args) {
  for (size_t k = 0; k < args.size(); ++k) {
    const Argument& a = op.schema.args[k];
    if (a.type == ArgType::Int || a.type == ArgType::OptInt) {
      if (!args[k].is_none()) args[k] = Value(args[k].to_int());
    } else if (args[k].tag() == Value::Tag::IntList && std::ranges::any_of(args[k].ints(), is_symbolic) &&
               !is_list_of_sizes(op, a)) {
      Sizes numbers;
      for (SymInt i : args[k].ints()) numbers.push_back(i.guard_int());
      args[k] = Value(numbers);
    }
  }
}

bool bind_arguments(const OpInfo& op, const CallArguments& call, BindOptions options, Arguments& out,
                    std::string* why) {
  const std::vector<Argument>& parameters = op.schema.args;
  const auto fail = [&](auto&& message) {
    if (why) *why = message();
    return false;
  };
  out.clear();
  out.resize(parameters.size());
  const int self = options.method ? self_position(op) : -1;
  if (options.method && self < 0) return fail([] { return std::string("has no argument 'self'"); });
  size_t next = options.method ? 1 : 0, keywords_used = 0;
  for (size_t k = 0; k < parameters.size(); ++k) {
    const Argument& a = parameters[k];
    if (takes_bare_integers(op, k, next, call, options)) {
      Sizes list;
      for (; next < call.positional; ++next) {
        const std::optional<SymInt> i = as_size(call.values[next]);
        if (!i) return fail([&] { return fmt::format("'{}' must be integers", a.name); });
        list.push_back(*i);
      }
      out[k] = Value(list);
      continue;
    }
    PyObject* given = nullptr;
    if (static_cast<int>(k) == self)
      given = call.values[0];
    else if (next < call.positional && !a.keyword_only)
      given = call.values[next++];
    else
      given = find_keyword(call, a, keywords_used);
    if (given && is_sym_float(given) && !(options.method && static_cast<int>(k) == self)) {
      if (takes_symbolic_number(op, a)) {
        out[k] = Value(number_argument(given));
        continue;
      }
      if (!options.lenient) return fail([] { return std::string("takes no symbolic float"); });
    }
    if (!given) {
      if (!a.default_value) return fail([&] { return fmt::format("missing argument '{}'", a.name); });
      out[k] = *a.default_value;
    } else if (!to_value(given, a, options, out[k])) {
      return fail([&] {
        return fmt::format("argument '{}' (position {}) must be {}, not {}", a.name, k + 1, name(a.type),
                           python_type(given));
      });
    }
  }
  if (next < call.positional)
    return fail([&] { return fmt::format("takes {} positional arguments, got {}", next, call.positional); });
  if (keywords_used != call.keyword_count()) return fail([&] { return unknown_keyword(op, call); });
  return true;
}

}  // namespace fl::python
