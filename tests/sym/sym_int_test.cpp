#include "flambeau/sym/sym_int.h"

#include <gtest/gtest.h>

#include <limits>

#include "flambeau/base/error.h"

namespace fl {
namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();

TEST(SymInt, EveryInt64IsKept) {
  for (const int64_t v : {int64_t{0}, int64_t{-1}, kMin, kMin + 1, kMax, -(int64_t{1} << 62),
                          -(int64_t{1} << 62) - 1, int64_t{1} << 62}) {
    EXPECT_EQ(SymInt(v).guard_int(), v);
    EXPECT_EQ(SymInt(v).expect_int(), v);
    EXPECT_EQ(SymInt(v).str(), std::to_string(v));
    EXPECT_TRUE(SymInt(v) == SymInt(v));
  }
  EXPECT_TRUE(SymInt(kMin) < SymInt(0));
  EXPECT_TRUE(SymInt(kMin) < SymInt(kMin + 1));
  EXPECT_EQ((SymInt(kMin) + SymInt(kMax)).expect_int(), -1);
  EXPECT_EQ((SymInt(-(int64_t{1} << 62)) - SymInt(1)).expect_int(), -(int64_t{1} << 62) - 1);
  EXPECT_EQ((SymInt(-1) - SymInt(kMin)).expect_int(), kMax);
  EXPECT_EQ(min(SymInt(kMin), SymInt(3)).expect_int(), kMin);
  EXPECT_TRUE(known_true(sym::Relation::Lt, kMin, kMax));
}

TEST(SymInt, OverflowRaises) {
  EXPECT_THROW(SymInt(kMax) + SymInt(1), RuntimeError);
  EXPECT_THROW(SymInt(kMax) * SymInt(2), RuntimeError);
  EXPECT_THROW(SymInt(kMin) - SymInt(1), RuntimeError);
}

TEST(SymInt, DivisionRoundsDownAsPython) {
  for (int64_t a = -7; a <= 7; ++a)
    for (int64_t b : {-3, -2, -1, 1, 2, 3}) {
      const int64_t q = (SymInt(a) / SymInt(b)).expect_int(), r = (SymInt(a) % SymInt(b)).expect_int();
      EXPECT_EQ(q * b + r, a);
      EXPECT_TRUE(b > 0 ? 0 <= r && r < b : b < r && r <= 0) << a << " " << b;
      EXPECT_EQ(sym::floordiv(sym::Expr(a), sym::Expr(b)), sym::Expr(q));
    }
  EXPECT_THROW(SymInt(1) / SymInt(0), ValueError);
  EXPECT_THROW(SymInt(1) % SymInt(0), ValueError);
  EXPECT_EQ(ceildiv(7, 2).expect_int(), 4);
}

TEST(SymInt, ExpressionsCombine) {
  const SymInt n(sym::Expr::symbol("sym_int_n", 2));
  EXPECT_TRUE(n.is_symbolic());
  EXPECT_TRUE((n - n).same_as(0));
  EXPECT_TRUE((n * 4 / 4).same_as(n));
  EXPECT_TRUE(max(n, 1).same_as(n));
  EXPECT_TRUE(min(n, 1).same_as(1));
  EXPECT_EQ((n + 1).str(), "1 + sym_int_n");
}

TEST(SymInt, OutsideOfATraceOnlyWhatIsAlwaysTrueCompares) {
  const SymInt n(sym::Expr::symbol("sym_int_n", 2));
  EXPECT_FALSE(n == SymInt(1));
  EXPECT_TRUE(known_true(sym::Relation::Lt, n, n + 1));
  EXPECT_FALSE(known_true(sym::Relation::Eq, n, 5));
  EXPECT_THROW((void)(n == SymInt(5)), UnsupportedError);
  EXPECT_THROW(n.guard_int(), UnsupportedError);
  EXPECT_THROW(n.expect_int(), UnsupportedError);
}

}  // namespace
}  // namespace fl
