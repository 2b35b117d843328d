#include "flambeau/library/cuda/matmul.h"

#include <array>
#include <atomic>
#include <bit>
#include <mutex>

#include "flambeau/base/error.h"
#include "flambeau/base/hash.h"
#include "flambeau/library/cuda/cublaslt.h"
#include "flambeau/library/cuda/driver.h"
#include "flambeau/library/plan_cache.h"

namespace fl::library::cuda {
namespace {

cudaDataType_t library_type(ScalarKind kind) {
  switch (kind) {
    case ScalarKind::F32:
      return CUDA_R_32F;
    case ScalarKind::BF16:
      return CUDA_R_16BF;
    case ScalarKind::F16:
      return CUDA_R_16F;
    case ScalarKind::F64:
      return CUDA_R_64F;
  }
  FL_RAISE(InternalError, "unknown scalar kind {}", static_cast<int>(kind));
}

cublasLtEpilogue_t library_epilogue(MatmulEpilogue e, bool bias) {
  switch (e) {
    case MatmulEpilogue::None:
      return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    case MatmulEpilogue::Relu:
      return bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case MatmulEpilogue::ReluAndMask:
      return bias ? CUBLASLT_EPILOGUE_RELU_AUX_BIAS : CUBLASLT_EPILOGUE_RELU_AUX;
    case MatmulEpilogue::ReluGradient:
      return CUBLASLT_EPILOGUE_DRELU;
    case MatmulEpilogue::Gelu:
      return bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    case MatmulEpilogue::GeluAndInput:
      return bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    case MatmulEpilogue::GeluGradient:
      return CUBLASLT_EPILOGUE_DGELU;
  }
  FL_RAISE(InternalError, "unknown epilogue {}", static_cast<int>(e));
}

/// The library's descriptors are plain memory: a call works on its own copy, with its pointers in it.
struct Operation {
  cublasLtMatmulDescOpaque_t memory;

  cublasLtMatmulDesc_t get() { return &memory; }
  template <class T>
  void set(cublasLtMatmulDescAttributes_t name, const T& value) {
    FL_CUBLASLT(cublasLtMatmulDescSetAttribute, &memory, name, &value, sizeof(T));
  }
};

struct Layout {
  cublasLtMatrixLayoutOpaque_t memory;

  Layout(cudaDataType_t type, const ColumnMajor& m, int64_t batch) {
    FL_CUBLASLT(cublasLtMatrixLayoutInit_internal, &memory, sizeof(memory), type, m.rows, m.columns,
                m.leading);
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(batch));
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, m.batch_stride);
  }
  // The library does not write to it.
  cublasLtMatrixLayout_t get() const { return const_cast<cublasLtMatrixLayoutOpaque_t*>(&memory); }
  template <class T>
  void set(cublasLtMatrixLayoutAttribute_t name, const T& value) {
    FL_CUBLASLT(cublasLtMatrixLayoutSetAttribute, &memory, name, &value, sizeof(T));
  }
};

struct Preference {
  cublasLtMatmulPreferenceOpaque_t memory;

  Preference() { FL_CUBLASLT(cublasLtMatmulPreferenceInit_internal, &memory, sizeof(memory)); }
  template <class T>
  void set(cublasLtMatmulPreferenceAttributes_t name, const T& value) {
    FL_CUBLASLT(cublasLtMatmulPreferenceSetAttribute, &memory, name, &value, sizeof(T));
  }
};

const char* advance(const void* data, int64_t elements, int64_t element_bytes) {
  return data ? static_cast<const char*>(data) + elements * element_bytes : nullptr;
}

