#include "overloads.h"

#include <cstring>
#include <unordered_map>

#include "flambeau/op/op.h"
#include "flambeau/ops/functions.h"
#include "flambeau/sym/shape_env.h"
#include "module.h"
#include "sym_float.h"

#include <structmember.h>  // after Python.h

namespace fl::python {
namespace {

/// Work on tensors of more bytes than this is worth giving up Python's lock for.
constexpr int64_t kLongRunBytes = 1 << 15;

bool is_large(const Tensor& t) { return t.defined() && t.has_data() && t.storage()->bytes() > kLongRunBytes; }

bool is_long_run(const OpInfo& op, const Arguments& args) {
  for (const Value& v : args) {
    if (v.is_tensor() && is_large(v.tensor())) return true;
    if (v.tag() == Value::Tag::TensorList && std::any_of(v.tensors().begin(), v.tensors().end(), is_large))
      return true;
    // Sizes of a tensor to be made.
    if (v.tag() == Value::Tag::IntList && !op.is_view()) return true;
  }
  return false;
}

/// "torch.return_types.max(\nvalues=tensor(3),\nindices=tensor(0))"
PyObject* result_repr(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  const char* name = strrchr(type->tp_name, '.');
  std::string text = fmt::format("torch.return_types{}(", name ? name : "");
  try {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(self); ++k)
      text += fmt::format("{}\n{}={}", k ? "," : "", type->tp_members[k].name,
                          text_of(nb::repr(nb::handle(PyTuple_GET_ITEM(self, k)))));
  } catch (...) {
    raise_in_python(std::current_exception());
    return nullptr;
  }
  text += ")";
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

/// The type of an operator's named results: torch.max(x, 0).values. One for each name and list of fields.
PyTypeObject* result_type(const OpInfo& op) {
  static auto* of_operator = new std::unordered_map<const OpInfo*, PyTypeObject*>;
  static auto* of_key = new std::unordered_map<std::string, PyTypeObject*>;
  PyTypeObject*& known = (*of_operator)[&op];
  if (known) return known;
  std::string key = (op.functional ? op.functional : &op)->schema.name;
  for (const Return& r : op.schema.returns) key += " " + r.name;
  PyTypeObject*& type = (*of_key)[key];
  if (!type) {
    auto* fields = new std::vector<PyStructSequence_Field>;
    for (const Return& r : op.schema.returns) fields->push_back({strdup(r.name.c_str()), nullptr});
    fields->push_back({nullptr, nullptr});
    const std::string full = "flambeau.return_types." + op.schema.name;
    PyStructSequence_Desc description{strdup(full.c_str()), nullptr, fields->data(), op.return_count()};
    type = PyStructSequence_NewType(&description);
    if (!type) throw nb::python_error();
    type->tp_repr = result_repr;
  }
  return known = type;
}

nb::object wrap_results(const OpInfo& op, const Arguments& results) {
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

bool is_text(PyObject* keyword, const char* text) {
  return PyUnicode_CompareWithASCIIString(keyword, text) == 0;
}

/// A call without the keywords that schemas don't have: requires_grad= and layout= of factories, out=None,
/// and out=(a, b) where the schema names each result. pin_memory= is done here, too.
class Prepared {
 public:
  Prepared(const Overloads& overloads, const CallArguments& call) : call_(call) {
    if (!call.keyword_count()) return;
    const bool factory = makes_tensors(*overloads.ops[0]);
    bool changed = false;
    for (size_t k = 0; k < call.keyword_count(); ++k) {
      PyObject* keyword = PyTuple_GET_ITEM(call.keywords, static_cast<Py_ssize_t>(k));
      PyObject* value = call.values[call.positional + k];
      if (is_text(keyword, "out") && (value == Py_None || PyTuple_Check(value) || PyList_Check(value))) {
        changed = true;
        if (value != Py_None) add_outputs(overloads, value);
      } else if (factory && is_text(keyword, "requires_grad")) {
        changed = true;
        requires_grad_ = value == Py_True;
      } else if (factory && value == Py_True && is_text(keyword, "pin_memory")) {
        changed = pins_ = true;
      } else if (factory && (is_text(keyword, "layout") || is_text(keyword, "names"))) {
        changed = true;
        FL_CHECK(value == Py_None || text_of(value) == "torch.strided", NotImplementedError,
                 "{}(): {}={} is not supported; tensors are strided", overloads.name, text_of(keyword),
                 text_of(value));
      } else {
        if (is_text(keyword, "out")) target_ = value;
        names_.push_back(keyword);
        values_.push_back(value);
      }
    }
    if (changed) assemble();
    names_out_ = names_out_ || (target_ && !overloads.outs.empty());
    // Results that a schema names one by one.
    for (const OpInfo* op : overloads.outs)
      for (int k = op->arg_count() - op->return_count(); !names_out_ && k < op->arg_count(); ++k)
        for (PyObject* name : names_)
          names_out_ = names_out_ || is_text(name, op->schema.args[k].name.c_str());
  }
  const CallArguments& call() const { return call_; }
  bool requires_grad() const { return requires_grad_; }
  bool pins() const { return pins_; }
  bool names_out() const { return names_out_; }
  /// The tensor given as out=, or null.
  PyObject* target() const { return target_; }
  void drop_target() {
    for (size_t k = 0; k < names_.size(); ++k) {
      if (!is_text(names_[k], "out")) continue;
      names_.erase(names_.begin() + static_cast<long>(k));
      values_.erase(values_.begin() + static_cast<long>(k));
      break;
    }
    assemble();
  }

 private:
  void add_outputs(const Overloads& overloads, PyObject* outs) {
    for (const OpInfo* op : overloads.outs) {
      if (op->return_count() != PySequence_Fast_GET_SIZE(outs) || op->return_count() < 2) continue;
      for (int k = 0; k < op->return_count(); ++k) {
        const std::string& name = op->schema.args[op->arg_count() - op->return_count() + k].name;
        made_names_.push_back(nb::str(name.c_str()));
        names_.push_back(made_names_.back().ptr());
        values_.push_back(PySequence_Fast_GET_ITEM(outs, k));
      }
      names_out_ = true;
      return;
    }
    FL_RAISE(TypeError, "{}(): argument 'out' must be Tensor, not {}", overloads.name, python_type(outs));
  }
  /// The call with the keywords that are left.
  void assemble() {
    names_tuple_ = nb::steal<nb::tuple>(PyTuple_New(static_cast<Py_ssize_t>(names_.size())));
    for (size_t k = 0; k < names_.size(); ++k)
      PyTuple_SET_ITEM(names_tuple_.ptr(), static_cast<Py_ssize_t>(k), Py_NewRef(names_[k]));
    SmallVector<PyObject*, 6> all(call_.values, call_.values + call_.positional);
    all.insert(all.end(), values_.begin(), values_.end());
    all_ = std::move(all);
    call_ = {all_.data(), call_.positional, names_tuple_.ptr()};
  }

  CallArguments call_;
  bool requires_grad_ = false, pins_ = false, names_out_ = false;
  PyObject* target_ = nullptr;
  SmallVector<PyObject*, 6> names_, values_, all_;
  std::vector<nb::object> made_names_;  // keeps what names_ borrows
  nb::object names_tuple_;
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

/// "add_(): argument 'other' (position 1) must be Tensor, not str", or the list of what would fit.
[[noreturn]] void raise_no_fit(const Overloads& overloads, const CallArguments& call, bool method,
                               bool names_out) {
  Arguments args;
  std::string why, list;
  const auto& candidates = names_out && !overloads.outs.empty() ? overloads.outs : overloads.ops;
  for (const OpInfo* op : candidates) {
    bind_arguments(*op, call, {method, true, overloads.number_as_self, overloads.number_as_other}, args,
                   &why);
    list += fmt::format("\n * {}\n   {}", op->schema.text, why);
  }
  if (candidates.size() == 1) FL_RAISE(TypeError, "{}(): {}", overloads.name, why);
  FL_RAISE(TypeError, "{}() received an invalid combination of arguments - got ({}), but expected one of:{}",
           overloads.name, given_types(call), list);
}

/// Whether some parameter that may be a tensor got one (or there is none such).
bool has_tensor(const OpInfo& op, const Arguments& args) {
  bool any = false;
  for (size_t k = 0; k < args.size(); ++k) {
    if (op.schema.args[k].type != ArgType::Tensor) continue;
    if (args[k].is_tensor()) return true;
    any = true;
  }
  return !any;
}

/// The overload that the arguments fit: first exactly, then leniently. Null if none does.
const OpInfo* choose(const Overloads& o, bool out, const CallArguments& call, bool method, Arguments& args) {
  for (const bool lenient : {false, true}) {
    const BindOptions options{method, lenient, lenient && o.number_as_self, lenient && o.number_as_other};
    for (const OpInfo* op : out ? o.outs : o.ops)
      if (bind_arguments(*op, call, options, args, nullptr) &&
          (!options.number_as_self || o.numbers_only || has_tensor(*op, args))) {
        if (sym::ShapeEnv::active()) [[unlikely]]
          specialize_numbers(*op, args);
        return op;
      }
  }
  return nullptr;
}

Arguments run(const OpInfo& op, Arguments& args) {
  Arguments outs(static_cast<size_t>(std::max(op.return_count(), 1)));
  if (is_long_run(op, args)) {
    nb::gil_scoped_release unlocked;
    dispatch(op, args.data(), outs.data());
  } else {
    dispatch(op, args.data(), outs.data());
  }
  outs.resize(static_cast<size_t>(op.return_count()));
  return outs;
}

// Operators that take a number in the place of `self` (with the polynomials), of another tensor, and of all
// tensors at once.
constexpr std::string_view kNumberAsSelf =
    " add sub mul div floor_divide pow remainder xlogy bitwise_and bitwise_or bitwise_xor bitwise_left_shift "
    "bitwise_right_shift where special_xlog1py special_zeta isin ";
constexpr std::string_view kNumberAsOther =
    " rsub eq ne lt le gt ge fmod copysign clamp_min clamp_max masked_fill lerp fill index_fill ";
constexpr std::string_view kNumbersOnly = " add sub mul div floor_divide ";

// Operators whose result is not cast to the dtype of out=, as in PyTorch.
constexpr std::string_view kExactOut = " amax amin aminmax complex gather ";

bool lists(std::string_view list, std::string_view name) {
  if (name.starts_with('_')) return true;
  if (name.ends_with('_')) name.remove_suffix(1);
  return list.find(fmt::format(" {} ", name)) != std::string_view::npos;
}

/// Whether two tensors whose elements lie together have some in common.
bool share_elements(const Tensor& a, const Tensor& b) {
  if (a.storage() != b.storage() || !a.has_data() || !is_non_overlapping_and_dense(a.spec()) ||
      !is_non_overlapping_and_dense(b.spec()))
    return false;
  const auto start = [](const Tensor& t) { return t.offset().expect_int() * size_of(t.dtype()); };
  const auto end = [&](const Tensor& t) { return start(t) + t.numel().expect_int() * size_of(t.dtype()); };
  return start(a) < end(b) && start(b) < end(a);
}

/// What such an operator wants of the tensors given as out=, and cat() of what it joins.
void check_out(const OpInfo& op, const Arguments& args) {
  if (!op.functional || op.functional->out != &op) return;
  if (op.schema.name == "cat") {
    for (const Tensor& part : args[0].tensors())
      FL_CHECK(
          !share_elements(part, args.back().tensor()), RuntimeError,
          "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
          "single memory location. Please clone() the tensor before performing the operation.");
    return;
  }
  if (kExactOut.find(fmt::format(" {} ", op.schema.name)) == std::string_view::npos) return;
  const DType self = args[0].tensor().dtype();
  const DType made = op.schema.name == "complex" ? complex_dtype(self) : self;
  const size_t first = static_cast<size_t>(op.functional->arg_count());
  for (size_t k = first; k < args.size(); ++k) {
    const Tensor out = args[k].tensor();
    FL_CHECK(out.dtype() == made, RuntimeError, "{}(): expected an out tensor of dtype {}, got {}",
             op.schema.name, name(made), name(out.dtype()));
    FL_CHECK(k == first || out.storage() != args[first].tensor().storage(), ValueError,
             "{}(): the out= tensors must not overlap", op.schema.name);
  }
}

/// A result in the tensor given as out=, of an operator that has no form for it.
nb::object write_result(const Overloads& overloads, Prepared& prepared, bool method) {
  prepared.drop_target();
  Arguments args;
  const OpInfo* op = choose(overloads, false, prepared.call(), method, args);
  if (!op || op->return_count() != 1 || op->schema.returns[0].type != ArgType::Tensor)
    raise_no_fit(overloads, prepared.call(), method, false);
  const nb::handle target = prepared.target();
  const Tensor out = expect_tensor(target, "out");
  const Tensor made = run(*op, args)[0].tensor();
  FL_CHECK(category(made.dtype()) <= category(out.dtype()), RuntimeError,
           "result type {} can't be cast to the desired output type {}", name(made.dtype()),
           name(out.dtype()));
  if (to_string(out.sizes()) != to_string(made.sizes()))
    target.attr("_resize")(size_object(made.sizes()), nb::none());
  copy.in_place(*as_tensor(target), made);
  return nb::borrow(target);
}

}  // namespace

const std::vector<Overloads>& all_overloads() {
  static const auto* list = [] {
    auto* out = new std::vector<Overloads>;
    std::unordered_map<std::string, size_t> position;
    for (const OpInfo& op : op_table().all()) {
      const auto [it, is_new] = position.emplace(op.schema.name, out->size());
      if (is_new) {
        const bool polynomial = op.schema.name.find("_polynomial_") != std::string::npos;
        const bool self = polynomial || lists(kNumberAsSelf, op.schema.name);
        out->push_back({op.schema.name,
                        {},
                        {},
                        self,
                        self || lists(kNumberAsOther, op.schema.name),
                        lists(kNumbersOnly, op.schema.name)});
      }
      Overloads& o = (*out)[it->second];
      const bool is_out = op.functional && op.functional->out == &op;
      (is_out ? o.outs : o.ops).push_back(&op);
    }
    return out;
  }();
  return *list;
}

const Overloads& find_overloads(std::string_view name) {
  static const auto* by_name = [] {
    auto* out = new std::unordered_map<std::string_view, const Overloads*>;
    for (const Overloads& o : all_overloads()) out->emplace(o.name, &o);
    return out;
  }();
  const auto it = by_name->find(name);
  FL_CHECK(it != by_name->end(), InternalError, "no operator is called '{}'", name);
  return *it->second;
}

nb::object named_result_type(const std::string& name) {
  for (const Overloads& o : all_overloads())
    for (const OpInfo* op : o.ops)
      if (op->schema.name == name && op->return_count() > 1 && !op->schema.returns[0].name.empty())
        return nb::borrow(nb::handle(reinterpret_cast<PyObject*>(result_type(*op))));
  return nb::none();
}

nb::object run_wrapped(const OpInfo& op, Arguments& args) { return wrap_results(op, run(op, args)); }

namespace {

/// add(x, y, alpha=s) of a symbolic s as add(x, y * s): the same where nothing is rounded in between. Null:
/// no such call.
nb::object call_with_symbolic_alpha(const Overloads& overloads, const CallArguments& given, bool method) {
  std::string_view name = overloads.name;
  if (name.ends_with('_')) name.remove_suffix(1);
  if ((name != "add" && name != "sub") || given.positional != 2 || given.keyword_count() != 1) return {};
  PyObject *keyword = PyTuple_GET_ITEM(given.keywords, 0), *alpha = given.values[2];
  if (!is_text(keyword, "alpha") || !is_sym_float(alpha)) return {};
  for (int k = 0; k < 2; ++k) {
    const Tensor* t = as_tensor(given.values[k]);
    if (!t || (t->dtype() != DType::Float32 && t->dtype() != DType::Float64)) return {};
  }
  const nb::object scaled = wrap(mul(*as_tensor(given.values[1]), number_argument(alpha)));
  PyObject* values[] = {given.values[0], scaled.ptr()};
  return call_overloads(overloads, {values, 2, nullptr}, method);
}

}  // namespace

nb::object call_overloads(const Overloads& overloads, const CallArguments& given, bool method) {
  if (given.keyword_count() == 1)
    if (nb::object out = call_with_symbolic_alpha(overloads, given, method); out.is_valid()) return out;
  Prepared prepared(overloads, given);
  Arguments args;
  const OpInfo* op = choose(overloads, prepared.names_out(), prepared.call(), method, args);
  if (!op && prepared.target()) return write_result(overloads, prepared, method);
  if (!op) raise_no_fit(overloads, prepared.call(), method, prepared.names_out());
  check_out(*op, args);
  nb::object out = run_wrapped(*op, args);
  if (prepared.pins()) out = wrap(pinned(*as_tensor(out)));
  if (prepared.requires_grad()) {
    Tensor made = *as_tensor(out);
    made.set_requires_grad(true);
  }
  return out;
}

nb::object call_infix(const Overloads& overloads, const CallArguments& call) {
  Arguments args;
  const OpInfo* op = choose(overloads, false, call, false, args);
  return op ? run_wrapped(*op, args) : nb::borrow(Py_NotImplemented);
}

}  // namespace fl::python
