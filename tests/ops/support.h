// What the tests of operators share: which operators, which ways to run one, which samples.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "flambeau/ops/samples.h"
#include "values.h"

namespace fl::testing {

/// One way to get an operator's results. A new backend is one more entry of ways().
struct Way {
  std::string name;
  bool (*applies)(const OpInfo&);
  std::vector<Value> (*run)(const OpInfo&, std::vector<Value> args);
  double tolerance = 0;  ///< relative; 0: to the bit
};
const std::vector<Way>& ways();

/// Every operator that was defined and not derived from another, by name.
std::vector<const OpInfo*> defined_operators();
/// A name that GoogleTest accepts.
std::string test_name(const OpInfo& op);

using SampleFn = std::function<void(const Sample&, DType)>;
/// The samples of every dtype of an operator, without (with) those that raise.
void each_sample(const OpInfo& op, const SampleFn& f);
void each_error_sample(const OpInfo& op, const SampleFn& f);

/// Autograd on, and the backend that tests are about installed.
void use_tested_backend();

/// A test for every operator.
class OperatorTest : public ::testing::TestWithParam<const OpInfo*> {
 protected:
  void SetUp() override;
};
#define FL_FOR_EVERY_OPERATOR(suite)                                                                \
  INSTANTIATE_TEST_SUITE_P(Operators, suite, ::testing::ValuesIn(fl::testing::defined_operators()), \
                           [](const auto& i) { return fl::testing::test_name(*i.param); })

/// f's error as "IndexError: text"; empty if it raises none.
std::string error_of(const std::function<void()>& f);

}  // namespace fl::testing
