// Random numbers: Philox 4x32-10, addressed by (seed, offset).
//
// Draws are pure functions of a slot. Element i of a draw (row-major) belongs to one counter of its own,
//   key     = {seed_low, seed_high}
//   counter = {low 32 bits of offset + i, high 32 bits of offset + i, 0, 0}
// and uses words 0 and 1 of its block (two, so that a float64 and a normal pair have enough bits). Words 2
// and 3 of the counter are left for draws that reject: attempt a uses counter word 2 = a. So eager, compiled,
// CPU and GPU code draw the same numbers, whatever the order of their elements.
#pragma once
#include <array>
#include <cstdint>
#include <mutex>
#include <optional>

#include "flambeau/base/ref.h"
#include "flambeau/tensor/tensor.h"

namespace fl {

using PhiloxBlock = std::array<uint32_t, 4>;
/// The block of a counter (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
PhiloxBlock philox(PhiloxBlock counter, std::array<uint32_t, 2> key);

/// Where a draw's numbers come from. The words of the seed lie in [0, 2^32).
struct PhiloxSlot {
  SymInt seed_low, seed_high, offset;
};
/// The block of element i of a draw.
PhiloxBlock philox(const PhiloxSlot& slot, int64_t i);

/// A stream of slots. Thread-safe.
class Generator : public RefCounted {
 public:
  static constexpr uint64_t kDefaultSeed = 67280421310721;  ///< PyTorch's

  explicit Generator(Device device = {}, uint64_t seed = kDefaultSeed) : device_(device), seed_(seed) {}

  Device device() const { return device_; }
  void manual_seed(uint64_t seed);  ///< Starts anew at offset 0.
  uint64_t seed();                  ///< Seeds from the system's entropy; returns the seed.
  uint64_t initial_seed() const;
  int64_t offset() const;
  void set_offset(int64_t offset);

  /// Room for `count` elements. Under a RandomHook the hook answers.
  PhiloxSlot reserve(SymInt count);
  /// The same without asking a hook. Under a DrawRecorder that answers.
  PhiloxSlot take(int64_t count);

  /// 16 bytes, uint8: seed and offset. set_state raises RuntimeError on any other tensor.
  Tensor get_state() const;
  void set_state(const Tensor& state);

 private:
  mutable std::mutex mutex_;
  Device device_;
  uint64_t seed_;
  int64_t offset_ = 0;
};

/// Answers draws while a trace runs on this thread, with symbols in place of the seed and the offset.
class RandomHook {
 public:
  virtual ~RandomHook() = default;
  virtual PhiloxSlot reserve(Generator& generator, SymInt count) = 0;

  /// Installs a hook on this thread; null suspends the one that is.
  class Scope {
   public:
    explicit Scope(RandomHook* hook);
    ~Scope();
    Scope(const Scope&) = delete;

   private:
    RandomHook* previous_;
  };
};

/// Answers draws while launches of this thread are recorded, to be run again with other numbers.
class DrawRecorder {
 public:
  virtual ~DrawRecorder() = default;
  /// Numbers in the place of a slot's, which launches recognise; nothing for generators that are not
  /// recorded.
  virtual std::optional<PhiloxSlot> take(Generator& generator, int64_t count) = 0;

  /// Installs a recorder on this thread; null suspends the one that is.
  class Scope {
   public:
    explicit Scope(DrawRecorder* recorder);
    ~Scope();
    Scope(const Scope&) = delete;

   private:
    DrawRecorder* previous_;
  };
};

/// The generator that operators of a device draw from unless given one.
const Ref<Generator>& default_generator(Device d);
/// Seeds the default generators of all devices, those made later too (torch.manual_seed).
void manual_seed(uint64_t seed);

}  // namespace fl
