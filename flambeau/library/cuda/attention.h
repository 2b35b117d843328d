// Scaled dot-product attention and its gradient on a device, through cuDNN: the scores never lie in memory.
#pragma once
#include <cuda.h>

#include <array>
#include <memory>
#include <string>

#include "flambeau/library/cuda/device_workspace.h"
#include "flambeau/library/library.h"

namespace fl::library::cuda {

enum class AttentionPass : uint8_t {
  Forward,           ///< output
  ForwardWithStats,  ///< output, and what Backward wants
  Backward,          ///< the gradients by query, key and value, from output, stats and output's gradient
};

struct AttentionDesc {
  /// {batch, head, token, element}, in elements; the last is 1.
  using Strides = std::array<int64_t, 4>;

  AttentionPass pass = AttentionPass::Forward;
  ScalarKind dtype = ScalarKind::BF16;
  int64_t batch = 0, heads = 0, key_heads = 0;  // key_heads divides heads: each serves a run of them
  int64_t queries = 0, keys = 0;                // tokens
  int64_t width = 0, value_width = 0;           // of a head: query and key, value and output
  bool causal = false;                          // a query sees the keys up to its own number
  float scale = 1;
  /// The share of weights that become 0; the others are divided by what is left. Forward and Backward
  /// drop the same ones for one seed. Which, the library says: no other kernel draws its numbers.
  double dropout = 0;
  /// Added to the scaled scores, for each query and key; 0: nothing. 1 or batch, 1 or heads.
  int64_t bias_batch = 0, bias_heads = 0;
  Strides query_strides{}, key_strides{}, value_strides{}, bias_strides{}, output_strides{};
  Strides query_gradient_strides{}, key_gradient_strides{}, value_gradient_strides{},
      output_gradient_strides{};

  bool operator==(const AttentionDesc&) const = default;
  uint64_t hash() const;
  std::string text() const;
  /// Sets all strides: {batch, head, token, element} in this order, or with tokens before heads, as
  /// projections of all heads have it.
  void set_layout(bool tokens_first);
};

/// What is read and what is written follows from the pass.
struct AttentionData {
  void *query = nullptr, *key = nullptr, *value = nullptr, *bias = nullptr;
  /// For dropout: an int64 number on the device.
  void* seed = nullptr;
  /// stats: float32 [batch, heads, queries], the logarithm of each row's sum of exponentials.
  void *output = nullptr, *stats = nullptr;
  void* output_gradient = nullptr;
  void *query_gradient = nullptr, *key_gradient = nullptr, *value_gradient = nullptr;
};

/// A resolved call: of one description on one device. Equal inputs give equal bits.
class DeviceAttention {
 public:
  virtual ~DeviceAttention() = default;
  /// Puts the call on the stream. Addresses on the device, aligned to 16 bytes; its context is the current
  /// one.
  virtual void run(const AttentionData& data, CUstream stream, DeviceWorkspace& workspace) const = 0;
  virtual std::string implementation() const = 0;
};

/// Whether the library is there and knows attention of such heads: then most sizes have plans.
bool may_have_attention(ScalarKind dtype, int64_t width, int64_t value_width);

/// The plan of a description, cached; null where the library is not there or has no engine: for float32, say,
/// or widths that are no multiple of 8. Sums are in float32; the weights are rounded to dtype.
std::shared_ptr<const DeviceAttention> plan_attention(const AttentionDesc& desc, int device);

}  // namespace fl::library::cuda
