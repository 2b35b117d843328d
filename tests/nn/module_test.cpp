#include "flambeau/nn/module.h"

#include <cstdio>
#include <fstream>

#include "environment.h"
#include "flambeau/nn/init.h"
#include "flambeau/nn/sequential.h"

namespace fl::testing {
namespace {

using namespace fl::nn;

struct ScaleImpl : Layer {
  explicit ScaleImpl(float value) {
    scale = register_parameter("scale", f32({value, value}, {2}));
    count = register_buffer("count", i64({0}, {}));
    scratch = register_buffer("scratch", f32({0}, {1}), false);
    register_parameter("bias", {});
  }
  Tensor forward(const Tensor& x) override { return x; }
  Tensor scale, count, scratch;
};

struct Net : Module {
  explicit Net(float first = 1, float second = 2) {
    own = register_parameter("own", f32({0}, {1}));
    a = register_module("a", std::make_shared<ScaleImpl>(first));
    layers = register_module("layers", Sequential{std::make_shared<ScaleImpl>(second), a});
  }
  Tensor own;
  std::shared_ptr<ScaleImpl> a;
  Sequential layers = nullptr;
};

std::string names(const NamedTensorList& list) {
  std::string text;
  for (const auto& [name, t] : list) text += name + " ";
  return text;
}
NamedTensors as_map(const NamedTensorList& list) { return {list.begin(), list.end()}; }

using ModuleTest = NnTest;

TEST_F(ModuleTest, ListsInOrderAndOnce) {
  const Net net;
  EXPECT_EQ(names(net.named_parameters()), "own a.scale layers.0.scale ");
  EXPECT_EQ(names(net.named_buffers()), "a.count a.scratch layers.0.count layers.0.scratch ");
  EXPECT_EQ(names(net.state_dict()),
            "own a.scale a.count layers.0.scale layers.0.count layers.1.scale layers.1.count ");
  EXPECT_EQ(net.parameter_count(), 5);
  EXPECT_TRUE(net.own.requires_grad());
  EXPECT_FALSE(net.state_dict()[0].second.requires_grad());
}

TEST_F(ModuleTest, Modules) {
  Net net;
  std::string text;
  for (const auto& [name, m] : net.named_modules()) text += "'" + name + "' ";
  EXPECT_EQ(text, "'' 'a' 'layers' 'layers.0' ");
  net.eval();
  EXPECT_FALSE(net.layers->is_training() || net.a->is_training() || net.is_training());
  net.train();
  EXPECT_TRUE(net.layers->is_training() && net.a->is_training());
  int count = 0;
  net.apply([&](Module&) { ++count; });
  EXPECT_EQ(count, 5);  // the shared one comes twice, as everywhere its name does
}

TEST_F(ModuleTest, GradientsAndModes) {
  Net net;
  net.own.set_grad(f32({1}, {1}));
  net.zero_grad();
  EXPECT_FALSE(net.own.grad().defined());
  net.requires_grad_(false);
  EXPECT_FALSE(net.a->scale.requires_grad());
}

TEST_F(ModuleTest, NamesAreChecked) {
  struct Bad : Module {
    explicit Bad(const std::string& name) {
      register_parameter("w", f32({1}, {1}));
      register_buffer(name, f32({1}, {1}));
    }
  };
  EXPECT_EQ(message_of<ValueError>([] { Bad b("w"); }),
            "the module already has something named 'w'; choose another name");
  EXPECT_EQ(message_of<ValueError>([] { Bad b("a.b"); }),
            "a name in a module must not be empty or contain '.', got 'a.b'");
}

TEST_F(ModuleTest, StateGoesFromOneToTheOther) {
  const Net from(5, 6);
  Net to(1, 2);
  const Tensor before = to.a->scale;
  to.load_state_dict(as_map(from.state_dict()));
  EXPECT_TRUE(before.is_same(to.a->scale));
  expect_near(to.a->scale, {5, 5});
  expect_near(to.named_parameters()[2].second, {6, 6});
}

TEST_F(ModuleTest, StrictErrorsNameEverythingAndChangeNothing) {
  Net net(1, 2);
  NamedTensors state = as_map(Net(5, 6).state_dict());
  state.erase("own");
  state["extra"] = f32({1}, {1});
  state["layers.0.scale"] = f32({1, 2, 3}, {3});
  EXPECT_EQ(message_of<RuntimeError>([&] { net.load_state_dict(state); }),
            "Error(s) in loading state_dict:"
            "\n\tsize mismatch for layers.0.scale: the state has [3], the module has [2]."
            "\n\tUnexpected key(s) in state_dict: \"extra\"."
            "\n\tMissing key(s) in state_dict: \"own\".");
  expect_near(net.a->scale, {1, 1});
  state.erase("layers.0.scale");
  const LoadResult result = net.load_state_dict(state, false);
  EXPECT_EQ(result.missing_keys, (std::vector<std::string>{"own", "layers.0.scale"}));
  EXPECT_EQ(result.unexpected_keys, std::vector<std::string>{"extra"});
  expect_near(net.a->scale, {5, 5});
}

TEST_F(ModuleTest, Files) {
  const std::string path = ::testing::TempDir() + "flambeau_module_test.safetensors";
  Net(5, 6).save(path);
  Net net(1, 2);
  net.load(path);
  expect_near(net.a->scale, {5, 5});

  std::string bytes;
  {
    std::ifstream file(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  Net untouched(1, 2);
  for (const size_t length : {size_t{0}, size_t{7}, size_t{20}, bytes.size() / 2, bytes.size() - 1}) {
    std::ofstream(path, std::ios::binary) << bytes.substr(0, length);
    EXPECT_NE(message_of<DeserializationError>([&] { untouched.load(path); }), "") << length << " bytes";
  }
  expect_near(untouched.a->scale, {1, 1});
  std::remove(path.c_str());
  EXPECT_NE(message_of<RuntimeError>([&] { untouched.load(path); }), "");
}

TEST_F(ModuleTest, Initialisation) {
  const Tensor w = empty_tensor({64, 32, 3, 3}, DType::Float32);
  const auto spread = [&] {
    double low = 1e9, high = -1e9, mean = 0, square = 0;
    const auto values = w.to_vector<double>();
    for (double v : values) {
      low = std::min(low, v), high = std::max(high, v), mean += v, square += v * v;
    }
    mean /= static_cast<double>(values.size());
    return std::array{low, high, mean, std::sqrt(square / static_cast<double>(values.size()) - mean * mean)};
  };
  EXPECT_EQ(init::fans(w).in, 288);
  EXPECT_EQ(init::fans(w).out, 576);
  init::kaiming_uniform_(w, std::sqrt(5.0));
  const double bound = 1 / std::sqrt(288.0);
  auto s = spread();
  EXPECT_GE(s[0], -bound);
  EXPECT_LT(s[1], bound);
  EXPECT_LT(s[0], -0.99 * bound);
  EXPECT_GT(s[1], 0.99 * bound);
  EXPECT_NEAR(s[3], bound / std::sqrt(3.0), 0.02 * bound);
  init::kaiming_normal_(w, 0, init::FanMode::Out, init::Nonlinearity::Relu);
  s = spread();
  EXPECT_NEAR(s[3], std::sqrt(2.0 / 576), 0.02 * std::sqrt(2.0 / 576));
  EXPECT_NEAR(s[2], 0, 0.002);
  init::xavier_uniform_(w);
  EXPECT_NEAR(spread()[3], std::sqrt(2.0 / (288 + 576)), 0.001);
  init::trunc_normal_(w, 1, 2, 0, 3);
  s = spread();
  EXPECT_GE(s[0], 0);
  EXPECT_LE(s[1], 3);
  EXPECT_NEAR(s[2], 1.4133, 0.03);
  init::constant_(w, 4);
  EXPECT_EQ(spread()[0], 4);
  EXPECT_NE(message_of<ValueError>([] { init::xavier_normal_(empty_tensor({3}, DType::Float32)); }), "");
}

}  // namespace
}  // namespace fl::testing
