// Where a tensor's elements live.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace fl {

enum class DeviceType : uint8_t {
  CPU,
  CUDA,
  Meta,  ///< shapes only, no elements
};

struct Device {
  DeviceType type = DeviceType::CPU;
  int8_t index = 0;
  bool operator==(const Device&) const = default;
  std::string str() const;  ///< "cpu", "cuda:1", "meta"
};
/// Reads "cpu", "cuda", "cuda:1", "meta"; raises ValueError.
Device parse_device(std::string_view text);

enum class MemoryFormat : uint8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };
std::string_view name(MemoryFormat f);

}  // namespace fl
