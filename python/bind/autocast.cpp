// The state of autocast; flambeau/amp has its scopes.
#include "flambeau/op/autocast.h"

#include <nanobind/stl/string.h>

#include "module.h"

namespace fl::python {
namespace {

DeviceAutocast& autocast_of(const std::string& device_type) {
  FL_CHECK(device_type == "cpu" || device_type == "cuda", RuntimeError,
           "autocast casts on devices of type cpu or cuda, got {}", device_type);
  return device_type == "cpu" ? autocast_state().cpu : autocast_state().cuda;
}

}  // namespace

void bind_autocast(nb::module_& m) {
  m.def("_autocast_enabled", [](const std::string& device_type) { return autocast_of(device_type).enabled; });
  m.def("_autocast_dtype",
        [](const std::string& device_type) { return wrap(autocast_of(device_type).dtype); });
  m.def("_autocast_caches", [] { return autocast_state().caches; });
  m.def("_set_autocast", [](const std::string& device_type, bool enabled, nb::handle dtype) {
    const std::optional<DType> d = as_dtype(dtype);
    FL_CHECK(d && (*d == DType::BFloat16 || *d == DType::Float16 || *d == DType::Float32), RuntimeError,
             "autocast computes in bfloat16, float16 or float32, got {}", text_of(dtype));
    autocast_of(device_type) = {enabled, *d};
  });
  m.def("_set_autocast_caches", [](bool caches) { autocast_state().caches = caches; });
  m.def("_autocast_depth", [](int change) {
    autocast_state().depth += change;
    if (autocast_state().depth == 0) clear_autocast_cache();
    return autocast_state().depth;
  });
  m.def("_clear_autocast_cache", clear_autocast_cache);
}

}  // namespace fl::python
