// What Python sees of the library's types, and the way between the two.
#pragma once
#include <nanobind/nanobind.h>

#include <optional>

#include "flambeau/op/value.h"
#include "flambeau/tensor/generator.h"

namespace fl::python {

namespace nb = nanobind;

/// A Tensor in Python. One object for each tensor as long as Python holds it: `out is x` where an operator
/// returns its argument.
struct TensorObject {
  explicit TensorObject(Tensor t) : tensor(std::move(t)) {}
  TensorObject(const TensorObject&) = delete;
  ~TensorObject();
  Tensor tensor;
};
/// The object of a tensor; None for the undefined one.
nb::object wrap(const Tensor& t);
nb::tuple wrap(const std::vector<Tensor>& list);
/// Null if the object is no Tensor.
const Tensor* as_tensor(nb::handle h);
/// Raises TypeError naming what was expected, unless the object is a Tensor.
const Tensor& expect_tensor(nb::handle h, const char* where);

struct GeneratorObject {
  Ref<Generator> generator;
};

// dtypes and memory formats are single objects, compared by identity.
nb::object wrap(DType d);
nb::object wrap(Device d);
nb::object wrap(MemoryFormat f);
nb::object wrap(const Scalar& s);
/// A dtype, or one of Python's float, int, bool and complex.
std::optional<DType> as_dtype(nb::handle h);
/// A device or its name; raises ValueError on a name that is none.
std::optional<Device> as_device(nb::handle h);
std::optional<MemoryFormat> as_memory_format(nb::handle h);
/// A number of Python or NumPy.
std::optional<Scalar> as_number(nb::handle h);
/// An integer of Python or NumPy; not a bool and not a Tensor.
std::optional<int64_t> as_int(nb::handle h);
/// A list or tuple of integers.
std::optional<Sizes> as_int_list(nb::handle h);

/// Numbers and tensors of a result.
nb::object wrap(const Value& v);
nb::tuple sizes_tuple(IntList sizes);

/// What str() gives.
std::string text_of(nb::handle h);
/// "Tensor", "str": for messages.
std::string python_type(nb::handle h);

/// A Python object that C++ may drop on any thread.
std::shared_ptr<nb::object> shared_object(nb::object o);

}  // namespace fl::python
