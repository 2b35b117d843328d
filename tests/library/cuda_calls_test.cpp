// What the libraries of a GPU are asked for, without a GPU.
#include <algorithm>
#include <random>

#include "flambeau/library/cuda/convolution.h"
#include "flambeau/library/cuda/cublaslt.h"
#include "flambeau/library/cuda/cudnn.h"
#include "flambeau/library/cuda/matmul.h"
#include "flambeau/library/cuda/toolkit.h"
#include "tests/library/products.h"

namespace fl::library::cuda {
namespace {

using library::test::Buffer;
using library::test::Product;
using library::test::with_layout;
using Layout = ConvolutionDesc::Layout;

/// What the library does with the call, by loops.
void run(const MatmulCall& call, const Buffer& left, const Buffer& right, const Buffer& bias, Buffer& c) {
  const auto at = [&](const ColumnMajor& m, int64_t outer, int64_t batch, int64_t row, int64_t column) {
    if (m.transposed) std::swap(row, column);
    EXPECT_LT(row, m.rows);
    EXPECT_LT(column, m.columns);
    EXPECT_GE(m.leading, m.rows);
    return outer * m.outer_stride + batch * m.batch_stride + column * m.leading + row;
  };
  const Buffer before = c;
  for (int64_t o = 0; o < call.outer; ++o)
    for (int64_t b = 0; b < call.batch; ++b)
      for (int64_t i = 0; i < call.result.rows; ++i)
        for (int64_t j = 0; j < call.result.columns; ++j) {
          double sum = 0;
          for (int64_t l = 0; l < call.inner; ++l)
            sum += left.get(at(call.left, o, b, i, l)) * right.get(at(call.right, o, b, l, j));
          if (call.bias_vector) sum += bias.get(i);
          const Buffer& added = bias.count() && !call.bias_vector ? bias : before;
          if (call.added) sum += call.beta * added.get(at(*call.added, o, b, i, j));
          c.set(at(call.result, o, b, i, j), sum);
        }
}

bool expect_product(const MatmulDesc& d) {
  const std::optional<MatmulCall> call = matmul_call(d, MatmulEpilogue::None);
  if (!call) return false;
  SCOPED_TRACE(d.text());
  Product p(d);
  Buffer c = p.c;
  run(*call, call->swapped ? p.a : p.b, call->swapped ? p.b : p.a, d.bias ? p.bias : Buffer(d.dtype, 0), c);
  library::test::expect_close(d.dtype, c, p.expected);
  return true;
}

TEST(CudaMatmulCall, EveryLayoutOfSmallSizes) {
  for (const int64_t m : {1, 2, 5})
    for (const int64_t n : {1, 3, 4})
      for (const int64_t k : {1, 6})
        for (int layout = 0; layout < 16; ++layout) {
          MatmulDesc d = with_layout(MatmulDesc::dense(ScalarKind::F32, m, n, k), layout & 1, layout & 2,
                                     layout & 4, layout & 8 ? 3 : 0);
          EXPECT_TRUE(expect_product(d)) << d.text();
          d.beta = -0.5;
          EXPECT_TRUE(expect_product(d)) << d.text();
        }
}

TEST(CudaMatmulCall, RandomLayouts) {
  std::mt19937 random(3);
  const auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % (high - low + 1));
  };
  int taken = 0;
  for (int drawn = 0; drawn < 1000; ++drawn) {
    MatmulDesc d = MatmulDesc::dense(ScalarKind::F32, draw(1, 4), draw(1, 4), draw(1, 5));
    d.batch = {draw(1, 3), draw(1, 3)};
    const auto place = [&](int64_t rows, int64_t columns, bool repeats) {
      MatrixStrides s{{0, 0}, 1, 1};
      int64_t step = 1;
      const bool by_columns = draw(0, 1), batch_first = draw(0, 4) == 0;
      if (batch_first) s.batch[1] = std::exchange(step, step * d.batch[1]);
      (by_columns ? s.row : s.column) = step;
      step *= (by_columns ? rows : columns) + draw(0, 2);
      (by_columns ? s.column : s.row) = step;
      step *= (by_columns ? columns : rows) + draw(0, 1);
      if (!batch_first) s.batch[1] = std::exchange(step, step * d.batch[1]);
      s.batch[0] = step;
      for (int64_t& b : s.batch)
        if (repeats && draw(0, 3) == 0) b = 0;
      return s;
    };
    d.a = place(d.m, d.k, true);
    d.b = place(d.k, d.n, true);
    d.c = place(d.m, d.n, false);
    d.bias = draw(0, 1);
    if (d.bias) d.bias_strides = draw(0, 1) ? place(d.m, d.n, true) : MatrixStrides{{0, 0}, 0, 1};
    d.beta = d.bias ? 0 : static_cast<float>(draw(0, 2)) / 2;
    taken += expect_product(d);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(taken, 500);
}

TEST(CudaMatmulCall, HeadsOfAttentionAreTwoBatches) {
  const int64_t heads = 3, tokens = 6, width = 4;
  MatmulDesc d = MatmulDesc::dense(ScalarKind::F32, tokens, tokens, width);
  d.batch = {2, heads};
  d.a = {{tokens * heads * width, width}, heads * width, 1};
  d.b = {{tokens * heads * width, width}, 1, heads * width};
  d.c = {{heads * tokens * tokens, tokens * tokens}, tokens, 1};
  const std::optional<MatmulCall> call = matmul_call(d, MatmulEpilogue::None);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->outer, 2);
  EXPECT_EQ(call->batch, heads);
  EXPECT_TRUE(expect_product(d));
}

