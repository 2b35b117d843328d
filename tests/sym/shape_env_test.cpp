#include "flambeau/sym/shape_env.h"

#include <gtest/gtest.h>

#include "flambeau/base/error.h"

namespace fl::sym {
namespace {

std::vector<std::string> texts(const ShapeEnv& env) {
  std::vector<std::string> t;
  for (const Guard& g : env.guards()) t.push_back(g.str());
  return t;
}

TEST(ShapeEnv, ComparisonAnswersForTheExampleAndRecordsIt) {
  ShapeEnv env;
  ShapeEnv::Scope scope(&env);
  const SymInt n = env.create_symbol(8);
  EXPECT_TRUE(n == SymInt(8));
  EXPECT_EQ(texts(env), std::vector<std::string>{"s0 == 8"});
}

TEST(ShapeEnv, FalseAnswerIsRecordedAsSuch) {
  ShapeEnv env;
  ShapeEnv::Scope scope(&env);
  const SymInt n = env.create_symbol(8), m = env.create_symbol(9);
  EXPECT_FALSE(m < n);
  EXPECT_EQ(texts(env), std::vector<std::string>{"not (s1 < s0)"});
}

TEST(ShapeEnv, WhatHoldsForAllSizesNeedsNoGuard) {
  ShapeEnv env;
  ShapeEnv::Scope scope(&env);
  const SymInt n = env.create_symbol(8);
  EXPECT_FALSE(n == SymInt(1));
  EXPECT_FALSE(n == SymInt(0));
  EXPECT_TRUE(n * 2 == n + n);
  EXPECT_TRUE(n < n + 1);
  EXPECT_TRUE(n >= SymInt(2));
  EXPECT_TRUE(env.guards().empty());
}

TEST(ShapeEnv, SameQuestionIsRecordedOnce) {
  ShapeEnv env;
  ShapeEnv::Scope scope(&env);
  const SymInt n = env.create_symbol(8);
  EXPECT_TRUE(n < SymInt(10));
  EXPECT_TRUE(n < SymInt(10));
  EXPECT_EQ(env.guards().size(), 1u);
}

TEST(ShapeEnv, AnAnswerDecidesItsOtherForms) {
  ShapeEnv env;
  ShapeEnv::Scope scope(&env);
  const SymInt n = env.create_symbol(8), m = env.create_symbol(9);
  EXPECT_FALSE(m < n);
  EXPECT_TRUE(n <= m);
  EXPECT_FALSE(n == m + 3);
  EXPECT_TRUE(m + 3 != n);
  EXPECT_TRUE(known_true(Relation::Le, n, m));
  EXPECT_FALSE(known_true(Relation::Lt, n, m));  // it is for the example; no guard says so
  EXPECT_EQ(env.guards().size(), 2u);
}

TEST(ShapeEnv, AnAnswerOutlivesEqualitiesFoundLater) {
  ShapeEnv env;
  ShapeEnv::Scope scope(&env);
  const SymInt n = env.create_symbol(8), m = env.create_symbol(9), k = env.create_symbol(8);
  EXPECT_FALSE(m < k);
  EXPECT_TRUE(k == n);
  EXPECT_FALSE(m < n);
  EXPECT_EQ(env.guards().size(), 2u);
}

TEST(ShapeEnv, EqualitiesAreReadAgainWhenMoreIsKnown) {
  ShapeEnv env;
  ShapeEnv::Scope scope(&env);
  const SymInt n = env.create_symbol(7), rest = n % 5;
  EXPECT_TRUE(n - rest * 3 == SymInt(1));
  EXPECT_TRUE(env.simplify(n.expr()).is_symbol());
  EXPECT_TRUE(rest == SymInt(2));
  EXPECT_TRUE(env.simplify(n.expr()).is_const(7));
}

TEST(ShapeEnv, SizesFoundPositiveCountForThemselvesInStrides) {
  ShapeEnv env;
  ShapeEnv::Scope scope(&env);
  const SymInt n = env.create_symbol(12), rest = n % 7, stride = max(rest, 1) * n;
  EXPECT_FALSE(known_equal(stride, rest * n));
  EXPECT_FALSE(rest < SymInt(2));
  EXPECT_TRUE(known_equal(stride, rest * n));
  // As a size that a symbol stood for.
  const SymInt m = env.create_symbol(3), other = n % 9;
  EXPECT_FALSE(known_equal(max(other, 1), other));
  EXPECT_TRUE(m == other);
  EXPECT_TRUE(known_equal(max(other, 1), other));
}

TEST(ShapeEnv, RenamingKeepsWhatAGuardSaysOfAnExpression) {
  ShapeEnv env;
  ShapeEnv::Scope scope(&env);
  const SymInt n = env.create_symbol(8), m = env.create_symbol(8);
  EXPECT_TRUE(n % 2 == SymInt(0));
  EXPECT_TRUE(m == n);
  EXPECT_EQ(env.simplify((m % 2).expr()).str(), "0");
  EXPECT_EQ(env.rename_symbols((m % 2).expr()).str(), "(s0 % 2)");
}

TEST(ShapeEnv, EqualitySimplifiesLaterExpressions) {
  ShapeEnv env;
  ShapeEnv::Scope scope(&env);
  const SymInt n = env.create_symbol(8), m = env.create_symbol(8);
  EXPECT_TRUE(n == m);
  EXPECT_TRUE(n * m == m * m);
  EXPECT_TRUE(known_equal(n + 1, m + 1));
  EXPECT_EQ(env.guards().size(), 1u);
}

TEST(ShapeEnv, LongChainsOfEqualitiesSimplifyFully) {
  ShapeEnv env;
  ShapeEnv::Scope scope(&env);
  std::vector<SymInt> n;
  for (int i = 0; i < 20; ++i) n.push_back(env.create_symbol(8));
  for (int i = 18; i >= 0; --i) EXPECT_TRUE(n[i + 1] == n[i]);
  const size_t guards = env.guards().size();
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(known_equal(n[i], n[19]));
    EXPECT_EQ(env.simplify(n[i].expr()), env.simplify(n[0].expr()));
  }
  EXPECT_EQ(env.guards().size(), guards);
}

TEST(ShapeEnv, EqualityWithAFactorReplacesTheMultiple) {
  ShapeEnv env;
  ShapeEnv::Scope scope(&env);
  const SymInt n = env.create_symbol(4), m = env.create_symbol(12);
  EXPECT_TRUE(n * 3 == m);
  EXPECT_TRUE(known_equal(m / 3, n));
  EXPECT_TRUE(known_equal(m % 3, 0));
}

TEST(ShapeEnv, EqualityOfAPartOfASumIsFoundInOthers) {
  ShapeEnv env;
  ShapeEnv::Scope scope(&env);
  const Expr s = env.create_symbol(3), first = floordiv(s + 1, 2), rest = s - first;
  env.evaluate(Relation::Eq, rest, 1);  // the halves of 3 are 2 and 1
  EXPECT_EQ(env.simplify(rest), Expr(1));
  EXPECT_EQ(env.simplify(rest + rest + first), env.simplify(first + 2));
  EXPECT_EQ(env.simplify(first), s - 1);
}

TEST(ShapeEnv, SpecializeGivesTheNumberAndPinsIt) {
  ShapeEnv env;
  ShapeEnv::Scope scope(&env);
  const SymInt n = env.create_symbol(8);
  EXPECT_EQ((n + 1).guard_int(), 9);
  EXPECT_EQ(texts(env).size(), 1u);
  EXPECT_EQ(n.guard_int(), 8);  // Known by now.
  EXPECT_EQ(texts(env).size(), 1u);
}

TEST(ShapeEnv, HintHasNoGuard) {
  ShapeEnv env;
  const Expr n = env.create_symbol(8), u = env.create_unbacked();
  EXPECT_EQ(env.hint(n * n + 1), 65);
  EXPECT_EQ(env.hint(n + u), std::nullopt);
  EXPECT_TRUE(env.guards().empty());
}

TEST(ShapeEnv, BranchOnAnUnbackedValueRaises) {
  ShapeEnv env;
  ShapeEnv::Scope scope(&env);
  const SymInt u = env.create_unbacked();
  EXPECT_TRUE(u >= SymInt(0));  // Always so.
  EXPECT_THROW((void)(u == SymInt(3)), UnsupportedError);
  EXPECT_THROW(u.guard_int(), UnsupportedError);
  EXPECT_TRUE(env.guards().empty());
}

TEST(ShapeEnv, OpaqueSymbolCannotBeGuarded) {
  ShapeEnv env;
  ShapeEnv::Scope scope(&env);
  const SymInt offset = env.create_opaque("seed");
  EXPECT_EQ((offset + 4).str(), SymInt(offset.expr() + 4).str());
  EXPECT_THROW((void)(offset < SymInt(100)), UnsupportedError);
}

TEST(ShapeEnv, ScopesNest) {
  ShapeEnv outer, inner;
  EXPECT_EQ(ShapeEnv::active(), nullptr);
  {
    ShapeEnv::Scope a(&outer);
    {
      ShapeEnv::Scope b(&inner);
      EXPECT_EQ(ShapeEnv::active(), &inner);
      EXPECT_TRUE(ShapeEnv::is_entered(outer.id()) && ShapeEnv::is_entered(inner.id()));
    }
    EXPECT_EQ(ShapeEnv::active(), &outer);
    EXPECT_FALSE(ShapeEnv::is_entered(inner.id()));
  }
  EXPECT_EQ(ShapeEnv::active(), nullptr);
}

TEST(ShapeEnv, SizesBelowTwoAreNoSymbols) {
  ShapeEnv env;
  EXPECT_THROW(env.create_symbol(1), InternalError);
}

}  // namespace
}  // namespace fl::sym
