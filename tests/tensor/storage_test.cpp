#include "flambeau/tensor/storage.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "flambeau/base/error.h"
#include "flambeau/tensor/cpu_allocator.h"

namespace fl {
namespace {

const Device kCpu, kMeta{DeviceType::Meta};

TEST(Allocator, BlocksFitAndAreAligned) {
  Allocator& a = allocator(kCpu);
  size_t previous = 0;
  for (size_t bytes = 1; bytes < (size_t{1} << 33); bytes = bytes * 9 / 8 + 1) {
    const size_t block = cpu_block_size(bytes);
    EXPECT_GE(block, bytes);
    EXPECT_GE(block, previous);
    EXPECT_LE(block, std::max<size_t>(bytes + 64, bytes + bytes / 4 + 1)) << bytes;
    EXPECT_EQ(block % 64, 0u);
    previous = block;
  }
  for (const size_t bytes :
       {size_t{0}, size_t{1}, size_t{64}, size_t{65}, size_t{1024}, size_t{1025}, size_t{4096}, size_t{4097},
        size_t{1} << 20, (size_t{1} << 20) + 1, (size_t{1} << 21) + 5, size_t{40} << 20}) {
    char* data = static_cast<char*>(a.allocate(bytes));
    ASSERT_NE(data, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
    std::memset(data, 0x5A, bytes);
    a.release(data, bytes);
  }
}

TEST(Allocator, LiveBlocksAreDisjoint) {
  Allocator& a = allocator(kCpu);
  std::vector<std::pair<unsigned char*, size_t>> blocks;
  for (int i = 0; i < 1000; ++i) {
    const size_t bytes = static_cast<size_t>(i * 37 % 3000 + 1);
    auto* data = static_cast<unsigned char*>(a.allocate(bytes));
    std::memset(data, i & 0xFF, bytes);
    blocks.emplace_back(data, bytes);
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    for (size_t k = 0; k < blocks[i].second; ++k) ASSERT_EQ(blocks[i].first[k], i & 0xFF);
    a.release(blocks[i].first, blocks[i].second);
  }
}

TEST(Allocator, SameSizeIsReused) {
  Allocator& a = allocator(kCpu);
  for (const size_t bytes : {size_t{200}, size_t{100000}, size_t{8} << 20}) {
    void* first = a.allocate(bytes);
    a.release(first, bytes);
    void* second = a.allocate(bytes);
    EXPECT_EQ(first, second) << bytes;
    a.release(second, bytes);
  }
}

TEST(Allocator, StatisticsCountBlocks) {
  reset_peak_memory(kCpu);
  const AllocatorStats before = allocator_stats(kCpu);
  EXPECT_EQ(before.peak, before.allocated);
  const auto size = static_cast<int64_t>(cpu_block_size(5 << 20));
  {
    const Storage a(5 << 20, kCpu);
    { const Storage b(5 << 20, kCpu); }
    const AllocatorStats inside = allocator_stats(kCpu);
    EXPECT_EQ(inside.allocated, before.allocated + size);
    EXPECT_EQ(inside.peak, before.allocated + 2 * size);
    EXPECT_EQ(inside.allocations, before.allocations + 2);
    EXPECT_GE(inside.reserved, 2 * size);
  }
  EXPECT_EQ(allocator_stats(kCpu).allocated, before.allocated);
  EXPECT_EQ(allocator_stats(kCpu).peak, before.allocated + 2 * size);
  const int64_t reserved = allocator_stats(kCpu).reserved;
  empty_cache(kCpu);
  EXPECT_LE(allocator_stats(kCpu).reserved, reserved - 2 * size);
}

TEST(Allocator, OutOfMemorySaysTheFigures) {
  try {
    const Storage s(int64_t{1} << 52, kCpu);
    FAIL() << "4 PiB were allocated";
  } catch (const OutOfMemoryError& e) {
    EXPECT_NE(e.message().find("requested 4503599627370496 bytes"), std::string::npos) << e.message();
    EXPECT_NE(e.message().find("are allocated"), std::string::npos);
    EXPECT_NE(e.message().find("are reserved"), std::string::npos);
  }
  const int64_t allocated = allocator_stats(kCpu).allocated;
  EXPECT_THROW(Storage(int64_t{1} << 52, kCpu), OutOfMemoryError);
  EXPECT_EQ(allocator_stats(kCpu).allocated, allocated);
}

TEST(Allocator, BlocksMoveBetweenThreads) {
  const int64_t allocated = allocator_stats(kCpu).allocated;
  std::vector<Ref<Storage>> made[4];
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        auto s = make_ref<Storage>(i * 13 % 9000 + 1, kCpu);
        std::memset(s->data(), t, static_cast<size_t>(s->bytes()));
        made[t].push_back(s);
        if (i % 3 == 0) made[t].erase(made[t].begin());
      }
    });
  for (auto& t : threads) t.join();
  threads.clear();
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (const auto& s : made[t ^ 1])
        for (int64_t k = 0; k < s->bytes(); ++k) ASSERT_EQ(static_cast<char*>(s->data())[k], t ^ 1);
      made[t ^ 1].clear();
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(allocator_stats(kCpu).allocated, allocated);
}

