#include "flambeau/library/onednn.h"

#if FLAMBEAU_ONEDNN
#include <oneapi/dnnl/dnnl.hpp>

#include "flambeau/library/onednn_types.h"
#endif

namespace fl::library {

#if FLAMBEAU_ONEDNN
namespace {

/// Dimensions {batch 0, batch 1, rows, columns} without the leading ones of size 1 that all operands have.
dnnl::memory::desc matrix_desc(const MatmulDesc& d, const MatrixStrides& s, int64_t rows, int64_t columns) {
  const int leading = d.batch[0] != 1 ? 2 : d.batch[1] != 1 ? 1 : 0;
  const int64_t plain = std::max(s.row * rows, s.column * columns);
  dnnl::memory::dims sizes, strides;
  for (int i = 2 - leading; i < 2; ++i) {
    sizes.push_back(s.batch[i] == 0 ? 1 : d.batch[i]);
    strides.push_back(s.batch[i] == 0 ? plain : s.batch[i]);
  }
  sizes.insert(sizes.end(), {rows, columns});
  strides.insert(strides.end(), {s.row, s.column});
  return {sizes, library_type(d.dtype), strides};
}

/// The library prefers its blocked kernels; for thin products its gemm is up to twelve times as fast
/// (measured with benchmarks/library): it has kernels for vectors, and does not copy a large b for a few
/// rows.
bool prefers_gemm(const MatmulDesc& d) {
  const bool a_rows = d.a.column == 1, b_rows = d.b.column == 1;
  constexpr int64_t kTiny = 48 * 48, kSmall = 128 * 128, kLarge = 512 * 512;
  if (d.n == 1) return true;
  if (d.m == 1) return !b_rows || d.n * d.k > kSmall;
  if (d.dtype != ScalarKind::F32 || !a_rows) return false;
  if (!b_rows) return d.m <= 8 && d.n * d.k > kTiny;
  const bool one = d.batch[0] * d.batch[1] == 1;
  return one && ((d.m <= 64 && d.n * d.k >= kLarge) || (d.n <= 32 && d.m * d.k >= kLarge));
}

/// Moves on to the library's gemm where it can do the product.
void choose_gemm(dnnl::matmul::primitive_desc& kernel) {
  dnnl::matmul::primitive_desc gemm(kernel);
  const auto is_gemm = [&] { return std::strncmp(gemm.impl_info_str(), "gemm:jit", 8) == 0; };
  while (!is_gemm())
    if (!gemm.next_impl()) return;
  kernel = gemm;
}

std::unique_ptr<Recipe> assemble(const MatmulDesc& d, int threads) {
  using dnnl::memory;
  ThreadScope scope(threads);
  const memory::desc a = matrix_desc(d, d.a, d.m, d.k), b = matrix_desc(d, d.b, d.k, d.n);
  const memory::desc c = matrix_desc(d, d.c, d.m, d.n);
  const bool vector_bias = d.bias && d.bias_strides.row == 0;
  const bool matrix_bias = d.bias && !vector_bias;
  dnnl::post_ops after;
  if (matrix_bias) after.append_binary(dnnl::algorithm::binary_add, c);
  if (d.beta != 0) after.append_sum(d.beta);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_post_ops(after);

  dnnl::matmul::primitive_desc kernel;
  if (vector_bias) {
    memory::dims sizes(c.get_ndims(), 1), strides(c.get_ndims(), d.n);
    sizes.back() = d.n;
    strides.back() = 1;
    kernel = {library_engine(), a,   b, memory::desc(sizes, library_type(d.dtype), strides), c,
              attributes,       true};
  } else {
    kernel = {library_engine(), a, b, c, attributes, true};
  }
  if (!kernel) return nullptr;
  if (prefers_gemm(d)) choose_gemm(kernel);
  if (is_reference(kernel)) return nullptr;

  auto recipe = std::make_unique<Recipe>(4, threads);
  enum { kA, kB, kBias, kC };
  if (vector_bias) {
    recipe->add_step(
        kernel.get(),
        {{DNNL_ARG_SRC, kA}, {DNNL_ARG_WEIGHTS, kB}, {DNNL_ARG_BIAS, kBias}, {DNNL_ARG_DST, kC}});
  } else if (matrix_bias) {
    const int residual = DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1;
    recipe->add_step(kernel.get(),
                     {{DNNL_ARG_SRC, kA}, {DNNL_ARG_WEIGHTS, kB}, {residual, kBias}, {DNNL_ARG_DST, kC}});
  } else {
    recipe->add_step(kernel.get(), {{DNNL_ARG_SRC, kA}, {DNNL_ARG_WEIGHTS, kB}, {DNNL_ARG_DST, kC}});
  }
  return recipe;
}

}  // namespace

std::unique_ptr<Recipe> build_matmul(const MatmulDesc& d, int threads) {
  return unless_refused([&] { return assemble(d, threads); });
}

#else

std::unique_ptr<Recipe> build_matmul(const MatmulDesc&, int) { return nullptr; }

#endif

}  // namespace fl::library
