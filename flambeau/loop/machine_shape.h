// What lowering knows of the machine that a program is for: how much of it there is to keep busy.
#pragma once
#include "flambeau/loop/ir.h"
#include "flambeau/tensor/device.h"

namespace fl::loop {

/// The order in which points of reductions combine follows from this and from the call's sizes: it is the
/// same for eager and compiled programs of one kind of device.
struct MachineShape {
  int lanes = kReduceLanes;  ///< partial results of reductions along memory
  bool cuts_columns =
      false;  ///< Reductions across memory have partial results, too, instead of one after the other.
  int few_outputs = 9;   ///< log2: reductions with at most so many outputs
  int many_points = 12;  ///< and so many points or more are cut into pieces, which are combined afterwards:
  int pieces = 4;        ///< log2 of how many, where there is one output
  bool fewer_pieces = false;  ///< for more outputs: pieces and outputs together stay the same

  static MachineShape of(Device d) {
    if (d.type == DeviceType::CPU) return {};
    return {.lanes = 512,
            .cuts_columns = true,
            .few_outputs = 10,
            .many_points = 14,
            .pieces = 11,
            .fewer_pieces = true};
  }
};

}  // namespace fl::loop
