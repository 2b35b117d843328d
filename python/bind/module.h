// The parts of the module; module.cpp calls them in this order.
#pragma once
#include "object.h"

namespace fl::python {

void bind_errors(nb::module_& m);
void bind_cuda(nb::module_& m);
void bind_types(nb::module_& m);  ///< dtype, device, memory_format, Generator
void bind_torch_function(nb::module_& m);
void bind_sym_int(nb::module_& m);     ///< sizes inside of traced functions
void bind_sym_float(nb::module_& m);   ///< floats inside of traced functions
void bind_tensor(nb::module_& m);      ///< class Tensor, what the operator table does not give
void bind_conversion(nb::module_& m);  ///< to() and its kind
void bind_exchange(nb::module_& m);    ///< tensor(), NumPy, DLPack
void bind_storage(nb::module_& m);     ///< the memory behind tensors
void bind_autograd(nb::module_& m);    ///< backward, grad, modes, hooks, Function
void bind_compile(nb::module_& m);     ///< compile()
void bind_capture(nb::module_& m);     ///< capture of bytecode
void bind_operators(nb::module_& m);   ///< every operator of the table, as function and as method
void bind_autocast(nb::module_& m);    ///< the state of autocast
void bind_threads(nb::module_& m);     ///< get_num_threads, set_num_threads
void bind_samples(nb::module_& m);     ///< the table and its samples, for tests

/// shape, dtype, grad, ...: the properties of Tensor, for its type.
PyGetSetDef* tensor_properties();

/// Adds methods to class Tensor.
class TensorMethods {
 public:
  template <class F, class... Extra>
  TensorMethods& def(const char* name, F&& f, const Extra&... extra) {
    nb::cpp_function_def(std::forward<F>(f), nb::scope(reinterpret_cast<PyObject*>(tensor_type)),
                         nb::name(name), nb::is_method(), extra...);
    return *this;
  }
};

/// In the catch clause of a function that Python calls directly: the C++ exception as Python's.
void raise_in_python(const std::exception_ptr& error);

/// An exception that Python code raised, as the library's own where it is one of ours: capture catches those.
[[noreturn]] void raise_in_library(nb::python_error& error);

nb::object index_tensor(const Tensor& self, nb::handle index);
void assign_index(const Tensor& self, nb::handle index, nb::handle value);

/// A tensor with the elements of numbers, nested sequences, an array or another tensor; always a copy.
/// Without a device: on the other tensor's, else on the CPU.
Tensor tensor_of(nb::handle data, std::optional<DType> dtype, std::optional<Device> device);

/// A copy in page-locked memory, in the same layout; the tensor itself where it is there. Raises RuntimeError
/// for tensors on a device, and where there is no CUDA device.
Tensor pinned(const Tensor& t);
/// A copy of the host's bytes in page-locked memory.
Ref<Storage> pinned_copy(const void* data, int64_t bytes);
bool is_pinned(const Storage& s);

/// What "cuda" without a number means to this thread.
int current_cuda_device();

/// This thread's stream of a CUDA device, as DLPack names it.
int64_t dlpack_stream(int device);
/// A stream that DLPack names so (-1: none) waits for this thread's work on the device.
void let_stream_wait(int device, int64_t stream);

}  // namespace fl::python
