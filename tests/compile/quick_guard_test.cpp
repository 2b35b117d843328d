#include "flambeau/compile/quick_guard.h"

#include <gtest/gtest.h>

#include "flambeau/ops/functions.h"
#include "flambeau/trace/trace.h"
#include "tests/autograd/set_up.h"

namespace fl {
namespace {

Tensors vectors(size_t count, int64_t size = 3) {
  testing::set_up();
  Tensors out;
  for (size_t k = 0; k < count; ++k) out.push_back(full({SymInt(size)}, 1.0));
  return out;
}

struct Guarded {
  trace::TracedProgram program;
  QuickGuard guard;
  QuickGuard::Storages last;
  explicit Guarded(size_t count)
      : program(trace::trace([](const Tensors& a) { return Tensors{cat(a)}; }, vectors(count))),
        guard(program) {}
  /// What both forms say.
  bool accepts(const Tensors& args) {
    const bool alone = guard.accepts(program, args), after_others = guard.accepts(program, args, last);
    EXPECT_EQ(alone, after_others);
    return alone;
  }
};

TEST(QuickGuard, SharedMemoryIsSeenWhateverWasAcceptedBefore) {
  for (const size_t count : {2, 5, 20}) {
    Guarded g(count);
    const Tensors first = vectors(count);
    Tensors shared = first;
    shared.back() = alias(shared.front());
    EXPECT_FALSE(g.accepts(shared));
    EXPECT_TRUE(g.accepts(first));
    EXPECT_TRUE(g.accepts(first));
    EXPECT_FALSE(g.accepts(shared)) << count << " inputs, one changed";
    EXPECT_TRUE(g.accepts(vectors(count)));
    EXPECT_FALSE(g.accepts(shared)) << count << " inputs, all changed";
    // Two that change places: each is another's memory of the last call.
    Tensors turned = first;
    std::swap(turned.front(), turned.back());
    EXPECT_TRUE(g.accepts(first));
    EXPECT_TRUE(g.accepts(turned));
    EXPECT_FALSE(g.accepts(shared));
  }
}

TEST(QuickGuard, OtherInputsAreRefused) {
  Guarded g(3);
  EXPECT_FALSE(g.accepts(vectors(2)));
  EXPECT_FALSE(g.accepts(vectors(3, 4)));
  Tensors leaves = vectors(3);
  leaves[1].set_requires_grad(true);
  EXPECT_FALSE(g.accepts(leaves));
  EXPECT_TRUE(g.accepts(vectors(3)));
}

}  // namespace
}  // namespace fl
