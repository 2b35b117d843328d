// Whether this CPython's frames are what frame.h takes them for.
#pragma once
#include "frame.h"

#if FLAMBEAU_CAPTURE
#include <string>

namespace fl::python::capture {

/// Tries a hook on a few functions, at the first call: it returns for a frame, raises, runs any number of
/// steps and leaves the rest to CPython, runs a copy and a generator. Empty, or what came out wrong: then
/// there must be no hook.
const std::string& frames_problem();

}  // namespace fl::python::capture
#endif
