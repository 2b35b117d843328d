#include "flambeau/op/autocast.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "flambeau/op/op.h"

namespace fl {
namespace {

enum class Policy : uint8_t {
  None,
  Lower,          ///< computes in autocast's dtype
  Float32,        ///< computes in float32
  Float32Result,  ///< gives float32, unless the call names a dtype
  Promote,        ///< all arguments get the widest of their dtypes
  Banned,         ///< is an error
};

// PyTorch's lists, as far as there are the operators; by names, without overloads.
struct List {
  Policy policy;
  std::string_view names;
};

constexpr List kCpu[] = {
    {Policy::Lower,
     " conv1d conv2d conv3d convolution conv_transpose1d conv_transpose2d conv_transpose3d bmm mm mv "
     "linalg_vecdot baddbmm addmm addbmm addmv linear matmul scaled_dot_product_attention "},
    {Policy::Float32,
     " avg_pool3d binary_cross_entropy grid_sampler polar prod quantile nanquantile stft cdist trace "
     "view_as_complex cholesky cholesky_inverse cholesky_solve inverse lu_solve orgqr ormqr pinverse "
     "max_pool3d max_unpool2d max_unpool3d adaptive_avg_pool3d mse_loss cosine_embedding_loss nll_loss "
     "nll_loss_nd hinge_embedding_loss poisson_nll_loss smooth_l1_loss cross_entropy_loss l1_loss huber_loss "
     "margin_ranking_loss soft_margin_loss triplet_margin_loss multi_margin_loss ctc_loss kl_div "
     "multilabel_margin_loss binary_cross_entropy_with_logits fft_fft fft_ifft fft_fft2 fft_ifft2 fft_fftn "
     "fft_ifftn fft_rfft fft_irfft fft_rfft2 fft_irfft2 fft_rfftn fft_irfftn fft_hfft fft_ihfft linalg_cond "
     "linalg_matrix_rank linalg_solve linalg_cholesky linalg_svdvals linalg_eigvals linalg_eigvalsh "
     "linalg_inv linalg_householder_product linalg_tensorinv linalg_tensorsolve geqrf qr svd "
     "triangular_solve fractional_max_pool2d fractional_max_pool3d adaptive_max_pool3d linalg_qr "
     "linalg_cholesky_ex linalg_svd linalg_eig linalg_eigh linalg_lstsq linalg_inv_ex "},
    {Policy::Promote, " stack cat index_copy "},
};

// What PyTorch has as a composition of listed operators stands here with what comes of it:
// cross_entropy_loss, square, nll_loss_nd, the recurrent ones (of which cuDNN's are listed there).
constexpr List kCuda[] = {
    {Policy::Lower,
     " conv1d conv2d conv3d convolution conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d prelu "
     "addmm addmv addr addbmm baddbmm bmm mm mv matmul linear einsum chain_matmul linalg_multi_dot "
     "linalg_vecdot lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell lstm gru rnn_tanh rnn_relu "
     "scaled_dot_product_attention "},
    {Policy::Float32,
     " acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow square softplus "
     "layer_norm native_layer_norm group_norm rms_norm frobenius_norm nuclear_norm norm cosine_similarity "
     "poisson_nll_loss cosine_embedding_loss nll_loss nll_loss_nd nll_loss2d cross_entropy_loss "
     "hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss mse_loss margin_ranking_loss "
     "multilabel_margin_loss soft_margin_loss triplet_margin_loss multi_margin_loss "
     "binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp upsample_nearest1d "
     "upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d "
     "_upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d _upsample_bilinear2d_aa "
     "upsample_trilinear3d upsample_bicubic2d _upsample_bicubic2d_aa "},
    {Policy::Float32Result,
     " prod softmax log_softmax cumprod cumsum linalg_vector_norm linalg_matrix_norm sum "},
    {Policy::Promote,
     " addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add "},
    {Policy::Banned, " binary_cross_entropy "},
};

// Compositions in PyTorch, too, that have listed operators inside.
constexpr std::string_view kTransparent =
    " einsum chain_matmul linalg_multi_dot tensordot inner linalg_matmul matrix_power linalg_matrix_power "
    "corrcoef cov lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell linalg_norm "
    "pairwise_distance frobenius_norm nuclear_norm conv_tbc bilinear ";

struct Policies {
  Policy cpu = Policy::None, cuda = Policy::None;
  bool transparent = false;
};

bool contains(std::string_view names, std::string_view name) {
  return names.find(fmt::format(" {} ", name)) != std::string_view::npos;
}

template <size_t N>
Policy policy_in(const List (&lists)[N], std::string_view name) {
  for (const List& list : lists)
    if (contains(list.names, name)) return list.policy;
  return Policy::None;
}

const Policies& policies_of(const OpInfo& op) {
  thread_local std::unordered_map<const OpInfo*, Policies> known;
  const auto [at, is_new] = known.try_emplace(&op);
  if (is_new && !op.functional) {  // in-place and out= forms keep the dtypes that they are given
    const std::string_view name = op.schema.name;
    at->second = {policy_in(kCpu, name), policy_in(kCuda, name), contains(kTransparent, name)};
  }
  return at->second;
}

bool is_castable(const Tensor& t, DeviceType kind) {
  return t.defined() && is_floating(t.dtype()) && t.dtype() != DType::Float64 && size_of(t.dtype()) >= 2 &&
         t.device().type == kind;
}

struct CachedCast {
  Tensor original, cast;
};
std::unordered_map<const TensorImpl*, CachedCast>& cache() {
  thread_local std::unordered_map<const TensorImpl*, CachedCast> casts;
  return casts;
}

Tensor cast(const Tensor& t, DType dtype, DeviceType kind) {
  if (!is_castable(t, kind) || t.dtype() == dtype) return t;
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

template <class F>
bool any_tensor(const OpInfo& op, const Value* args, F&& f) {
  bool found = false;
  for (int i = 0; i < op.arg_count() && !found; ++i)
    each_tensor(args[i], [&](const Tensor& t) {
      found = found || (t.defined() && f(t));
      return t;
    });
  return found;
}

/// Arguments on a GPU decide, where autocast is on for them.
DeviceType kind_of(const OpInfo& op, const Value* args) {
  const auto is_on_gpu = [](const Tensor& t) { return t.device().type == DeviceType::CUDA; };
  return autocast_state().cuda.enabled && any_tensor(op, args, is_on_gpu) ? DeviceType::CUDA
                                                                          : DeviceType::CPU;
}

/// What all castable arguments get: float32 if one has it, else autocast's dtype.
DType widest(const OpInfo& op, const Value* args, DeviceType kind, DType lower) {
  return any_tensor(op, args,
                    [&](const Tensor& t) { return is_castable(t, kind) && t.dtype() == DType::Float32; })
             ? DType::Float32
             : lower;
}

/// The call with dtype=float32, where its tensor is of lower precision and it names no dtype.
void give_dtype(const OpInfo& op, std::vector<Value>& args, DeviceType kind) {
  if (!args[0].is_tensor() || !is_castable(args[0].tensor(), kind)) return;
  for (size_t i = 0; i < args.size(); ++i)
    if (op.schema.args[i].name == "dtype" && args[i].is_none()) args[i] = Value(DType::Float32);
}

}  // namespace

AutocastState& autocast_state() {
  thread_local AutocastState state;
  return state;
}

void clear_autocast_cache() { cache().clear(); }

void dispatch_autocast(const OpInfo& op, Value* args, Value* outs) {
  const AutocastState& state = autocast_state();
  const Policies& policies = policies_of(op);
  const DeviceType kind = kind_of(op, args);
  const bool on_gpu = kind == DeviceType::CUDA;
  const DeviceAutocast now = on_gpu ? state.cuda : state.cpu;
  const Policy policy = !now.enabled ? Policy::None : on_gpu ? policies.cuda : policies.cpu;
  if (policy == Policy::None && policies.transparent) return dispatch_as_given(op, args, outs);
  const NoAutocast off;
  if (policy == Policy::None) return dispatch_as_given(op, args, outs);
  FL_CHECK(
      policy != Policy::Banned, RuntimeError,
      "{}() is unsafe to autocast: its gradients overflow in float16. Give scores before the sigmoid to "
      "binary_cross_entropy_with_logits (BCEWithLogitsLoss), which is safe, or compute it where autocast "
      "is off",
      op.schema.name);
  std::vector<Value> given(args, args + op.arg_count());
  if (policy == Policy::Float32Result) {
    give_dtype(op, given, kind);
  } else {
    const DType dtype = policy == Policy::Lower     ? now.dtype
                        : policy == Policy::Float32 ? DType::Float32
                                                    : widest(op, args, kind, now.dtype);
    for (Value& v : given) v = each_tensor(v, [&](const Tensor& t) { return cast(t, dtype, kind); });
  }
  dispatch_as_given(op, given.data(), outs);
}

}  // namespace fl
