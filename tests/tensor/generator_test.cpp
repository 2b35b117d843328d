#include "flambeau/tensor/generator.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace fl {
namespace {

TEST(Philox, KnownAnswers) {  // From the Random123 distribution, kat_vectors.
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t f = 0xffffffff;
  EXPECT_EQ(philox({f, f, f, f}, {f, f}), (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, ElementsOfASlotHaveTheirOwnCounters) {
  const PhiloxSlot slot{int64_t{0xa4093822}, int64_t{0x299f31d0}, (int64_t{1} << 32) - 1};
  EXPECT_EQ(philox(slot, 0), philox({0xffffffff, 0, 0, 0}, {0xa4093822, 0x299f31d0}));
  EXPECT_EQ(philox(slot, 1), philox({0, 1, 0, 0}, {0xa4093822, 0x299f31d0}));
}

TEST(Generator, ReserveMovesTheOffset) {
  Generator g;
  g.manual_seed(0xFFFFFFFF00000001);
  const PhiloxSlot a = g.reserve(10), b = g.reserve(0), c = g.reserve(5);
  EXPECT_EQ(a.seed_low.expect_int(), 1);
  EXPECT_EQ(a.seed_high.expect_int(), 0xFFFFFFFF);
  EXPECT_EQ(a.offset.expect_int(), 0);
  EXPECT_EQ(b.offset.expect_int(), 10);
  EXPECT_EQ(c.offset.expect_int(), 10);
  EXPECT_EQ(g.offset(), 15);
  EXPECT_EQ(g.initial_seed(), 0xFFFFFFFF00000001);
  g.manual_seed(3);
  EXPECT_EQ(g.offset(), 0);
  EXPECT_THROW(g.reserve(-1), RuntimeError);
  g.set_offset(INT64_MAX - 1);
  EXPECT_THROW(g.reserve(2), RuntimeError);
}

TEST(Generator, StateRoundTrips) {
  Generator g;
  g.manual_seed(42);
  g.reserve(7);
  const Tensor state = g.get_state();
  g.reserve(100);
  Generator other;
  other.set_state(state);
  EXPECT_EQ(other.initial_seed(), 42u);
  EXPECT_EQ(other.offset(), 7);
  EXPECT_THROW(g.set_state(Tensor()), RuntimeError);
  EXPECT_THROW(g.set_state(empty_tensor({15}, DType::UInt8)), RuntimeError);
  EXPECT_THROW(g.set_state(empty_tensor({16}, DType::Int8)), RuntimeError);
  EXPECT_THROW(g.set_state(tensor_from<uint8_t>(std::vector<uint8_t>(16, 255), {16})), RuntimeError);
  EXPECT_EQ(g.offset(), 107);
}

TEST(Generator, SeedDrawsFromTheSystem) {
  Generator g;
  const uint64_t a = g.seed(), b = g.seed();
  EXPECT_NE(a, b);
  EXPECT_EQ(g.initial_seed(), b);
}

TEST(Generator, DefaultsAreOneADeviceAndSeededTogether) {
  const Device cuda{DeviceType::CUDA, 1}, late{DeviceType::CUDA, 7};
  EXPECT_EQ(default_generator({}), default_generator({}));
  EXPECT_NE(default_generator({}), default_generator(cuda));
  manual_seed(5);
  EXPECT_EQ(default_generator({})->initial_seed(), 5u);
  EXPECT_EQ(default_generator(cuda)->initial_seed(), 5u);
  EXPECT_EQ(default_generator(late)->initial_seed(), 5u);
  EXPECT_EQ(default_generator(late)->device(), late);
}

TEST(Generator, SlotsOfThreadsAreDisjoint) {
  Generator g;
  std::vector<int64_t> offsets[4];
  std::vector<std::thread> threads;
  for (auto& mine : offsets)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) mine.push_back(g.reserve(3).offset.expect_int());
    });
  for (auto& t : threads) t.join();
  std::set<int64_t> all;
  for (auto& mine : offsets) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), 4000u);
  EXPECT_EQ(*all.rbegin(), 3 * 3999);
}

struct SymbolicSlots : RandomHook {
  PhiloxSlot reserve(Generator&, SymInt count) override {
    const SymInt base = sym::Expr::symbol("generator_test_offset", 0);
    return {1, 2, base + std::exchange(drawn, drawn + count)};
  }
  SymInt drawn = 0;
};

TEST(Generator, HookAnswersWhileInstalled) {
  Generator g;
  SymbolicSlots hook;
  {
    const RandomHook::Scope scope(&hook);
    const SymInt n = sym::Expr::symbol("generator_test_n", 2);
    g.reserve(n * 2);
    EXPECT_EQ((g.reserve(4).offset - n * 2).str(), "generator_test_offset");
    EXPECT_EQ(g.take(3).offset.expect_int(), 0);
    const RandomHook::Scope suspended(nullptr);
    EXPECT_EQ(g.reserve(3).offset.expect_int(), 3);
  }
  EXPECT_EQ(g.reserve(1).offset.expect_int(), 6);
}

}  // namespace
}  // namespace fl
