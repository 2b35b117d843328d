// The slots of class Tensor that stand for operators of Python.
#pragma once
#include <vector>

#include "object.h"

namespace fl::python {

/// x + y, -x, x == y, ... and the hash.
void add_number_slots(std::vector<PyType_Slot>& slots);

}  // namespace fl::python
