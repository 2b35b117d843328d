// Symbolic integers in a capture.
#include "world.h"

#if FLAMBEAU_CAPTURE
namespace fl::python::capture {

bool is_sym_int(PyObject*) { return false; }

}  // namespace fl::python::capture
#endif
