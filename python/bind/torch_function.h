// __torch_function__: classes and modes of Python that answer calls in place of the library.
#pragma once
#include "arguments.h"

namespace fl::python {

/// Whether an argument of a call (or an item of a list among them) has a __torch_function__ of its own class,
/// or a mode is on.
bool has_torch_function(const CallArguments& call);
bool has_torch_function(PyObject* value);
/// Whether a mode other than a default device is on in this thread, or classes are kept from answering.
bool functions_are_overridden();
/// The device of the innermost mode. Only where functions are not overridden.
std::optional<Device> default_device();
/// Asks modes, then arguments, subclasses first. Raises TypeError if all decline.
nb::object handle_torch_function(nb::handle function, const CallArguments& call);
/// The same for reading (`how`: "__get__") or setting ("__set__") a property of Tensor.
nb::object handle_property(const char* name, const char* how, PyObject* self, PyObject* value = nullptr);

}  // namespace fl::python
