// Writes a graph of cuDNN's operations, one after the other.
#pragma once
#include "flambeau/library/cuda/cudnn_graph.h"

namespace fl::library::cuda {

/// Results are virtual and in float32 unless the caller says where they lie.
class CudnnBuilder {
 public:
  /// `first_virtual`: the numbers of virtual tensors start here.
  explicit CudnnBuilder(int64_t first_virtual) : next_(first_virtual) {}

  CudnnTensor virtual_tensor(std::vector<int64_t> sizes, cudnnDataType_t type = CUDNN_DATA_FLOAT);
  /// A number that the host gives with the call, of rank 4.
  static CudnnTensor number(int64_t id);

  void pointwise(cudnnPointwiseMode_t mode, const CudnnTensor& x, const CudnnTensor* y,
                 const CudnnTensor& result, cudnnDataType_t compute = CUDNN_DATA_FLOAT);
  CudnnTensor pointwise(cudnnPointwiseMode_t mode, const CudnnTensor& x);
  CudnnTensor pointwise(cudnnPointwiseMode_t mode, const CudnnTensor& x, const CudnnTensor& y);
  /// The index along `axis` of each element of x.
  CudnnTensor index(const CudnnTensor& x, int64_t axis);
  /// where(mask, x, otherwise)
  CudnnTensor select(const CudnnTensor& mask, const CudnnTensor& x, const CudnnTensor& otherwise);
  void matmul(const CudnnTensor& a, const CudnnTensor& b, const CudnnTensor& result);
  CudnnTensor matmul(const CudnnTensor& a, const CudnnTensor& b);
  void reduce(cudnnReduceTensorOp_t operation, const CudnnTensor& x, const CudnnTensor& result);
  /// 1 with a probability, else 0: as the library draws them from two int64 numbers of the device.
  CudnnTensor bernoulli(std::vector<int64_t> sizes, double probability, const CudnnTensor& seed,
                        const CudnnTensor& offset);
  /// x with its last two dimensions exchanged, in another dtype.
  CudnnTensor transposed(const CudnnTensor& x, cudnnDataType_t type);

  std::span<const CudnnDescriptor> operations() const { return operations_; }

 private:
  CudnnDescriptor point_operation(cudnnPointwiseMode_t mode, cudnnDataType_t compute, const CudnnTensor& x,
                                  const CudnnTensor& result, int64_t axis = -1);
  void add(CudnnDescriptor operation);

  int64_t next_;
  std::vector<CudnnDescriptor> operations_;
};

}  // namespace fl::library::cuda
