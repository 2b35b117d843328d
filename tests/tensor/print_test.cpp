#include "flambeau/tensor/print.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace fl;

namespace {

using nlohmann::json;

double number(const json& v) { return v.is_string() ? std::stod(v.get<std::string>()) : v.get<double>(); }

Tensor filled(const json& c, const Sizes& sizes, DType dtype) {
  if (c["device"] == "meta") return empty_tensor(sizes, dtype, parse_device("meta"));
  const auto count = static_cast<size_t>(product(sizes).expect_int());
  Tensor t = empty_tensor(sizes, dtype);
  for (size_t i = 0; i < count; ++i) {
    Scalar s;
    if (c.contains("step"))
      s = Scalar(static_cast<double>(i) * c["step"].get<double>());
    else if (c["values"][i].is_boolean())
      s = Scalar(c["values"][i].get<bool>());
    else if (c["values"][i].is_array())
      s = Scalar(std::complex<double>(number(c["values"][i][0]), number(c["values"][i][1])));
    else if (c["values"][i].is_number_integer())
      s = Scalar(c["values"][i].get<int64_t>());
    else
      s = Scalar(number(c["values"][i]));
    // The element i of a row-major tensor, through a 0-dim view of it.
    TensorSpec one = t.spec();
    one.sizes.clear();
    one.strides.clear();
    one.offset = SymInt(i);
    const Tensor value = scalar_tensor(s, dtype);
    std::memcpy(Tensor(one, t.storage()).data(), value.data(), static_cast<size_t>(size_of(dtype)));
  }
  return t;
}

}  // namespace

TEST(Print, SameTextAsPyTorch) {
  std::ifstream file(FLAMBEAU_SOURCE_DIR "/tests/tensor/print_cases.json");
  const json cases = json::parse(file);
  ASSERT_GT(cases.size(), 200u);
  for (const json& c : cases) {
    Sizes sizes;
    for (const json& size : c["sizes"]) sizes.push_back(size.get<int64_t>());
    const Tensor t = filled(c, sizes, parse_dtype(c["dtype"].get<std::string>()));
    EXPECT_EQ(t.str(), c["text"].get<std::string>()) << c["dtype"] << c["sizes"];
  }
}

TEST(Print, StridedViewShowsItsElements) {
  const Tensor t = tensor_from<int64_t>({0, 1, 2, 3, 4, 5}, {2, 3});
  TensorSpec transposed = t.spec();
  std::swap(transposed.sizes[0], transposed.sizes[1]);
  std::swap(transposed.strides[0], transposed.strides[1]);
  EXPECT_EQ(Tensor(transposed, t.storage()).str(), "tensor([[0, 3],\n        [1, 4],\n        [2, 5]])");
}

TEST(Print, Options) {
  const Tensor t = tensor_from<float>({0.12345678f, 1.5f, 2.0f, 3.0f}, {4});
  EXPECT_EQ(to_string(t, {.precision = 2}), "tensor([0.12, 1.50, 2.00, 3.00])");
  EXPECT_EQ(to_string(t, {.precision = 1, .sci_mode = true}), "tensor([1.2e-01, 1.5e+00, 2.0e+00, 3.0e+00])");
  EXPECT_EQ(to_string(t, {.precision = 1, .threshold = 3, .edge_items = 1}), "tensor([0.1,  ..., 3.0])");
  EXPECT_EQ(to_string(t, {.precision = 1, .default_dtype = DType::Float64}),
            "tensor([0.1, 1.5, 2.0, 3.0], dtype=torch.float32)");
  EXPECT_EQ(to_string(t, {.precision = 1, .line_width = 20, .prefix = "P"}), "P([0.1, 1.5, 2.0,\n   3.0])");
}

TEST(Print, SuffixOfAutogradWrapsAtLineWidth) {
  set_print_suffix([](const Tensor&) { return std::string("grad_fn=<AddBackward0>"); });
  EXPECT_EQ(tensor_from<float>({1}, {1}).str(), "tensor([1.], grad_fn=<AddBackward0>)");
  const Tensor t = tensor_from<float>(std::vector<float>(12, 1.25f), {12});
  EXPECT_EQ(t.str(),
            "tensor([1.2500, 1.2500, 1.2500, 1.2500, 1.2500, 1.2500, 1.2500, 1.2500, 1.2500,\n"
            "        1.2500, 1.2500, 1.2500], grad_fn=<AddBackward0>)");
  set_print_suffix(nullptr);
  EXPECT_EQ(tensor_from<float>({1}, {1}).str(), "tensor([1.])");
}

TEST(Print, UndefinedAndTraced) {
  EXPECT_EQ(Tensor().str(), "None");
  const Tensor t = empty_tensor({SymInt(sym::Expr::symbol("print_s", 2)), SymInt(3)}, DType::Float32);
  EXPECT_EQ(t.str(), "tensor(..., size=(print_s, 3))");
}
