#include "flambeau/library/cuda/cudnn_graph.h"

#include <algorithm>

#include "flambeau/base/error.h"
#include "flambeau/library/cuda/cudnn.h"

namespace fl::library::cuda {
CudnnDescriptor::CudnnDescriptor(cudnnBackendDescriptorType_t type) {
  FL_CUDNN(cudnnBackendCreateDescriptor, type, &descriptor_);
}

CudnnDescriptor::~CudnnDescriptor() {
  if (descriptor_) find_cudnn()->cudnnBackendDestroyDescriptor(descriptor_);
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                          const void* values) {
  FL_CUDNN(cudnnBackendSetAttribute, descriptor_, name, type, count, values);
}
void CudnnDescriptor::set(cudnnBackendAttributeName_t name, std::span<const int64_t> values) {
  set(name, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()), values.data());
}
void CudnnDescriptor::set(cudnnBackendAttributeName_t name, int64_t value) {
  set(name, CUDNN_TYPE_INT64, 1, &value);
}
void CudnnDescriptor::set(cudnnBackendAttributeName_t name, bool value) {
  set(name, CUDNN_TYPE_BOOLEAN, 1, &value);
}
void CudnnDescriptor::set(cudnnBackendAttributeName_t name, float value) {
  set(name, CUDNN_TYPE_FLOAT, 1, &value);
}
void CudnnDescriptor::set(cudnnBackendAttributeName_t name, double value) {
  set(name, CUDNN_TYPE_DOUBLE, 1, &value);
}
void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
  set(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
}
void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnPointwiseMode_t value) {
  set(name, CUDNN_TYPE_POINTWISE_MODE, 1, &value);
}
void CudnnDescriptor::set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.descriptor_);
}

cudnnStatus_t CudnnDescriptor::try_finalize() { return find_cudnn()->cudnnBackendFinalize(descriptor_); }

void CudnnDescriptor::finalize() { FL_CUDNN(cudnnBackendFinalize, descriptor_); }

int64_t CudnnDescriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t room,
                             void* values) const {
  int64_t count = 0;
  FL_CUDNN(cudnnBackendGetAttribute, descriptor_, name, type, room, &count, values);
  return std::min(count, room);
}

cudnnDataType_t cudnn_type(ScalarKind kind) {
  switch (kind) {
    case ScalarKind::F32:
      return CUDNN_DATA_FLOAT;
    case ScalarKind::BF16:
      return CUDNN_DATA_BFLOAT16;
    case ScalarKind::F16:
      return CUDNN_DATA_HALF;
    case ScalarKind::F64:
      return CUDNN_DATA_DOUBLE;
  }
  FL_RAISE(InternalError, "unknown scalar kind {}", static_cast<int>(kind));
}

CudnnDescriptor CudnnTensor::descriptor() const {
  CudnnDescriptor d(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  d.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  d.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type);
  d.set(CUDNN_ATTR_TENSOR_DIMENSIONS, sizes);
  d.set(CUDNN_ATTR_TENSOR_STRIDES, strides);
  d.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
  if (is_virtual) d.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
  if (is_by_value) d.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
  d.finalize();
  return d;
}

namespace {

bool is_unsupported(cudnnStatus_t status) {
  return CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED;
}

/// Configurations of engines, the most promising first.
std::vector<CudnnDescriptor> engine_configs(const CudnnDescriptor& graph, cudnnBackendHeurMode_t mode) {
  CudnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (heuristics.try_finalize() != CUDNN_STATUS_SUCCESS) return {};
  constexpr int64_t kRoom = 32;
  std::vector<CudnnDescriptor> configs;
  std::vector<cudnnBackendDescriptor_t> places;
  for (int64_t i = 0; i < kRoom; ++i)
    places.push_back(configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
  const int64_t count =
      heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, kRoom, places.data());
  while (static_cast<int64_t>(configs.size()) > count) configs.pop_back();
  return configs;
}

struct EngineFacts {
  int64_t number = 0;
  std::vector<cudnnBackendNumericalNote_t> notes;

  explicit EngineFacts(const CudnnDescriptor& config) {
    CudnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendDescriptor_t place = engine.get();
    config.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &place);
    engine.get(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &number);
    notes.resize(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
    notes.resize(engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                            CUDNN_NUMERICAL_NOTE_TYPE_COUNT, notes.data()));
  }
  bool has(cudnnBackendNumericalNote_t note) const { return std::ranges::count(notes, note) != 0; }
};

bool allowed(const EngineFacts& engine, const EngineRules& rules) {
  if (engine.has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return false;
  if (!rules.tensor_cores && engine.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) return false;
  return rules.narrower_inputs || !engine.has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
}

}  // namespace

std::unique_ptr<const CudnnPlan> CudnnPlan::from_engine(cudnnHandle_t handle, const CudnnDescriptor& config,
                                                        const EngineRules& rules) {
  const EngineFacts engine(config);
  if (!allowed(engine, rules)) return nullptr;
  CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  // Whatever the reason why this engine does not work, another may.
  if (plan.try_finalize() != CUDNN_STATUS_SUCCESS) return nullptr;
  int64_t workspace = 0;
  plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &workspace);
  if (workspace > rules.workspace_bytes) return nullptr;
  std::unique_ptr<CudnnPlan> result(new CudnnPlan(std::move(plan)));
  result->workspace_bytes_ = workspace;
  result->name_ = fmt::format("cuDNN engine {} workspace {}", engine.number, workspace);
  return result;
}

std::unique_ptr<const CudnnPlan> CudnnPlan::make(cudnnHandle_t handle,
                                                 std::span<const CudnnDescriptor> operations,
                                                 const EngineRules& rules) {
  CudnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  std::vector<cudnnBackendDescriptor_t> list;
  for (const CudnnDescriptor& operation : operations) list.push_back(operation.get());
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(list.size()),
            list.data());
  if (const cudnnStatus_t status = graph.try_finalize(); status != CUDNN_STATUS_SUCCESS) {
    if (is_unsupported(status)) return nullptr;
    raise_error(status, "cudnnBackendFinalize of a graph");
  }
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
    for (const CudnnDescriptor& config : engine_configs(graph, mode))
      if (auto plan = from_engine(handle, config, rules)) return plan;
  return nullptr;
}

void CudnnPlan::run(cudnnHandle_t handle, std::span<const Argument> arguments, void* workspace,
                    CUstream stream) const {
  std::vector<int64_t> ids;
  std::vector<const void*> data;
  for (const Argument& a : arguments) {
    ids.push_back(a.id);
    data.push_back(a.data);
  }
  CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, static_cast<int64_t>(data.size()),
           data.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  pack.finalize();
  FL_CUDNN(cudnnSetStream, handle, stream);
  FL_CUDNN(cudnnBackendExecute, handle, plan_.get(), pack.get());
}

}  // namespace fl::library::cuda
