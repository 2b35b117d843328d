// Random numbers of CUDA graphs. While a graph is recorded, draws get placeholders; at each launch the
// generators move on as if the draws were made then, and kernels get the numbers of that time.
#pragma once
#include <memory>
#include <vector>

#include "flambeau/tensor/generator.h"

namespace fl::runtime::cuda {

class RecordedDraws final : public DrawRecorder {
 public:
  /// Of generators of cuda:`device`. There may be 16384 at a time.
  static std::shared_ptr<RecordedDraws> make(int device);
  std::optional<PhiloxSlot> take(Generator& generator, int64_t count) override;
  bool any() const { return !streams_.empty(); }
  /// The placeholders stand for new numbers from now on.
  void advance();

  static bool is_placeholder(int64_t number) { return number >= kFirst; }
  /// What the placeholder stands for; raises RuntimeError where its graph is gone or was not launched.
  static int64_t value(int64_t placeholder);

 private:
  // A number of the graph, one of the generator, what is meant, and how far behind the first draw's offset:
  // in 14, 4, 2 and 40 bits. No size or stride is as large.
  static constexpr int64_t kFirst = int64_t{1} << 60;
  enum class Part : uint8_t { SeedLow, SeedHigh, Offset };
  struct Stream {
    Ref<Generator> generator;
    int64_t count = 0;  ///< that one launch draws
    bool drawn = false;
    PhiloxSlot now;
  };
  int64_t placeholder(size_t stream, Part part, int64_t delta) const;

  int device_ = 0;
  int64_t number_ = 0;
  std::vector<Stream> streams_;
};

}  // namespace fl::runtime::cuda
