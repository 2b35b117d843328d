// Plans by description, shared by all threads and bounded: shards with a lock each, the oldest plan leaves.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "flambeau/base/hash.h"

namespace fl::library {

/// Key: equality and hash(). A plan may be null: that a description is not supported is remembered too.
template <class Key, class Plan>
class PlanCache {
 public:
  using Pointer = std::shared_ptr<const Plan>;

  /// The plan of `key`; made by make() outside the lock, so two threads may both make one: the first is kept.
  template <class Make>
  Pointer find_or_make(const Key& key, Make&& make) {
    const uint64_t hash = key.hash();
    Shard& shard = shards_[hash >> 60];
    {
      std::lock_guard lock(shard.mutex);
      if (auto found = shard.plans.find(key); found != shard.plans.end()) {
        found->second.used = ++shard.clock;
        return found->second.plan;
      }
    }
    Pointer made = make();
    std::lock_guard lock(shard.mutex);
    auto [entry, fresh] = shard.plans.try_emplace(key, Entry{made, 0});
    entry->second.used = ++shard.clock;
    Pointer result = entry->second.plan;
    if (fresh && shard.plans.size() > kPlansPerShard) drop_oldest(shard);
    return result;
  }

 private:
  static constexpr size_t kPlansPerShard = 256;
  struct Entry {
    Pointer plan;
    uint64_t used;
  };
  struct Hasher {
    size_t operator()(const Key& key) const { return key.hash(); }
  };
  struct Shard {
    std::mutex mutex;
    std::unordered_map<Key, Entry, Hasher> plans;
    uint64_t clock = 0;
  };

  static void drop_oldest(Shard& shard) {
    auto oldest = shard.plans.begin();
    for (auto it = shard.plans.begin(); it != shard.plans.end(); ++it)
      if (it->second.used < oldest->second.used) oldest = it;
    shard.plans.erase(oldest);
  }

  std::array<Shard, 16> shards_;
};

}  // namespace fl::library
