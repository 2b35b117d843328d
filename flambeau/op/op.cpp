#include "flambeau/op/op.h"

#include <algorithm>
#include <mutex>

namespace fl {
namespace {

bool has_in_place_form(const OpInfo& op) {
  return !op.is(Tag::NoInPlace | Tag::View | Tag::Factory) && !op.mutates() && op.return_count() == 1 &&
         op.schema.returns[0].type == ArgType::Tensor && op.arg_count() > 0 &&
         op.schema.args[0].type == ArgType::Tensor;
}

bool has_out_form(const OpInfo& op) {
  return !op.is(Tag::NoOut | Tag::View) && !op.mutates() && op.return_count() > 0 &&
         std::all_of(op.schema.returns.begin(), op.schema.returns.end(),
                     [](const Return& r) { return r.type == ArgType::Tensor; });
}

// "add_.Tensor(Tensor(a!) self, ...) -> Tensor(a!)" and the like, from the fields.
std::string schema_text(const Schema& s) {
  std::string out = s.full_name() + "(";
  bool star = false;
  for (size_t i = 0; i < s.args.size(); ++i) {
    const Argument& a = s.args[i];
    if (i) out += ", ";
    if (a.keyword_only && !star) {
      out += "*, ";
      star = true;
    }
    std::string type(name(a.type));
    if (a.mutated) type.insert(6, fmt::format("({}!)", a.alias));
    out += type + " " + a.name;
    if (a.default_value) out += "=" + a.default_value->describe();
  }
  out += ") -> ";
  if (s.returns.size() > 1) out += "(";
  for (size_t i = 0; i < s.returns.size(); ++i)
    out += fmt::format("{}Tensor({}!)", i ? ", " : "", s.returns[i].alias);
  if (s.returns.size() > 1) out += ")";
  return out;
}

size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t next = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = row[j];
      row[j] = next;
    }
  }
  return row[b.size()];
}

}  // namespace

const OpInfo* OpTable::insert(OpInfo info) {
  info.id = static_cast<int>(ops_.size());
  const std::string full = info.name();
  FL_ASSERT(!by_name_.contains(full), "the operator {} is defined twice", full);
  ops_.push_back(std::move(info));
  by_name_.emplace(full, &ops_.back());
  return &ops_.back();
}

const OpInfo* OpTable::add(OpInfo info) {
  for (const Argument& a : info.schema.args)
    if (a.mutated) info.tags = info.tags | Tag::Mutates;
  if (info.decompose && !info.grad && !info.is_primitive() && !info.is(Tag::NonDifferentiable | Tag::Fused) &&
      !info.infer)
    info.tags = info.tags | Tag::Composite;
  auto* op = const_cast<OpInfo*>(insert(std::move(info)));
  derive_forms(*op);
  return op;
}

void OpTable::derive_forms(OpInfo& op) {
  if (has_in_place_form(op)) {
    OpInfo f;
    f.schema = op.schema;
    f.schema.name += "_";
    f.schema.args[0].alias = 'a';
    f.schema.args[0].mutated = true;
    f.schema.returns[0].alias = 'a';
    f.schema.returns[0].mutated = true;
    f.schema.text = schema_text(f.schema);
    f.doc = fmt::format("In-place form of `{}`.", op.name());
    f.tags = (op.tags | Tag::Mutates);
    f.functional = &op;
    f.saves = op.saves;
    f.grad = op.grad;
    op.in_place = insert(std::move(f));
  }
  if (has_out_form(op)) {
    OpInfo f;
    f.schema = op.schema;
    f.schema.overload = op.schema.overload.empty() ? "out" : op.schema.overload + "_out";
    const size_t count = op.schema.returns.size();
    for (size_t i = 0; i < count; ++i) {
      Argument a;
      a.type = ArgType::Tensor;
      a.name = count == 1                          ? "out"
               : op.schema.returns[i].name.empty() ? fmt::format("out{}", i)
                                                   : op.schema.returns[i].name;
      a.keyword_only = true;
      a.alias = f.schema.returns[i].alias = static_cast<char>('a' + i);
      a.mutated = f.schema.returns[i].mutated = true;
      f.schema.args.push_back(std::move(a));
    }
    f.schema.text = schema_text(f.schema);
    f.doc = fmt::format("`{}` written into given tensors.", op.name());
    f.tags = op.tags | Tag::Mutates | Tag::NonDifferentiable;
    f.functional = &op;
    op.out = insert(std::move(f));
  }
}

const OpInfo* OpTable::find(std::string_view full_name) const {
  auto it = by_name_.find(std::string(full_name));
  return it == by_name_.end() ? nullptr : it->second;
}

namespace {
OpTable& mutable_table() {
  static OpTable table;
  return table;
}
}  // namespace

const OpTable& op_table() {
  static std::once_flag once;
  std::call_once(once, [] {
    define_operators(mutable_table());
    start_runtime(mutable_table());
  });
  return mutable_table();
}

const OpInfo& find_op(std::string_view full_name) {
  if (const OpInfo* op = op_table().find(full_name)) return *op;
  std::vector<std::pair<size_t, std::string>> near;
  for (const OpInfo& op : op_table().all()) near.emplace_back(distance(full_name, op.name()), op.name());
  std::sort(near.begin(), near.end());
  std::string list;
  for (size_t i = 0; i < near.size() && i < 3; ++i) list += (i ? ", " : "") + near[i].second;
  FL_RAISE(ValueError, "there is no operator '{}'; the nearest names are {}", full_name, list);
}

const OpInfo& require_operator(std::string_view schema) {
  const std::string_view full = schema.substr(0, schema.find('('));
  const OpInfo* op = op_table().find(full);
  FL_ASSERT(op, "the operator '{}' is declared but not defined", full);
  return *op;
}

const OpInfo& in_place_form(const OpInfo& op) {
  FL_CHECK(op.in_place, NotImplementedError, "the operator {} has no in-place form", op.name());
  return *op.in_place;
}

std::vector<Expr> LowerCtx::sizes(int i, int item) const {
  std::vector<Expr> out;
  for (SymInt s : spec(i, item).sizes) out.push_back(s.expr());
  return out;
}
std::vector<Expr> LowerCtx::out_sizes(int i) const {
  std::vector<Expr> out;
  for (SymInt s : outs_[i].sizes) out.push_back(s.expr());
  return out;
}

}  // namespace fl
