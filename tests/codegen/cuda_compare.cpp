#include "cuda_compare.h"

#include <map>

#include "flambeau/base/error.h"
#include "flambeau/loop/interpret.h"
#include "flambeau/loop/order.h"

namespace fl::codegen {

using library::cuda::find_driver;

bool use_gpu() {
  if (!find_driver()) return false;
  static CUcontext context = [] {
    CUdevice device;
    FL_CUDA(cuDeviceGet, &device, 0);
    CUcontext out;
    FL_CUDA(cuDevicePrimaryCtxRetain, &out, device);
    return out;
  }();
  FL_CUDA(cuCtxSetCurrent, context);
  return true;
}

GpuBuffer::GpuBuffer(int64_t bytes) {
  // Atomic operations on small elements work on whole words.
  FL_CUDA(cuMemAlloc, &base_, static_cast<size_t>(std::max<int64_t>((bytes + 3) / 4 * 4, 4)));
}

GpuBuffer::GpuBuffer(const Bytes& data, int64_t offset)
    : GpuBuffer(static_cast<int64_t>(data.size()) + offset) {
  offset_ = offset;
  if (!data.empty())
    FL_CUDA(cuMemcpyAsync, address(), reinterpret_cast<CUdeviceptr>(data.data()), data.size(), nullptr);
}

Bytes GpuBuffer::read(size_t bytes) const {
  Bytes out(bytes);
  if (bytes) FL_CUDA(cuMemcpyAsync, reinterpret_cast<CUdeviceptr>(out.data()), address(), bytes, nullptr);
  FL_CUDA(cuStreamSynchronize, nullptr);
  return out;
}

GpuKernel::GpuKernel(std::shared_ptr<const GpuCode> code) : code_(std::move(code)) {
  char log[4096] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  const CUresult status =
      library::cuda::driver().cuModuleLoadDataEx(&module_, code_->ptx().c_str(), 2, options, values);
  FL_CHECK(status == CUDA_SUCCESS, RuntimeError, "the driver refuses the kernel {}: {} ({})\n{}",
           code_->name(), static_cast<int>(status), log, code_->ptx());
  FL_CUDA(cuModuleGetFunction, &function_, module_, "kernel");
}

GpuKernel::~GpuKernel() { library::cuda::driver().cuModuleUnload(module_); }

void GpuKernel::launch(std::span<void* const> buffers, const std::vector<int64_t>& sizes,
                       const std::vector<loop::ScalarBits>& params, GpuErrorSlot* errors, int64_t id) const {
  const LaunchShape shape = code_->shape(sizes.data());
  if (shape.blocks == 0) return;
  std::vector<void*> arguments(buffers.begin(), buffers.end());
  for (const int64_t& s : sizes) arguments.push_back(const_cast<int64_t*>(&s));
  for (const loop::ScalarBits& p : params) arguments.push_back(const_cast<loop::ScalarBits*>(&p));
  arguments.push_back(&errors);
  arguments.push_back(&id);
  FL_CUDA(cuLaunchKernel, function_, shape.blocks, 1, 1, shape.threads, 1, 1, shape.shared_bytes, nullptr,
          arguments.data(), nullptr);
}

int GpuKernel::registers() const {
  int out = 0;
  FL_CUDA(cuFuncGetAttribute, &out, CU_FUNC_ATTRIBUTE_NUM_REGS, function_);
  return out;
}

GpuErrors::GpuErrors() {
  void* memory = nullptr;
  FL_CUDA(cuMemHostAlloc, &memory, sizeof(GpuErrorSlot), 0);
  slot_ = new (memory) GpuErrorSlot;
}

Outcome run_on_gpu(const GpuKernel& kernel, const loop::Kernel& k, const std::vector<Bytes>& buffers,
                   const std::vector<int64_t>& sizes, const std::vector<loop::ScalarBits>& params,
                   int64_t shift) {
  std::vector<std::unique_ptr<GpuBuffer>> memory;
  std::vector<CUdeviceptr> addresses(buffers.size());
  std::vector<void*> arguments;
  for (size_t n = 0; n < buffers.size(); ++n) {
    memory.push_back(std::make_unique<GpuBuffer>(buffers[n], shift * size_of(k.buffers[n].dtype)));
    addresses[n] = memory[n]->address();
    arguments.push_back(k.buffers[n].by_value ? const_cast<void*>(static_cast<const void*>(buffers[n].data()))
                                              : &addresses[n]);
  }
  static const GpuErrors& errors = *new GpuErrors;  // the driver is gone by the end of the process
  *errors = GpuErrorSlot{};
  kernel.launch(arguments, sizes, params, errors.get(), 7);
  FL_CUDA(cuStreamSynchronize, nullptr);
  Outcome out;
  for (size_t n = 0; n < buffers.size(); ++n) out.buffers.push_back(memory[n]->read(buffers[n].size()));
  const GpuErrorSlot& slot = *errors;
  if (slot.state == 0) return out;
  FL_CHECK(slot.state == 2 && slot.kernel == 7, ValueError, "the error slot has state {} and kernel {}",
           slot.state, slot.kernel);
  const GpuCode::Check& check = kernel.code().checks().at(slot.check);
  out.error = loop::failure_message(check.message, check.dtype, slot.value, k.sizes, sizes);
  return out;
}

std::string gpu_difference(const loop::Kernel& k, const Outcome& expected, const std::vector<Bytes>& buffers,
                           const std::vector<int64_t>& sizes, const std::vector<loop::ScalarBits>& params) {
  if (!use_gpu()) return "no GPU: " + library::cuda::why_no_driver();
  // Kept for the other sizes that a test tries.
  // Never freed: the driver is gone by the end of the process.
  static auto& known = *new std::map<std::string, std::unique_ptr<GpuKernel>>;
  if (known.size() > 100) known.clear();
  std::unique_ptr<GpuKernel>& kernel = known[k.str()];
  try {
    if (!kernel)
      kernel = std::make_unique<GpuKernel>(
          compile_for_gpu(k, {.capability = 90, .deterministic = loop::has_colliding_stores(k)}));
  } catch (const NotImplementedError& e) {
    std::fprintf(stderr, "left out: %s\n", e.message().c_str());
    return "";
  }
  for (int64_t shift : {0, 1}) {
    const Outcome got = run_on_gpu(*kernel, k, buffers, sizes, params, shift);
    // Which of the checks that fail is reported depends on the order of threads.
    if (got.error.empty() != expected.error.empty())
      return fmt::format("GPU: the error is '{}', expected '{}'\n{}", got.error, expected.error, k.str());
    const std::string differs = first_difference(k, expected.buffers, got.buffers);
    if (!differs.empty())
      return fmt::format("GPU, {} off alignment: {}\n{}", shift ? "one element" : "none", differs, k.str());
  }
  return "";
}

}  // namespace fl::codegen
