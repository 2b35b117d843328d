// The error of linear algebra: a singular matrix, an iteration that does not converge.
#pragma once
#include "flambeau/base/error.h"

namespace fl {

/// torch.linalg.LinAlgError.
class LinAlgError : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

}  // namespace fl