TEST(Allocator, DeviceWithoutBackendRaises) {
  EXPECT_THROW(Storage(16, Device{DeviceType::CUDA, 3}), RuntimeError);
  EXPECT_THROW(install_allocator(DeviceType::CPU, nullptr), ValueError);
}

TEST(Storage, ResizeKeepsContents) {
  Storage s(10, kCpu);
  std::memcpy(s.data(), "0123456789", 10);
  s.resize(100000);
  EXPECT_EQ(s.bytes(), 100000);
  EXPECT_EQ(std::memcmp(s.data(), "0123456789", 10), 0);
  s.resize(4);
  EXPECT_EQ(std::memcmp(s.data(), "0123", 4), 0);
  s.resize(0);
  EXPECT_EQ(s.bytes(), 0);
  s.resize(8);
  EXPECT_NE(s.data(), nullptr);
  EXPECT_THROW(s.resize(-1), RuntimeError);
}

TEST(Storage, ExternalMemoryIsGivenBackOnce) {
  static int released;
  released = 0;
  char memory[16] = "external";
  const auto release = [](void* context) { *static_cast<int*>(context) += 1; };
  { const Storage s(memory, 16, kCpu, release, &released); }
  EXPECT_EQ(released, 1);
  Storage s(memory, 16, kCpu, release, &released);
  EXPECT_EQ(s.data(), memory);
  s.resize(32);
  EXPECT_EQ(released, 2);
  EXPECT_NE(s.data(), memory);
  EXPECT_STREQ(static_cast<char*>(s.data()), "external");
}

TEST(Storage, MetaHasNoMemory) {
  const int64_t allocations = allocator_stats(kCpu).allocations;
  Storage s(int64_t{1} << 50, kMeta);
  EXPECT_FALSE(s.has_data());
  EXPECT_EQ(s.data(), nullptr);
  s.resize(int64_t{1} << 51);
  EXPECT_EQ(s.bytes(), int64_t{1} << 51);
  EXPECT_FALSE(Storage::without_data(kCpu)->has_data());
  EXPECT_EQ(allocator_stats(kCpu).allocations, allocations);
}

TEST(Storage, VersionCountsChanges) {
  Storage s(8, kCpu);
  EXPECT_EQ(s.version(), 0);
  s.bump_version();
  s.bump_version();
  EXPECT_EQ(s.version(), 2);
}

TEST(Device, Texts) {
  for (const char* text : {"cpu", "cuda:0", "cuda:7", "meta"}) EXPECT_EQ(parse_device(text).str(), text);
  EXPECT_EQ(parse_device("cuda").str(), "cuda:0");
  for (const char* text : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda:128", "meta:1"})
    EXPECT_THROW(parse_device(text), ValueError) << text;
}

}  // namespace
}  // namespace fl
