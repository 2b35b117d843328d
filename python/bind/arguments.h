// Python's arguments of a call against the schemas of an operator.
#pragma once
#include "flambeau/op/op_def.h"
#include "object.h"

namespace fl::python {

/// What a call was given; keyword values follow the positional ones.
struct CallArguments {
  PyObject* const* values;
  size_t positional;
  PyObject* keywords;  ///< a tuple of names, or null
  size_t keyword_count() const { return keywords ? static_cast<size_t>(PyTuple_GET_SIZE(keywords)) : 0; }
};

/// The arguments of an operator, in the order of its schema.
using Arguments = SmallVector<Value, 8>;

struct BindOptions {
  bool method = false;   ///< the first argument came before the dot: it is `self`
  bool lenient = false;  ///< an integer for a list of them, a tensor of one element for a number
  bool number_as_self = false, number_as_other = false;  ///< in the places of tensors
};
/// The position of the parameter `self`; -1 if there is none.
int self_position(const OpInfo& op);

/// The argument of one parameter, or false where the type is another. Raises what a conversion raises.
bool to_value(nb::handle h, const Argument& parameter, BindOptions options, Value& out);

/// Fills one Value for each parameter of the schema. False where the arguments don't fit, `why` then says it.
bool bind_arguments(const OpInfo& op, const CallArguments& call, BindOptions options, Arguments& out,
                    std::string* why);

/// Guards symbolic integers in the places of numbers that are no sizes (dimensions, say). Not a part of
/// binding: an overload that does not fit in the end must leave no guards.
void specialize_numbers(const OpInfo& op, Arguments& args);

}  // namespace fl::python
