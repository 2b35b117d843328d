#include "overloads.h"

#include <unordered_map>

#include "flambeau/op/op.h"

namespace fl::python {
namespace {

/// Work on tensors of more bytes than this is worth giving up Python's lock for.
constexpr int64_t kLongRunBytes = 1 << 15;

bool is_long_run(const std::vector<Value>& args) {
  const auto is_large = [](const Tensor& t) {
    return t.defined() && t.has_data() && t.storage()->bytes() > kLongRunBytes;
  };
  for (const Value& v : args) {
    if (v.is_tensor() && is_large(v.tensor())) return true;
    if (v.tag() == Value::Tag::TensorList && std::any_of(v.tensors().begin(), v.tensors().end(), is_large))
      return true;
    // Sizes of a tensor to be made.
    if (v.tag() == Value::Tag::IntList) return true;
  }
  return false;
}

/// The type of an operator's named results: torch.max(x, 0).values.
PyTypeObject* result_type(const OpInfo& op) {
  static auto* types = new std::unordered_map<const OpInfo*, PyTypeObject*>;
  PyTypeObject*& type = (*types)[op.functional ? op.functional : &op];
  if (!type) {
    auto* fields = new std::vector<PyStructSequence_Field>;
    for (const Return& r : op.schema.returns) fields->push_back({strdup(r.name.c_str()), nullptr});
    fields->push_back({nullptr, nullptr});
    const std::string full = "flambeau.return_types." + op.schema.name;
    PyStructSequence_Desc description{strdup(full.c_str()), nullptr, fields->data(), op.return_count()};
    type = PyStructSequence_NewType(&description);
    if (!type) throw nb::python_error();
  }
  return type;
}

nb::object wrap_results(const OpInfo& op, const std::vector<Value>& results) {
  if (results.empty()) return nb::none();
  if (results.size() == 1) return wrap(results[0]);
  if (op.schema.returns[0].name.empty()) {
    nb::list out;
    for (const Value& v : results) out.append(wrap(v));
    return nb::tuple(out);
  }
  nb::object out = nb::steal(PyStructSequence_New(result_type(op)));
  for (size_t k = 0; k < results.size(); ++k)
    PyStructSequence_SetItem(out.ptr(), static_cast<Py_ssize_t>(k), wrap(results[k]).release().ptr());
  return out;
}

/// Whether requires_grad= is a keyword: zeros(2, requires_grad=True).
bool makes_tensors(const OpInfo& op) {
  const auto is_pin_memory = [](const Argument& a) { return a.name == "pin_memory"; };
  return !op.functional && std::any_of(op.schema.args.begin(), op.schema.args.end(), is_pin_memory);
}

/// A call without the keywords that schemas don't have: requires_grad= of factories, out=None, and out=(a, b)
/// where the schema names each result.
class Prepared {
 public:
  Prepared(const Overloads& overloads, const CallArguments& call) : call_(call) {
    for (size_t k = 0; k < call.keyword_count(); ++k) {
      PyObject* keyword = PyTuple_GET_ITEM(call.keywords, static_cast<Py_ssize_t>(k));
      PyObject* value = call.values[call.positional + k];
      if (is(keyword, "out") && (value == Py_None || PyTuple_Check(value))) {
        drop(k);
        if (value != Py_None) add_outputs(overloads, value);
      } else if (is(keyword, "requires_grad") && makes_tensors(*overloads.ops[0])) {
        drop(k);
        requires_grad_ = value == Py_True;
      }
    }
    if (!changed_) return;
    names_ = nb::tuple(kept_names_);
    call_ = {kept_.data(), call.positional, names_.ptr()};
  }
  const CallArguments& call() const { return call_; }
  bool requires_grad() const { return requires_grad_; }

