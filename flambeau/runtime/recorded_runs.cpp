#include "flambeau/runtime/recorded_runs.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>

#include "flambeau/base/option.h"

namespace fl::runtime {

using loop::ProgramBuffer;

namespace {

/// Outputs that are held while the program runs again are copied to other memory, up to this size together.
constexpr int64_t kCopiedBytes = 1 << 20;
/// Recordings for one layout that may exist at a time, and that are made in all.
constexpr size_t kAtOnce = 4;
constexpr int kInAll = 24;
/// So often an input that another recording made may be elsewhere before it is copied, too.
constexpr int kMoves = 4;
/// Layouts of one program that have recordings: each keeps memory for its outputs.
constexpr int kLayouts = 32;

std::atomic<int64_t> g_recorded{0}, g_replayed{0}, g_skipped{0}, g_copied{0};
std::mutex g_mutex;  // the reason
/// Under g_mutex.
std::string& last_reason() {
  static std::string reason;
  return reason;
}

void hint(const std::string& text) {
  if (option_lists("FLAMBEAU_LOGS", "perf_hints") || option_lists("TORCH_LOGS", "perf_hints") ||
      option_lists("TORCH_LOGS", "+perf_hints"))
    fmt::print(stderr, "flambeau: CUDA graphs: {}\n", text);
}

/// Temporaries of recordings: those of one stream run one after the other and share memory for the largest of
/// what programs have asked for so far, at their first runs.
class Arenas {
 public:
  using Queue = std::pair<int, uint64_t>;  // device, stream
  void want(Queue q, int64_t bytes) {
    std::lock_guard lock(mutex_);
    all_[q].wanted.insert(bytes);
  }
  void forget(Queue q, int64_t bytes) {
    std::lock_guard lock(mutex_);
    auto& wanted = all_[q].wanted;
    wanted.erase(wanted.find(bytes));
  }
  Ref<Storage> get(Queue q, Device device, int64_t bytes) {
    std::lock_guard lock(mutex_);
    // Arenas that no recording has any more.
    for (auto& [queue, arena] : all_)
      if (arena.memory && arena.memory->use_count() == 1) arena.memory = nullptr;
    Arena& arena = all_[q];
    if (!arena.wanted.empty()) bytes = std::max(bytes, *arena.wanted.rbegin());
    if (!arena.memory || arena.memory->bytes() < bytes) arena.memory = make_ref<Storage>(bytes, device);
    return arena.memory;
  }

 private:
  struct Arena {
    std::multiset<int64_t> wanted;
    Ref<Storage> memory;
  };
  std::mutex mutex_;
  std::map<Queue, Arena> all_;
};

Arenas& arenas() {
  static Arenas& a = *new Arenas;
  return a;
}

bool is_parameter(const Tensor& t) { return t.requires_grad() && t.is_leaf(); }

}  // namespace

RecordingFigures recording_figures() {
  std::lock_guard lock(g_mutex);
  return {g_recorded, g_replayed, g_skipped, g_copied, last_reason()};
}

/// Memory of an output. While it is handed out it keeps itself alive.
struct Executable::RecordedRuns::Lease : std::enable_shared_from_this<Lease> {
  explicit Lease(Ref<Storage> m) : memory(std::move(m)) {
    std::lock_guard lock(all().mutex);
    all().places.insert(memory->data());
  }
  ~Lease() {
    std::lock_guard lock(all().mutex);
    all().places.erase(memory->data());
  }
  Lease(const Lease&) = delete;

  /// Whether a storage at this address is handed out by a recording.
  static bool is_one(const void* data) {
    std::lock_guard lock(all().mutex);
    return all().places.contains(data);
  }

  Ref<Storage> hand_out() {
    held.store(true, std::memory_order_relaxed);
    self = shared_from_this();
    return make_ref<Storage>(memory->data(), memory->bytes(), memory->device(), &Lease::take_back, this);
  }
  static void take_back(void* context) {
    auto* lease = static_cast<Lease*>(context);
    const std::shared_ptr<Lease> last = std::move(lease->self);
    lease->held.store(false, std::memory_order_release);
  }

  Ref<Storage> memory;
  std::atomic<bool> held{false};
  std::shared_ptr<Lease> self;

 private:
  struct All {
    std::mutex mutex;
    std::set<const void*> places;
  };
  static All& all() {
    static All& a = *new All;
    return a;
  }
};

struct Executable::RecordedRuns::Recorded {
  struct Input {
    int buffer, input;
    char* address = nullptr;  // where it is read
    Ref<Storage> place;       // of its own
    int64_t bytes = 0;
  };
  struct Output {
    int buffer;
    std::shared_ptr<Lease> lease;
    bool copied;  // what the caller gets is a copy
  };
  std::vector<Input> inputs;   // but for those by value
  std::vector<char*> targets;  // by output; null where there is none
  std::vector<Output> outputs;
  std::vector<void*> written;  // by outputs that are handed out
  std::vector<VariableLaunch> variable;
  Ref<Storage> arena;
  std::unique_ptr<Recording> recording;  // the last: it ends before its memory

