#include "flambeau/library/library.h"

#include <omp.h>

#include <cstdlib>
#include <memory>

#include "flambeau/base/error.h"
#include "flambeau/base/parallel.h"

namespace fl::library {
namespace {

class GrowingWorkspace final : public Workspace {
 public:
  void* bytes(int64_t count) override {
    if (count > size_) {
      memory_.reset();
      size_ = (count + 4095) / 4096 * 4096;
      memory_.reset(std::aligned_alloc(64, size_));
      if (!memory_) {
        const int64_t wanted = std::exchange(size_, 0);
        FL_RAISE(OutOfMemoryError, "no memory for a library call's scratch of {} bytes", wanted);
      }
    }
    return memory_.get();
  }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::unique_ptr<void, Free> memory_;
  int64_t size_ = 0;
};

}  // namespace

int64_t scalar_bytes(ScalarKind kind) {
  switch (kind) {
    case ScalarKind::F32:
      return 4;
    case ScalarKind::BF16:
    case ScalarKind::F16:
      return 2;
    case ScalarKind::F64:
      return 8;
  }
  FL_RAISE(InternalError, "unknown scalar kind {}", static_cast<int>(kind));
}

const char* scalar_name(ScalarKind kind) {
  switch (kind) {
    case ScalarKind::F32:
      return "f32";
    case ScalarKind::BF16:
      return "bf16";
    case ScalarKind::F16:
      return "f16";
    case ScalarKind::F64:
      return "f64";
  }
  FL_RAISE(InternalError, "unknown scalar kind {}", static_cast<int>(kind));
}

Workspace& thread_workspace() {
  static thread_local GrowingWorkspace workspace;
  return workspace;
}

int usable_threads() { return omp_in_parallel() ? 1 : num_threads(); }

}  // namespace fl::library
