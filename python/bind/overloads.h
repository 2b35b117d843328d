// One name, the operators that it stands for, and a call of them from Python.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "arguments.h"

namespace fl::python {

struct Overloads {
  std::string name;
  std::vector<const OpInfo*> ops;  ///< tried in this order
};

/// Every name of the table, in order of first definition.
const std::vector<Overloads>& all_overloads();
const Overloads& find_overloads(std::string_view name);

/// Calls the first overload that the arguments fit; raises TypeError listing all of them.
nb::object call_overloads(const Overloads& overloads, const CallArguments& call, bool method);
/// Whether some overload takes the arguments.
bool fits(const Overloads& overloads, const CallArguments& call, bool method);

/// Runs an operator. Python's lock is given up where there is much to do.
std::vector<Value> run(const OpInfo& op, std::vector<Value> args);
/// run() and its results as Python objects: None, one, or a (named) tuple.
nb::object run_wrapped(const OpInfo& op, std::vector<Value> args);

}  // namespace fl::python
