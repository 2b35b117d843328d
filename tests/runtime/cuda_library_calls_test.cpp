// Library calls on a GPU against the same calls on the CPU: with a GPU's libraries where they are, else by
// way of the host.
#include "flambeau/runtime/cuda/library_calls.h"

#include "flambeau/library/cuda/cublaslt.h"
#include "flambeau/library/cuda/cudnn.h"
#include "flambeau/runtime/cuda/allocator.h"
#include "flambeau/runtime/cuda/copy.h"
#include "flambeau/runtime/cuda/library_routines.h"
#include "flambeau/runtime/cuda/runtime.h"
#include "flambeau/runtime/staging.h"
#include "tests/runtime/call_operands.h"

namespace fl::runtime::cuda {
namespace {

using test::channels_last;
using test::contiguous;
using test::Operand;
using test::strides_in_order;
using Sizes = std::vector<int64_t>;

/// An operand's bytes on the device.
class OnDevice {
 public:
  explicit OnDevice(Operand& o) : operand_(o), bytes_(o.bytes().size()) {
    data_ = device_allocator(0).allocate(bytes_ + 1);
    if (bytes_) copy_and_wait(0, data_, o.data(), bytes_);
  }
  ~OnDevice() { device_allocator(0).release(data_, bytes_ + 1); }
  OnDevice(const OnDevice&) = delete;
  void* data() const { return data_; }
  void fetch() {
    if (bytes_) copy_and_wait(0, operand_.data(), data_, bytes_);
  }

 private:
  Operand& operand_;
  size_t bytes_;
  void* data_;
};

struct Call {
  OpInfo op;
  std::vector<Value> args;
  std::vector<Operand> operands;
  Operand result;
  double scale = 1;  // how many roundings are allowed

  std::vector<OperandLayout> layouts() const {
    std::vector<OperandLayout> list;
    for (const Operand& o : operands) list.push_back(o.layout());
    return list;
  }

  void expect_as_on_cpu(bool library) {
    const std::vector<OperandLayout> in = layouts(), out{result.layout()};
    const CallArguments call{op, args, in, out};
    std::string text = fmt::format("{} {}:", op.name(), name(out[0].dtype));
    for (const OperandLayout& l : in)
      text += fmt::format(" [{}]({})", fmt::join(l.sizes, ","), fmt::join(l.strides, ","));
    SCOPED_TRACE(text +
                 fmt::format(" -> [{}]({})", fmt::join(out[0].sizes, ","), fmt::join(out[0].strides, ",")));
    for (size_t k = 0; k < operands.size(); ++k) operands[k].fill(static_cast<uint32_t>(k + 1));
    Operand expected = result, actual = result;
    std::vector<void*> host, device;
    std::vector<std::unique_ptr<OnDevice>> copies;
    for (Operand& o : operands) {
      host.push_back(o.data());
      copies.push_back(std::make_unique<OnDevice>(o));
      device.push_back(copies.back()->data());
    }
    void* host_result = expected.data();
    prepare_library_call(call)(host.data(), &host_result);
    PreparedCall routine;
    if (op.library == LibraryCall::Matmul) routine = prepare_cuda_matmul(call, 0);
    if (is_convolution(op.library)) routine = prepare_cuda_convolution(call, 0);
    if (op.library == LibraryCall::Join) routine = prepare_cuda_join(call, 0);
    EXPECT_EQ(static_cast<bool>(routine), library);
    OnDevice on_device(actual);
    void* device_result = on_device.data();
    prepare_call(call, 0)(device.data(), &device_result);
    on_device.fetch();
    test::for_each_index(out[0].sizes, [&](const Sizes& i) {
      ASSERT_LE(std::abs(actual.get(i) - expected.get(i)), scale * tolerance(expected.get(i)))
          << fmt::format("{}", fmt::join(i, ","));
      actual.set(i, expected.get(i));
    });
    EXPECT_EQ(actual.bytes(), expected.bytes()) << "what lies between the elements has changed";
  }

