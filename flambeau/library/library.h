// Kernels from libraries behind one interface of raw pointers: what eager and compiled programs call for
// matrix products and convolutions on the CPU. Without the library every *_supported() is false.
#pragma once
#include <cstdint>
#include <string>

namespace fl::library {

/// Element types that a call may have; all operands of one call share it. Products are summed in f32.
enum class ScalarKind : uint8_t { F32, BF16, F16, F64 };

int64_t scalar_bytes(ScalarKind kind);
const char* scalar_name(ScalarKind kind);

/// True where oneDNN was linked in and runs on this machine.
bool available();

/// "oneDNN 3.2.0 (40112196)", or "none".
std::string version();

/// Gives a call its scratch memory.
class Workspace {
 public:
  virtual ~Workspace() = default;
  /// At least `count` bytes, aligned to 64, valid until the next call of bytes() or the end of this object.
  virtual void* bytes(int64_t count) = 0;
};

/// The calling thread's own workspace; it grows to the largest request and keeps it.
Workspace& thread_workspace();

/// Threads that a library call made here would use: 1 inside a parallel region. Plans are made for this
/// number.
int usable_threads();

}  // namespace fl::library