 private:
  static bool is(PyObject* keyword, const char* text) {
    return PyUnicode_CompareWithASCIIString(keyword, text) == 0;
  }
  /// Copies the arguments without keyword `dropped`.
  void drop(size_t dropped) {
    if (!changed_) {
      for (size_t k = 0; k < call_.positional; ++k) kept_.push_back(call_.values[k]);
      for (size_t k = 0; k < call_.keyword_count(); ++k) {
        PyObject* keyword = PyTuple_GET_ITEM(call_.keywords, static_cast<Py_ssize_t>(k));
        if (k == dropped) continue;
        kept_names_.append(nb::handle(keyword));
        kept_.push_back(call_.values[call_.positional + k]);
      }
      changed_ = true;
      return;
    }
    const nb::handle name = PyTuple_GET_ITEM(call_.keywords, static_cast<Py_ssize_t>(dropped));
    for (size_t k = 0; k < kept_names_.size(); ++k) {
      if (!kept_names_[k].is(name)) continue;
      nb::del(kept_names_[k]);
      kept_.erase(kept_.begin() + static_cast<long>(call_.positional + k));
      return;
    }
  }
  void add_outputs(const Overloads& overloads, PyObject* outs) {
    for (const OpInfo* op : overloads.ops) {
      if (!op->functional || op->return_count() != PyTuple_GET_SIZE(outs) || op->return_count() < 2) continue;
      for (int k = 0; k < op->return_count(); ++k) {
        kept_names_.append(nb::str(op->schema.args[op->arg_count() - op->return_count() + k].name.c_str()));
        kept_.push_back(PyTuple_GET_ITEM(outs, k));
      }
      return;
    }
    FL_RAISE(TypeError, "{}(): out must be a Tensor, got {}", overloads.name, python_type(outs));
  }

  CallArguments call_;
  bool changed_ = false, requires_grad_ = false;
  std::vector<PyObject*> kept_;
  nb::list kept_names_;
  nb::tuple names_;
};

std::string given_types(const CallArguments& call) {
  std::string out;
  for (size_t k = 0; k < call.positional + call.keyword_count(); ++k) {
    if (k) out += ", ";
    if (k >= call.positional)
      out += fmt::format("{}=", PyUnicode_AsUTF8(PyTuple_GET_ITEM(
                                    call.keywords, static_cast<Py_ssize_t>(k - call.positional))));
    out += python_type(call.values[k]);
  }
  return out;
}

[[noreturn]] void raise_no_fit(const Overloads& overloads, const CallArguments& call, bool method) {
  std::vector<Value> args;
  std::string why, list;
  for (const OpInfo* op : overloads.ops) {
    if (op->functional && op->functional->out == op && overloads.ops.size() > 1) continue;
    bind_arguments(*op, call, {method, true}, args, &why);
    list += fmt::format("\n * {}\n   {}", op->schema.text, why);
  }
  FL_RAISE(TypeError, "{}() received arguments that fit none of its signatures: got ({}), expected{}",
           overloads.name, given_types(call), list);
}

/// The overload that the arguments fit: first without numbers in the places of tensors. Null if none does.
const OpInfo* choose(const Overloads& overloads, const CallArguments& call, bool method,
                     std::vector<Value>& args) {
  for (const bool numbers : {false, true}) {
    for (const OpInfo* op : overloads.ops) {
      if (bind_arguments(*op, call, {method, numbers}, args, nullptr)) return op;
    }
  }
  return nullptr;
}

}  // namespace

const std::vector<Overloads>& all_overloads() {
  static const auto* list = [] {
    auto* out = new std::vector<Overloads>;
    std::unordered_map<std::string, size_t> position;
    for (const OpInfo& op : op_table().all()) {
      const auto [it, is_new] = position.emplace(op.schema.name, out->size());
      if (is_new) out->push_back({op.schema.name, {}});
      (*out)[it->second].ops.push_back(&op);
    }
    return out;
  }();
  return *list;
}

const Overloads& find_overloads(std::string_view name) {
  for (const Overloads& o : all_overloads())
    if (o.name == name) return o;
  FL_RAISE(InternalError, "no operator is called '{}'", name);
}

std::vector<Value> run(const OpInfo& op, std::vector<Value> args) {
  std::vector<Value> outs(std::max(op.return_count(), 1));
  if (is_long_run(args)) {
    nb::gil_scoped_release unlocked;
    dispatch(op, args.data(), outs.data());
  } else {
    dispatch(op, args.data(), outs.data());
  }
  outs.resize(op.return_count());
  return outs;
}

nb::object run_wrapped(const OpInfo& op, std::vector<Value> args) {
  const std::vector<Value> results = run(op, std::move(args));
  return wrap_results(op, results);
}

nb::object call_overloads(const Overloads& overloads, const CallArguments& given, bool method) {
  const Prepared prepared(overloads, given);
  std::vector<Value> args;
  const OpInfo* op = choose(overloads, prepared.call(), method, args);
  if (!op) raise_no_fit(overloads, prepared.call(), method);
  nb::object out = run_wrapped(*op, std::move(args));
  if (prepared.requires_grad()) {
    Tensor made = *as_tensor(out);
    made.set_requires_grad(true);
  }
  return out;
}

bool fits(const Overloads& overloads, const CallArguments& call, bool method) {
  std::vector<Value> args;
  return choose(overloads, call, method, args) != nullptr;
}

}  // namespace fl::python
