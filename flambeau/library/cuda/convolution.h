// Convolutions and their gradients on a device, through cuDNN.
#pragma once
#include <cuda.h>

#include <memory>
#include <optional>
#include <string>

#include "flambeau/library/convolution.h"
#include "flambeau/library/cuda/device_workspace.h"

namespace fl::library::cuda {

struct ConvolutionOptions {
  bool tf32 = true;  ///< Float32 is multiplied with 10 bits of mantissa.
  bool operator==(const ConvolutionOptions&) const = default;
};

/// A resolved call: of one description on one device. Equal inputs give equal bits.
class DeviceConvolution {
 public:
  virtual ~DeviceConvolution() = default;
  /// Puts the call on the stream; what it reads and writes is as in ConvolutionPlan. Addresses on the device,
  /// whose context is the current one.
  virtual void run(const ConvolutionData& data, CUstream stream, DeviceWorkspace& workspace) const = 0;
  /// The library's engine, for logs and benchmarks.
  virtual std::string implementation() const = 0;
};

/// The plan of a description, cached; null where the library is not there or has no engine: operands of
/// different layouts, negative padding, a relu, a bias other than Forward's. 16-bit floats are summed in
/// float32, and rounded before beta times what is there is added. The device's context is current.
std::shared_ptr<const DeviceConvolution> plan_convolution(const ConvolutionDesc& desc, int device,
                                                          const ConvolutionOptions& options = {});

/// The description as the library takes it: of 2 or 3 spatial dimensions, with all operands in one layout.
/// None where they have none in common.
std::optional<ConvolutionDesc> with_one_layout(const ConvolutionDesc& desc);

}  // namespace fl::library::cuda
