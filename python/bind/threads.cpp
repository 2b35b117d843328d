// How many threads kernels and libraries use.
#include "flambeau/base/parallel.h"
#include "module.h"

namespace fl::python {

void bind_threads(nb::module_& m) {
  m.def("get_num_threads", num_threads);
  m.def(
      "set_num_threads",
      [](int n) {
        FL_CHECK(n > 0, RuntimeError, "set_num_threads expects a positive integer, got {}", n);
        set_num_threads(n);
      },
      nb::arg("n"));
}

}  // namespace fl::python
