#include "flambeau/tensor/generator.h"

#include <cstring>
#include <map>
#include <random>
#include <utility>

namespace fl {

namespace {

thread_local RandomHook* g_hook = nullptr;
thread_local DrawRecorder* g_recorder = nullptr;

uint32_t low(uint64_t v) { return static_cast<uint32_t>(v); }
uint32_t high(uint64_t v) { return static_cast<uint32_t>(v >> 32); }

constexpr int64_t kStateBytes = 16;

struct DefaultGenerators {
  std::mutex mutex;
  std::map<std::pair<DeviceType, int>, Ref<Generator>> generators;
  uint64_t seed = Generator::kDefaultSeed;
};

DefaultGenerators& defaults() {
  static DefaultGenerators& d = *new DefaultGenerators;
  return d;
}

}  // namespace

PhiloxBlock philox(PhiloxBlock c, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
    c = {high(b) ^ c[1] ^ key[0], low(b), high(a) ^ c[3] ^ key[1], low(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return c;
}

PhiloxBlock philox(const PhiloxSlot& slot, int64_t i) {
  const auto counter = static_cast<uint64_t>(slot.offset.expect_int() + i);
  return philox({low(counter), high(counter), 0, 0}, {static_cast<uint32_t>(slot.seed_low.expect_int()),
                                                      static_cast<uint32_t>(slot.seed_high.expect_int())});
}

void Generator::manual_seed(uint64_t seed) {
  std::lock_guard lock(mutex_);
  seed_ = seed;
  offset_ = 0;
}

uint64_t Generator::seed() {
  std::random_device entropy;
  const uint64_t seed = uint64_t{entropy()} << 32 | entropy();
  manual_seed(seed);
  return seed;
}

uint64_t Generator::initial_seed() const {
  std::lock_guard lock(mutex_);
  return seed_;
}

int64_t Generator::offset() const {
  std::lock_guard lock(mutex_);
  return offset_;
}

void Generator::set_offset(int64_t offset) {
  FL_CHECK(offset >= 0, RuntimeError, "expected an offset of 0 or more, got {}", offset);
  std::lock_guard lock(mutex_);
  offset_ = offset;
}

PhiloxSlot Generator::reserve(SymInt count) {
  if (g_hook) return g_hook->reserve(*this, count);
  return take(count.expect_int());
}

PhiloxSlot Generator::take(int64_t count) {
  FL_CHECK(count >= 0, RuntimeError, "expected to draw 0 or more random numbers, got {}", count);
  if (g_recorder) [[unlikely]]
    if (const auto slot = g_recorder->take(*this, count)) return *slot;
  std::lock_guard lock(mutex_);
  int64_t next;
  FL_CHECK(!__builtin_add_overflow(offset_, count, &next), RuntimeError,
           "the generator is used up: {} more numbers from offset {} leave 63 bits; seed it anew", count,
           offset_);
  return {int64_t{low(seed_)}, int64_t{high(seed_)}, std::exchange(offset_, next)};
}

Tensor Generator::get_state() const {
  Tensor state = empty_tensor({kStateBytes}, DType::UInt8);
  std::lock_guard lock(mutex_);
  std::memcpy(state.data_as<char>(), &seed_, 8);
  std::memcpy(state.data_as<char>() + 8, &offset_, 8);
  return state;
}

void Generator::set_state(const Tensor& state) {
  FL_CHECK(state.defined() && state.dtype() == DType::UInt8 && state.device().type == DeviceType::CPU,
           RuntimeError, "RNG state must be a torch.ByteTensor, got {}",
           state.defined() ? fmt::format("{} on {}", name(state.dtype()), state.device().str()) : "None");
  const auto bytes = state.to_vector<uint8_t>();
  FL_CHECK(bytes.size() == kStateBytes, RuntimeError, "RNG state is wrong size: expected {} bytes, got {}",
           kStateBytes, bytes.size());
  uint64_t seed;
  int64_t offset;
  std::memcpy(&seed, bytes.data(), 8);
  std::memcpy(&offset, bytes.data() + 8, 8);
  FL_CHECK(offset >= 0, RuntimeError, "RNG state is damaged: expected an offset of 0 or more, got {}",
           offset);
  std::lock_guard lock(mutex_);
  seed_ = seed;
  offset_ = offset;
}

RandomHook::Scope::Scope(RandomHook* hook) : previous_(std::exchange(g_hook, hook)) {}
RandomHook::Scope::~Scope() { g_hook = previous_; }

DrawRecorder::Scope::Scope(DrawRecorder* recorder) : previous_(std::exchange(g_recorder, recorder)) {}
DrawRecorder::Scope::~Scope() { g_recorder = previous_; }

const Ref<Generator>& default_generator(Device d) {
  DefaultGenerators& all = defaults();
  std::lock_guard lock(all.mutex);
  Ref<Generator>& generator = all.generators[{d.type, d.index}];
  if (!generator) generator = make_ref<Generator>(d, all.seed);
  return generator;
}

void manual_seed(uint64_t seed) {
  DefaultGenerators& all = defaults();
  std::lock_guard lock(all.mutex);
  all.seed = seed;
  for (auto& [device, generator] : all.generators) generator->manual_seed(seed);
}

}  // namespace fl
