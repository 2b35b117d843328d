// __torch_function__: classes and modes of Python that answer calls in place of the library.
#pragma once
#include "arguments.h"

namespace fl::python {

/// Whether an argument of a call (or an item of a list among them) has a __torch_function__ of its own class,
/// or a mode is on.
bool has_torch_function(const CallArguments& call);
bool has_torch_function(PyObject* value);
/// Asks modes, then arguments, subclasses first. Raises TypeError if all decline.
nb::object handle_torch_function(nb::handle function, const CallArguments& call);
/// The same for reading (`how`: "__get__") or setting ("__set__") a property of Tensor.
nb::object handle_property(const char* name, const char* how, PyObject* self, PyObject* value = nullptr);

}  // namespace fl::python
