// PTX to machine code by nvJitLink, where that library is; no GPU is needed.
#include "flambeau/library/cuda/assembler.h"

#include <gtest/gtest.h>

#include <thread>

namespace fl::library::cuda {
namespace {

constexpr const char* kText = R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 p) { ret; }
)";

TEST(CudaAssembler, MakesCubins) {
  if (assembler_version().empty()) GTEST_SKIP() << "no nvJitLink here";
  std::string made[4];
  std::vector<std::thread> threads;
  for (std::string& m : made) threads.emplace_back([&m] { m = assemble(kText, 80); });
  for (std::thread& t : threads) t.join();
  for (const std::string& m : made)
    EXPECT_EQ(m.substr(0, 4),
              "\x7f"
              "ELF");
  EXPECT_EQ(assemble("no PTX", 80), "");
}

}  // namespace
}  // namespace fl::library::cuda
