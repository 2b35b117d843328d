#include "flambeau/library/cuda/cudnn_builder.h"

namespace fl::library::cuda {
namespace {

std::vector<int64_t> row_major(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0; step *= sizes[i]) strides[i] = step;
  return strides;
}

}  // namespace

CudnnTensor CudnnBuilder::virtual_tensor(std::vector<int64_t> sizes, cudnnDataType_t type) {
  CudnnTensor t;
  t.id = next_++;
  t.type = type;
  t.strides = row_major(sizes);
  t.sizes = std::move(sizes);
  t.is_virtual = true;
  return t;
}

CudnnTensor CudnnBuilder::number(int64_t id) {
  CudnnTensor t;
  t.id = id;
  t.sizes = t.strides = {1, 1, 1, 1};
  t.is_by_value = true;
  return t;
}

void CudnnBuilder::add(CudnnDescriptor operation) {
  operation.finalize();
  operations_.push_back(std::move(operation));
}

CudnnDescriptor CudnnBuilder::point_operation(cudnnPointwiseMode_t mode, cudnnDataType_t compute,
                                              const CudnnTensor& x, const CudnnTensor& result, int64_t axis) {
  CudnnDescriptor point(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  point.set(CUDNN_ATTR_POINTWISE_MODE, mode);
  point.set(CUDNN_ATTR_POINTWISE_MATH_PREC, compute);
  if (axis >= 0) point.set(CUDNN_ATTR_POINTWISE_AXIS, axis);
  point.finalize();
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, point);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x.descriptor());
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, result.descriptor());
  return operation;
}

void CudnnBuilder::pointwise(cudnnPointwiseMode_t mode, const CudnnTensor& x, const CudnnTensor* y,
                             const CudnnTensor& result, cudnnDataType_t compute) {
  CudnnDescriptor operation = point_operation(mode, compute, x, result);
  if (y) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, y->descriptor());
  add(std::move(operation));
}

CudnnTensor CudnnBuilder::pointwise(cudnnPointwiseMode_t mode, const CudnnTensor& x) {
  const CudnnTensor result = virtual_tensor(x.sizes);
  pointwise(mode, x, nullptr, result);
  return result;
}

CudnnTensor CudnnBuilder::pointwise(cudnnPointwiseMode_t mode, const CudnnTensor& x, const CudnnTensor& y) {
  const CudnnTensor result = virtual_tensor(x.sizes);
  pointwise(mode, x, &y, result);
  return result;
}

CudnnTensor CudnnBuilder::index(const CudnnTensor& x, int64_t axis) {
  const CudnnTensor result = virtual_tensor(x.sizes, CUDNN_DATA_INT32);
  add(point_operation(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, x, result, axis));
  return result;
}

CudnnTensor CudnnBuilder::select(const CudnnTensor& mask, const CudnnTensor& x,
                                 const CudnnTensor& otherwise) {
  const CudnnTensor result = virtual_tensor(x.sizes);
  CudnnDescriptor operation = point_operation(CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, x, result);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, otherwise.descriptor());
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, mask.descriptor());
  add(std::move(operation));
  return result;
}

void CudnnBuilder::matmul(const CudnnTensor& a, const CudnnTensor& b, const CudnnTensor& result) {
  CudnnDescriptor product(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  product.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  product.finalize();
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, product);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a.descriptor());
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b.descriptor());
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, result.descriptor());
  add(std::move(operation));
}

CudnnTensor CudnnBuilder::matmul(const CudnnTensor& a, const CudnnTensor& b) {
  const CudnnTensor result = virtual_tensor({a.sizes[0], a.sizes[1], a.sizes[2], b.sizes[3]});
  matmul(a, b, result);
  return result;
}

void CudnnBuilder::reduce(cudnnReduceTensorOp_t operation, const CudnnTensor& x, const CudnnTensor& result) {
  CudnnDescriptor reduction(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  reduction.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  reduction.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &operation);
  reduction.finalize();
  CudnnDescriptor step(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  step.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, reduction);
  step.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x.descriptor());
  step.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, result.descriptor());
  add(std::move(step));
}

CudnnTensor CudnnBuilder::bernoulli(std::vector<int64_t> sizes, double probability, const CudnnTensor& seed,
                                    const CudnnTensor& offset) {
  const CudnnTensor result = virtual_tensor(std::move(sizes));
  const cudnnRngDistribution_t distribution = CUDNN_RNG_DISTRIBUTION_BERNOULLI;
  CudnnDescriptor rule(CUDNN_BACKEND_RNG_DESCRIPTOR);
  rule.set(CUDNN_ATTR_RNG_DISTRIBUTION, CUDNN_TYPE_RNG_DISTRIBUTION, 1, &distribution);
  rule.set(CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY, probability);
  rule.finalize();
  CudnnDescriptor draw(CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR);
  draw.set(CUDNN_ATTR_OPERATION_RNG_YDESC, result.descriptor());
  draw.set(CUDNN_ATTR_OPERATION_RNG_DESC, rule);
  draw.set(CUDNN_ATTR_OPERATION_RNG_SEED, seed.descriptor());
  draw.set(CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC, offset.descriptor());
  add(std::move(draw));
  return result;
}

CudnnTensor CudnnBuilder::transposed(const CudnnTensor& x, cudnnDataType_t type) {
  CudnnTensor result = virtual_tensor(x.sizes, type);
  result.strides = x.strides;
  const size_t last = x.sizes.size() - 1;
  std::swap(result.sizes[last - 1], result.sizes[last]);
  std::swap(result.strides[last - 1], result.strides[last]);
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x.descriptor());
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, result.descriptor());
  add(std::move(operation));
  return result;
}

}  // namespace fl::library::cuda
