#include "flambeau/base/option.h"

#include <cstdlib>

namespace fl {

std::string option(const char* name, std::string_view otherwise) {
  const char* text = std::getenv(name);
  return std::string(text ? std::string_view(text) : otherwise);
}

bool option_lists(const char* name, std::string_view word) {
  const std::string text = "," + option(name) + ",";
  return text.find("," + std::string(word) + ",") != std::string::npos;
}

}  // namespace fl