  bool is_held() const {
    return std::ranges::any_of(outputs,
                               [](const Output& o) { return o.lease->held.load(std::memory_order_acquire); });
  }
};

Executable::RecordedRuns::RecordedRuns(const Executable& e)
    : executable_(e), copied_out_(e.program_.buffers.size(), false) {
  for (size_t b = 0; b < e.program_.buffers.size(); ++b)
    if (e.program_.buffers[b].kind == ProgramBuffer::Kind::Input && !e.program_.buffers[b].by_value)
      input_buffers_.push_back(static_cast<int>(b));
  last_addresses_.resize(input_buffers_.size());
  copied_in_.resize(input_buffers_.size());
  moves_.resize(input_buffers_.size());
}

Executable::RecordedRuns::~RecordedRuns() {
  if (arena_bytes_ >= 0) arenas().forget({executable_.program_.device.index, queue_}, arena_bytes_);
}

void Executable::RecordedRuns::give_up(std::string reason) {
  gave_up_ = true;
  all_.clear();
  hint(fmt::format("{} runs without one: {}", executable_.program_.name, reason));
  ++g_skipped;
  std::lock_guard lock(g_mutex);
  last_reason() = std::move(reason);
}

bool Executable::RecordedRuns::fits(const Recorded& r, const Run& run) const {
  if (!r.recording->is_current()) return false;
  for (const Recorded::Input& i : r.inputs)
    if (!i.place && run.inputs[i.input].data() != i.address) return false;
  for (size_t o = 0; o < r.targets.size(); ++o)
    if (r.targets[o] !=
        (o < run.targets.size() && run.targets[o].defined() ? run.targets[o].data() : nullptr))
      return false;
  return true;
}

// Which inputs get a place of their own: those that are elsewhere than at the last call. What another
// recording made is in one of few places, and a recording for each of them is better than copies.
void Executable::RecordedRuns::note_moves(const Run& run) {
  for (size_t n = 0; n < input_buffers_.size(); ++n) {
    const Tensor& t = run.inputs[executable_.program_.buffers[input_buffers_[n]].index];
    if (t.data() == last_addresses_[n] || is_parameter(t)) continue;
    if (Lease::is_one(t.storage()->data()) && ++moves_[n] < kMoves) continue;
    const bool is_target = std::ranges::any_of(run.targets, [&](const Tensor& target) {
      return target.defined() && target.storage() == t.storage();
    });
    if (!is_target) copied_in_[n] = true;
  }
}

// Drops recordings that are not wanted any more, before another one needs memory. What callers hold stays.
void Executable::RecordedRuns::make_room() {
  std::erase_if(all_, [&](const std::unique_ptr<Recorded>& r) {
    for (size_t n = 0; n < r->inputs.size(); ++n)
      if (copied_in_[n] && !r->inputs[n].place) return true;
    return std::ranges::any_of(r->outputs, [&](const Recorded::Output& o) {
      return copied_out_[static_cast<size_t>(o.buffer)] && !o.copied;
    });
  });
  if (all_.size() >= kAtOnce) all_.erase(all_.begin());
}

int64_t Executable::RecordedRuns::bytes_of(const Run& run, int buffer) const {
  return run.plan.values[executable_.buffers_[buffer].elements] *
         size_of(executable_.program_.buffers[buffer].dtype);
}

void Executable::RecordedRuns::note_addresses(const Run& run) {
  for (size_t n = 0; n < input_buffers_.size(); ++n)
    last_addresses_[n] = run.inputs[executable_.program_.buffers[input_buffers_[n]].index].data();
}

// Few bytes that are held when the program runs again are copied from now on, and another recording is made.
void Executable::RecordedRuns::note_held(const Recorded& r) {
  int64_t bytes = 0;
  for (const Recorded::Output& o : r.outputs)
    if (o.lease->held) bytes += o.lease->memory->bytes();
  if (bytes > kCopiedBytes) return;
  for (const Recorded::Output& o : r.outputs)
    if (o.lease->held) copied_out_[static_cast<size_t>(o.buffer)] = true;
}

std::optional<std::vector<Value>> Executable::RecordedRuns::run(Run& run) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || gave_up_) return std::nullopt;
  // The first call makes what is made once, such as scratch memory of libraries.
  if (calls_++ == 0) {
    note_addresses(run);
    arena_bytes_ = run.plan.arena_bytes;
    queue_ = executable_.runtime_.current_queue(executable_.program_.device);
    arenas().want({executable_.program_.device.index, queue_}, arena_bytes_);
  }
  if (calls_ == 1 || !executable_.runtime_.can_record(executable_.program_.device)) return std::nullopt;
  bool busy = false;
  Recorded* r = find(run, busy);
  if (!r) {
    if (recorded_ >= kInAll) {
      // Outputs that are held for long are nothing to give up for.
      if (!busy) give_up("its inputs, parameters or streams change all the time");
      return std::nullopt;
    }
    try {
      note_moves(run);
      make_room();
      r = record(run);
      note_addresses(run);
    } catch (const Error& e) {
      give_up(e.message());
      return std::nullopt;
    }
  }
  return replay(*r, run);
}

