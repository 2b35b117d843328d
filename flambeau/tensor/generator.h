// Random numbers: Philox 4x32-10, addressed by (seed, offset).
#pragma once
#include "flambeau/base/ref.h"

namespace fl {

class Generator : public RefCounted {};

}  // namespace fl
