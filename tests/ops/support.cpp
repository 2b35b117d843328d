#include "support.h"

#include <algorithm>

#include "flambeau/aot/compiled_function.h"
#include "flambeau/autograd/autograd.h"
#include "flambeau/runtime/executable.h"
#include "flambeau/tensor/generator.h"
#include "reference_backend.h"

namespace fl::testing {
namespace {

constexpr uint64_t kSeed = 2026;

/// Where the tensors of a call are, so that it can be made with others.
class Places {
 public:
  Places(const OpInfo& op, const std::vector<Value>& args) : op_(op), args_(args) {
    for (size_t a = 0; a < args.size(); ++a) {
      if (args[a].is_tensor()) add(args[a].tensor(), static_cast<int>(a), -1);
      if (args[a].tag() != Value::Tag::TensorList) continue;
      for (size_t k = 0; k < args[a].tensors().size(); ++k)
        add(args[a].tensors()[k], static_cast<int>(a), static_cast<int>(k));
    }
  }
  const Tensors& tensors() const { return tensors_; }

  Tensors call(const Tensors& inputs) {
    std::vector<Value> args = args_;
    for (size_t k = 0; k < places_.size(); ++k) {
      const auto [arg, item] = places_[k];
      if (item < 0) {
        args[arg] = Value(inputs[k]);
      } else {
        std::vector<Tensor> list = args[arg].tensors();
        list[item] = inputs[k];
        args[arg] = Value(std::move(list));
      }
    }
    Tensors outs;
    is_list_ = false;
    for (const Value& v : fl::call(op_, std::move(args))) {
      if (v.tag() == Value::Tag::TensorList) {
        is_list_ = true;
        for (const Tensor& t : v.tensors()) outs.push_back(t);
      } else {
        outs.push_back(v.tensor());
      }
    }
    return outs;
  }
  std::vector<Value> as_results(const Tensors& outs) const {
    if (is_list_) return {Value(outs)};
    return {outs.begin(), outs.end()};
  }

 private:
  void add(const Tensor& t, int arg, int item) {
    if (!t.defined() || t.impl()->wrapped_number) return;
    tensors_.push_back(t);
    places_.emplace_back(arg, item);
  }

  const OpInfo& op_;
  std::vector<Value> args_;
  Tensors tensors_;
  std::vector<std::pair<int, int>> places_;
  bool is_list_ = false;
};

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
  install_backend(&reference_backend(&own));
  struct Restore {
    Backend* b;
    ~Restore() { install_backend(b); }
  } restore{&own};
  return call(op, std::move(args));
}

/// The call as a compiled function: traced with symbolic sizes, made functional, lowered, and its kernels
/// run.
std::vector<Value> run_compiled(const OpInfo& op, const std::vector<Value>& args,
                                runtime::KernelRunner runner) {
  Places places(op, args);
  const auto compiler = [runner](const graph::Graph& g) -> aot::Runner {
    const auto program =
        std::make_shared<runtime::Executable>(loop::lower(g), runtime::ExecutableOptions{.runner = runner});
    return [program](const std::vector<Value>& inputs) {
      std::vector<Tensor> tensors;
      std::vector<int64_t> numbers;
      for (const Value& v : inputs) {
        if (v.is_tensor())
          tensors.push_back(v.tensor());
        else
          numbers.push_back(v.to_int());
      }
      return program->run(tensors, numbers);
    };
  };
  const NoGradGuard no_grad;
  aot::CompileOptions options;
  options.trace.dynamic = true;
  const auto function = aot::CompiledFunction::make(
      [&](const Tensors& inputs) { return places.call(inputs); }, places.tensors(), compiler, options);
  return places.as_results((*function)(places.tensors()));
}
std::vector<Value> run_interpreted(const OpInfo& op, std::vector<Value> args) {
  return run_compiled(op, args, runtime::KernelRunner::Interpreter);
}
std::vector<Value> run_native(const OpInfo& op, std::vector<Value> args) {
  return run_compiled(op, args, runtime::KernelRunner::Native);
}
bool is_compilable(const OpInfo& op) { return !op.is(Tag::DataDependent | Tag::Mutates); }

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
      {"reference",
       [](const OpInfo& op) { return op.library == LibraryCall::None || op.library == LibraryCall::Join; },
       run_reference, 16, kFewDTypes},
      {"loop interpreter", is_compilable, run_interpreted, 0, kFewDTypes},
      {"compiled", is_compilable, run_native, 0, DTypeSet{DType::Float32, DType::BFloat16}},
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

void each_sample(const OpInfo& op, const SampleFn& f, DTypeSet dtypes) {
  for (int d = 0; d < kDTypeCount; ++d) {
    if (!dtypes.contains(static_cast<DType>(d))) continue;
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

void use_tested_backend() { op_table(); }

void OperatorTest::SetUp() {
  use_tested_backend();
  manual_seed(kSeed);
}

}  // namespace fl::testing
