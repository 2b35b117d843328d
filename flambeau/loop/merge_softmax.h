// A pass over a kernel: maxima and the sums of exponentials below them, in one walk along the row.
#pragma once
#include "flambeau/loop/ir.h"

namespace fl::loop {

/// Where one stage has max(x) and a later one sum(exp(x - max)), both become online_softmax in the first:
/// for rows that are too long to be kept, which are read once less (tests/loop/merge_softmax_test.cpp).
void merge_softmax(Kernel& k);

}  // namespace fl::loop
