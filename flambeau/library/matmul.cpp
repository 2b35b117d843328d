#include "flambeau/library/matmul.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "flambeau/base/error.h"
#include "flambeau/base/hash.h"
#include "flambeau/library/epilogue.h"
#include "flambeau/library/matmul_layout.h"
#include "flambeau/library/onednn.h"
#include "flambeau/library/plan_cache.h"

namespace fl::library {
namespace {

// Below this many multiplications a second thread costs more than it brings.
constexpr double kOneThreadWork = 48.0 * 48 * 48;

/// How one description is run: the library's part and the loops around it.
struct Route {
  MatmulDesc core;              // what build_matmul() gets
  bool swapped = false;         // a and b change places
  bool copy_bias_to_c = false;  // c = bias first, then the product is added
};

/// None where the layout is not one that the library takes.
std::optional<Route> route(const MatmulDesc& desc) {
  Route r{desc};
  MatmulDesc& d = r.core;
  d.relu = false;
  if (!d.bias) d.bias_strides = {};
  merge_batch(d);
  if (d.n != 1 && d.c.column != 1) {
    d = transposed(d);
    r.swapped = true;
  }
  merge_batch_into_rows(d);
  settle_strides(d.a, d.m, d.k);
  settle_strides(d.b, d.k, d.n);
  settle_strides(d.c, d.m, d.n);
  const bool c_plain = d.c.column == 1 && (d.m == 1 || d.c.row >= d.n);
  if (!c_plain || !is_matrix(d.a, d.m, d.k) || !is_matrix(d.b, d.k, d.n)) return std::nullopt;
  for (int i = 0; i < 2; ++i) {
    if (d.batch[i] == 1) continue;
    if (d.c.batch[i] == 0 || (d.a.batch[i] == 0 && d.b.batch[i] == 0)) return std::nullopt;
  }
  if (!d.bias) return r;
  if (d.n == 1) d.bias_strides.column = 1;
  const bool one_bias = d.bias_strides.batch == std::array<int64_t, 2>{0, 0};
  if (d.m == 1) d.bias_strides.row = one_bias ? 0 : d.c.row;
  const MatrixStrides vector{{0, 0}, 0, 1};
  if (d.bias_strides == vector || d.bias_strides == d.c) return r;
  if (d.beta != 0) return std::nullopt;
  r.copy_bias_to_c = true;
  return r;
}

Box box_of(const MatmulDesc& d, const MatrixStrides& s) {
  return {{d.batch[0], d.batch[1], d.m, d.n}, {s.batch[0], s.batch[1], s.row, s.column}};
}

/// No products at all: c = relu(beta * c + bias).
class EmptyPlan final : public MatmulPlan {
 public:
  explicit EmptyPlan(const MatmulDesc& desc) : desc_(desc) {}
  int64_t scratch_bytes() const override { return 0; }
  void run(const void*, const void*, const void* bias, void* c, void*) const override {
    const Box box = box_of(desc_, desc_.c);
    scale_add_box(desc_.dtype, box, c, desc_.beta, box_of(desc_, desc_.bias_strides).strides,
                  desc_.bias ? bias : nullptr);
    if (desc_.relu) relu_box(desc_.dtype, box, c);
  }
  std::string implementation() const override { return "empty"; }

 private:
  MatmulDesc desc_;
};

class LibraryPlan final : public MatmulPlan {
 public:
  LibraryPlan(const MatmulDesc& desc, const Route& route, std::unique_ptr<Recipe> recipe, int threads)
      : desc_(desc), route_(route), recipe_(std::move(recipe)), threads_(threads) {}
  int64_t scratch_bytes() const override { return recipe_->scratch_bytes(); }
  std::string implementation() const override { return recipe_->implementation(); }

  void run(const void* a, const void* b, const void* bias, void* c, void* scratch) const override {
    if (usable_threads() != threads_) [[unlikely]]
      return plan_matmul(desc_)->MatmulPlan::run(a, b, bias, c, thread_workspace());
    const MatmulDesc& core = route_.core;
    if (route_.copy_bias_to_c)
      copy_box(core.dtype, box_of(core, core.c), c, box_of(core, desc_bias_strides()).strides, bias);
    if (route_.swapped) std::swap(a, b);
    // The library's interface takes inputs as plain pointers too; it does not write to them.
    void* const pointers[] = {const_cast<void*>(a), const_cast<void*>(b), const_cast<void*>(bias), c};
    recipe_->run(pointers, scratch);
    if (desc_.relu) relu_box(core.dtype, box_of(core, core.c), c);
  }

