// torch.use_deterministic_algorithms(): whether results may depend on the order in which threads happen to
// run.
#pragma once

namespace fl::runtime {

/// For the whole process; a call looks when it runs. Off at first.
bool deterministic_algorithms();
void use_deterministic_algorithms(bool on);

}  // namespace fl::runtime
