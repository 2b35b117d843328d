// unsqueeze_, transpose_ and the like: the operator's view, taken in place.
#include "flambeau/autograd/view_in_place.h"
#include "module.h"

namespace fl::python {
namespace {

constexpr const char* kViews[] = {"as_strided", "squeeze",   "swapaxes", "swapdims",
                                  "t",          "transpose", "unsqueeze"};

/// Tensor.NAME_(self, ...): self becomes NAME(self, ...).
nb::object in_place_method(const char* name, const nb::object& tensor) {
  const auto call = [name](const nb::args& args, const nb::kwargs& keywords) {
    FL_CHECK(args.size() > 0 && as_tensor(args[0]), TypeError, "{}_(): expected a Tensor as self", name);
    const nb::object self = args[0];
    const Tensor& t = expect_tensor(self, name);
    const nb::object before = wrap(before_view_in_place(t));
    const nb::tuple rest =
        nb::steal<nb::tuple>(PyTuple_GetSlice(args.ptr(), 1, PyTuple_GET_SIZE(args.ptr())));
    const nb::object view = before.attr(name)(*rest, **keywords);
    become_view(t, expect_tensor(view, name));
    return self;
  };
  const std::string full = std::string(name) + "_";
  return nb::cpp_function(call, nb::name(full.c_str()), nb::is_method(), nb::scope(tensor));
}

}  // namespace

void bind_views_in_place(nb::module_& m) {
  const nb::object tensor = m.attr("Tensor");
  for (const char* name : kViews)
    tensor.attr((std::string(name) + "_").c_str()) = in_place_method(name, tensor);
}

}  // namespace fl::python
