// What lowering knows of the machine that a program is for: how much of it there is to keep busy.
#pragma once
#include "flambeau/loop/ir.h"
#include "flambeau/tensor/device.h"

namespace fl::loop {

/// Which reductions are cut into pieces that are combined afterwards: those with few outputs and many points.
/// All numbers are log2.
struct CutRule {
  int few_outputs = 9, many_points = 12;
  int pieces = 4;             ///< of a reduction to one output
  bool fewer_pieces = false;  ///< For more outputs: pieces and outputs together stay the same,
  int least_points = 0;       ///< and pieces have at least so many points.
};

/// The order in which points of reductions combine follows from this and from the call's sizes: it is the
/// same for eager and compiled programs of one kind of device.
struct MachineShape {
  int lanes = kReduceLanes;  ///< partial results of reductions along memory
  /// Reductions across memory have partial results, too, instead of one point after the other.
  bool cuts_columns = false;
  CutRule rows, columns;  ///< of reductions along and across memory

  /// What a kernel computed in one pass over its inner loops and needs in a later one is computed again where
  /// it takes at most so many operations, instead of being kept in memory;
  int repeated = 12;
  bool repeats_functions = false;  ///< transcendental functions, too.
  /// Rows of at most so many points stay in registers from pass to pass: nothing is kept in memory.
  int64_t held_points = 0;

  static MachineShape of(Device d) {
    MachineShape m;
    if (d.type == DeviceType::CPU) return m;
    m.lanes = 512;
    m.cuts_columns = true;
    m.rows = {.few_outputs = 10, .many_points = 14, .pieces = 11, .fewer_pieces = true, .least_points = 10};
    m.columns = {.few_outputs = 13, .many_points = 11, .pieces = 14, .fewer_pieces = true, .least_points = 9};
    m.repeated = 60;
    m.repeats_functions = true;
    m.held_points = 1024;
    return m;
  }
};

}  // namespace fl::loop
