// parallel_for: every index once, pieces by n and grain alone, exceptions reach the caller.
#include "flambeau/base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "flambeau/base/error.h"

namespace fl {
namespace {

TEST(ParallelFor, VisitsEveryIndexOnce) {
  for (int64_t n : {0, 1, 2, 7, 1000}) {
    std::vector<int> visits(n);
    parallel_for(n, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++visits[i];
    });
    EXPECT_EQ(visits, std::vector<int>(n, 1)) << "n = " << n;
  }
}

TEST(ParallelFor, OnePieceWhereNIsAtMostTheGrain) {
  std::vector<std::pair<int64_t, int64_t>> pieces;
  parallel_for(100, 100, [&](int64_t begin, int64_t end) { pieces.emplace_back(begin, end); });
  EXPECT_EQ(pieces, (std::vector<std::pair<int64_t, int64_t>>{{0, 100}}));
}

TEST(ParallelFor, NestedCallsRunInTheirThread) {
  std::atomic<int64_t> sum = 0;
  parallel_for(4, 1, [&](int64_t begin, int64_t end) {
    const auto outer = std::this_thread::get_id();
    for (int64_t i = begin; i < end; ++i) {
      parallel_for(10, 1, [&](int64_t b, int64_t e) {
        if (num_threads() > 1) {
          EXPECT_EQ(std::this_thread::get_id(), outer);
        }
        sum += e - b;
      });
    }
  });
  EXPECT_EQ(sum, 40);
}

TEST(ParallelFor, ResultsOfARegionAreSeenByTheNext) {
  std::vector<int64_t> first(1000), second(1000);
  for (int64_t round = 0; round < 50; ++round) {
    parallel_for(1000, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) first[i] = i + round;
    });
    parallel_for(1000, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) second[i] = first[999 - i];
    });
    for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(second[i], 999 - i + round);
  }
}

TEST(ParallelFor, ExceptionsReachTheCaller) {
  for (int64_t n : {1, 1000}) {
    try {
      parallel_for(n, 1, [](int64_t, int64_t end) { FL_CHECK(end<0, IndexError, "end is {}", end> 0); });
      FAIL() << "expected an IndexError";
    } catch (const IndexError& error) {
      EXPECT_STREQ(error.what(), "end is true");
    }
  }
}

TEST(ParallelFor, ServesSeveralThreadsAtOnce) {
  std::vector<int64_t> sums(4);
  std::vector<std::thread> threads;
  for (int64_t& sum : sums) {
    threads.emplace_back([&sum] {
      std::atomic<int64_t> total = 0;
      for (int round = 0; round < 20; ++round) {
        parallel_for(100, 1, [&](int64_t begin, int64_t end) { total += end - begin; });
      }
      sum = total;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sums, std::vector<int64_t>(4, 2000));
}

TEST(SetNumThreads, RefusesNumbersBelowOne) {
  EXPECT_THROW(set_num_threads(0), RuntimeError);
  EXPECT_THROW(set_num_threads(-3), RuntimeError);
}

}  // namespace
}  // namespace fl
