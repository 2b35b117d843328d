// Random kernels: machine code of every instruction set against the interpreter.
// FLAMBEAU_FUZZ_COUNT kernels (default 40) from FLAMBEAU_FUZZ_SEED on (default 1), one seed a kernel.
#include <gtest/gtest.h>

#include <cstdio>

#include "compare.h"
#include "flambeau/base/error.h"
#include "random_kernel.h"

namespace fl::codegen {
namespace {

TEST(Fuzz, RandomKernelsMatchTheInterpreter) {
  const int64_t count = number_from("FLAMBEAU_FUZZ_COUNT", 40), seed = number_from("FLAMBEAU_FUZZ_SEED", 1);
  int failures = 0;
  int64_t n = 0;
  for (; n < count && failures < 10; ++n) {
    std::string what;
    try {
      const RandomKernel random = random_kernel(static_cast<uint64_t>(seed + n), (seed + n) % 3 == 1);
      const loop::Kernel& k = random.kernel;
      EXPECT_EQ(loop::parse_kernel(k.str()).str(), k.str());
      what = difference(k, random.data, random.sizes, random.params);
    } catch (const Error& e) {
      what = e.message();
    }
    if (what.empty()) continue;
    ++failures;
    ADD_FAILURE() << "seed " << seed + n << "\n" << what;
  }
  std::printf("%lld programs\n", static_cast<long long>(n));
}

}  // namespace
}  // namespace fl::codegen
