// SymFloat: a float that a traced function computes with while it is not known.
#pragma once
#include <set>
#include <vector>

#include "object.h"

namespace fl::python {

/// The class SymFloat.
extern PyTypeObject* sym_float_type;
inline bool is_sym_float(PyObject* o) { return Py_TYPE(o) == sym_float_type; }

/// value: a 0-dim float64 tensor of the trace. inputs: those of the trace's inputs that it follows from.
/// example: what it is now; nothing where it follows from the elements of tensors.
nb::object symbolic_float(const Tensor& value, std::vector<int> inputs, std::optional<double> example);
/// Its tensor, in its trace.
const Tensor& tensor_of_float(PyObject* o);
/// The same as an argument of an operator, which promotes as a number.
Tensor number_argument(PyObject* o);
/// Python's number in its place. The trace is then one for this number: its inputs are noted. Raises
/// UnsupportedError where it follows from elements.
double known_float(PyObject* o);

/// Gets the inputs of the trace whose numbers something needed.
extern thread_local std::set<int>* needed_numbers;

}  // namespace fl::python
