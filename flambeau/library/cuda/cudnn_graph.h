// Graphs of cuDNN's operations and the plans that run them.
#pragma once
#include <cuda.h>
#include <cudnn_graph.h>

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "flambeau/library/library.h"

namespace fl::library::cuda {

/// One of the library's descriptors: filled with attributes, then finalized.
class CudnnDescriptor {
 public:
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type);
  ~CudnnDescriptor();
  CudnnDescriptor(CudnnDescriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  CudnnDescriptor& operator=(CudnnDescriptor&&) = delete;

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
           const void* values);
  void set(cudnnBackendAttributeName_t name, std::span<const int64_t> values);
  void set(cudnnBackendAttributeName_t name, int64_t value);
  void set(cudnnBackendAttributeName_t name, bool value);
  void set(cudnnBackendAttributeName_t name, float value);
  void set(cudnnBackendAttributeName_t name, double value);
  void set(cudnnBackendAttributeName_t name, cudnnDataType_t value);
  void set(cudnnBackendAttributeName_t name, cudnnPointwiseMode_t value);
  void set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value);
  void finalize();
  /// The status in place of an error.
  cudnnStatus_t try_finalize();
  /// How many values were read into `values`, which has room for `room`.
  int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t room,
              void* values) const;

  cudnnBackendDescriptor_t get() const { return descriptor_; }

 private:
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

cudnnDataType_t cudnn_type(ScalarKind kind);

/// A tensor of a graph; its number is how a call names its memory.
struct CudnnTensor {
  int64_t id = 0;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::vector<int64_t> sizes, strides;
  bool is_virtual = false;   ///< between two operations, without memory
  bool is_by_value = false;  ///< a number that the host gives with the call
  int64_t alignment = 16;    ///< of its memory, in bytes

  CudnnDescriptor descriptor() const;
};

/// Which of the library's engines may be taken.
struct EngineRules {
  bool tensor_cores = true;     ///< float32 then in TF32
  bool narrower_inputs = true;  ///< inputs may be rounded to fewer bits
  int64_t workspace_bytes = int64_t{1} << 30;
};

/// An engine for a graph, ready to run: on the device that it was made for. Deterministic.
class CudnnPlan {
 public:
  /// Null where no engine takes the graph under the rules.
  static std::unique_ptr<const CudnnPlan> make(cudnnHandle_t handle,
                                               std::span<const CudnnDescriptor> operations,
                                               const EngineRules& rules);
  int64_t workspace_bytes() const { return workspace_bytes_; }
  struct Argument {
    int64_t id;
    const void* data;  // of the device; of the host for a number given by value
  };
  void run(cudnnHandle_t handle, std::span<const Argument> arguments, void* workspace, CUstream stream) const;
  const std::string& name() const { return name_; }

 private:
  CudnnPlan(CudnnDescriptor plan) : plan_(std::move(plan)) {}
  static std::unique_ptr<const CudnnPlan> from_engine(cudnnHandle_t handle, const CudnnDescriptor& config,
                                                      const EngineRules& rules);
  CudnnDescriptor plan_;
  int64_t workspace_bytes_ = 0;
  std::string name_;
};

}  // namespace fl::library::cuda