Executable::RecordedRuns::Recorded* Executable::RecordedRuns::find(const Run& run, bool& busy) {
  for (auto it = all_.rbegin(); it != all_.rend(); ++it) {
    if (!fits(**it, run)) continue;
    if ((*it)->is_held()) {
      busy = true;
      continue;
    }
    std::rotate(it.base() - 1, it.base(), all_.end());
    return all_.back().get();
  }
  if (busy) note_held(*all_.back());
  return nullptr;
}

Executable::RecordedRuns::Recorded* Executable::RecordedRuns::record(Run& run) {
  const Executable& e = executable_;
  const Device device = e.program_.device;
  FL_CHECK(recorded_ > 0 || e.recorded_layouts_.fetch_add(1) < kLayouts, RuntimeError,
           "{} other sizes of its inputs have one already", kLayouts);
  auto r = std::make_unique<Recorded>();
  for (size_t o = 0; o < run.targets.size(); ++o)
    r->targets.push_back(run.targets[o].defined() ? static_cast<char*>(run.targets[o].data()) : nullptr);
  Run own(run.plan, run.inputs, run.targets, e.program_.buffers.size(), run.loose.size());
  own.loose = run.loose;
  if (run.plan.arena_bytes > 0)
    own.arena = r->arena =
        arenas().get({device.index, e.runtime_.current_queue(device)}, device, run.plan.arena_bytes);
  for (size_t n = 0; n < input_buffers_.size(); ++n) {
    const int b = input_buffers_[n], number = e.program_.buffers[b].index;
    const Tensor& t = run.inputs[number];
    Recorded::Input input{b, number, static_cast<char*>(t.data()), nullptr, bytes_of(run, b)};
    if (copied_in_[n] || t.device() != device) {
      input.place = make_ref<Storage>(input.bytes, device);
      input.address = static_cast<char*>(input.place->data());
    }
    own.address[b] = input.address;
    r->inputs.push_back(std::move(input));
  }
  e.place(own);
  for (size_t b = 0; b < own.made.size(); ++b)
    if (own.made[b]) {
      r->outputs.push_back({static_cast<int>(b), std::make_shared<Lease>(own.made[b]), copied_out_[b]});
      if (!copied_out_[b]) r->written.push_back(own.made[b]->data());
    }
  r->recording =
      e.runtime_.record(device, [&](const Recording& recording) { e.launch(own, &recording, &r->variable); });
  ++recorded_;
  ++g_recorded;
  all_.push_back(std::move(r));
  return all_.back().get();
}

std::vector<Value> Executable::RecordedRuns::replay(Recorded& r, Run& run) const {
  const Executable& e = executable_;
  const Device device = e.program_.device;
  const auto copy = [&](void* to, const void* from, int64_t bytes, Device other) {
    e.runtime_.copy(device, to, from, static_cast<size_t>(bytes), other, false);
    g_copied.fetch_add(bytes, std::memory_order_relaxed);
  };
  for (size_t b = 0; b < e.program_.buffers.size(); ++b)
    if (e.program_.buffers[b].by_value)
      run.address[b] = static_cast<char*>(run.inputs[e.program_.buffers[b].index].data());
  for (const Recorded::Input& i : r.inputs) {
    run.address[i.buffer] = i.address;
    const Tensor& t = run.inputs[i.input];
    if (i.place && i.bytes > 0 && t.data() != i.address) copy(i.address, t.data(), i.bytes, t.device());
  }
  for (const Recorded::Output& o : r.outputs)
    run.address[o.buffer] = static_cast<char*>(o.lease->memory->data());
  run.arena = r.arena;
  if (!r.variable.empty()) {
    e.place(run);
    for (const VariableLaunch& v : r.variable) e.change(run, v, *r.recording);
  }
  r.recording->run(r.written);
  for (const Recorded::Output& o : r.outputs) {
    if (o.copied) {
      const auto bytes = static_cast<size_t>(o.lease->memory->bytes());
      run.made[o.buffer] = make_ref<Storage>(o.lease->memory->bytes(), device);
      if (bytes > 0)
        e.runtime_.copy(device, run.made[o.buffer]->data(), o.lease->memory->data(), bytes, device, false);
    } else {
      run.made[o.buffer] = o.lease->hand_out();
    }
  }
  g_replayed.fetch_add(1, std::memory_order_relaxed);
  return e.results(run);
}

}  // namespace fl::runtime
