// The hook that CPython calls for every frame while compiled functions run.
#pragma once
#include "frame.h"

#if FLAMBEAU_CAPTURE
#include "region.h"

namespace fl::python::capture {

/// Calls f with frames captured for a unit; the hook is there as long as the call.
PyObject* call_captured(Unit& unit, PyObject* f, PyObject* const* args, size_t count, PyObject* keywords);
/// Calls f as CPython does.
PyObject* call_plainly(PyObject* f, PyObject* const* args, size_t count, PyObject* keywords);
/// Calls a function that has nothing to do with the unit that runs.
PyObject* call_uncompiled(PyObject* f, PyObject* const* args, size_t count);
/// Calls f as CPython does in the middle of a capture.
PyObject* call_outside(PyObject* f, PyObject* const* args, size_t count, PyObject* keywords);
/// Reads what the capture knows of this Python; before the first capture.
void prepare();

}  // namespace fl::python::capture
#endif
