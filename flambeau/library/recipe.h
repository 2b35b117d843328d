// A short list of steps, most of them oneDNN primitives, over numbered buffers, ready to run: what every plan
// holds.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

struct dnnl_engine;
struct dnnl_memory_desc;
struct dnnl_primitive;
struct dnnl_primitive_desc;

namespace fl::library {

/// The CPU engine; null where it cannot be made. Never destroyed, so that plans may outlive everything.
dnnl_engine* cpu_engine();

/// Sets OpenMP's number of threads for the calling thread while it lives: a primitive must run with the
/// number of threads that it was made for.
class ThreadScope {
 public:
  explicit ThreadScope(int threads);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int before_;
  bool changed_;
};

class Recipe {
 public:
  /// The caller passes `pointers` of them; `threads` is what the primitives are made for.
  Recipe(int pointers, int threads);
  ~Recipe();
  Recipe(const Recipe&) = delete;
  Recipe& operator=(const Recipe&) = delete;

  /// Adds a buffer in the scratch memory and returns its number, counted after the caller's pointers.
  int add_scratch(const dnnl_memory_desc* desc);

  struct Argument {
    int name;    // DNNL_ARG_*
    int buffer;  // a caller's pointer or a scratch buffer
  };
  /// Adds a primitive; made with user scratchpads. Compiles it: call inside the ThreadScope of `threads`.
  void add_step(const dnnl_primitive_desc* desc, std::initializer_list<Argument> arguments);

  /// Adds a transposition of `batch` matrices; see transpose.h.
  void add_transpose(int from, int to, int64_t batch, int64_t rows, int64_t columns, int64_t element_bytes);

  /// Bytes that run() needs at `scratch`, aligned to 64.
  int64_t scratch_bytes() const { return buffers_bytes_ + scratchpad_bytes_; }
  /// Runs the steps in order. Safe to call from several threads at once.
  void run(std::span<void* const> pointers, void* scratch) const;
  /// The names of the library's kernels, joined by " + ".
  const std::string& implementation() const { return implementation_; }

 private:
  struct BoundArgument {
    Argument argument;
    const dnnl_memory_desc* desc;  // belongs to the primitive
  };
  struct Transposition {
    int from, to;
    int64_t batch, rows, columns, element_bytes;
  };
  struct Step {
    dnnl_primitive* primitive;  // null: the transposition
    std::vector<BoundArgument> arguments;
    Transposition transposition{};
  };
  struct Context;  // memory objects and a stream: one call at a time
  static constexpr int kKeptContexts = 8;

  void* place(int buffer, std::span<void* const> pointers, char* base) const;
  Context* take_context() const;
  void give_context(Context* context) const;

  int pointers_;
  int threads_;
  std::vector<Step> steps_;
  std::vector<int64_t> scratch_offsets_;
  int64_t buffers_bytes_ = 0;
  int64_t scratchpad_bytes_ = 0;
  std::string implementation_;
  mutable std::array<std::atomic<Context*>, kKeptContexts> contexts_{};
};

}  // namespace fl::library
