// Matrix products on a device, through cuBLASLt.
#pragma once
#include <cuda.h>

#include <memory>
#include <string>

#include "flambeau/library/cuda/device_workspace.h"
#include "flambeau/library/cuda/matmul_call.h"

namespace fl::library::cuda {

struct MatmulOptions {
  bool tf32 = false;  ///< Float32 is multiplied with 10 bits of mantissa.
  /// Relu makes 0 of nan. (MatmulDesc::relu keeps it: the library has none such.)
  MatmulEpilogue epilogue = MatmulEpilogue::None;
  bool operator==(const MatmulOptions&) const = default;
};

/// A resolved call: of one description on one device. Reentrant; equal inputs give equal bits.
class DeviceMatmul {
 public:
  /// The most scratch that a call asks for.
  static constexpr int64_t kWorkspaceBytes = 32 << 20;

  virtual ~DeviceMatmul() = default;
  /// Puts the product on the stream. Addresses on the device, whose context is the current one; c overlaps no
  /// input. aux: aux_bytes() bytes aligned to 16, which an epilogue keeps for the gradient, or reads.
  virtual void run(const void* a, const void* b, const void* bias, void* c, CUstream stream,
                   DeviceWorkspace& workspace, void* aux = nullptr) const = 0;
  virtual int64_t aux_bytes() const = 0;
  /// The library's kernel, for logs and benchmarks.
  virtual std::string implementation() const = 0;
};

/// The plan of a description, cached; null where the library is not there or does not take the layout.
/// float32 and 16-bit floats are summed in float32, float64 in float64; with an addend of c's shape the
/// library rounds a 16-bit product before it adds. Gelu's derivative has an error of 1e-5. The device's
/// context is current.
std::shared_ptr<const DeviceMatmul> plan_matmul(const MatmulDesc& desc, int device,
                                                const MatmulOptions& options = {});

}  // namespace fl::library::cuda
