// The life of Tensor objects: identity, who keeps whom alive, and what the garbage collector may follow.
#include "flambeau/autograd/meta.h"
#include "hooks.h"
#include "module.h"
#include "operators.h"

#include <structmember.h>  // after Python.h

namespace fl::python {

PyTypeObject* tensor_type = nullptr;

namespace {

TensorObject* cast(PyObject* self) { return reinterpret_cast<TensorObject*>(self); }

/// The collector's mark on an object whose finalizer has run: bit 0 of the word before it. A tensor's
/// finalizer may run again after Python got the object back.
void forget_finalized(PyObject* self) { reinterpret_cast<uintptr_t*>(self)[-1] &= ~uintptr_t{1}; }

/// Whether somebody could notice that a new object stands for the tensor.
bool would_be_missed(const TensorObject* o) {
  return o->weak_references || !is_exact_tensor(reinterpret_cast<PyObject*>(const_cast<TensorObject*>(o))) ||
         (o->dict && PyDict_GET_SIZE(o->dict) > 0);
}

/// Leaves the object to its tensor, which C++ still holds. False if there is no need.
bool leave_to_tensor(TensorObject* o) {
  if (o->kept || !o->tensor.defined() || o->tensor.impl()->use_count() <= 1 || !would_be_missed(o))
    return false;
  TensorImpl* impl = o->tensor.impl();
  o->kept = true;
  Py_INCREF(o);
  impl->owns_python = true;
  impl->release();  // may drop the object again, where the last other holder has just gone
  return true;
}

/// The tensor of a kept object is going.
void release_from_tensor(void* object) {
  if (!Py_IsInitialized()) return;
  nb::gil_scoped_acquire locked;
  auto* o = static_cast<TensorObject*>(object);
  TensorImpl* going = o->tensor.impl();
  // The handle's count was given up when the tensor took over.
  new (&o->tensor) Tensor();
  o->kept = false;
  if (Py_REFCNT(o) > 1) {  // somebody got it through a weak reference: it goes on with the contents
    Ref<TensorImpl> heir(new TensorImpl);
    heir->spec = going->spec;
    heir->storage = std::move(going->storage);
    heir->autograd = std::move(going->autograd);
    heir->inference = going->inference;
    heir->python = o;
    o->tensor = Tensor(std::move(heir));
  }
  Py_DECREF(o);
}

void finalize(PyObject* self) { leave_to_tensor(cast(self)); }

int visit_hooks(const HookList<GradHook>& hooks, visitproc visit, void* arg) {
  int result = 0;
  hooks.each([&](const GradHook& hook) {
    const auto* python = hook.target<PythonGradHook>();
    if (!result && python && python->function.use_count() == 1) result = visit(python->function->ptr(), arg);
  });
  return result;
}

/// What only this tensor keeps alive.
int visit_autograd(const Tensor& t, visitproc visit, void* arg) {
  AutogradMeta* m = t.impl()->use_count() == 1 ? meta(t) : nullptr;
  if (!m || m->use_count() != 1) return 0;
  if (m->grad.defined() && m->grad.impl()->owns_python && m->grad.impl()->use_count() == 1)
    Py_VISIT(static_cast<PyObject*>(m->grad.impl()->python));
  if (const int r = visit_hooks(m->leaf_hooks, visit, arg)) return r;
  if (!m->grad_fn || m->grad_fn->use_count() != 1) return 0;
  if (NodeHooks* hooks = m->grad_fn->hooks())
    for (const NodeHooks::OnTensor& on : hooks->tensors)
      if (const int r = visit_hooks(on.hooks, visit, arg)) return r;
  return visit_node(*m->grad_fn, visit, arg);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  TensorObject* o = cast(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(o->dict);
  return o->kept || !o->tensor.defined() ? 0 : visit_autograd(o->tensor, visit, arg);
}

int clear(PyObject* self) {
  TensorObject* o = cast(self);
  Py_CLEAR(o->dict);
  if (o->kept || !o->tensor.defined() || o->tensor.impl()->use_count() != 1) return 0;
  if (AutogradMeta* m = meta(o->tensor); m && m->use_count() == 1) {
    m->leaf_hooks.clear();
    release_iteratively(std::exchange(m->grad_fn, nullptr));
  }
  return 0;
}

void dealloc(PyObject* self) {
  TensorObject* o = cast(self);
  if (is_exact_tensor(self)) {
    // Classes made in Python have called the finalizer already.
    Py_SET_REFCNT(self, 1);
    leave_to_tensor(o);
    Py_SET_REFCNT(self, Py_REFCNT(self) - 1);
    if (Py_REFCNT(self) > 0) return;
  }
  PyObject_GC_UnTrack(self);
  if (o->weak_references) PyObject_ClearWeakRefs(self);
  Py_CLEAR(o->dict);
  if (o->tensor.defined()) o->tensor.impl()->python = nullptr;
  o->tensor.~Tensor();
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* make(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  try {
    const nb::object construct = nb::module_::import_("flambeau._tensor").attr("_construct");
    const nb::object made = construct(nb::handle(reinterpret_cast<PyObject*>(type)),
                                      *nb::borrow<nb::args>(args ? nb::handle(args) : nb::tuple()),
                                      **(keywords ? nb::borrow<nb::kwargs>(keywords) : nb::kwargs()));
    return nb::object(made).release().ptr();
  } catch (...) {
    raise_in_python(std::current_exception());
    return nullptr;
  }
}

/// A subclass's own __init__ may hand its arguments on.
int init(PyObject*, PyObject*, PyObject*) { return 0; }

}  // namespace

void take_back(TensorObject* o) {
  TensorImpl* impl = o->tensor.impl();
  impl->retain();
  impl->owns_python = false;
  o->kept = false;
  forget_finalized(reinterpret_cast<PyObject*>(o));
  Py_DECREF(o);
}

nb::object wrap_as(PyTypeObject* type, Tensor t) {
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) throw nb::python_error();
  TensorObject* o = cast(self);
  new (&o->tensor) Tensor(std::move(t));
  o->tensor.impl()->python = o;
  return nb::steal(self);
}

nb::object wrap(const Tensor& t) {
  if (!t.defined()) return nb::none();
  auto* known = static_cast<TensorObject*>(t.impl()->python);
  if (!known) return wrap_as(tensor_type, t);
  nb::object out = nb::borrow(reinterpret_cast<PyObject*>(known));
  if (known->kept) take_back(known);
  return out;
}

nb::tuple wrap(const std::vector<Tensor>& list) {
  PyObject* out = PyTuple_New(static_cast<Py_ssize_t>(list.size()));
  for (size_t k = 0; k < list.size(); ++k)
    PyTuple_SET_ITEM(out, static_cast<Py_ssize_t>(k), wrap(list[k]).release().ptr());
  return nb::steal<nb::tuple>(out);
}

PyTypeObject* make_tensor_type() {
  static PyMemberDef members[] = {
      {"__dictoffset__", T_PYSSIZET, offsetof(TensorObject, dict), READONLY, nullptr},
      {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weak_references), READONLY, nullptr},
      {}};
  std::vector<PyType_Slot> slots = {{Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                                    {Py_tp_finalize, reinterpret_cast<void*>(finalize)},
                                    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                                    {Py_tp_clear, reinterpret_cast<void*>(clear)},
                                    {Py_tp_new, reinterpret_cast<void*>(make)},
                                    {Py_tp_init, reinterpret_cast<void*>(init)},
                                    {Py_tp_members, members},
                                    {Py_tp_getset, tensor_properties()}};
  add_number_slots(slots);
  slots.push_back({});
  PyType_Spec spec{"flambeau.Tensor", sizeof(TensorObject), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots.data()};
  tensor_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!tensor_type) throw nb::python_error();
  install_python_release(release_from_tensor);
  return tensor_type;
}

}  // namespace fl::python
