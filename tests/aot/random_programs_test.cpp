// Random programs of views, changes in place and arithmetic: compiled as eager.
#include <random>

#include "flambeau/autograd/autograd.h"
#include "flambeau/base/error.h"
#include "flambeau/ops/functions.h"
#include "programs.h"

namespace fl {
namespace {

using testing::interior;
using testing::leaf;
using testing::ramp;

/// The same program for the same seed.
class RandomProgram {
 public:
  RandomProgram(uint32_t seed, bool gradients) : seed_(seed), gradients_(gradients) {}

  Tensors inputs() const {
    std::mt19937 random(seed_);
    Tensors in;
    for (int i = 0; i < 3; ++i) {
      Tensor t = ramp({2, 3}, -0.4 + 0.3 * i, 0.13 + 0.05 * i);
      const auto kind = random() % 3;
      if (gradients_ && kind == 0) t = leaf(t);
      if (gradients_ && kind == 1) t = interior(leaf(t));
      in.push_back(t);
    }
    return in;
  }

  Tensors operator()(const Tensors& in) const {
    std::mt19937 random(seed_ + 1000);
    Tensors known = in;
    for (int i = 0; i < 8; ++i) step(random, known);
    Tensors out;
    const int count = 1 + static_cast<int>(random() % 3);
    for (int i = 0; i < count; ++i) out.push_back(known[random() % known.size()]);
    return out;
  }

 private:
  static Tensor same_shape(std::mt19937& random, const Tensors& known, const Tensor& t) {
    for (int tries = 0; tries < 8; ++tries) {
      const Tensor& o = known[random() % known.size()];
      bool equal = o.dim() == t.dim();
      for (int d = 0; equal && d < t.dim(); ++d) equal = o.sizes()[d] == t.sizes()[d];
      if (equal) return o;
    }
    return t;
  }

  static Tensor view_of(std::mt19937& random, const Tensor& t) {
    const auto kind = random() % 5;
    if (t.dim() == 0 || kind == 0) return alias(t);
    if (kind == 1) return select(t, 0, 0);
    if (kind == 2) return slice(t, t.dim() - 1, 0, SymInt(1));
    if (kind == 3 && t.dim() == 2) return permute(t, {1, 0});
    return unsqueeze(t, 0);
  }

  static void change(std::mt19937& random, const Tensors& known) {
    const Tensor t = known[random() % known.size()];
    const auto kind = random() % 4;
    if (kind == 0) {
      NoGradGuard no_grad;
      mul.in_place(t, 0.5);
    } else if (kind == 1) {
      add.in_place(t, same_shape(random, known, t), 0.25);
    } else if (kind == 2) {
      copy.in_place(t, same_shape(random, known, t));
    } else {
      mul.in_place(t, 1.5);
    }
  }

  static void step(std::mt19937& random, Tensors& known) {
    const Tensor t = known[random() % known.size()];
    switch (random() % 6) {
      case 0:
        known.push_back(sin(t));
        break;
      case 1:
        known.push_back(mul(t, same_shape(random, known, t)));
        break;
      case 2:
      case 3:
        known.push_back(view_of(random, t));
        break;
      case 4:
        change(random, known);
        break;
      default:
        known.push_back(add(t, 0.5));
    }
  }

  uint32_t seed_;
  bool gradients_;
};

// Counts what could be compared; eager mode refuses some programs, capture others.
void compare(bool gradients, int least) {
  int compared = 0, unsupported = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const RandomProgram program(seed, gradients);
    const testing::Program p{fmt::format("seed {}", seed), program, [&] { return program.inputs(); }, {}, {}};
    if (!testing::eager_succeeds(p)) continue;
    try {
      testing::expect_same_as_eager(p);
      ++compared;
    } catch (const UnsupportedError&) {
      ++unsupported;
    } catch (const Error& e) {
      ADD_FAILURE() << "seed " << seed << ": " << e.what();
    }
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GE(compared, least) << unsupported << " were not supported";
}

TEST(RandomPrograms, WithoutGradients) { compare(false, 200); }
TEST(RandomPrograms, WithGradients) { compare(true, 80); }

}  // namespace
}  // namespace fl
