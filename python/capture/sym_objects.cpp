// Symbolic integers in a capture.
#include "world.h"

#if FLAMBEAU_CAPTURE
namespace fl::python::capture {

bool is_sym_int(PyObject* o) { return Py_TYPE(o) == sym_int_type; }

}  // namespace fl::python::capture
#endif
