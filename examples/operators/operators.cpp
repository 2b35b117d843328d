// Prints the table of operators as Markdown: operators [primitives]. docs/primitives.md is its second form.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "flambeau/base/error.h"
#include "flambeau/loop/builder.h"
#include "flambeau/ops/samples.h"

using fl::DType;
using fl::OpInfo;
using fl::Tag;

namespace {

// "a; b", where both are there.
void append(std::string& text, const std::string& more) { text += (text.empty() ? "" : "; ") + more; }

std::string cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

bool is_primitive(const OpInfo& op) { return op.is_primitive() || (op.is_view() && !op.decompose); }

std::vector<const OpInfo*> operators(bool primitives_only) {
  std::vector<const OpInfo*> out;
  for (const OpInfo& op : fl::op_table().all())
    if (!op.functional && (!primitives_only || is_primitive(op))) out.push_back(&op);
  if (!primitives_only)
    std::stable_sort(out.begin(), out.end(), [](auto* a, auto* b) { return a->name() < b->name(); });
  return out;
}

// Which dtypes, in words: "all but bool", "float32, float64".
std::string dtypes(fl::DTypeSet set) {
  struct Named {
    const char* name;
    fl::DTypeSet set;
  };
  namespace d = fl::dtypes;
  for (const Named& n : {Named{"all", d::all}, Named{"real", d::real},
                         Named{"all but bool", d::integers | d::floats | d::complexes}})
    if ((set.bits & d::all.bits) == n.set.bits) return n.name;
  std::string out;
  for (const Named& n : {Named{"floats", d::floats}, Named{"complex", d::complexes},
                         Named{"integers", d::integers}, Named{"float32, float64", d::full_floats}}) {
    if ((set.bits & n.set.bits) != n.set.bits) continue;
    set.bits &= ~n.set.bits;
    out += (out.empty() ? "" : ", ") + std::string(n.name);
  }
  for (int k = 0; k < fl::kDTypeCount; ++k)
    if (set.contains(static_cast<DType>(k)))
      out += (out.empty() ? "" : ", ") + std::string(fl::name(static_cast<DType>(k)));
  return out;
}

int argument(const OpInfo& op, std::string_view name) {
  for (int k = 0; k < op.arg_count(); ++k)
    if (op.schema.args[k].name == name) return k;
  return -1;
}

bool same_sizes(const fl::TensorSpec& a, fl::IntList b) {
  return a.dim() == static_cast<int>(b.size()) && std::equal(b.begin(), b.end(), a.sizes.begin());
}

// Rules as the samples show them: the operator's own rule gives the outputs of each.
class Rules {
 public:
  explicit Rules(const OpInfo& op) : op_(op), as_argument_(op.arg_count(), true) {
    for (int k = 0; k < fl::kDTypeCount; ++k)
      fl::samples::for_each_sample(op, static_cast<DType>(k), 1, [&](fl::Sample& s) {
        if (s.error.empty()) look_at(s, static_cast<DType>(k));
      });
  }

  std::string shape() const {
    if (op_.is(Tag::Factory)) return argument(op_, "size") < 0 ? "as described" : "`size`";
    if (op_.is(Tag::Elementwise) && broadcast_) return "broadcast of the tensors";
    for (int k = 0; k < op_.arg_count(); ++k)
      if (as_argument_[k]) return fmt::format("as `{}`", op_.schema.args[k].name);
    if (broadcast_) return "broadcast of the tensors";
    if (op_.is(Tag::Reduction) && argument(op_, "keepdim") >= 0)
      return "without `dim`, or 1 there (`keepdim`)";
    return "as described";
  }

  std::string dtype() const {
    const std::string given = argument(op_, "dtype") >= 0 ? "`dtype`, or " : "";
    if (op_.is(Tag::Factory) || results_.empty()) return given + "as described";
    std::map<DType, fl::DTypeSet> changed;
    bool constant = results_.size() > 2;
    for (const auto& [from, to] : results_) {
      if (from != to) changed[to].bits |= 1u << static_cast<int>(from);
      constant = constant && to == results_.begin()->second;
    }
    if (constant) return given + std::string(fl::name(results_.begin()->second));
    if (changed.empty()) return given + "the same";
    std::string out;
    for (const auto& [to, from] : changed) append(out, fmt::format("{} -> {}", dtypes(from), fl::name(to)));
    return given + out;
  }

 private:
  void look_at(const fl::Sample& s, DType dtype) {
    std::vector<fl::TensorSpec> outs;
    try {
      outs = fl::infer_outputs(op_, s.args.data());
    } catch (const fl::Error&) {  // sizes that depend on the elements
    }
    const int wanted = argument(op_, "dtype");
    if (!outs.empty() && (wanted < 0 || s.args[wanted].is_none())) results_.try_emplace(dtype, outs[0].dtype);
    fl::Sizes all;
    const bool known = !outs.empty();
    bool fits = known;
    for (int k = 0; k < op_.arg_count(); ++k) {
      const bool tensor = s.args[k].is_tensor() && s.args[k].tensor().defined();
      as_argument_[k] = as_argument_[k] && tensor && known;
      if (!tensor) continue;
      const fl::IntList sizes = s.args[k].tensor().sizes();
      for (const fl::TensorSpec& o : outs) as_argument_[k] = as_argument_[k] && same_sizes(o, sizes);
      try {
        all = fl::broadcast_sizes(fl::IntList(all), sizes);
      } catch (const fl::Error&) {
        fits = false;
      }
    }
    for (const fl::TensorSpec& o : outs) fits = fits && same_sizes(o, fl::IntList(all));
    broadcast_ = broadcast_ && fits;
  }

