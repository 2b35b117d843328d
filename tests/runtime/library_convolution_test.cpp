#include "tests/runtime/call_operands.h"

namespace fl::runtime {
namespace {

using test::channels_last;
using test::contiguous;
using test::Operand;
using Sizes = std::vector<int64_t>;

/// One convolution in PyTorch's terms.
struct Case {
  Sizes input, weight, stride, padding, dilation;
  int64_t groups = 1;
  bool transposed = false;
  Sizes output_padding = Sizes(input.size() - 2, 0);

  int spatial() const { return static_cast<int>(input.size()) - 2; }
  int64_t out_channels() const { return transposed ? weight[1] * groups : weight[0]; }
  Sizes output() const {
    Sizes sizes = {input[0], out_channels()};
    for (int i = 0; i < spatial(); ++i) {
      const int64_t reach = dilation[i] * (weight[2 + i] - 1) + 1, n = input[2 + i];
      sizes.push_back(transposed ? (n - 1) * stride[i] - 2 * padding[i] + reach + output_padding[i]
                                 : (n + 2 * padding[i] - reach) / stride[i] + 1);
    }
    return sizes;
  }
  /// Calls f(input index, weight index, output index) for every product.
  template <class F>
  void for_each_product(const F& f) const {
    const Sizes large = transposed ? output() : input, small = transposed ? input : output();
    const int64_t large_group = large[1] / groups, small_group = small[1] / groups;
    test::for_each_index(small, [&](const Sizes& s) {
      test::for_each_index(Sizes(weight.begin() + 1, weight.end()), [&](const Sizes& tap) {
        Sizes l = {s[0], s[1] / small_group * large_group + tap[0]}, w = {s[1], tap[0]};
        for (int i = 0; i < spatial(); ++i) {
          l.push_back(s[2 + i] * stride[i] + tap[1 + i] * dilation[i] - padding[i]);
          w.push_back(tap[1 + i]);
          if (l.back() < 0 || l.back() >= large[2 + i]) return;
        }
        transposed ? f(s, w, l) : f(l, w, s);
      });
    });
  }
};

constexpr std::string_view kGeometry =
    "SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt "
    "groups) -> Tensor";

IntList as_list(const Sizes& s, std::vector<SymInt>& keep) {
  keep.assign(s.begin(), s.end());
  return keep;
}
void add_geometry(const Case& c, std::vector<Value>& args) {
  std::vector<SymInt> keep;
  for (const Sizes* list : {&c.stride, &c.padding, &c.dilation}) args.emplace_back(as_list(*list, keep));
  args.emplace_back(c.transposed);
  args.emplace_back(as_list(c.output_padding, keep));
  args.emplace_back(c.groups);
}

enum class Layout { Contiguous, ChannelsLast, Spread };
Sizes strides_of(Layout layout, const Sizes& sizes) {
  return layout == Layout::ChannelsLast ? channels_last(sizes)
                                        : contiguous(sizes, layout == Layout::Spread ? 2 : 1);
}

void expect_equal(const Operand& actual, const Operand& expected) {
  int wrong = 0;
  test::for_each_index(actual.sizes(), [&](const Sizes& i) {
    if (test::close(actual.layout().dtype, actual.get(i), expected.get(i)) || ++wrong > 3) return;
    ADD_FAILURE() << fmt::format("[{}]: {} for {}", fmt::join(i, ", "), actual.get(i), expected.get(i));
  });
}

/// Sums in double before the one rounding to the dtype.
Operand sum_products(const Case& c, LibraryCall call, const Operand& x, const Operand& w, const Operand& g,
                     const Operand& like) {
  Operand sums(DType::Float64, like.sizes());
  test::for_each_index(sums.sizes(), [&](const Sizes& i) { sums.set(i, 0); });
  c.for_each_product([&](const Sizes& in, const Sizes& tap, const Sizes& out) {
    if (call == LibraryCall::Convolution) sums.set(out, sums.get(out) + x.get(in) * w.get(tap));
    if (call == LibraryCall::ConvolutionInput) sums.set(in, sums.get(in) + g.get(out) * w.get(tap));
    if (call == LibraryCall::ConvolutionWeight) sums.set(tap, sums.get(tap) + g.get(out) * x.get(in));
  });
  return sums;
}

void expect_convolution(const Case& c, DType dtype, Layout images, Layout weights, bool with_bias) {
  SCOPED_TRACE(fmt::format("{} [{}] * [{}] -> [{}], groups {}, transposed {}, layouts {} {}, bias {}",
                           name(dtype), fmt::join(c.input, ","), fmt::join(c.weight, ","),
                           fmt::join(c.output(), ","), c.groups, c.transposed, static_cast<int>(images),
                           static_cast<int>(weights), with_bias));
  const auto image = [&](const Sizes& s) { return Operand(dtype, s, strides_of(images, s)); };
  Operand x = image(c.input).fill(1), out = image(c.output()), g = image(c.output()).fill(2);
  Operand w = Operand(dtype, c.weight, strides_of(weights, c.weight)).fill(3);
  Operand bias = Operand(dtype, {c.out_channels()}, {with_bias ? int64_t{2} : int64_t{1}}).fill(4);
  const Value a = GraphRef{0, 0}, b = GraphRef{1, 0};

  std::vector<Value> args = {a, b, with_bias ? Value(GraphRef{2, 0}) : Value()};
  add_geometry(c, args);
  const OpInfo forward =
      test::operator_of(fmt::format("convolution(Tensor input, Tensor weight, Tensor? bias, {}", kGeometry),
                        LibraryCall::Convolution);
  test::run(forward, args, {&x, &w, &bias}, {&out});
  Operand sums = sum_products(c, LibraryCall::Convolution, x, w, g, out);
  if (with_bias)
    test::for_each_index(out.sizes(), [&](const Sizes& i) { sums.set(i, sums.get(i) + bias.get({i[1]})); });
  expect_equal(out, sums);
  if (with_bias) return;

  args = {a, b};
  add_geometry(c, args);
  Operand dx = image(c.input), dw(dtype, c.weight, strides_of(weights, c.weight));
  const OpInfo by_input =
      test::operator_of(fmt::format("convolution_input(Tensor grad_output, Tensor weight, {}", kGeometry),
                        LibraryCall::ConvolutionInput);
  test::run(by_input, args, {&g, &w}, {&dx});
  expect_equal(dx, sum_products(c, LibraryCall::ConvolutionInput, x, w, g, dx));
  const OpInfo by_weight =
      test::operator_of(fmt::format("convolution_weight(Tensor grad_output, Tensor input, {}", kGeometry),
                        LibraryCall::ConvolutionWeight);
  test::run(by_weight, args, {&g, &x}, {&dw});
  expect_equal(dw, sum_products(c, LibraryCall::ConvolutionWeight, x, w, g, dw));
}

void expect_all(const Case& c, std::initializer_list<DType> types) {
  for (const DType dtype : types)
    for (const Layout images : {Layout::Contiguous, Layout::ChannelsLast, Layout::Spread})
      for (const Layout weights : {Layout::Contiguous, Layout::ChannelsLast})
        for (const bool bias : {false, true}) expect_convolution(c, dtype, images, weights, bias);
}

constexpr auto kFloats = {DType::Float32, DType::BFloat16, DType::Float16};

TEST(RuntimeConvolution, OneToThreeDimensions) {
  expect_all({{2, 3, 11}, {4, 3, 3}, {2}, {1}, {1}}, kFloats);
  expect_all({{2, 3, 7, 8}, {4, 3, 3, 2}, {1, 2}, {1, 0}, {1, 1}}, kFloats);
  expect_all({{1, 2, 4, 5, 6}, {3, 2, 2, 3, 1}, {1, 1, 2}, {1, 1, 0}, {2, 1, 1}}, kFloats);
}

TEST(RuntimeConvolution, GroupsAndDilation) {
  expect_all({{2, 4, 9, 9}, {6, 2, 3, 3}, {1, 1}, {2, 1}, {2, 2}, 2}, {DType::Float32, DType::BFloat16});
  expect_all({{2, 5, 6, 6}, {5, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 5}, {DType::Float32});
}

TEST(RuntimeConvolution, Transposed) {
  expect_all({{2, 3, 5}, {3, 4, 3}, {2}, {1}, {1}, 1, true, {1}}, kFloats);
  expect_all({{2, 4, 4, 3}, {4, 3, 3, 2}, {2, 3}, {1, 0}, {1, 2}, 2, true, {1, 2}}, {DType::Float32});
}

TEST(RuntimeConvolution, OutputPaddingMayExceedTheStride) {
  expect_all({{1, 2, 4, 4}, {2, 3, 2, 2}, {1, 1}, {0, 1}, {3, 2}, 1, true, {2, 1}}, {DType::Float32});
}

TEST(RuntimeConvolution, OtherDtypesByDefinition) {
  for (const DType dtype : {DType::Float64, DType::Int32, DType::Int64}) {
    expect_all({{2, 4, 5, 6}, {6, 2, 3, 2}, {1, 2}, {1, 0}, {1, 1}, 2}, {dtype});
    expect_all({{2, 4, 4}, {4, 3, 3}, {2}, {1}, {2}, 2, true, {1}}, {dtype});
    expect_all({{1, 2, 3, 4, 2}, {2, 2, 2, 2, 2}, {1, 1, 1}, {0, 1, 1}, {1, 2, 1}}, {dtype});
  }
}

TEST(RuntimeConvolution, ComplexNumbers) {
  using Complex = std::complex<float>;
  const Complex x[] = {{1, 2}, {0, 1}, {2, 0}}, w[] = {{3, -1}, {0, 1}};
  Complex out[2];
  const std::vector<OperandLayout> in = {{DType::Complex64, {1, 1, 3}, {3, 3, 1}},
                                         {DType::Complex64, {1, 1, 2}, {2, 2, 1}}};
  std::vector<Value> args = {GraphRef{0, 0}, GraphRef{1, 0}, Value()};
  add_geometry({{1, 1, 3}, {1, 1, 2}, {1}, {0}, {1}}, args);
  const OpInfo op =
      test::operator_of(fmt::format("convolution(Tensor input, Tensor weight, Tensor? bias, {}", kGeometry),
                        LibraryCall::Convolution);
  void* const operands[] = {const_cast<Complex*>(x), const_cast<Complex*>(w)};
  void* const results[] = {out};
  prepare_library_call({op, args, in, {{DType::Complex64, {1, 1, 2}, {2, 2, 1}}}})(operands, results);
  EXPECT_EQ(out[0], Complex(5, 5) + Complex(-1, 0));
  EXPECT_EQ(out[1], Complex(1, 3) + Complex(0, 2));
}

TEST(RuntimeConvolution, SizesZero) {
  expect_all({{0, 3, 5, 5}, {4, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}}, {DType::Float32, DType::Float64});
  expect_all({{2, 0, 5, 5}, {4, 0, 3, 3}, {1, 1}, {1, 1}, {1, 1}}, {DType::Float32, DType::Float64});
  expect_all({{0, 3, 5}, {3, 2, 3}, {2}, {1}, {1}, 1, true, {1}}, {DType::Float32, DType::BFloat16});
}

TEST(RuntimeConvolution, WrongSizesAreNamed) {
  const Case c{{1, 3, 5}, {4, 2, 3}, {1}, {0}, {1}};
  Operand x(DType::Float32, c.input), w(DType::Float32, c.weight), out(DType::Float32, {1, 4, 3});
  std::vector<Value> args = {GraphRef{0, 0}, GraphRef{1, 0}, Value()};
  add_geometry(c, args);
  const OpInfo op =
      test::operator_of(fmt::format("convolution(Tensor input, Tensor weight, Tensor? bias, {}", kGeometry),
                        LibraryCall::Convolution);
  try {
    test::run(op, args, {&x, &w}, {&out});
    FAIL() << "expected an error";
  } catch (const RuntimeError& error) {
    EXPECT_NE(error.message().find("weight [4, 2, 3]"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace fl::runtime