class LibraryMatmul final : public DeviceMatmul {
 public:
  LibraryMatmul(const MatmulCall& call, int device, const MatmulOptions& options)
      : call_(call),
        handle_(cublaslt_handle(device)),
        left_(library_type(call.dtype), call.left, call.batch),
        right_(library_type(call.dtype), call.right, call.batch),
        result_(library_type(call.dtype), call.result, call.batch),
        added_(library_type(call.dtype), call.added.value_or(call.result), call.batch) {
    const bool wide = call.dtype == ScalarKind::F64;
    const bool fast = options.tf32 && call.dtype == ScalarKind::F32;
    const cublasComputeType_t compute = wide   ? CUBLAS_COMPUTE_64F
                                        : fast ? CUBLAS_COMPUTE_32F_FAST_TF32
                                               : CUBLAS_COMPUTE_32F;
    FL_CUBLASLT(cublasLtMatmulDescInit_internal, operation_.get(), sizeof(operation_.memory), compute,
                wide ? CUDA_R_64F : CUDA_R_32F);
    operation_.set(CUBLASLT_MATMUL_DESC_TRANSA, call.left.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    operation_.set(CUBLASLT_MATMUL_DESC_TRANSB, call.right.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    operation_.set(CUBLASLT_MATMUL_DESC_EPILOGUE, library_epilogue(options.epilogue, call.bias_vector));
    if (call.bias_vector) operation_.set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, library_type(call.dtype));
    if (call.aux_bytes) {
      operation_.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, call.aux_leading);
      operation_.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, call.aux_batch_stride);
    }
  }

  /// False where the library has no algorithm even for pointers aligned to 256 bytes.
  bool works() const { return choice(256).found; }
  int64_t aux_bytes() const override { return call_.aux_bytes; }

  std::string implementation() const override {
    const Choice& c = choice(256);
    int32_t id = 0, split = 0;
    uint32_t tile = 0;
    size_t written = 0;
    const CublasLt& lt = *find_cublaslt();
    lt.cublasLtMatmulAlgoConfigGetAttribute(&c.algorithm, CUBLASLT_ALGO_CONFIG_ID, &id, sizeof(id), &written);
    lt.cublasLtMatmulAlgoConfigGetAttribute(&c.algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID, &tile, sizeof(tile),
                                            &written);
    lt.cublasLtMatmulAlgoConfigGetAttribute(&c.algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &split,
                                            sizeof(split), &written);
    return fmt::format("cuBLASLt algorithm {} tile {} split {} workspace {}", id, tile, split,
                       c.workspace_bytes);
  }

  void run(const void* a, const void* b, const void* bias, void* c, CUstream stream,
           DeviceWorkspace& workspace, void* aux) const override {
    const void *left = b, *right = a, *added = call_.added && !call_.bias_vector && bias ? bias : c;
    if (call_.swapped) std::swap(left, right);
    const int64_t bytes = scalar_bytes(call_.dtype);
    // All offsets count: of several calls of the library, each has to find its operands aligned.
    uint64_t bits = 256;
    for (const void* p :
         {left, right, added, static_cast<const void*>(c), bias, static_cast<const void*>(aux)})
      bits |= reinterpret_cast<uintptr_t>(p);
    if (call_.outer != 1)
      for (const ColumnMajor* m : {&call_.left, &call_.right, &call_.result}) bits |= m->outer_stride * bytes;
    const Choice& choice = this->choice(int64_t{1} << std::countr_zero(bits));
    FL_CHECK(choice.found, RuntimeError, "cuBLASLt has no algorithm for operands aligned to {} bytes",
             int64_t{1} << std::countr_zero(bits));
    Operation operation = operation_;
    if (call_.bias_vector) operation.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    if (call_.aux_bytes) operation.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux);
    void* const scratch = choice.workspace_bytes ? workspace.bytes(choice.workspace_bytes) : nullptr;
    const ColumnMajor& added_matrix = call_.added ? *call_.added : call_.result;
    for (int64_t i = 0; i < call_.outer; ++i) {
      const auto at = [&](const void* p, const ColumnMajor& m) {
        return advance(p, i * m.outer_stride, bytes);
      };
      multiply(operation, at(left, call_.left), at(right, call_.right), at(added, added_matrix),
               const_cast<char*>(at(c, call_.result)), choice, scratch, stream);
    }
  }

 private:
  struct Choice {
    bool found = false;
    cublasLtMatmulAlgo_t algorithm{};
    size_t workspace_bytes = 0;
  };

  void multiply(Operation& operation, const void* left, const void* right, const void* added, void* result,
                const Choice& choice, void* scratch, CUstream stream) const {
    const float one = 1, beta = call_.beta;
    const double wide_one = 1, wide_beta = call_.beta;
    const bool wide = call_.dtype == ScalarKind::F64;
    FL_CUBLASLT(cublasLtMatmul, handle_, operation.get(), wide ? static_cast<const void*>(&wide_one) : &one,
                left, left_.get(), right, right_.get(), wide ? static_cast<const void*>(&wide_beta) : &beta,
                added, added_.get(), result, result_.get(), &choice.algorithm, scratch,
                choice.workspace_bytes, stream);
  }

  /// The algorithm for pointers of an alignment, asked for once.
  const Choice& choice(int64_t alignment) const {
    const size_t slot = alignment >= 256  ? 0
                        : alignment >= 16 ? 1
                        : alignment >= 8  ? 2
                        : alignment >= 4  ? 3
                                          : 4;
    constexpr uint32_t kAlignments[] = {256, 16, 8, 4, 2};
    std::call_once(asked_[slot], [&] { choices_[slot] = ask(kAlignments[slot]); });
    return choices_[slot];
  }

  Choice ask(uint32_t alignment) const {
    Preference preference;
    preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(kWorkspaceBytes));
    // Parts of a sum meet in the type of the sum, not in the result's 16 bits.
    const bool half = scalar_bytes(call_.dtype) == 2;
    preference.set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                   static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE |
                                         (half ? 0 : CUBLASLT_REDUCTION_SCHEME_INPLACE)));
    for (const auto name :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      preference.set(name, alignment);
    Operation operation = operation_;
    // It also looks at these pointers' alignment.
    const void* const aligned = reinterpret_cast<const void*>(uintptr_t{alignment});
    if (call_.bias_vector) operation.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, aligned);
    if (call_.aux_bytes) operation.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aligned);
    cublasLtMatmulHeuristicResult_t result{};
    int count = 0;
    const cublasStatus_t status = find_cublaslt()->cublasLtMatmulAlgoGetHeuristic(
        handle_, operation.get(), left_.get(), right_.get(), added_.get(), result_.get(), &preference.memory,
        1, &result, &count);
    if (status != CUBLAS_STATUS_SUCCESS || count == 0 || result.state != CUBLAS_STATUS_SUCCESS) return {};
    return {true, result.algo, result.workspaceSize};
  }

  MatmulCall call_;
  cublasLtHandle_t handle_;
  Operation operation_;
  Layout left_, right_, result_, added_;
  mutable std::array<std::once_flag, 5> asked_;
  mutable std::array<Choice, 5> choices_;
};

