#include "flambeau/library/recipe.h"

#include <omp.h>

#include "flambeau/base/error.h"
#include "flambeau/library/library.h"
#include "flambeau/library/transpose.h"

#if FLAMBEAU_ONEDNN
#include <oneapi/dnnl/dnnl.hpp>
#endif

namespace fl::library {

ThreadScope::ThreadScope(int threads) : before_(omp_get_max_threads()), changed_(before_ != threads) {
  if (changed_) omp_set_num_threads(threads);
}
ThreadScope::~ThreadScope() {
  if (changed_) omp_set_num_threads(before_);
}

#if FLAMBEAU_ONEDNN
namespace {

constexpr int64_t kAlignment = 64;
int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

void check(dnnl_status_t status, const char* what) {
  FL_CHECK(status != dnnl_out_of_memory, OutOfMemoryError, "oneDNN found no memory to {}", what);
  FL_CHECK(status == dnnl_success, InternalError, "oneDNN could not {}: status {}", what,
           static_cast<int>(status));
}

}  // namespace

dnnl_engine* cpu_engine() {
  static dnnl_engine* const engine = [] {
    dnnl_engine_t made = nullptr;
    return dnnl_engine_create(&made, dnnl_cpu, 0) == dnnl_success ? made : nullptr;
  }();
  return engine;
}

bool available() { return cpu_engine() != nullptr; }

std::string version() {
  const dnnl_version_t* v = dnnl_version();
  return fmt::format("oneDNN {}.{}.{} ({:.8})", v->major, v->minor, v->patch, v->hash);
}

/// All arguments of all steps, one after the other.
struct Recipe::Context {
  dnnl_stream_t stream = nullptr;
  std::vector<dnnl_exec_arg_t> arguments;
  ~Context() {
    for (const dnnl_exec_arg_t& a : arguments) dnnl_memory_destroy(a.memory);
    dnnl_stream_destroy(stream);
  }
};

Recipe::Recipe(int pointers, int threads) : pointers_(pointers), threads_(threads) {}

Recipe::~Recipe() {
  for (std::atomic<Context*>& slot : contexts_) delete slot.load();
  for (const Step& step : steps_)
    if (step.primitive) dnnl_primitive_destroy(step.primitive);
}

int Recipe::add_scratch(const dnnl_memory_desc* desc) {
  scratch_offsets_.push_back(buffers_bytes_);
  buffers_bytes_ += aligned(static_cast<int64_t>(dnnl_memory_desc_get_size(desc)));
  return pointers_ + static_cast<int>(scratch_offsets_.size()) - 1;
}

void Recipe::add_step(const dnnl_primitive_desc* desc, std::initializer_list<Argument> arguments) {
  dnnl_primitive_t primitive = nullptr;
  check(dnnl_primitive_create(&primitive, desc), "compile a kernel");
  steps_.push_back({primitive, {}, {}});
  // The primitive's own copy of the descriptor lives as long as the primitive.
  const_dnnl_primitive_desc_t own = nullptr;
  check(dnnl_primitive_get_primitive_desc(primitive, &own), "read a kernel's descriptor");
  const char* name = nullptr;
  if (dnnl_primitive_desc_query(own, dnnl_query_impl_info_str, 0, &name) == dnnl_success)
    implementation_ += (implementation_.empty() ? "" : " + ") + std::string(name);
  for (const Argument& a : arguments) {
    const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(own, dnnl_query_exec_arg_md, a.name);
    FL_ASSERT(md, "argument {} of a kernel has no descriptor", a.name);
    steps_.back().arguments.push_back({a, md});
  }
  const_dnnl_memory_desc_t scratchpad = dnnl_primitive_desc_query_md(own, dnnl_query_scratchpad_md, 0);
  const int64_t bytes = scratchpad ? static_cast<int64_t>(dnnl_memory_desc_get_size(scratchpad)) : 0;
  if (bytes == 0) return;
  // Steps run one after the other, so one place behind the buffers serves all of them.
  steps_.back().arguments.push_back({{DNNL_ARG_SCRATCHPAD, -1}, scratchpad});
  scratchpad_bytes_ = std::max(scratchpad_bytes_, aligned(bytes));
}

void Recipe::add_transpose(int from, int to, int64_t batch, int64_t rows, int64_t columns,
                           int64_t element_bytes) {
  steps_.push_back({nullptr, {}, {from, to, batch, rows, columns, element_bytes}});
  implementation_ += (implementation_.empty() ? "" : " + ") + std::string("transpose");
}

// Scratch buffers lie one after the other, a primitive's own scratchpad (-1) behind them.
void* Recipe::place(int buffer, std::span<void* const> pointers, char* base) const {
  if (buffer < 0) return base + buffers_bytes_;
  return buffer < pointers_ ? pointers[buffer] : base + scratch_offsets_[buffer - pointers_];
}

Recipe::Context* Recipe::take_context() const {
  for (std::atomic<Context*>& slot : contexts_) {
    if (!slot.load(std::memory_order_relaxed)) continue;
    if (Context* kept = slot.exchange(nullptr, std::memory_order_acquire)) return kept;
  }
  auto made = std::make_unique<Context>();
  check(dnnl_stream_create(&made->stream, cpu_engine(), dnnl_stream_default_flags), "make a stream");
  for (const Step& step : steps_) {
    for (const BoundArgument& bound : step.arguments) {
      dnnl_memory_t memory = nullptr;
      check(dnnl_memory_create(&memory, bound.desc, cpu_engine(), DNNL_MEMORY_NONE), "make a memory object");
      made->arguments.push_back({bound.argument.name, memory});
    }
  }
  return made.release();
}

void Recipe::give_context(Context* context) const {
  for (std::atomic<Context*>& slot : contexts_) {
    Context* empty = nullptr;
    if (slot.compare_exchange_strong(empty, context, std::memory_order_release, std::memory_order_relaxed))
      return;
  }
  delete context;
}

void Recipe::run(std::span<void* const> pointers, void* scratch) const {
  FL_ASSERT(static_cast<int>(pointers.size()) == pointers_, "{} pointers for {}", pointers.size(), pointers_);
  ThreadScope threads(threads_);
  auto give = [this](Context* context) { give_context(context); };
  std::unique_ptr<Context, decltype(give)> context(take_context(), give);
  char* base = static_cast<char*>(scratch);
  const dnnl_exec_arg_t* next = context->arguments.data();
  for (const Step& step : steps_) {
    if (!step.primitive) {
      const Transposition& t = step.transposition;
      transpose(place(t.from, pointers, base), place(t.to, pointers, base), t.batch, t.rows, t.columns,
                t.element_bytes);
      continue;
    }
    for (size_t i = 0; i < step.arguments.size(); ++i)
      check(dnnl_memory_set_data_handle(next[i].memory,
                                        place(step.arguments[i].argument.buffer, pointers, base)),
            "bind a buffer");
    const int count = static_cast<int>(step.arguments.size());
    check(dnnl_primitive_execute(step.primitive, context->stream, count, next), "run a kernel");
    next += count;
  }
}

#else

dnnl_engine* cpu_engine() { return nullptr; }
bool available() { return false; }
std::string version() { return "none"; }

struct Recipe::Context {};
Recipe::Recipe(int pointers, int threads) : pointers_(pointers), threads_(threads) {}
Recipe::~Recipe() = default;
void Recipe::run(std::span<void* const>, void*) const {
  FL_RAISE(InternalError, "a library call without the library ({} pointers, {} threads)", pointers_,
           threads_);
}

#endif

}  // namespace fl::library
