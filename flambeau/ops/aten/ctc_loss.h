// Connectionist temporal classification.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<
    "ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int "
    "blank=0, int reduction=1, bool zero_infinity=False) -> Tensor">
    ctc_loss;
inline constexpr Op<
    "ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int "
    "blank=0, int reduction=1, bool zero_infinity=False) -> Tensor">
    ctc_loss_tensor;

}  // namespace fl