/// No products at all: c = beta * c, for a beta of 0 or 1.
class EmptyMatmul final : public DeviceMatmul {
 public:
  explicit EmptyMatmul(const MatmulDesc& desc) : desc_(desc) {}
  int64_t aux_bytes() const override { return 0; }
  std::string implementation() const override { return "empty"; }
  void run(const void*, const void*, const void*, void* c, CUstream stream, DeviceWorkspace&,
           void*) const override {
    if (desc_.m == 0 || desc_.n == 0 || desc_.beta == 1) return;
    const bool by_rows = desc_.c.column == 1;
    const int64_t width = by_rows ? desc_.n : desc_.m, height = by_rows ? desc_.m : desc_.n;
    const int64_t step = by_rows ? desc_.c.row : desc_.c.column, bytes = scalar_bytes(desc_.dtype);
    const int64_t lines = step == width ? 1 : height;
    for (int64_t i = 0; i < desc_.batch[0]; ++i)
      for (int64_t j = 0; j < desc_.batch[1]; ++j)
        for (int64_t line = 0; line < lines; ++line) {
          const int64_t at = i * desc_.c.batch[0] + j * desc_.c.batch[1] + line * step;
          FL_CUDA(cuMemsetD8Async, reinterpret_cast<CUdeviceptr>(advance(c, at, bytes)), 0,
                  width * (height / lines) * bytes, stream);
        }
  }

 private:
  MatmulDesc desc_;
};

std::shared_ptr<const DeviceMatmul> make_plan(const MatmulDesc& desc, int device,
                                              const MatmulOptions& options) {
  // The library's relu makes 0 of nan, the description's does not.
  if (!find_cublaslt() || desc.relu) return nullptr;
  if (desc.m == 0 || desc.n == 0 || desc.k == 0 || desc.batch[0] == 0 || desc.batch[1] == 0) {
    const bool zeros =
        !desc.bias && (desc.beta == 0 || desc.beta == 1) && !keeps_or_reads_aux(options.epilogue);
    const bool plain = desc.c.column == 1 || desc.c.row == 1;
    return zeros && plain ? std::make_shared<EmptyMatmul>(desc) : nullptr;
  }
  const std::optional<MatmulCall> call = matmul_call(desc, options.epilogue);
  if (!call) return nullptr;
  auto plan = std::make_shared<LibraryMatmul>(*call, device, options);
  return plan->works() ? plan : nullptr;
}

struct PlanKey {
  MatmulDesc desc;
  int device;
  MatmulOptions options;
  bool operator==(const PlanKey&) const = default;
  uint64_t hash() const {
    return hash_combine(desc.hash(), static_cast<uint64_t>(device) << 8 |
                                         static_cast<uint64_t>(options.epilogue) << 1 | options.tf32);
  }
};

}  // namespace

std::shared_ptr<const DeviceMatmul> plan_matmul(const MatmulDesc& desc, int device,
                                                const MatmulOptions& options) {
  static auto* const cache = new PlanCache<PlanKey, DeviceMatmul>;
  return cache->find_or_make({desc, device, options}, [&] { return make_plan(desc, device, options); });
}

}  // namespace fl::library::cuda
