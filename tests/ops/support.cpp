#include "support.h"

#include <algorithm>

#include "flambeau/autograd/autograd.h"
#include "flambeau/tensor/generator.h"
#include "reference_backend.h"

namespace fl::testing {
namespace {

constexpr uint64_t kSeed = 2026;

std::vector<Value> outs_of(const OpInfo& op, std::vector<Value> outs) {
  outs.resize(op.return_count());
  return outs;
}

std::vector<Value> run_eager(const OpInfo& op, std::vector<Value> args) { return call(op, std::move(args)); }

std::vector<Value> run_decomposed(const OpInfo& op, std::vector<Value> args) {
  std::vector<Value> outs(std::max(op.return_count(), 1));
  op.decompose(args.data(), outs.data());
  return outs_of(op, std::move(outs));
}

std::vector<Value> run_reference(const OpInfo& op, std::vector<Value> args) {
  Backend& own = backend();
  install_backend(&reference_backend());
  struct Restore {
    Backend* b;
    ~Restore() { install_backend(b); }
  } restore{&own};
  return call(op, std::move(args));
}

/// A view by its map of indices, as a graph computes it.
std::vector<Value> run_view_map(const OpInfo& op, std::vector<Value> args) {
  std::vector<Value> outs(1);
  reference_backend().run(op, args.data(), outs.data());
  return outs;
}

}  // namespace

const std::vector<Way>& ways() {
  static const std::vector<Way> list{
      {"eager", [](const OpInfo&) { return true; }, run_eager},
      {"decomposed",
       [](const OpInfo& op) { return static_cast<bool>(op.decompose) && !op.is(Tag::Composite); },
       run_decomposed},
      {"reference", [](const OpInfo& op) { return op.library == LibraryCall::None; }, run_reference},
      {"view map", [](const OpInfo& op) { return op.is_view() && op.lower; }, run_view_map},
  };
  return list;
}

std::vector<const OpInfo*> defined_operators() {
  std::vector<const OpInfo*> out;
  for (const OpInfo& op : op_table().all())
    if (!op.functional) out.push_back(&op);
  return out;
}

std::string test_name(const OpInfo& op) {
  std::string out = op.name();
  std::replace(out.begin(), out.end(), '.', '_');
  return out;
}

void each_sample(const OpInfo& op, const SampleFn& f) {
  for (int d = 0; d < kDTypeCount; ++d) {
    samples::for_each_sample(op, static_cast<DType>(d), kSeed, [&](Sample& s) {
      if (s.error.empty()) f(s, static_cast<DType>(d));
    });
  }
}
void each_error_sample(const OpInfo& op, const SampleFn& f) {
  for (int d = 0; d < kDTypeCount; ++d) {
    samples::for_each_sample(op, static_cast<DType>(d), kSeed, [&](Sample& s) {
      if (!s.error.empty()) f(s, static_cast<DType>(d));
    });
  }
}

std::string error_of(const std::function<void()>& f) {
  const auto text = [](const char* type, const Error& e) { return std::string(type) + ": " + e.message(); };
  try {
    f();
  } catch (const OutOfMemoryError& e) {
    return text("OutOfMemoryError", e);
  } catch (const NotImplementedError& e) {
    return text("NotImplementedError", e);
  } catch (const UnsupportedError& e) {
    return text("UnsupportedError", e);
  } catch (const RuntimeError& e) {
    return text("RuntimeError", e);
  } catch (const ValueError& e) {
    return text("ValueError", e);
  } catch (const TypeError& e) {
    return text("TypeError", e);
  } catch (const IndexError& e) {
    return text("IndexError", e);
  } catch (const Error& e) {
    return text("InternalError", e);
  }
  return "";
}

void use_tested_backend() {
  static const bool once = [] {
    enable_autograd();
    install_backend(&reference_backend());
    return true;
  }();
  (void)once;
}

void OperatorTest::SetUp() {
  use_tested_backend();
  manual_seed(kSeed);
}

}  // namespace fl::testing