  double tolerance(double x) const {
    const DType dtype = result.layout().dtype;
    const double unit = dtype == DType::BFloat16 ? 1.0 / 128 : dtype == DType::Float16 ? 1.0 / 1024 : 1e-6;
    return unit * (std::abs(x) + 1);
  }
};

class GpuLibraryCalls : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!library::cuda::find_driver()) GTEST_SKIP() << "no GPU: " << library::cuda::why_no_driver();
    static const bool installed = (install(), true);
    EXPECT_TRUE(installed);
    activate(0);
  }
};

Call product(DType dtype, const Sizes& a, const Sizes& a_strides, const Sizes& b, const Sizes& b_strides,
             const Sizes& c_strides) {
  Sizes c = a;
  c.back() = b.back();
  const auto op = test::operator_of(
      a.size() == 2 ? "mm(Tensor self, Tensor mat2) -> Tensor" : "bmm(Tensor self, Tensor mat2) -> Tensor",
      LibraryCall::Matmul);
  return {op,
          {GraphRef{0, 0}, GraphRef{1, 0}},
          {Operand(dtype, a, a_strides), Operand(dtype, b, b_strides)},
          Operand(dtype, c, c_strides)};
}

bool takes(DType dtype) { return is_floating(dtype); }

TEST_F(GpuLibraryCalls, ProductsOfEveryLayout) {
  const Sizes m = {7, 5}, n = {5, 9}, r = {7, 9};
  const bool library = library::cuda::find_cublaslt();
  for (const DType dtype :
       {DType::Float32, DType::BFloat16, DType::Float16, DType::Float64, DType::Int64, DType::UInt8})
    for (const Sizes& a : {contiguous(m), Sizes{1, 7}, Sizes{10, 2}, Sizes{0, 1}})
      for (const Sizes& b : {contiguous(n), Sizes{1, 5}, Sizes{27, 3}, Sizes{1, 0}})
        for (const Sizes& c : {contiguous(r), Sizes{1, 7}, Sizes{20, 2}, Sizes{12, 1}})
          product(dtype, m, a, n, b, c).expect_as_on_cpu(library && takes(dtype));
}

TEST_F(GpuLibraryCalls, BatchesOfProducts) {
  const Sizes m = {3, 4, 6}, n = {3, 6, 5}, r = {3, 4, 5};
  const bool library = library::cuda::find_cublaslt();
  for (const DType dtype : {DType::Float32, DType::BFloat16, DType::Float64})
    for (const Sizes& a :
         {contiguous(m), strides_in_order(m, {1, 0, 2}), strides_in_order(m, {2, 1, 0}), Sizes{0, 6, 1}})
      for (const Sizes& b : {contiguous(n), strides_in_order(n, {1, 2, 0}), Sizes{0, 5, 1}, Sizes{0, 1, 6}})
        for (const Sizes& c : {contiguous(r), strides_in_order(r, {1, 0, 2}), strides_in_order(r, {1, 2, 0})})
          product(dtype, m, a, n, b, c).expect_as_on_cpu(library);
}

TEST_F(GpuLibraryCalls, LargeProductsOfUnevenRows) {
  const bool library = library::cuda::find_cublaslt();
  const auto check = [&](Call call) {
    call.scale = 16;  // over a hundred products are summed
    call.expect_as_on_cpu(library);
  };
  for (const DType dtype : {DType::BFloat16, DType::Float32}) {
    check(product(dtype, {130, 131}, {131, 1}, {131, 133}, {133, 1}, {133, 1}));
    check(product(dtype, {130, 131}, {1, 130}, {131, 133}, {1, 131}, {133, 1}));
    check(product(dtype, {2, 129, 136}, {129 * 136, 136, 1}, {2, 136, 131}, {136 * 131, 131, 1},
                  {129 * 131, 1, 129}));
    // Even sizes, but matrices of the batch that start anywhere.
    check(product(dtype, {2, 128, 136}, {128 * 136 + 3, 136, 1}, {2, 136, 128}, {136 * 128, 1, 136},
                  {128 * 128, 128, 1}));
  }
}

