// Kernels of a process whose address space is full of large mappings, as a driver of GPUs makes them.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "compare.h"

namespace fl::codegen {
namespace {

// Leaves nothing free above a large mapping but holes of few pages in it, gigabytes apart: memory that is
// asked for piece by piece lies there.
class Holes {
 public:
  Holes() {
    char* block = reserve(kHoles * kGap);
    mappings_.push_back({block, kHoles * kGap});
    for (const size_t pages : {256, 16, 4, 2, 1}) fill_above(block, pages * kPage);
    for (size_t h = 1; h < kHoles; ++h) munmap(block + (kHoles - h) * kGap, h * kPage);
  }
  ~Holes() {
    for (const auto& [address, size] : mappings_) munmap(address, size);
  }

 private:
  static constexpr size_t kPage = 4096, kGap = size_t(8) << 30, kHoles = 6;
  static char* reserve(size_t size) {
    void* p = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(p, MAP_FAILED);
    return static_cast<char*>(p);
  }
  void fill_above(const char* block, size_t size) {
    for (int tries = 0; tries < 10000; ++tries) {
      char* p = reserve(size);
      if (p > block) {
        mappings_.push_back({p, size});
        continue;
      }
      munmap(p, size);
      return;
    }
  }
  std::vector<std::pair<void*, size_t>> mappings_;
};

TEST(FarMemory, ConstantsAreReached) {
  std::mt19937_64 random(3);
  const auto k = loop::parse_kernel(R"(kernel k(x: f32 in, y: f32 out) sizes(s0) vector outer
for i0 < s0
  stage
    %0 = load f32 x[i0]
    %1 = exp f32 %0
    %2 = erf f32 %1
    store y[i0] = %2
)");
  const Holes holes;
  for (int times = 0; times < 4; ++times)
    EXPECT_EQ(difference(k, {sample_data(DType::Float32, 100, random), Bytes(400)}, {100}), "");
}

}  // namespace
}  // namespace fl::codegen
