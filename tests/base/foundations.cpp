// Checks, handles and hashes.
#include <gtest/gtest.h>

#include "flambeau/base/error.h"
#include "flambeau/base/hash.h"
#include "flambeau/base/ref.h"

namespace fl {
namespace {

TEST(Check, RaisesItsTypeWithTheValues) {
  try {
    FL_CHECK(1 > 2, ValueError, "size is {} when it should be {}", 10, 20);
    FAIL() << "expected a ValueError";
  } catch (const ValueError& error) {
    EXPECT_STREQ(error.what(), "size is 10 when it should be 20");
  }
  FL_CHECK(2 > 1, ValueError, "never");
}

TEST(Assert, NamesThePlaceAndTheCondition) {
  try {
    FL_ASSERT(1 > 2, "with {}", 7);
    FAIL() << "expected an InternalError";
  } catch (const InternalError& error) {
    EXPECT_NE(error.message().find("foundations.cpp"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("'1 > 2'"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("with 7"), std::string::npos) << error.message();
  }
}

struct Counted : RefCounted {
  explicit Counted(int& alive) : alive(alive) { ++alive; }
  ~Counted() override { --alive; }
  int& alive;
};

TEST(Ref, LastHandleDestroys) {
  int alive = 0;
  {
    Ref<Counted> a = make_ref<Counted>(alive);
    Ref<Counted> b = a;
    EXPECT_EQ(a->use_count(), 2);
    a = nullptr;
    EXPECT_EQ(alive, 1);
    Ref<Counted> c = std::move(b);
    EXPECT_FALSE(b);
    EXPECT_EQ(c->use_count(), 1);
    c = c;
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

TEST(Ref, ALeakedCountIsTakenOver) {
  int alive = 0;
  Counted* bare = make_ref<Counted>(alive).leak();
  EXPECT_EQ(alive, 1);
  EXPECT_EQ(bare->use_count(), 1);
  Ref<Counted>::adopt(bare) = nullptr;
  EXPECT_EQ(alive, 0);
}

TEST(Hash, IsOfTheContentAlone) {
  EXPECT_EQ(hash128("flambeau"), hash128(std::string("flambeau")));
  EXPECT_FALSE(hash128("flambeau") == hash128("Flambeau"));
  EXPECT_EQ(hash128("").hex().size(), 32u);
  EXPECT_NE(hash_combine(hash_combine(0, 1), 2), hash_combine(hash_combine(0, 2), 1));
}

}  // namespace
}  // namespace fl
