// What lowering knows of the machine that a program is for: how much of it there is to keep busy.
#pragma once
#include "flambeau/loop/ir.h"
#include "flambeau/tensor/device.h"

namespace fl::loop {

/// The order in which points of reductions combine follows from this and from the call's sizes: it is the
/// same for eager and compiled programs of one kind of device.
struct MachineShape {
  int lanes = kReduceLanes;  ///< partial results of reductions along memory
  /// Reductions across memory have partial results, too, instead of one point after the other.
  bool cuts_columns = false;
  /// Reductions with few outputs are cut into pieces, which are combined afterwards. All numbers are log2.
  int few_outputs = 9, many_points = 12;
  int pieces = 4;             ///< of a reduction to one output
  bool fewer_pieces = false;  ///< For more outputs: pieces and outputs together stay the same,
  int least_points = 0;       ///< and pieces have at least so many points.

  static MachineShape of(Device d) {
    MachineShape m;
    if (d.type == DeviceType::CPU) return m;
    m.lanes = 512;
    m.cuts_columns = true;
    m.few_outputs = 10;
    m.many_points = 14;
    m.pieces = 11;
    m.fewer_pieces = true;
    m.least_points = 10;
    return m;
  }
};

}  // namespace fl::loop
