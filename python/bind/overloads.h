// One name, the operators that it stands for, and a call of them from Python.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "arguments.h"

namespace fl::python {

struct Overloads {
  std::string name;
  std::vector<const OpInfo*> ops;   ///< tried in this order
  std::vector<const OpInfo*> outs;  ///< the out= forms, tried only where a call names a result
  /// Where a number may stand for a tensor, as PyTorch has it: as self, as another argument.
  bool number_as_self = false, number_as_other = false;
  bool numbers_only = false;  ///< and in all places at once
};

/// Every name of the table, in order of first definition.
const std::vector<Overloads>& all_overloads();
const Overloads& find_overloads(std::string_view name);

/// Calls the first overload that the arguments fit; raises TypeError listing all of them.
nb::object call_overloads(const Overloads& overloads, const CallArguments& call, bool method);
/// The same for x + y: NotImplemented where none fits, so that Python asks the other operand.
nb::object call_infix(const Overloads& overloads, const CallArguments& call);

/// The class of an operator's named results, by the operator's name; None if it has none.
nb::object named_result_type(const std::string& name);

/// Runs an operator and gives its results as Python objects: None, one, or a (named) tuple. Python's lock is
/// given up where there is much to do.
nb::object run_wrapped(const OpInfo& op, Arguments& args);

}  // namespace fl::python
