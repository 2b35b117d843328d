#include "flambeau/sym/expr.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "flambeau/base/error.h"

namespace fl::sym {
namespace {

const Expr s = Expr::symbol("s0", 2), t = Expr::symbol("s1", 2), i = Expr::symbol("i0"),
           j = Expr::symbol("i1");

TEST(Expr, EqualExpressionsAreOneNode) {
  EXPECT_EQ((i + j) * s, s * i + j * s);
  EXPECT_EQ(i - i, Expr(0));
  EXPECT_EQ((i + 1) * (i - 1), i * i - 1);
}

TEST(Expr, ReshapeIndexRoundTripsVanish) {
  const Range ranges[] = {{i, s}, {j, t}};
  const Expr flat = i * t + j;
  EXPECT_EQ(floordiv(flat, t, ranges), i);
  EXPECT_EQ(mod(flat, t, ranges), j);
  EXPECT_EQ(simplify(floordiv(flat, t) * t + mod(flat, t), ranges), flat);
  const Range constant[] = {{i, Expr(6)}, {j, Expr(4)}};
  EXPECT_EQ(floordiv(i * 4 + j, Expr(4), constant), i);
  EXPECT_EQ(floordiv(i * 4 + j, Expr(2), constant), i * 2 + floordiv(j, Expr(2)));
}

TEST(Expr, NumbersAtTheEndsOfTheirRange) {
  const int64_t low = std::numeric_limits<int64_t>::min(), high = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(mod(Expr(low), Expr(-1)), Expr(0));
  EXPECT_EQ(mod(Expr(low), Expr(5)), Expr(2));
  EXPECT_EQ(mod(Expr(low), Expr(high)), Expr(high - 1));
  EXPECT_EQ(mod(Expr(high), Expr(low)), Expr(-1));
  EXPECT_EQ(floordiv(Expr(low), Expr(-1)), Expr(low));
  EXPECT_EQ(floordiv(Expr(low), Expr(2)), Expr(low / 2));
}

TEST(Expr, AnIndexTakenApartIsPutTogether) {
  const Expr apart = s * (t * floordiv(i, t) + mod(i, t)) + 3;
  EXPECT_EQ(simplify(apart, {}), s * i + 3);
  const Expr inner = floordiv(i, Expr(5));
  EXPECT_EQ(simplify(mod(i, Expr(5)) + 5 * (mod(inner, Expr(3)) + 3 * floordiv(inner, Expr(3))), {}), i);
}

TEST(Expr, AnIndexOfWindowsIsPutTogether) {
  // Rows of 14 in two windows of 7.
  const Expr p = Expr::symbol("p");
  const Expr in_row = mod(p, Expr(14));
  EXPECT_EQ(simplify(112 * floordiv(p, Expr(14)) + 56 * floordiv(in_row, Expr(7)) + 8 * mod(p, Expr(7)), {}),
            8 * p);
  EXPECT_EQ(simplify(7 * floordiv(in_row, Expr(7)) + mod(p, Expr(7)) + 3, {}), in_row + 3);
}

TEST(Expr, PiecesOfImagesArePutTogether) {
  // Pieces of 784 points of images of 56 x 56.
  const Expr p = Expr::symbol("p"), q = Expr::symbol("q");
  const Range ranges[] = {{p, Expr(64)}, {q, Expr(784)}};
  const Expr point = 784 * p + q, row = floordiv(point, 56);
  EXPECT_EQ(simplify(mod(floordiv(q, 28), 28), ranges), floordiv(q, 28));
  EXPECT_EQ(simplify(3136 * floordiv(point, 3136) + 56 * mod(row, 56) + mod(point, 56), ranges), point);
  EXPECT_EQ(simplify(floordiv(point, 3136), ranges), floordiv(p, 4));
  EXPECT_EQ(simplify(mod(point, 3136), ranges), 784 * mod(p, 4) + q);
}

TEST(Expr, IndicesThatAreSimplerHaveTheSameValues) {
  std::mt19937 random(5);
  const auto number = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int n = 0; n < 3000; ++n) {
    const int64_t sizes[] = {number(1, 40), number(1, 60)};
    const Range ranges[] = {{i, Expr(sizes[0])}, {j, Expr(sizes[1])}};
    const Expr x = number(-3, 60) * i + number(-3, 9) * j + number(-9, 99);
    const int64_t a = number(1, 12), b = number(1, 12), c = number(1, 5);
    const Expr e = c * mod(x, a) + c * a * mod(number(0, 3) * i + floordiv(x, a), b) +
                   number(-2, 2) * floordiv(mod(x, a * b), number(1, 9)) + floordiv(x, a * b);
    const Expr simple = simplify(e, ranges);
    for (int k = 0; k < 8; ++k) {
      const int64_t at[] = {number(0, sizes[0] - 1), number(0, sizes[1] - 1)};
      const auto value = [&](const Expr& v) { return at[v == j]; };
      ASSERT_EQ(evaluate(simple, value), evaluate(e, value))
          << e.str() << " -> " << simple.str() << " at " << at[0] << ", " << at[1] << " below " << sizes[0]
          << ", " << sizes[1];
    }
  }
}

TEST(Expr, Decide) {
  EXPECT_EQ(decide(Relation::Lt, Expr(1), s), true);
  EXPECT_EQ(decide(Relation::Eq, s, Expr(1)), false);
  EXPECT_EQ(decide(Relation::Eq, s, t), std::nullopt);
  EXPECT_EQ(decide(Relation::Le, s, s * t), true);
  const Range ranges[] = {{i, s}};
  EXPECT_EQ(decide(Relation::Lt, i, s, ranges), true);
  EXPECT_EQ(decide(Relation::Lt, i + 1, s, ranges), std::nullopt);
}

TEST(Expr, TextReadsBack) {
  for (const Expr& e :
       {floordiv(i + s, t) * 3 - j, mod(i * 5 + 2, s + t) + min(s, t), Expr(-7) * i, max(i - 3, j * j)}) {
    Expr back = substitute(parse(e.str()), [](const Expr& x) -> std::optional<Expr> {
      if (!x.is_symbol()) return std::nullopt;
      return x.name()[0] == 's' ? Expr::symbol(x.name(), 2) : x;
    });
    EXPECT_EQ(back, e) << e.str();
  }
  EXPECT_THROW(parse("s0 +"), ValueError);
  EXPECT_THROW(parse("(s0"), ValueError);
}

// Random expressions: every rewrite keeps the value, every proof holds on samples.
TEST(Expr, RewritesKeepTheValue) {
  std::mt19937 random(7);
  auto below = [&](int n) { return static_cast<int>(random() % n); };
  for (int round = 0; round < 20000; ++round) {
    const Expr symbols[] = {s, t, i, j};
    const Range ranges[] = {{i, s}, {j, t}};
    struct Item {
      Expr e;
      std::function<int64_t(const int64_t*)> value;
    };
    std::vector<Item> pool;
    for (int k = 0; k < 4; ++k) pool.push_back({symbols[k], [k](const int64_t* v) { return v[k]; }});
    for (int step = 0; step < 5; ++step) {
      Item a = pool[below(pool.size())], b = pool[below(pool.size())];
      const int64_t c = below(9) - 4, d = below(5) + 1;
      switch (below(6)) {
        case 0:
          pool.push_back({a.e + b.e, [=](const int64_t* v) { return a.value(v) + b.value(v); }});
          break;
        case 1:
          pool.push_back({a.e * Expr(c), [=](const int64_t* v) { return a.value(v) * c; }});
          break;
        case 2:
          pool.push_back({a.e * b.e, [=](const int64_t* v) { return a.value(v) * b.value(v); }});
          break;
        case 3:
          pool.push_back({floordiv(a.e, Expr(d), ranges), [=](const int64_t* v) {
                            int64_t x = a.value(v);
                            return (x - ((x % d) + d) % d) / d;
                          }});
          break;
        case 4:
          pool.push_back(
              {mod(a.e, Expr(d), ranges), [=](const int64_t* v) { return ((a.value(v) % d) + d) % d; }});
          break;
        default:
          pool.push_back({min(a.e, b.e), [=](const int64_t* v) { return std::min(a.value(v), b.value(v)); }});
      }
    }
    const Item& last = pool.back();
    const bool nonnegative = known_nonnegative(last.e, ranges);
    const Expr simple = simplify(last.e, ranges);
    for (int sample = 0; sample < 4; ++sample) {
      int64_t v[4] = {2 + below(6), 2 + below(6), 0, 0};
      v[2] = below(v[0]);
      v[3] = below(v[1]);
      auto lookup = [&](const Expr& x) {
        for (int k = 0; k < 4; ++k)
          if (symbols[k] == x) return v[k];
        throw InternalError("unknown symbol " + x.name());
      };
      const int64_t expected = last.value(v);
      ASSERT_EQ(evaluate(last.e, lookup), expected) << last.e.str();
      ASSERT_EQ(evaluate(simple, lookup), expected) << last.e.str() << " -> " << simple.str();
      if (nonnegative) {
        ASSERT_GE(expected, 0) << last.e.str();
      }
    }
  }
}

}  // namespace
}  // namespace fl::sym
