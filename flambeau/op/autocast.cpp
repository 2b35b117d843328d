#include "flambeau/op/autocast.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "flambeau/op/op.h"

namespace fl {
namespace {

enum class Policy : uint8_t {
  None,
  Lower,    ///< computes in autocast's dtype
  Float32,  ///< computes in float32
  Promote,  ///< all arguments get the widest of their dtypes
};

// PyTorch's lists for the CPU, as far as there are the operators.
constexpr std::string_view kLower[] = {"conv1d",
                                       "conv2d",
                                       "conv3d",
                                       "convolution",
                                       "conv_transpose1d",
                                       "conv_transpose2d",
                                       "conv_transpose3d",
                                       "bmm",
                                       "mm",
                                       "mv",
                                       "linalg_vecdot",
                                       "baddbmm",
                                       "addmm",
                                       "addbmm",
                                       "addmv",
                                       "linear",
                                       "matmul",
                                       "scaled_dot_product_attention"};
constexpr std::string_view kFloat32[] = {"avg_pool3d",
                                         "binary_cross_entropy",
                                         "grid_sampler",
                                         "polar",
                                         "prod",
                                         "quantile",
                                         "nanquantile",
                                         "stft",
                                         "cdist",
                                         "trace",
                                         "view_as_complex",
                                         "cholesky",
                                         "cholesky_inverse",
                                         "cholesky_solve",
                                         "inverse",
                                         "lu_solve",
                                         "orgqr",
                                         "ormqr",
                                         "pinverse",
                                         "max_pool3d",
                                         "max_unpool2d",
                                         "max_unpool3d",
                                         "adaptive_avg_pool3d",
                                         "mse_loss",
                                         "cosine_embedding_loss",
                                         "nll_loss",
                                         "nll_loss_nd",
                                         "hinge_embedding_loss",
                                         "poisson_nll_loss",
                                         "smooth_l1_loss",
                                         "cross_entropy_loss",
                                         "l1_loss",
                                         "huber_loss",
                                         "margin_ranking_loss",
                                         "soft_margin_loss",
                                         "triplet_margin_loss",
                                         "multi_margin_loss",
                                         "ctc_loss",
                                         "kl_div",
                                         "multilabel_margin_loss",
                                         "binary_cross_entropy_with_logits",
                                         "fft_fft",
                                         "fft_ifft",
                                         "fft_fft2",
                                         "fft_ifft2",
                                         "fft_fftn",
                                         "fft_ifftn",
                                         "fft_rfft",
                                         "fft_irfft",
                                         "fft_rfft2",
                                         "fft_irfft2",
                                         "fft_rfftn",
                                         "fft_irfftn",
                                         "fft_hfft",
                                         "fft_ihfft",
                                         "linalg_cond",
                                         "linalg_matrix_rank",
                                         "linalg_solve",
                                         "linalg_cholesky",
                                         "linalg_svdvals",
                                         "linalg_eigvals",
                                         "linalg_eigvalsh",
                                         "linalg_inv",
                                         "linalg_householder_product",
                                         "linalg_tensorinv",
                                         "linalg_tensorsolve",
                                         "geqrf",
                                         "qr",
                                         "svd",
                                         "triangular_solve",
                                         "fractional_max_pool2d",
                                         "fractional_max_pool3d",
                                         "adaptive_max_pool3d",
                                         "linalg_qr",
                                         "linalg_cholesky_ex",
                                         "linalg_svd",
                                         "linalg_eig",
                                         "linalg_eigh",
                                         "linalg_lstsq",
                                         "linalg_inv_ex"};
constexpr std::string_view kPromote[] = {"stack", "cat", "index_copy"};

template <size_t N>
bool contains(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

Policy policy_of(const OpInfo& op) {
  thread_local std::unordered_map<const OpInfo*, Policy> known;
  const auto [at, is_new] = known.try_emplace(&op, Policy::None);
  if (is_new && !op.functional) {  // in-place and out= forms keep the dtypes that they are given
    const std::string_view name = op.schema.name;
    if (contains(kLower, name)) at->second = Policy::Lower;
    if (contains(kFloat32, name)) at->second = Policy::Float32;
    if (contains(kPromote, name)) at->second = Policy::Promote;
  }
  return at->second;
}

bool is_castable(const Tensor& t) {
  return t.defined() && is_floating(t.dtype()) && t.dtype() != DType::Float64 && size_of(t.dtype()) >= 2 &&
         t.device().type == DeviceType::CPU;
}

struct CachedCast {
  Tensor original, cast;
};
std::unordered_map<const TensorImpl*, CachedCast>& cache() {
  thread_local std::unordered_map<const TensorImpl*, CachedCast> casts;
  return casts;
}

Tensor cast(const Tensor& t, DType dtype) {
  if (!is_castable(t) || t.dtype() == dtype) return t;
  const bool keeps = autocast_state().caches && autocast_state().depth > 0 && !dispatch_state().tracer &&
                     t.dtype() == DType::Float32 && t.requires_grad() && t.is_leaf() &&
                     dispatch_state().grad_enabled;
  if (keeps) {
    const auto found = cache().find(t.impl());
    if (found != cache().end() && found->second.cast.dtype() == dtype) return found->second.cast;
  }
  static const OpInfo& to_copy = find_op("_to_copy");
  const Tensor made = call(to_copy, {Value(t), Value(dtype)})[0].tensor();
  if (keeps) cache()[t.impl()] = {t, made};
  return made;
}

template <class F>
Value each_tensor(const Value& v, F&& f) {
  if (v.is_tensor()) return Value(f(v.tensor()));
  if (v.tag() != Value::Tag::TensorList) return v;
  std::vector<Tensor> list;
  for (const Tensor& t : v.tensors()) list.push_back(f(t));
  return Value(std::move(list));
}

/// Float32 if any tensor has it, else autocast's dtype.
DType widest(const OpInfo& op, const Value* args) {
  DType found = autocast_state().dtype;
  for (int i = 0; i < op.arg_count(); ++i)
    each_tensor(args[i], [&](const Tensor& t) {
      if (is_castable(t) && t.dtype() == DType::Float32) found = DType::Float32;
      return t;
    });
  return found;
}

}  // namespace

AutocastState& autocast_state() {
  thread_local AutocastState state;
  return state;
}

void clear_autocast_cache() { cache().clear(); }

bool is_autocast_operator(const OpInfo& op) { return policy_of(op) != Policy::None; }

void dispatch_autocast(const OpInfo& op, Value* args, Value* outs) {
  AutocastState& state = autocast_state();
  const Policy policy = policy_of(op);
  struct Restore {
    AutocastState& state;
    ~Restore() { state.enabled = true; }
  } restore{state};
  state.enabled = false;
  const DType dtype = policy == Policy::Lower     ? state.dtype
                      : policy == Policy::Float32 ? DType::Float32
                                                  : widest(op, args);
  std::vector<Value> given;
  for (int i = 0; i < op.arg_count(); ++i)
    given.push_back(each_tensor(args[i], [&](const Tensor& t) { return cast(t, dtype); }));
  dispatch(op, given.data(), outs);
}

}  // namespace fl
