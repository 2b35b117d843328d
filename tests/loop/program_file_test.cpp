// Programs saved as text and loaded again.
#include "flambeau/loop/program_file.h"

#include <gtest/gtest.h>

#include "flambeau/base/error.h"
#include "flambeau/ops/functions.h"
#include "lowered.h"

namespace fl::loop {
namespace {

// Kernels with reductions and gathers, library calls on views, a view and a number as outputs.
Program sample() {
  return testing::lowered(
      [](const Tensors& a) {
        const Tensor x = softmax(mul(a[0], 2.5), -1), y = mm(permute(a[0], {1, 0}), x);
        const auto [values, positions] = sort(y, -1, true);
        return Tensors{permute(y, {1, 0}), index_select(values, 0, _to_copy(a[1], DType::Int64)), positions,
                       full({3}, -1.0 / 0.0)};
      },
      {{6, 5}, {4}});
}

std::string damaged(const std::string& text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : std::string(text).replace(at, from.size(), to);
}

TEST(ProgramFile, HoldsEverything) {
  const Program p = sample();
  const std::string text = save_program(p);
  const Program loaded = load_program(text);
  EXPECT_EQ(loaded.str(), p.str());
  EXPECT_EQ(save_program(loaded), text);
  for (size_t k = 0; k < p.steps.size(); ++k) {
    const auto* kernel = std::get_if<KernelStep>(&p.steps[k]);
    if (!kernel) continue;
    EXPECT_EQ(std::get<KernelStep>(loaded.steps[k]).kernel->str(), kernel->kernel->str());
  }
}

TEST(ProgramFile, DamageIsAnError) {
  const std::string text = save_program(sample());
  for (const std::string& bad :
       {std::string(), std::string("{}"), std::string("[1, 2"), text.substr(0, text.size() / 2),
        damaged(text, "\"kind\": \"output\"", "\"kind\": \"elsewhere\""),
        damaged(text, "\"buffers\": [\n    0", "\"buffers\": [\n    1000"),
        damaged(text, "\"tensor_inputs\": 2", "\"tensor_inputs\": 0"),
        damaged(text, "\"sizes\": [\n    \"s0\"", "\"sizes\": [\n    \"s99\""),
        damaged(text, "kernel ", "kernel (")})
    EXPECT_THROW(load_program(bad), ValueError) << bad.substr(0, 80);
  EXPECT_THROW(load_program(damaged(text, "\"version\": 2", "\"version\": 77")), RuntimeError);
  EXPECT_THROW(load_program(damaged(text, "\"library\": \"mm\"", "\"library\": \"my_mm\"")), RuntimeError);
}

}  // namespace
}  // namespace fl::loop
