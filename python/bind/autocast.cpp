// The state of autocast; flambeau/amp has its scopes.
#include "flambeau/op/autocast.h"

#include "module.h"

namespace fl::python {

void bind_autocast(nb::module_& m) {
  m.def("_autocast_enabled", [] { return autocast_state().enabled; });
  m.def("_autocast_dtype", [] { return wrap(autocast_state().dtype); });
  m.def("_autocast_caches", [] { return autocast_state().caches; });
  m.def("_set_autocast", [](bool enabled, nb::handle dtype, bool caches) {
    const std::optional<DType> d = as_dtype(dtype);
    FL_CHECK(d && (*d == DType::BFloat16 || *d == DType::Float16 || *d == DType::Float32), RuntimeError,
             "autocast computes in bfloat16, float16 or float32, got {}", text_of(dtype));
    autocast_state().enabled = enabled;
    autocast_state().dtype = *d;
    autocast_state().caches = caches;
  });
  m.def("_autocast_depth", [](int change) {
    autocast_state().depth += change;
    if (autocast_state().depth == 0) clear_autocast_cache();
    return autocast_state().depth;
  });
  m.def("_clear_autocast_cache", clear_autocast_cache);
}

}  // namespace fl::python
