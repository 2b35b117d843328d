// x[...] and x[...] = v: a chain of views, then one gather or scatter where tensors index.
#include <limits>

#include "flambeau/ops/functions.h"
#include "flambeau/tensor/number_fits.h"
#include "module.h"

namespace fl::python {
namespace {

/// What is left after the views: self seen through integers, slices, None and `...`, and the tensors that
/// index its dimensions.
struct Indexed {
  Tensor view;
  std::vector<Tensor> indices;  ///< empty: no tensor indexes
};

bool is_array(nb::handle h) {
  return !as_tensor(h) && (PyObject_HasAttrString(h.ptr(), "__array_interface__") || PyList_Check(h.ptr()));
}

/// An index that is a tensor, an array or a list; undefined for others.
Tensor tensor_index(nb::handle h) {
  Tensor t;
  if (const Tensor* given = as_tensor(h)) {
    t = *given;
  } else if (!as_sym_int(h) && is_array(h)) {
    const Py_ssize_t length = PySequence_Check(h.ptr()) ? PySequence_Size(h.ptr()) : 1;
    if (length < 0) PyErr_Clear();  // an array without dimensions
    t = tensor_of(h, length == 0 ? std::optional(DType::Int64) : std::nullopt, {});
  } else {
    return t;
  }
  FL_CHECK(is_integral(t.dtype(), true), IndexError,
           "tensors used as indices must be integer, byte or bool tensors, got {}", name(t.dtype()));
  return t;
}

bool is_mask(const Tensor& t) {
  return t.defined() && (t.dtype() == DType::Bool || t.dtype() == DType::UInt8);
}

/// Dimensions of the indexed tensor that an index consumes.
int64_t consumed(nb::handle h) {
  if (h.is_none() || h.ptr() == Py_Ellipsis || PyBool_Check(h.ptr())) return 0;
  const Tensor t = tensor_index(h);
  return is_mask(t) ? t.dim() : 1;
}

/// Where an index that takes one place points: an integer, an object with __index__, a tensor of one integer.
/// A tensor without values, as in a capture, is no place: it indexes as tensors do.
std::optional<SymInt> place(nb::handle h) {
  if (const Tensor* t = as_tensor(h)) {
    if (t->dim() != 0 || !is_integral(t->dtype(), false) || is_mask(*t) || !t->has_data())
      return std::nullopt;
    return SymInt(t->item().to_int());
  }
  if (const std::optional<SymInt> i = as_sym_int(h)) return i;
  if (PyBool_Check(h.ptr()) || is_array(h) || !PyIndex_Check(h.ptr())) return std::nullopt;
  const nb::object i = nb::steal(PyNumber_Index(h.ptr()));
  if (!i.is_valid()) throw nb::python_error();
  return as_sym_int(i);
}

/// A symbolic index counted from the front, where it is in range: from which end it counts has a guard.
SymInt from_front(SymInt index, SymInt size) {
  return index.is_symbolic() && index < SymInt(0) && index >= -size ? index + size : index;
}

Tensor sliced(const Tensor& t, int64_t dim, nb::handle slice_object) {
  const SymInt size = t.size(dim);
  const auto bound = [&](const char* name) -> std::optional<SymInt> {
    const nb::object value = slice_object.attr(name);
    if (value.is_none()) return std::nullopt;
    if (PyLong_CheckExact(value.ptr())) {
      int overflow = 0;
      const int64_t number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
      return overflow > 0   ? std::numeric_limits<int64_t>::max()
             : overflow < 0 ? std::numeric_limits<int64_t>::min()
                            : number;
    }
    const Tensor* tensor = as_tensor(value);
    FL_CHECK(!tensor || tensor->numel() == SymInt(1), TypeError,
             "only integer tensors of a single element can be converted to an index");
    const std::optional<SymInt> i = tensor ? SymInt(tensor->item().to_int()) : place(value);
    FL_CHECK(i, TypeError, "slice indices must be integers or None, got {}", python_type(value));
    return i;
  };
  // Python's clamping at the front, of symbolic bounds.
  const auto clamped = [&](std::optional<SymInt> i) {
    if (!i || !i->is_symbolic()) return i;
    const SymInt at = from_front(*i, size);
    return std::optional(at < SymInt(0) ? SymInt(0) : at);
  };
  const SymInt step = bound("step").value_or(SymInt(1));
  FL_CHECK(step > SymInt(0), ValueError, "step must be greater than zero, got {}", step);
  const std::optional<SymInt> start = clamped(bound("start")), stop = clamped(bound("stop"));
  if (!start && !stop && step == SymInt(1)) return alias(t);
  return slice(t, dim, start, stop, step);
}

Indexed apply_views(const Tensor& self, nb::handle index) {
  const nb::tuple items = PyTuple_Check(index.ptr()) ? nb::borrow<nb::tuple>(index) : nb::make_tuple(index);
  int64_t taken = 0, ellipses = 0;
  for (nb::handle h : items) {
    taken += consumed(h);
    ellipses += h.ptr() == Py_Ellipsis;
  }
  FL_CHECK(ellipses <= 1, IndexError, "an index can have one ellipsis ('...'), got {}", ellipses);
  FL_CHECK(taken <= self.dim(), IndexError, "too many indices for tensor of dimension {}", self.dim());
  Indexed out{self, {}};
  int64_t dim = 0;
  const auto put = [&](const Tensor& t, int64_t dims) {
    out.indices.resize(static_cast<size_t>(dim));
    out.indices.push_back(t);
    dim += dims;
  };
  for (nb::handle h : items) {
    if (h.is_none()) {
      out.view = unsqueeze(out.view, dim++);
    } else if (h.ptr() == Py_Ellipsis) {
      dim += self.dim() - taken;
    } else if (PyBool_Check(h.ptr())) {
      out.view = unsqueeze(out.view, dim);
      put(tensor_of(nb::make_tuple(h), DType::Bool, {}), 1);
    } else if (PySlice_Check(h.ptr())) {
      out.view = sliced(out.view, dim++, h);
    } else if (const auto i = place(h)) {
      out.view = select(out.view, dim, from_front(*i, out.view.size(dim)));
    } else {
      const Tensor t = tensor_index(h);
      FL_CHECK(!PyUnicode_Check(h.ptr()), TypeError, "new(): invalid data type 'str' for an index");
      FL_CHECK(t.defined(), IndexError,
               "only integers, slices (`:`), ellipsis (`...`), None and integer or bool tensors are valid "
               "indices, got {}",
               python_type(h));
      const bool alone = is_mask(t) && t.dim() == 0;  // all or nothing, in a dimension of its own
      if (alone) out.view = unsqueeze(out.view, dim);
      put(alone ? unsqueeze(t, 0) : t,
          is_mask(t) && !alone ? t.dim() : 1);  // a mask stands for its dimensions
    }
  }
  return out;
}

/// Without the places that a mask of several dimensions left free behind it.
std::vector<Tensor> one_for_each_mask(const std::vector<Tensor>& indices) {
  std::vector<Tensor> out;
  for (size_t k = 0; k < indices.size(); ++k) {
    out.push_back(indices[k]);
    if (is_mask(indices[k])) k += std::max(indices[k].dim(), 1) - 1;
  }
  return out;
}

/// Masks as their positions, one list for each of their dimensions.
std::vector<Tensor> positions(const Tensor& view, const std::vector<Tensor>& indices) {
  std::vector<Tensor> out;
  for (const Tensor& t : one_for_each_mask(indices)) {
    if (!is_mask(t)) {
      out.push_back(t);
      continue;
    }
    for (int d = 0; d < t.dim(); ++d) {
      const int64_t dim = static_cast<int64_t>(out.size()) + d;
      FL_CHECK(dim < view.dim() && view.size(dim) == t.size(d), IndexError,
               "the shape of the mask {} does not match the shape of the indexed tensor {} at dimension {}",
               to_string(t.sizes()), to_string(view.sizes()), dim);
    }
    for (const Tensor& list : unbind(nonzero(t), 1)) out.push_back(list);
  }
  return out;
}

}  // namespace

nb::object index_tensor(const Tensor& self, nb::handle h) {
  const Indexed at = apply_views(self, h);
  if (at.indices.empty()) return wrap(at.view.is_same(self) ? alias(self) : at.view);
  const std::vector<Tensor> indices = one_for_each_mask(at.indices);
  nb::gil_scoped_release unlocked;
  const Tensor out = index(at.view, indices);
  nb::gil_scoped_acquire locked;
  return wrap(out);
}

void assign_index(const Tensor& self, nb::handle h, nb::handle value) {
  const Indexed at = apply_views(self, h);
  const std::optional<SymInt> integer = as_sym_int(value);
  const std::optional<Scalar> number = integer ? std::optional(Scalar(*integer)) : as_number(value);
  if (at.indices.empty()) {
    if (number) {
      check_fits(*number, self.dtype());
      fill.in_place(at.view, *number);
    } else {
      copy.in_place(at.view, as_tensor(value) ? *as_tensor(value) : tensor_of(value, {}, self.device()));
    }
    return;
  }
  if (number) check_fits(*number, self.dtype());
  Tensor values = number             ? scalar_tensor(*number, self.dtype())
                  : as_tensor(value) ? *as_tensor(value)
                                     : tensor_of(value, {}, self.device());
  if (values.dtype() != self.dtype()) values = _to_copy(values, self.dtype());
  index_put.in_place(at.view, positions(at.view, at.indices), values);
}

}  // namespace fl::python
