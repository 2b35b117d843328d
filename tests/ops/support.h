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
  double ulps = 0;  ///< of difference that are right; 0: to the bit
  DTypeSet dtypes = dtypes::all;
};
const std::vector<Way>& ways();

/// Every operator that was defined and not derived from another, by name.
std::vector<const OpInfo*> defined_operators();
/// A name that GoogleTest accepts.
std::string test_name(const OpInfo& op);

using SampleFn = std::function<void(const Sample&, DType)>;
/// One dtype of each kind, for tests in which more add nothing.
inline constexpr DTypeSet kFewDTypes{DType::Bool,     DType::UInt8,   DType::Int32,
                                     DType::BFloat16, DType::Float32, DType::Complex64};
/// The samples of an operator in these dtypes, without (with) those that raise.
void each_sample(const OpInfo& op, const SampleFn& f, DTypeSet dtypes = dtypes::all);
void each_error_sample(const OpInfo& op, const SampleFn& f);

/// The table made, and with it autograd and the backend that tests are about.
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
