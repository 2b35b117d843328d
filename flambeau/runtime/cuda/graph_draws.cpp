#include "flambeau/runtime/cuda/graph_draws.h"

#include <array>
#include <mutex>

#include "flambeau/base/error.h"

namespace fl::runtime::cuda {
namespace {

constexpr int kGraphBits = 14, kStreamBits = 4, kPartBits = 2, kDeltaBits = 40;

/// Those that exist, by their number.
struct Registry {
  std::mutex mutex;
  std::array<std::weak_ptr<RecordedDraws>, size_t{1} << kGraphBits> all;
  size_t next = 0;
};

Registry& registry() {
  static Registry& r = *new Registry;
  return r;
}

int64_t bits(int64_t number, int from, int count) { return (number >> from) & ((int64_t{1} << count) - 1); }

}  // namespace

std::shared_ptr<RecordedDraws> RecordedDraws::make(int device) {
  auto made = std::make_shared<RecordedDraws>();
  made->device_ = device;
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  for (size_t tried = 0; tried < r.all.size(); ++tried) {
    const size_t at = r.next++ % r.all.size();
    if (!r.all[at].expired()) continue;
    r.all[at] = made;
    made->number_ = static_cast<int64_t>(at);
    return made;
  }
  FL_RAISE(RuntimeError, "there are {} CUDA graphs already; drop some", r.all.size());
}

int64_t RecordedDraws::placeholder(size_t stream, Part part, int64_t delta) const {
  int64_t out = number_;
  out = (out << kStreamBits) | static_cast<int64_t>(stream);
  out = (out << kPartBits) | static_cast<int64_t>(part);
  return kFirst + ((out << kDeltaBits) | delta);
}

std::optional<PhiloxSlot> RecordedDraws::take(Generator& generator, int64_t count) {
  if (generator.device() != Device{DeviceType::CUDA, static_cast<int8_t>(device_)}) return std::nullopt;
  size_t s = 0;
  while (s < streams_.size() && streams_[s].generator.get() != &generator) ++s;
  if (s == streams_.size()) {
    FL_CHECK(s < (size_t{1} << kStreamBits), RuntimeError,
             "a CUDA graph draws from {} generators at the most, and this is one more", s);
    streams_.push_back({Ref<Generator>(&generator), 0, false, {}});
  }
  Stream& stream = streams_[s];
  FL_CHECK(count < (int64_t{1} << kDeltaBits) - stream.count, RuntimeError,
           "a CUDA graph draws up to 2^{} random numbers from a generator; {} more than {} are too many",
           kDeltaBits, count, stream.count);
  const int64_t at = stream.count;
  stream.count += count;
  return PhiloxSlot{placeholder(s, Part::SeedLow, 0), placeholder(s, Part::SeedHigh, 0),
                    placeholder(s, Part::Offset, at)};
}

void RecordedDraws::advance() {
  for (Stream& s : streams_) {
    s.now = s.generator->take(s.count);
    s.drawn = true;
  }
}

int64_t RecordedDraws::value(int64_t number) {
  number -= kFirst;
  const auto graph = static_cast<size_t>(bits(number, kDeltaBits + kPartBits + kStreamBits, kGraphBits));
  const auto stream = static_cast<size_t>(bits(number, kDeltaBits + kPartBits, kStreamBits));
  const auto part = static_cast<Part>(bits(number, kDeltaBits, kPartBits));
  std::shared_ptr<RecordedDraws> draws;
  {
    Registry& r = registry();
    std::lock_guard lock(r.mutex);
    draws = r.all[graph].lock();
  }
  FL_CHECK(draws && stream < draws->streams_.size() && draws->streams_[stream].drawn, RuntimeError,
           "random numbers that another CUDA graph draws are needed, and that was not launched before");
  const PhiloxSlot& now = draws->streams_[stream].now;
  if (part == Part::SeedLow) return now.seed_low.expect_int();
  if (part == Part::SeedHigh) return now.seed_high.expect_int();
  return now.offset.expect_int() + bits(number, 0, kDeltaBits);
}

}  // namespace fl::runtime::cuda
