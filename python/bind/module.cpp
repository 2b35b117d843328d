#include "module.h"

#include "flambeau/op/op.h"

namespace fl::python {
void bind_views_in_place(nb::module_& m);  ///< view_in_place.cpp: unsqueeze_() and the like
}

NB_MODULE(_C, m) {
  using namespace fl::python;
  nanobind::set_leak_warnings(false);  // modules keep dtypes and operators until the process ends
  fl::op_table();
  bind_errors(m);
  bind_types(m);
  bind_cuda(m);
  bind_torch_function(m);
  bind_sym_int(m);
  bind_sym_float(m);
  bind_tensor(m);
  bind_conversion(m);
  bind_exchange(m);
  bind_storage(m);
  bind_autograd(m);
  bind_compile(m);
  bind_capture(m);
  bind_operators(m);
  bind_views_in_place(m);
  bind_autocast(m);
  bind_threads(m);
  bind_samples(m);
}
