// Special functions, element by element: operands of any real dtype and strides, or numbers.
#include <array>

#include "flambeau/base/parallel.h"
#include "flambeau/library/special/special.h"
#include "flambeau/runtime/routine.h"
#include "flambeau/tensor/element.h"

namespace fl::runtime {
namespace {

constexpr int64_t kGrainElements = 1 << 9;

using Read = double (*)(const void*, int64_t);
using Write = void (*)(void*, int64_t, double);

Read reader(DType dtype) {
  return visit_dtype(dtype, []<class T>(T*) -> Read {
    return
        [](const void* data, int64_t at) { return convert_element<double>(static_cast<const T*>(data)[at]); };
  });
}
Write writer(DType dtype) {
  return visit_dtype(dtype, []<class T>(T*) -> Write {
    return [](void* data, int64_t at, double v) { static_cast<T*>(data)[at] = convert_element<T>(v); };
  });
}

/// One operand spread over the result's dimensions, or a number.
struct Input {
  int position = -1;
  double number = 0;
  Read read = nullptr;
  std::vector<int64_t> strides;

  double at(void* const* operands, int64_t offset) const {
    return position < 0 ? number : read(operands[position], offset);
  }
};

Input input_of(const CallArguments& call, int arg, size_t rank) {
  Input in;
  in.strides.assign(rank, 0);
  const Value& value = call.args[arg];
  if (value.is_number()) {
    in.number = value.to_double();
    return in;
  }
  in.position = value.graph_ref().node;
  const OperandLayout& layout = call.operands[in.position];
  in.read = reader(layout.dtype);
  const size_t extra = rank - layout.sizes.size();
  for (size_t d = 0; d < layout.sizes.size(); ++d)
    if (layout.sizes[d] != 1) in.strides[extra + d] = layout.strides[d];
  return in;
}

/// f for every element of a result, over `count` operands.
template <int count, class F>
PreparedCall elementwise(const CallArguments& call, F f) {
  const OperandLayout out = call.result(0);
  std::array<Input, count> inputs;
  for (int k = 0; k < count; ++k) inputs[k] = input_of(call, k, out.sizes.size());
  int64_t elements = 1;
  for (const int64_t size : out.sizes) elements *= size;
  const Write write = writer(out.dtype);
  return [=](void* const* operands, void* const* results) {
    parallel_for(elements, kGrainElements, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        int64_t rest = n, to = 0;
        std::array<int64_t, count> from{};
        for (size_t d = out.sizes.size(); d-- > 0; rest /= out.sizes[d]) {
          const int64_t index = rest % out.sizes[d];
          to += index * out.strides[d];
          for (int k = 0; k < count; ++k) from[k] += index * inputs[k].strides[d];
        }
        if constexpr (count == 1)
          write(results[0], to, f(inputs[0].at(operands, from[0])));
        else
          write(results[0], to, f(inputs[0].at(operands, from[0]), inputs[1].at(operands, from[1])));
      }
    });
  };
}

/// "special_erfcx" is the library's "erfcx".
std::string_view function_name(std::string_view op) {
  constexpr std::string_view kPrefix = "special_";
  if (op.starts_with(kPrefix)) return op.substr(kPrefix.size());
  return op == "igamma" ? "gammainc" : op == "igammac" ? "gammaincc" : op;
}

PreparedCall prepare_special(const CallArguments& call) {
  const std::string_view name = function_name(call.op.schema.name);
  if (const auto f = library::find_unary_function(name)) return elementwise<1>(call, f);
  return elementwise<2>(call, library::find_binary_function(name));
}

}  // namespace

Routine find_special_routine(std::string_view op) {
  const std::string_view name = function_name(op);
  const bool known = library::find_unary_function(name) || library::find_binary_function(name);
  return known ? prepare_special : nullptr;
}

}  // namespace fl::runtime
