// The caches. On disk: what is wrong with a file or the folder costs a compilation, never a wrong kernel.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "flambeau/codegen/cpu/compile.h"
#include "flambeau/codegen/cpu/kernel_cache.h"
#include "flambeau/codegen/cpu/object_cache.h"
#include "flambeau/loop/ir.h"

namespace fl::codegen {
namespace {

namespace fs = std::filesystem;

class Cache : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("flambeau-cache-test-" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    ::setenv("FLAMBEAU_CACHE_DIR", folder_.c_str(), 1);
    ::unsetenv("FLAMBEAU_CACHE");
  }
  void TearDown() override {
    ::unsetenv("FLAMBEAU_CACHE_DIR");
    fs::remove_all(folder_);
  }
  // A kernel that no other test has in memory.
  loop::Kernel kernel(int number) {
    return loop::parse_kernel("kernel cached" + std::to_string(number) +
                              R"((y: f32 out) sizes(s0) vector outer
for i0 < s0
  stage
    %0 = constant f32 )" + std::to_string(number) +
                              R"(
    store y[i0] = %0
)");
  }
  static float first(const CompiledKernel& k) {
    float y[3] = {};
    void* buffers[] = {y};
    const int64_t sizes[] = {3};
    k.launch({buffers, sizes});
    return y[0];
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> out;
    if (fs::exists(folder_))
      for (const auto& e : fs::directory_iterator(folder_)) out.push_back(e.path());
    return out;
  }
  fs::path folder_;
};

TEST_F(Cache, GivesWhatWasStored) {
  const ObjectCache cache;
  const Hash128 key = hash128("a key");
  EXPECT_FALSE(cache.load(key).has_value());
  cache.store(key, "an object");
  EXPECT_EQ(cache.load(key).value(), "an object");
  EXPECT_FALSE(cache.load(hash128("another key")).has_value());
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(Cache, FindsNothingInDamagedFiles) {
  const ObjectCache cache;
  const Hash128 key = hash128("a key");
  const std::string object(1000, 'x');
  cache.store(key, object);
  std::ifstream in(cache.path(key), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  const auto load_of = [&](const std::string& bytes) {
    std::ofstream(cache.path(key), std::ios::binary) << bytes;
    return cache.load(key).has_value();
  };
  EXPECT_TRUE(load_of(whole));
  EXPECT_FALSE(load_of(""));
  for (size_t size : {size_t(5), size_t(40), whole.size() - 1}) EXPECT_FALSE(load_of(whole.substr(0, size)));
  EXPECT_FALSE(load_of(whole + "x"));
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] ^= 0x10;
    EXPECT_FALSE(load_of(damaged)) << "byte " << at;
  }
}

TEST_F(Cache, CompilesAgainWhereAFileIsDamaged) {
  const loop::Kernel k = kernel(101);
  EXPECT_EQ(first(*compile_kernel(k)), 101);
  ASSERT_EQ(files().size(), 1u);
  // Another kernel's key over the same file, and garbage that has a valid checksum.
  const loop::Kernel other = kernel(102);
  const ObjectCache cache;
  EXPECT_EQ(first(*compile_kernel(other)), 102);
  for (const fs::path& f : files()) {
    const std::string name = f.filename().string();
    Hash128 key;
    key.high = std::stoull(name.substr(0, 16), nullptr, 16);
    key.low = std::stoull(name.substr(16, 16), nullptr, 16);
    cache.store(key, "no object file");
  }
  ::setenv("FLAMBEAU_CACHE_DIR", folder_.c_str(), 1);
  EXPECT_EQ(first(*compile_kernel(kernel(103))), 103);
}

TEST_F(Cache, WorksWithoutAFolder) {
  ::setenv("FLAMBEAU_CACHE_DIR", "/proc/flambeau-cannot-be-made", 1);
  EXPECT_EQ(first(*compile_kernel(kernel(104))), 104);
  ::setenv("FLAMBEAU_CACHE_DIR", "/dev/full/x", 1);
  EXPECT_EQ(first(*compile_kernel(kernel(105))), 105);
  ::setenv("FLAMBEAU_CACHE", "0", 1);
  EXPECT_TRUE(ObjectCache().folder().empty());
  EXPECT_EQ(first(*compile_kernel(kernel(106))), 106);
  ::unsetenv("FLAMBEAU_CACHE");
}

TEST_F(Cache, FollowsTheEnvironment) {
  EXPECT_EQ(ObjectCache().folder(), folder_.string());
  ::unsetenv("FLAMBEAU_CACHE_DIR");
  ::setenv("XDG_CACHE_HOME", "/tmp/xdg", 1);
  EXPECT_EQ(ObjectCache().folder(), "/tmp/xdg/flambeau");
  ::unsetenv("XDG_CACHE_HOME");
  ::setenv("HOME", "/tmp/home", 1);
  EXPECT_EQ(ObjectCache().folder(), "/tmp/home/.cache/flambeau");
}

TEST_F(Cache, TakesWritersAndReadersAtOnce) {
  const Hash128 key = hash128("shared");
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const ObjectCache cache;
      for (int n = 0; n < 50; ++n) {
        cache.store(key, std::string(5000, static_cast<char>('a' + t)));
        const auto got = cache.load(key);
        if (!got || got->size() != 5000 || got->find_first_not_of((*got)[0]) != std::string::npos) ++wrong;
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(Cache, KeepsOneKernelInMemory) {
  const loop::Kernel k = kernel(107);
  EXPECT_EQ(compile_kernel(k), compile_kernel(k));
  std::vector<loop::Kernel> several{kernel(108), kernel(109), kernel(108)};
  several[2].name = "another_name";
  const auto compiled = compile_kernels(several);
  EXPECT_EQ(compiled[0], compiled[2]);
  EXPECT_EQ(first(*compiled[0]), 108);
  EXPECT_EQ(first(*compiled[1]), 109);
}

TEST_F(Cache, KernelsInMemoryThatNoProgramHoldsAreFew) {
  constexpr int kSpare = 3;
  KernelCache cache(kSpare);
  const auto key = [](int number) { return hash128(std::to_string(number)); };
  const auto add = [&](int number) {
    return cache.keep(key(number), compile_kernel(kernel(number), {.cached = false}));
  };
  const auto held = add(0), also_held = add(1);
  for (int number = 2; number < 40; ++number) {
    add(number);
    EXPECT_LE(cache.size(), 2u * (kSpare + 2) + 1);
    EXPECT_NE(cache.find(key(2)), nullptr) << "used all the time";
  }
  EXPECT_EQ(cache.find(key(0)), held);
  EXPECT_EQ(cache.find(key(1)), also_held);
  EXPECT_EQ(cache.find(key(3)), nullptr) << "used once, long ago";
  EXPECT_NE(cache.find(key(39)), nullptr);
  EXPECT_EQ(first(*held), 0);
  EXPECT_EQ(cache.keep(key(0), compile_kernel(kernel(0), {.cached = false})), held) << "the first one wins";
}

}  // namespace
}  // namespace fl::codegen
