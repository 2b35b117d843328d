// Properties of Tensor: metadata, gradient, and views that are written without brackets.
#include "flambeau/autograd/autograd.h"
#include "flambeau/autograd/meta.h"
#include "flambeau/autograd/observed_grad.h"
#include "flambeau/ops/functions.h"
#include "module.h"
#include "torch_function.h"

namespace fl::python {
namespace {

template <auto F>
PyObject* get(PyObject* self, void* name) {
  try {
    if (!is_exact_tensor(self) && has_torch_function(self))
      return handle_property(static_cast<const char*>(name), "__get__", self).release().ptr();
    return F(*as_tensor(self)).release().ptr();
  } catch (...) {
    raise_in_python(std::current_exception());
    return nullptr;
  }
}

template <auto F>
int set(PyObject* self, PyObject* value, void* name) {
  try {
    if (!is_exact_tensor(self) && has_torch_function(self)) {
      handle_property(static_cast<const char*>(name), "__set__", self, value ? value : Py_None);
      return 0;
    }
    F(*as_tensor(self), value ? nb::handle(value) : nb::handle(Py_None));  // del x.grad is x.grad = None
    return 0;
  } catch (...) {
    raise_in_python(std::current_exception());
    return -1;
  }
}

nb::object boolean(bool b) { return nb::bool_(b); }

Tensor reversed(const Tensor& t) {
  Sizes dims;
  for (int d = t.dim(); d-- > 0;) dims.push_back(d);
  return permute(t, dims);
}

/// The last two dimensions exchanged; `name` is the property, for the message.
Tensor transposed(const Tensor& t, const char* name) {
  FL_CHECK(t.dim() >= 2, RuntimeError,
           "tensor.{} is only supported on matrices or batches of matrices. Got {}-D tensor.", name, t.dim());
  return transpose(t, -2, -1);
}
Tensor adjoint(const Tensor& t) { return is_complex(t.dtype()) ? conj(t) : t; }

/// The elements without history.
nb::object data(const Tensor& t) { return wrap(shallow_copy(t)); }

void set_data(const Tensor& t, nb::handle value) {
  const Tensor& from = expect_tensor(value, "data");
  FL_CHECK(!t.requires_grad() || is_floating(from.dtype()) || is_complex(from.dtype()), RuntimeError,
           "data set to a tensor that requires gradients must be floating point or complex dtype");
  t.impl()->spec = from.spec();
  t.impl()->storage = from.storage();
}

void set_grad(const Tensor& t, nb::handle value) {
  FL_CHECK(value.is_none() || as_tensor(value), TypeError,
           "assigned grad expected to be a Tensor or None but got grad of type {}", python_type(value));
  t.set_grad(value.is_none() ? Tensor() : *as_tensor(value));
}

void set_requires_grad(const Tensor& t, nb::handle value) {
  FL_CHECK(PyBool_Check(value.ptr()), RuntimeError, "requires_grad must be a bool");
  Tensor(t).set_requires_grad(value.ptr() == Py_True);
}

Tensor real_part(const Tensor& t) { return is_complex(t.dtype()) ? real(t) : t; }
Tensor imaginary_part(const Tensor& t) { return imag(t); }

template <Tensor (*Part)(const Tensor&)>
nb::object part(const Tensor& t) {
  return wrap(Part(t));
}
template <Tensor (*Part)(const Tensor&)>
void assign_part(const Tensor& t, nb::handle value) {
  const Tensor* given = as_tensor(value);
  copy.in_place(Part(t), given ? *given : tensor_of(value, {}, t.device()));
}

#define FL_PROPERTY(name, expression)                                                                        \
  {                                                                                                          \
#name, get < [](const Tensor& t) -> nb::object { return expression; }>, nullptr, nullptr, name_of(#name) \
  }

void* name_of(const char* name) { return const_cast<char*>(name); }

}  // namespace

PyGetSetDef* tensor_properties() {
  static PyGetSetDef list[] = {
      FL_PROPERTY(shape, size_object(t.sizes())),
      FL_PROPERTY(dtype, wrap(t.dtype())),
      FL_PROPERTY(device, wrap(t.device())),
      FL_PROPERTY(ndim, nb::int_(t.dim())),
      FL_PROPERTY(itemsize, nb::int_(size_of(t.dtype()))),
      FL_PROPERTY(nbytes, integer(t.numel() * SymInt(size_of(t.dtype())))),
      FL_PROPERTY(is_leaf, boolean(t.is_leaf())),
      FL_PROPERTY(is_meta, boolean(t.device().type == DeviceType::Meta)),
      FL_PROPERTY(is_cpu, boolean(t.device().type == DeviceType::CPU)),
      FL_PROPERTY(is_cuda, boolean(t.device().type == DeviceType::CUDA)),
      FL_PROPERTY(retains_grad, boolean(retains_grad(t))),
      FL_PROPERTY(output_nr, nb::int_(output_nr(t))),
      FL_PROPERTY(_version, nb::int_(version(t))),
      FL_PROPERTY(_base, wrap(view_base(t))),
      FL_PROPERTY(T, wrap(reversed(t))),
      FL_PROPERTY(mT, wrap(transposed(t, "mT"))),
      FL_PROPERTY(H, wrap(adjoint(t.dim() == 0 ? t : transposed(t, "H")))),
      FL_PROPERTY(mH, wrap(adjoint(transposed(t, "mH")))),
      {"data", get<data>, set<set_data>, nullptr, name_of("data")},
      {"real", get<part<real_part>>, set<assign_part<real_part>>, nullptr, name_of("real")},
      {"imag", get<part<imaginary_part>>, set<assign_part<imaginary_part>>, nullptr, name_of("imag")},
      {"grad", get<[](const Tensor& t) { return wrap(observed_grad(t)); }>, set<set_grad>, nullptr,
       name_of("grad")},
      {"requires_grad", get<[](const Tensor& t) { return boolean(t.requires_grad()); }>,
       set<set_requires_grad>, nullptr, name_of("requires_grad")},
      {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
      {}};
  return list;
}
#undef FL_PROPERTY

}  // namespace fl::python