 private:
  const MatrixStrides& desc_bias_strides() const { return route_.core.bias_strides; }

  MatmulDesc desc_;
  Route route_;
  std::unique_ptr<Recipe> recipe_;
  int threads_;
};

void check_sizes(const MatmulDesc& d) {
  const bool fine = d.m >= 0 && d.n >= 0 && d.k >= 0 && d.batch[0] >= 0 && d.batch[1] >= 0;
  FL_CHECK(fine, ValueError, "a matrix product's sizes must not be negative, got {}", d.text());
}

std::shared_ptr<const MatmulPlan> make_plan(const MatmulDesc& desc, int threads) {
  if (!available() || desc.dtype == ScalarKind::F64) return nullptr;
  if (desc.m == 0 || desc.n == 0 || desc.k == 0 || desc.batch[0] == 0 || desc.batch[1] == 0)
    return std::make_shared<EmptyPlan>(desc);
  const std::optional<Route> r = route(desc);
  if (!r) return nullptr;
  MatmulDesc core = r->core;
  if (r->copy_bias_to_c) {
    core.bias = false;
    core.bias_strides = {};
    core.beta = 1;
  }
  const double work = static_cast<double>(core.batch[0] * core.batch[1]) * core.m * core.n * core.k;
  std::unique_ptr<Recipe> recipe = build_matmul(core, work <= kOneThreadWork ? 1 : threads);
  if (!recipe) return nullptr;
  return std::make_shared<LibraryPlan>(desc, *r, std::move(recipe), threads);
}

struct PlanKey {
  MatmulDesc desc;
  int threads;
  bool operator==(const PlanKey&) const = default;
  uint64_t hash() const { return hash_combine(desc.hash(), threads); }
};

}  // namespace

uint64_t MatmulDesc::hash() const {
  uint64_t h =
      hash_combine(static_cast<uint64_t>(dtype) * 4 + bias * 2 + relu, std::bit_cast<uint32_t>(beta));
  for (const int64_t v : {batch[0], batch[1], m, n, k}) h = hash_combine(h, v);
  for (const MatrixStrides* s : {&a, &b, &c, &bias_strides})
    for (const int64_t v : {s->batch[0], s->batch[1], s->row, s->column}) h = hash_combine(h, v);
  return h;
}

std::string MatmulDesc::text() const {
  const auto strides = [](const MatrixStrides& s) {
    return fmt::format("({}, {}, {}, {})", s.batch[0], s.batch[1], s.row, s.column);
  };
  std::string t =
      fmt::format("matmul {} batch {}x{} m {} n {} k {}, strides a {} b {} c {}", scalar_name(dtype),
                  batch[0], batch[1], m, n, k, strides(a), strides(b), strides(c));
  if (bias) t += fmt::format(" bias {}", strides(bias_strides));
  if (beta != 0) t += fmt::format(" beta {}", beta);
  if (relu) t += " relu";
  return t;
}

MatmulDesc MatmulDesc::dense(ScalarKind dtype, int64_t m, int64_t n, int64_t k) {
  MatmulDesc d;
  d.dtype = dtype;
  d.m = m;
  d.n = n;
  d.k = k;
  d.a = {{0, 0}, k, 1};
  d.b = {{0, 0}, n, 1};
  d.c = {{0, 0}, n, 1};
  return d;
}

std::shared_ptr<const MatmulPlan> plan_matmul(const MatmulDesc& desc) {
  static auto* const cache = new PlanCache<PlanKey, MatmulPlan>;
  const PlanKey key{desc, usable_threads()};
  return cache->find_or_make(key, [&] {
    check_sizes(desc);
    return make_plan(desc, key.threads);
  });
}

bool matmul_supported(const MatmulDesc& desc) { return plan_matmul(desc) != nullptr; }

void matmul(const MatmulDesc& desc, const void* a, const void* b, const void* bias_or_null, void* c) {
  const std::shared_ptr<const MatmulPlan> plan = plan_matmul(desc);
  FL_CHECK(plan, NotImplementedError, "the library has no kernel for {}; ask matmul_supported() first",
           desc.text());
  FL_CHECK(!desc.bias || bias_or_null, ValueError, "{} expects a bias, got a null pointer", desc.text());
  plan->run(a, b, bias_or_null, c, thread_workspace());
}

}  // namespace fl::library
