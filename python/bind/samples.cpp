// The operator table and its samples, for the tests.
#include "flambeau/ops/samples.h"

#include <nanobind/stl/string.h>

#include "flambeau/op/op.h"
#include "module.h"
#include "overloads.h"

namespace fl::python {
namespace {

nb::dict describe(const OpInfo& op) {
  nb::dict out;
  nb::list arguments;
  for (const Argument& a : op.schema.args)
    arguments.append(nb::make_tuple(nb::str(a.name.c_str()),
                                    nb::str(name(a.type).data(), name(a.type).size()), a.keyword_only));
  out["full_name"] = nb::str(op.name().c_str());
  out["name"] = nb::str(op.schema.name.c_str());
  out["schema"] = nb::str(op.schema.text.c_str());
  out["arguments"] = arguments;
  out["returns"] = op.return_count();
  out["tolerance"] = op.samples.tolerance;
  out["has_samples"] = op.samples.make != nullptr;
  out["functional"] = op.functional ? nb::object(nb::str(op.functional->name().c_str())) : nb::none();
  out["is_view"] = op.is_view();
  out["is_random"] = op.is(Tag::Random);
  return out;
}

/// (arguments, note, error) of every sample of an operator in a dtype.
nb::list samples_of(const std::string& full_name, nb::handle dtype, uint64_t seed) {
  const std::optional<DType> d = as_dtype(dtype);
  FL_CHECK(d, TypeError, "_samples(): expected a dtype, got {}", python_type(dtype));
  nb::list out;
  samples::for_each_sample(find_op(full_name), *d, seed, [&](Sample& s) {
    nb::list arguments;
    for (const Value& v : s.args) arguments.append(wrap(v));
    out.append(nb::make_tuple(nb::tuple(arguments), nb::str(s.note.c_str()), nb::str(s.error.c_str())));
  });
  return out;
}

/// Exactly this operator, one argument for each parameter.
nb::object call_exactly(const std::string& full_name, nb::args given) {
  const OpInfo& op = find_op(full_name);
  FL_CHECK(given.size() == op.schema.args.size(), TypeError, "{}: expected {} arguments, got {}", full_name,
           op.schema.args.size(), given.size());
  Arguments args(given.size());
  for (size_t k = 0; k < given.size(); ++k) {
    const Argument& a = op.schema.args[k];
    FL_CHECK(
        to_value(given[k], a, {.lenient = true, .number_as_self = true, .number_as_other = true}, args[k]),
        TypeError, "{}: argument '{}' must be {}, not {}", full_name, a.name, name(a.type),
        python_type(given[k]));
  }
  return run_wrapped(op, args);
}

}  // namespace

void bind_samples(nb::module_& m) {
  m.def("_operators", [] {
    nb::list out;
    for (const OpInfo& op : op_table().all()) out.append(describe(op));
    return out;
  });
  m.def("_samples", samples_of);
  m.def("_call", call_exactly);
}

}  // namespace fl::python
