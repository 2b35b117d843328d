#include "flambeau/tensor/device.h"

#include <charconv>

#include "flambeau/base/error.h"

namespace fl {

std::string Device::str() const {
  switch (type) {
    case DeviceType::CPU:
      return "cpu";
    case DeviceType::CUDA:
      return fmt::format("cuda:{}", index);
    case DeviceType::Meta:
      return "meta";
  }
  FL_ASSERT(false, "device type {}", static_cast<int>(type));
}

Device parse_device(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  Device device;
  if (kind == "cpu") {
    device.type = DeviceType::CPU;
  } else if (kind == "cuda") {
    device.type = DeviceType::CUDA;
  } else if (kind == "meta") {
    device.type = DeviceType::Meta;
  } else {
    FL_RAISE(ValueError, "expected one of cpu, cuda, meta device type at start of device string, got '{}'",
             text);
  }
  if (colon == std::string_view::npos) return device;
  const std::string_view digits = text.substr(colon + 1);
  int index = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  FL_CHECK(error == std::errc() && end == digits.data() + digits.size() && index >= 0 && index < 128,
           ValueError, "expected a device index from 0 to 127 after ':', got '{}'", text);
  FL_CHECK(device.type == DeviceType::CUDA || index == 0, ValueError,
           "expected index 0 for the only {} device, got '{}'", kind, text);
  device.index = static_cast<int8_t>(index);
  return device;
}

std::string_view name(MemoryFormat f) {
  switch (f) {
    case MemoryFormat::Contiguous:
      return "contiguous_format";
    case MemoryFormat::Preserve:
      return "preserve_format";
    case MemoryFormat::ChannelsLast:
      return "channels_last";
    case MemoryFormat::ChannelsLast3d:
      return "channels_last_3d";
  }
  FL_ASSERT(false, "memory format {}", static_cast<int>(f));
}

}  // namespace fl
