// Named tensors in a file, in the safetensors format (github.com/huggingface/safetensors).
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "flambeau/tensor/tensor.h"

namespace fl {

using NamedTensors = std::map<std::string, Tensor>;
using Metadata = std::map<std::string, std::string>;

struct SafeTensors {
  NamedTensors tensors;  ///< on the CPU, row-major, each with a storage of its own
  Metadata metadata;
};

/// Writes a file, replacing the old one only when all is written. Tensors of any device and strides;
/// complex128 has no place in the format and raises ValueError.
void save_safetensors(const std::string& path, const NamedTensors& tensors, const Metadata& metadata = {});
std::string safetensors_bytes(const NamedTensors& tensors, const Metadata& metadata = {});

/// Raises DeserializationError on anything but a whole and consistent file, RuntimeError if it can't be read.
SafeTensors load_safetensors(const std::string& path);
SafeTensors parse_safetensors(std::string_view bytes);

}  // namespace fl
