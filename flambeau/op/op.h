// Op<"schema">: an operator as a C++ function, and the table that definitions go into.
#pragma once
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "flambeau/op/dispatch.h"
#include "flambeau/op/op_def.h"

namespace fl {

namespace detail {

template <schema::FixedString S>
struct OpState {
  static inline const OpInfo* info = nullptr;
  static const OpInfo& get() {
    // Every library and program has its own copy of `info`.
    if (!info) [[unlikely]]
      info = &require_operator(S.view());
    return *info;
  }
};

enum class Form { Functional, InPlace };

template <schema::FixedString S, Form F, class Signature>
struct CallWith;
template <schema::FixedString S, Form F, class R, class... A>
struct CallWith<S, F, R(A...)> {
  R operator()(A... a) const {
    using Sig = schema::Signature<S>;
    const OpInfo& functional = OpState<S>::get();
    const OpInfo& op = F == Form::InPlace ? in_place_form(functional) : functional;
    Value args[Sig::count == 0 ? 1 : Sig::count] = {Value(std::move(a))...};
    for (int i = sizeof...(A); i < Sig::count; ++i) args[i] = *op.schema.args[i].default_value;
    Value outs[Sig::parsed.return_count == 0 ? 1 : Sig::parsed.return_count];
    dispatch(op, args, outs);
    return Sig::read_results(outs, std::make_index_sequence<Sig::parsed.return_count>{});
  }
};

/// One call operator for each number of arguments from the required ones to all.
template <schema::FixedString S, Form F, int N>
struct CallUpTo : CallWith<S, F, typename schema::Signature<S>::template Call<N>>, CallUpTo<S, F, N - 1> {
  using CallWith<S, F, typename schema::Signature<S>::template Call<N>>::operator();
  using CallUpTo<S, F, N - 1>::operator();
};
template <schema::FixedString S, Form F, int N>
requires(N == schema::Signature<S>::parsed.required) struct CallUpTo<S, F, N>
    : CallWith<S, F, typename schema::Signature<S>::template Call<N>> {
  using CallWith<S, F, typename schema::Signature<S>::template Call<N>>::operator();
};

}  // namespace detail

/// `inline constexpr Op<"neg(Tensor self) -> Tensor"> neg;` declares fl::neg(x), and fl::neg.in_place(x)
/// where the rule gives the operator an in-place form.
template <schema::FixedString S>
struct Op : detail::CallUpTo<S, detail::Form::Functional, schema::Signature<S>::count> {
  static constexpr detail::CallUpTo<S, detail::Form::InPlace, schema::Signature<S>::count> in_place{};
  static const OpInfo& info() { return detail::OpState<S>::get(); }
};

/// Every operator, in order of definition.
class OpTable {
 public:
  template <schema::FixedString S>
  void define(Op<S>, OpDef<S> def) {
    OpInfo info;
    info.schema = parse_schema(S.view());
    info.doc = def.doc;
    info.tags = def.tags;
    info.infer = def.infer;
    info.scalar = def.scalar;
    info.lower = def.lower;
    info.library = def.library;
    if (def.decompose) {
      using Sig = schema::Signature<S>;
      info.decompose.function = reinterpret_cast<void (*)()>(def.decompose);
      info.decompose.invoke = [](void (*f)(), const Value* args, Value* outs) {
        Sig::invoke(reinterpret_cast<typename Sig::Definition*>(f), args, outs,
                    std::make_index_sequence<Sig::count>{});
      };
    }
    info.write_back = def.write_back;
    info.saves = def.saves;
    info.grad = def.grad;
    info.samples = def.samples;
    detail::OpState<S>::info = add(std::move(info));
  }

  const std::deque<OpInfo>& all() const { return ops_; }
  /// By full name: "add", "sum.dim_IntList", "add_" or "add.out". Null if there is none.
  const OpInfo* find(std::string_view full_name) const;

 private:
  const OpInfo* add(OpInfo info);
  const OpInfo* insert(OpInfo info);
  void derive_forms(OpInfo& op);
  std::deque<OpInfo> ops_;
  std::unordered_map<std::string, const OpInfo*> by_name_;
};

/// The table with every operator of ops/ (defined on the first call).
const OpTable& op_table();
/// Looks an operator up; raises ValueError naming similar ones.
const OpInfo& find_op(std::string_view full_name);

/// Implemented in ops/register.cpp: all define_* functions in order.
void define_operators(OpTable& t);
/// Implemented in runtime/: installs autograd and the backend. Called once, after the operators are defined.
void start_runtime(const OpTable& t);

}  // namespace fl
