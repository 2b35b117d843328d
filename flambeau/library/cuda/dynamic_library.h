// A shared library that may not be there, opened by name at run time.
#pragma once
#include <initializer_list>

namespace fl::library {

class DynamicLibrary {
 public:
  /// Opens the first of the names that can be opened. It stays open as long as the process.
  explicit DynamicLibrary(std::initializer_list<const char*> names);
  bool is_open() const { return handle_ != nullptr; }
  const char* name() const { return name_; }  ///< Of the one that was opened.
  /// Null where the library lacks the function.
  void* find(const char* function) const;

 private:
  void* handle_ = nullptr;
  const char* name_ = "";
};

}  // namespace fl::library
