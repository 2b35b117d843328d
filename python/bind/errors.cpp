// The library's errors as the Python exceptions that they name.
#include "flambeau/loop/interpret.h"
#include "module.h"

namespace fl::python {
namespace {

// Subclasses of RuntimeError that Python does not have itself.
PyObject *out_of_memory, *linalg, *unsupported, *deserialization, *internal, *out_of_bounds;

PyObject* make_exception(nb::module_& m, const char* name, const char* doc,
                         PyObject* bases = PyExc_RuntimeError) {
  const std::string full = std::string("flambeau.") + name;
  PyObject* type = PyErr_NewExceptionWithDoc(full.c_str(), doc, bases, nullptr);
  m.attr(name) = nb::borrow(type);
  return type;
}

}  // namespace

void raise_in_python(const std::exception_ptr& error) {
  const auto set = [](PyObject* type, const Error& e) { PyErr_SetString(type, e.what()); };
  try {
    std::rethrow_exception(error);
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const OutOfMemoryError& e) {
    set(out_of_memory, e);
  } catch (const LinAlgError& e) {
    set(linalg, e);
  } catch (const NotImplementedError& e) {
    set(PyExc_NotImplementedError, e);
  } catch (const UnsupportedError& e) {
    set(unsupported, e);
  } catch (const DeserializationError& e) {
    set(deserialization, e);
  } catch (const RuntimeError& e) {
    set(PyExc_RuntimeError, e);
  } catch (const ValueError& e) {
    set(PyExc_ValueError, e);
  } catch (const TypeError& e) {
    set(PyExc_TypeError, e);
  } catch (const loop::OutOfBoundsError& e) {
    set(out_of_bounds, e);
  } catch (const IndexError& e) {
    set(PyExc_IndexError, e);
  } catch (const Error& e) {
    set(internal, e);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
}

void raise_in_library(nb::python_error& error) {
  if (error.matches(unsupported)) throw UnsupportedError(text_of(error.value()));
  throw;
}

void bind_errors(nb::module_& m) {
  out_of_memory = make_exception(m, "OutOfMemoryError", "Memory could not be had.");
  linalg = make_exception(m, "LinAlgError", "A matrix is singular, or an iteration does not converge.");
  unsupported = make_exception(m, "UnsupportedError", "Capture met something that a graph cannot hold.");
  deserialization = make_exception(m, "DeserializationError", "A file is damaged or of another kind.");
  internal = make_exception(m, "InternalError", "A mistake of this library.");
  // gather raises RuntimeError and indexing IndexError in PyTorch.
  const nb::tuple both = nb::make_tuple(nb::handle(PyExc_IndexError), nb::handle(PyExc_RuntimeError));
  out_of_bounds = make_exception(m, "OutOfBoundsError", "An index from data lies outside.", both.ptr());
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Error&) {
      raise_in_python(p);
    }
  });
}

}  // namespace fl::python