TEST_F(GpuLibraryCalls, ProductsOfSizesZeroAndOne) {
  const bool library = library::cuda::find_cublaslt();
  for (const int64_t m : {0, 1, 3})
    for (const int64_t k : {0, 1, 4})
      for (const int64_t n : {0, 1, 2}) {
        const Sizes a = {m, k}, b = {k, n}, c = {m, n};
        product(DType::Float32, a, contiguous(a), b, contiguous(b), contiguous(c)).expect_as_on_cpu(library);
        const Sizes x = {2, m, k}, y = {2, k, n}, z = {2, m, n};
        product(DType::BFloat16, x, contiguous(x), y, contiguous(y), contiguous(z)).expect_as_on_cpu(library);
      }
}

struct Geometry {
  Sizes input, weight, stride, padding, dilation;
  int64_t groups = 1;
  bool transposed = false;
  Sizes output_padding = Sizes(input.size() - 2, 0);

  Sizes output() const {
    Sizes sizes = {input[0], transposed ? weight[1] * groups : weight[0]};
    for (size_t i = 0; i + 2 < input.size(); ++i) {
      const int64_t reach = dilation[i] * (weight[2 + i] - 1) + 1, n = input[2 + i];
      sizes.push_back(transposed ? (n - 1) * stride[i] - 2 * padding[i] + reach + output_padding[i]
                                 : (n + 2 * padding[i] - reach) / stride[i] + 1);
    }
    return sizes;
  }
  void add_to(std::vector<Value>& args) const {
    for (const Sizes* list : {&stride, &padding, &dilation}) {
      const std::vector<SymInt> values(list->begin(), list->end());
      args.emplace_back(IntList(values));
    }
    args.emplace_back(transposed);
    const std::vector<SymInt> values(output_padding.begin(), output_padding.end());
    args.emplace_back(IntList(values));
    args.emplace_back(groups);
  }
};

constexpr std::string_view kGeometry =
    "SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt "
    "groups) -> Tensor";

using Layout = Sizes (*)(const Sizes&);
Sizes rows(const Sizes& sizes) { return contiguous(sizes); }
Sizes odd(const Sizes& sizes) { return contiguous(sizes, 2); }

/// Forward with and without bias, and both gradients.
void expect_convolutions(const Geometry& g, DType dtype, Layout image, Layout weights, Layout result,
                         bool library) {
  const auto lay = [&](const Sizes& sizes, Layout layout) { return Operand(dtype, sizes, layout(sizes)); };
  const Operand input = lay(g.input, image), weight = lay(g.weight, weights),
                output = lay(g.output(), result);
  const Value x = GraphRef{0, 0}, y = GraphRef{1, 0};
  for (const bool bias : {false, true}) {
    Call forward{
        test::operator_of(fmt::format("convolution(Tensor input, Tensor weight, Tensor? bias, {}", kGeometry),
                          LibraryCall::Convolution),
        {x, y},
        {input, weight},
        output,
        bias ? 3.0 : 1.0};
    forward.args.push_back(bias ? Value(GraphRef{2, 0}) : Value());
    if (bias) forward.operands.push_back(Operand(dtype, {g.output()[1]}));
    g.add_to(forward.args);
    forward.expect_as_on_cpu(library);
  }
  Call by_input{
      test::operator_of(fmt::format("convolution_input(Tensor grad_output, Tensor weight, {}", kGeometry),
                        LibraryCall::ConvolutionInput),
      {x, y},
      {output, weight},
      input};
  g.add_to(by_input.args);
  by_input.expect_as_on_cpu(library);
  Call by_weight{
      test::operator_of(fmt::format("convolution_weight(Tensor grad_output, Tensor input, {}", kGeometry),
                        LibraryCall::ConvolutionWeight),
      {x, y},
      {output, input},
      weight};
  g.add_to(by_weight.args);
  by_weight.expect_as_on_cpu(library);
}

