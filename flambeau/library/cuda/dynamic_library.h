// A shared library that may not be there, opened by name at run time.
#pragma once
#include <initializer_list>
#include <string>

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

/// The functions of a library, and why it cannot be used where it cannot.
template <class Functions>
struct LoadedFunctions {
  Functions functions{};
  std::string problem;
  const Functions* find() const { return problem.empty() ? &functions : nullptr; }
};

/// What `load` makes when it is first asked for: it fills in the functions, or says what is wrong. It lives
/// as long as the process, for destructors of static objects call functions, too.
template <class Functions, std::string (*load)(Functions&)>
const LoadedFunctions<Functions>& loaded_functions() {
  static const LoadedFunctions<Functions>& result = *[] {
    auto* out = new LoadedFunctions<Functions>;
    out->problem = load(out->functions);
    return out;
  }();
  return result;
}

}  // namespace fl::library
