#include "flambeau/runtime/routine.h"

namespace fl::runtime {

Routine find_routine(std::string_view op) {
  for (const auto& table : {factorization_routines(), spectrum_routines(), fft_routines()})
    for (const NamedRoutine& entry : table)
      if (entry.op == op) return entry.routine;
  if (const Routine special = find_special_routine(op)) return special;
  FL_RAISE(InternalError, "the operator {} asks for a routine, and there is none of its name", op);
}

}  // namespace fl::runtime