std::vector<Geometry> geometries() {
  return {{{2, 8, 9, 7}, {16, 8, 3, 3}, {1, 1}, {1, 1}, {1, 1}},
          {{2, 8, 9, 7}, {12, 4, 3, 2}, {2, 1}, {1, 0}, {1, 2}, 2},
          {{2, 6, 5, 5}, {6, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 6},
          {{1, 8, 4, 5}, {8, 4, 3, 3}, {2, 2}, {1, 1}, {1, 1}, 1, true, {1, 0}},
          {{2, 8, 4, 4}, {8, 3, 2, 2}, {2, 2}, {0, 0}, {1, 1}, 2, true},
          {{2, 4, 10}, {6, 4, 3}, {2}, {1}, {1}},
          {{1, 4, 5, 4, 6}, {4, 4, 3, 3, 3}, {1, 2, 1}, {1, 1, 1}, {1, 1, 1}},
          {{2, 8, 6, 6}, {4, 8, 1, 1}, {1, 1}, {0, 0}, {1, 1}}};
}

TEST_F(GpuLibraryCalls, Convolutions) {
  const bool library = library::cuda::find_cudnn();
  for (const Geometry& g : geometries())
    for (const DType dtype : {DType::Float32, DType::BFloat16, DType::Float16})
      for (const Layout layout : {&rows, static_cast<Layout>(&channels_last)})
        expect_convolutions(g, dtype, layout, layout, layout, library);
}

TEST_F(GpuLibraryCalls, ConvolutionsOfMixedAndOddLayouts) {
  const bool library = library::cuda::find_cudnn();
  const Geometry g = geometries().front(), back = geometries()[3];
  const Layout last = &channels_last;
  for (const DType dtype : {DType::Float32, DType::BFloat16})
    for (const auto& [image, weight, result] : {std::array<Layout, 3>{last, &rows, last},
                                                {&rows, last, &rows},
                                                {&odd, &rows, &odd},
                                                {last, &odd, &rows}}) {
      expect_convolutions(g, dtype, image, weight, result, library);
      expect_convolutions(back, dtype, image, weight, result, library);
    }
  expect_convolutions(g, DType::Float64, &rows, &rows, &rows, library);
  expect_convolutions(g, DType::Int64, &rows, &rows, &rows, false);
}

TEST_F(GpuLibraryCalls, ConvolutionsOfNothing) {
  const bool library = library::cuda::find_cudnn();
  expect_convolutions({{0, 4, 5, 5}, {6, 4, 3, 3}, {1, 1}, {1, 1}, {1, 1}}, DType::Float32, &rows, &rows,
                      &rows, library);
}

TEST_F(GpuLibraryCalls, Joins) {
  const OpInfo op = test::operator_of("cat(Tensor[] tensors, int dim=0) -> Tensor", LibraryCall::Join);
  const std::vector<GraphRef> refs = {{0, 0}, {1, 0}, {2, 0}};
  for (const DType dtype : {DType::Float32, DType::UInt8, DType::Float64, DType::BFloat16})
    for (const int64_t dim : {0, 1, -1}) {
      const size_t d = dim < 0 ? 2 : static_cast<size_t>(dim);
      Sizes a = {2, 3, 4}, b = a, c = a, all = a;
      b[d] = 5;
      c[d] = 0;
      all[d] = a[d] + 5;
      for (const Sizes& result : {contiguous(all), strides_in_order(all, {2, 0, 1})})
        Call{op,
             {Value(refs), Value(dim)},
             {Operand(dtype, a), Operand(dtype, b, strides_in_order(b, {1, 2, 0})), Operand(dtype, c)},
             Operand(dtype, all, result)}
            .expect_as_on_cpu(true);
    }
}

}  // namespace
}  // namespace fl::runtime::cuda