TEST(CudaMatmulCall, OneWeightForABatchIsOneProduct) {
  MatmulDesc d = MatmulDesc::dense(ScalarKind::BF16, 5, 9, 7);
  d.batch = {2, 3};
  d.a.batch = {3 * 35, 35};
  d.c.batch = {3 * 45, 45};
  d.bias = true;
  d.bias_strides = {{0, 0}, 0, 1};
  const std::optional<MatmulCall> call = matmul_call(d, MatmulEpilogue::GeluAndInput);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->batch * call->outer, 1);
  EXPECT_EQ(call->result.columns, 30);
  EXPECT_TRUE(call->bias_vector);
  EXPECT_EQ(call->aux_leading, 16);
  EXPECT_EQ(call->aux_bytes, 16 * 30 * 2);
}

TEST(CudaMatmulCall, RefusesWhatIsNoMatrix) {
  MatmulDesc d = MatmulDesc::dense(ScalarKind::F32, 4, 4, 4);
  d.a = {{0, 0}, 8, 2};
  EXPECT_FALSE(matmul_call(d, MatmulEpilogue::None));
  d = MatmulDesc::dense(ScalarKind::F32, 4, 4, 4);
  d.b = {{0, 0}, 0, 1};
  EXPECT_FALSE(matmul_call(d, MatmulEpilogue::None));
  d = MatmulDesc::dense(ScalarKind::F32, 4, 4, 4);
  d.bias = true;
  d.bias_strides = {{0, 0}, 1, 0};
  EXPECT_FALSE(matmul_call(d, MatmulEpilogue::None));
}

ConvolutionDesc square(int64_t in, int64_t out, int64_t kernel) {
  ConvolutionDesc d;
  d.batch = 2;
  d.in_channels = in;
  d.out_channels = out;
  d.input = {8, 8, 1};
  d.kernel = {kernel, kernel, 1};
  return d;
}

TEST(CudaConvolution, OperandsShareOneLayout) {
  for (const Layout layout : {Layout::Contiguous, Layout::ChannelsLast})
    for (const ScalarKind dtype : {ScalarKind::F32, ScalarKind::BF16}) {
      ConvolutionDesc d = square(4, 6, 3);
      d.dtype = dtype;
      d.set_layout(layout, layout);
      EXPECT_EQ(with_one_layout(d), d);
      d.set_layout(layout, layout == Layout::Contiguous ? Layout::ChannelsLast : Layout::Contiguous);
      EXPECT_FALSE(with_one_layout(d));
    }
  // The weight of a 1 x 1 convolution is both.
  ConvolutionDesc d = square(4, 6, 1);
  d.set_layout(Layout::ChannelsLast, Layout::Contiguous);
  const std::optional<ConvolutionDesc> settled = with_one_layout(d);
  ASSERT_TRUE(settled);
  EXPECT_EQ(settled->weight_strides, (ConvolutionDesc::Strides{4, 1, 4, 4, 0}));
}

TEST(CudaConvolution, LinesAreImagesOfOneRow) {
  ConvolutionDesc d = square(4, 6, 3);
  d.spatial = 1;
  d.stride = {2, 1, 1};
  d.padding_begin = d.padding_end = {1, 0, 0};
  d.set_layout(Layout::Contiguous, Layout::Contiguous);
  const std::optional<ConvolutionDesc> images = with_one_layout(d);
  ASSERT_TRUE(images);
  EXPECT_EQ(images->spatial, 2);
  EXPECT_EQ(images->output(), (std::array<int64_t, 3>{1, d.output()[0], 1}));
  EXPECT_EQ(images->input_strides, (ConvolutionDesc::Strides{32, 8, 8, 1, 0}));
}

TEST(CudaToolkit, ListedFoldersComeFirst) {
  const std::vector<std::string> files = toolkit_candidates("libx.so.1", {"/a", "/b/nvidia"});
  EXPECT_EQ(files.front(), "/a/libx.so.1");
  EXPECT_NE(std::ranges::find(files, "/b/nvidia/cudnn/lib/libx.so.1"), files.end());
  EXPECT_EQ(files[files.size() - 2], "libx.so.1");
}

TEST(CudaToolkit, WithoutALibraryThereAreNoPlans) {
  if (!find_cublaslt()) {
    EXPECT_NE(why_no_cublaslt().find("libcublasLt.so"), std::string::npos) << why_no_cublaslt();
    EXPECT_EQ(cublaslt_version(), "none");
    EXPECT_FALSE(plan_matmul(MatmulDesc::dense(ScalarKind::F32, 2, 2, 2), 0));
  }
  if (!find_cudnn()) {
    EXPECT_NE(why_no_cudnn().find("libcudnn.so"), std::string::npos) << why_no_cudnn();
    EXPECT_EQ(cudnn_version(), "none");
    EXPECT_FALSE(plan_convolution(square(4, 6, 3), 0));
  }
}

}  // namespace
}  // namespace fl::library::cuda
