#include "flambeau/ops/aten/spacing.h"

#include "flambeau/ops/functions.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

using DTypeOpt = std::optional<DType>;
using DeviceOpt = std::optional<Device>;
constexpr Tag kTags = Tag::NoInPlace | Tag::NonDifferentiable | Tag::DataDependent;

/// The number that a 0-dim tensor holds.
Scalar number(const Tensor& end, const char* op, const char* which) {
  FL_CHECK(end.dim() == 0, RuntimeError,
           "{} only supports 0-dimensional start and end tensors, but got {} with {} dimension(s)", op, which,
           end.dim());
  return end.item();
}

Samples between(samples::MakeSamples make) { return samples::custom(make, {.gradient = false}); }

void define_linspaces(OpTable& t) {
  t.define(linspace_between, {.doc = "`linspace` between two 0-dim tensors.",
                              .tags = kTags,
                              .decompose =
                                  [](Tensor start, Tensor end, int64_t steps, DTypeOpt dtype,
                                     DeviceOpt device, std::optional<bool> pin) {
                                    return linspace(number(start, "linspace", "start"),
                                                    number(end, "linspace", "end"), steps, dtype, device,
                                                    pin);
                                  },
                              .samples = between([](SampleMaker& m, const Samples&) {
                                return std::vector<Sample>{
                                    {{m.make({}), m.make({}), 5}, "", ""},
                                    {{m.make({2}), m.make({}), 5}, "rank", "RuntimeError: 0-dimensional"}};
                              })});
  t.define(linspace_from, {.doc = "`linspace` from a 0-dim tensor.",
                           .tags = kTags,
                           .decompose =
                               [](Tensor start, Scalar end, int64_t steps, DTypeOpt dtype, DeviceOpt device,
                                  std::optional<bool> pin) {
                                 return linspace(number(start, "linspace", "start"), end, steps, dtype,
                                                 device, pin);
                               },
                           .samples = between([](SampleMaker& m, const Samples&) {
                             return std::vector<Sample>{{{m.make({}), 4, 5}, "", ""}};
                           })});
  t.define(linspace_to, {.doc = "`linspace` to a 0-dim tensor.",
                         .tags = kTags,
                         .decompose =
                             [](Scalar start, Tensor end, int64_t steps, DTypeOpt dtype, DeviceOpt device,
                                std::optional<bool> pin) {
                               return linspace(start, number(end, "linspace", "end"), steps, dtype, device,
                                               pin);
                             },
                         .samples = between([](SampleMaker& m, const Samples&) {
                           return std::vector<Sample>{{{-4, m.make({}), 5}, "", ""}};
                         })});
}

void define_logspaces(OpTable& t) {
  t.define(logspace_between, {.doc = "`logspace` between two 0-dim tensors.",
                              .tags = kTags,
                              .decompose =
                                  [](Tensor start, Tensor end, int64_t steps, double base, DTypeOpt dtype,
                                     DeviceOpt device, std::optional<bool> pin) {
                                    return logspace(number(start, "logspace", "start"),
                                                    number(end, "logspace", "end"), steps, base, dtype,
                                                    device, pin);
                                  },
                              .samples = between([](SampleMaker& m, const Samples&) {
                                return std::vector<Sample>{
                                    {{m.make({}), m.make({}), 5}, "", ""},
                                    {{m.make({}), m.make({2}), 5}, "rank", "RuntimeError: 0-dimensional"}};
                              })});
  t.define(logspace_from, {.doc = "`logspace` from a 0-dim tensor.",
                           .tags = kTags,
                           .decompose =
                               [](Tensor start, Scalar end, int64_t steps, double base, DTypeOpt dtype,
                                  DeviceOpt device, std::optional<bool> pin) {
                                 return logspace(number(start, "logspace", "start"), end, steps, base, dtype,
                                                 device, pin);
                               },
                           .samples = between([](SampleMaker& m, const Samples&) {
                             return std::vector<Sample>{{{m.make({}), 2, 5}, "", ""}};
                           })});
  t.define(logspace_to, {.doc = "`logspace` to a 0-dim tensor.",
                         .tags = kTags,
                         .decompose =
                             [](Scalar start, Tensor end, int64_t steps, double base, DTypeOpt dtype,
                                DeviceOpt device, std::optional<bool> pin) {
                               return logspace(start, number(end, "logspace", "end"), steps, base, dtype,
                                               device, pin);
                             },
                         .samples = between([](SampleMaker& m, const Samples&) {
                           return std::vector<Sample>{{{-2, m.make({}), 5}, "", ""}};
                         })});
}

}  // namespace

void define_spacing(OpTable& t) {
  define_linspaces(t);
  define_logspaces(t);
}

}  // namespace fl