  const OpInfo& op_;
  std::vector<bool> as_argument_;
  bool broadcast_ = true;
  std::map<DType, DType> results_;
};

// Bounds of float32 functions, in ulp, as flambeau/loop/math_functions.h states them and tests/math measures.
const std::map<std::string, std::string>& stated_bounds() {
  static const auto* bounds = [] {
    auto* out = new std::map<std::string, std::string>;
    const std::filesystem::path folder = std::filesystem::path(FLAMBEAU_EXAMPLE_DATA).parent_path();
    std::ifstream in(folder / "../../flambeau/loop/math_functions.h");
    for (std::string line; std::getline(in, line);) {
      const size_t suffix = line.find("_f32("), comment = line.find("// "), unit = line.find(" ulp");
      if (line.rfind("Num ", 0) != 0 || suffix == line.npos || comment == line.npos || unit == line.npos)
        continue;
      (*out)[line.substr(4, suffix - 4)] = line.substr(comment + 3, unit - comment - 3);
    }
    return out;
  }();
  return *bounds;
}

// The operations that the operator's body is made of in a dtype, on operands that are not known.
std::vector<fl::ScalarOp> body(const OpInfo& op, DType dtype) {
  fl::loop::Builder builder("body");
  builder.begin_stage({});
  std::vector<fl::Val> in;
  for (int k = 0; k < op.scalar.arity(); ++k) {
    const bool condition = op.schema.args[k].name == "condition" || op.schema.args[k].name == "mask";
    in.push_back(builder.param(builder.add_param(condition ? DType::Bool : dtype)));
  }
  op.scalar(builder, in.data());
  std::vector<fl::ScalarOp> out;
  for (const fl::loop::Inst& i : builder.kernel().insts)
    if (i.kind == fl::loop::InstKind::Operation && fl::is_floating(i.dtype)) out.push_back(i.op);
  return out;
}

bool rounds(fl::ScalarOp op) {
  using enum fl::ScalarOp;
  return op == Add || op == Sub || op == Mul || op == Div || op == Sqrt || op == Fma;
}

// The loops of a primitive that is more than a scalar operation, for its first float32 sample.
std::optional<fl::Lowered> loops(const OpInfo& op) {
  std::optional<fl::Lowered> out;
  fl::samples::for_each_sample(op, DType::Float32, 1, [&](fl::Sample& s) {
    if (out || !s.error.empty()) return;
    const fl::InferCtx context(op, s.args.data());
    out = op.lower(fl::LowerCtx(context, fl::infer_outputs(op, s.args.data())));
  });
  return out;
}

std::string error_of_loops(const OpInfo& op) {
  if (op.is_view() || !op.lower) return "exact";
  const std::optional<fl::Lowered> l = loops(op);
  using Kind = fl::Lowered::Kind;
  using enum fl::ReduceOp;
  if (l && (l->kind == Kind::Reduction || l->kind == Kind::Scan)) {
    for (fl::ReduceOp choice : {Min, Max, Any, All, ArgMin, ArgMax})
      if (l->reduce == choice) return "exact";
    return "1 rounding a step, in the canonical order";
  }
  if (l && l->kind == Kind::Scatter && l->mode == fl::StoreMode::Add)
    return "1 rounding an addition, in order";
  if (op.is(Tag::Factory)) return "the roundings of its formula";
  return argument(op, "dtype") >= 0 ? "1 rounding where the dtype changes" : "exact";
}

// Whether the operator is this function: "pow" and "_pow" are.
bool is_named(const OpInfo& op, std::string_view function) {
  const std::string& n = op.schema.name;
  return n == function || (n[0] == '_' && n.substr(1) == function);
}

std::string count_of_roundings(int n) { return fmt::format("{} rounding{}", n, n == 1 ? "" : "s"); }

std::string error_bound(const OpInfo& op) {
  for (const auto call : {fl::LibraryCall::Sort, fl::LibraryCall::Nonzero, fl::LibraryCall::Join})
    if (op.library == call) return "exact";
  if (op.library != fl::LibraryCall::None) return "1 rounding a step, in the library's order";
  if (!op.scalar) return error_of_loops(op);
  if (!op.samples.dtypes.contains(DType::Float32)) return "exact";
  int roundings = 0;
  std::string special;
  for (fl::ScalarOp o : body(op, DType::Float32)) {
    roundings += rounds(o);
    auto bound = stated_bounds().find(std::string(fl::name(o)));
    if (bound != stated_bounds().end())
      append(special, fmt::format("{} {}", is_named(op, bound->first) ? "" : bound->first, bound->second));
  }
  if (!special.empty()) {
    std::string out = special[0] == ' ' ? special.substr(1) + " ulp" : "of " + special + " ulp";
    return roundings == 0 ? out : out + " and " + count_of_roundings(roundings);
  }
  if (roundings == 0) return "exact";
  return count_of_roundings(roundings);
}

void print_primitives() {
  fmt::print(
      "| primitive | takes | shape | dtype | error in float32, at most | what "
      "|\n|---|---|---|---|---|---|\n");
  for (const OpInfo* op : operators(true)) {
    const Rules rules(*op);
    fmt::print("| `{}` | {} | {} | {} | {} | {} |\n", cell(op->name()), dtypes(op->samples.dtypes),
               rules.shape(), rules.dtype(), error_bound(*op), cell(op->doc));
  }
}

void print_operators() {
  fmt::print("| operator | kind | what |\n|---|---|---|\n");
  for (const OpInfo* op : operators(false))
    fmt::print("| `{}` | {} | {} |\n", cell(op->schema.text),
               op->is_primitive() ? "primitive" : (op->is_view() ? "view" : "composite"), cell(op->doc));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "primitives") == 0)
    print_primitives();
  else
    print_operators();
}
