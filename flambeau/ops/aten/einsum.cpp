// Einstein's summation over batched matrix products, and distances between all pairs of rows.
#include <algorithm>
#include <map>

#include "flambeau/ops/aten/linear.h"
#include "flambeau/ops/functions.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

/// Dimensions as labels: letters by their code, those of an ellipsis from the right as kEllipsis - 1, ...
using Labels = std::vector<int>;
constexpr int kEllipsis = -1;

bool contains(const Labels& l, int label) { return std::find(l.begin(), l.end(), label) != l.end(); }

/// One operand's or the result's subscripts; an ellipsis stands as kEllipsis.
Labels parse_subscripts(std::string_view text, std::string_view equation) {
  Labels out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char ch = text[i];
    if (ch == ' ') continue;
    if (text.substr(i, 3) == "...") {
      FL_CHECK(!contains(out, kEllipsis), RuntimeError, "einsum(): found a second ellipsis in '{}'",
               equation);
      out.push_back(kEllipsis);
      i += 2;
      continue;
    }
    FL_CHECK((ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z'), RuntimeError,
             "einsum(): invalid subscript '{}' in '{}', subscripts must be letters", ch, equation);
    out.push_back(ch);
  }
  return out;
}

Labels with_ellipsis(const Labels& parsed, int dims) {
  Labels out;
  for (const int label : parsed) {
    if (label != kEllipsis)
      out.push_back(label);
    else
      for (int k = dims; k > 0; --k) out.push_back(kEllipsis - k);
  }
  return out;
}

struct Term {
  Tensor value;
  Labels labels;
};

/// A label that occurs twice stands for a diagonal.
Term without_repeats(Term t) {
  for (size_t i = 0; i < t.labels.size(); ++i) {
    for (size_t j = t.labels.size() - 1; j > i; --j) {
      if (t.labels[j] != t.labels[i]) continue;
      t.value = movedim(diagonal(t.value, 0, static_cast<int64_t>(i), static_cast<int64_t>(j)), {SymInt(-1)},
                        {SymInt(static_cast<int64_t>(i))});
      t.labels.erase(t.labels.begin() + j);
    }
  }
  return t;
}

Term summed_over(const Term& t, const Labels& gone) {
  Sizes dims;
  Labels rest;
  for (size_t d = 0; d < t.labels.size(); ++d) {
    if (contains(gone, t.labels[d]))
      dims.push_back(static_cast<int64_t>(d));
    else
      rest.push_back(t.labels[d]);
  }
  return dims.empty() ? t : Term{sum(t.value, dims, false, t.value.dtype()), rest};
}

SymInt size_of_label(const Term& t, int label) {
  return t.value.sizes()[std::find(t.labels.begin(), t.labels.end(), label) - t.labels.begin()];
}

/// A dimension of size 1 takes the other operand's size.
Term stretched(const Term& t, const Term& other) {
  Sizes sizes = t.value.sizes();
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d].same_as(1) && contains(other.labels, t.labels[d]))
      sizes[d] = size_of_label(other, t.labels[d]);
  return {expand(t.value, sizes), t.labels};
}

/// The value as a batch of matrices: three groups of labels, each as one dimension.
Tensor grouped(const Term& t, const Labels& a, const Labels& b, const Labels& c) {
  Sizes order, sizes;
  for (const Labels* group : {&a, &b, &c}) {
    SymInt n = 1;
    for (const int label : *group) {
      order.push_back(
          static_cast<int64_t>(std::find(t.labels.begin(), t.labels.end(), label) - t.labels.begin()));
      n *= size_of_label(t, label);
    }
    sizes.push_back(n);
  }
  return reshape(permute(t.value, order), sizes);
}

/// The product of two terms, added up over the labels that nothing needs afterwards.
Term contracted(Term a, Term b, const Labels& needed) {
  Labels only_a, only_b, batch, added, gone_a, gone_b;
  for (const int label : a.labels) {
    const bool shared = contains(b.labels, label), stays = contains(needed, label);
    (shared ? (stays ? batch : added) : (stays ? only_a : gone_a)).push_back(label);
  }
  for (const int label : b.labels)
    if (!contains(a.labels, label)) (contains(needed, label) ? only_b : gone_b).push_back(label);
  a = summed_over(a, gone_a);
  b = summed_over(b, gone_b);
  const Term left = stretched(a, b), right = stretched(b, a);
  const Tensor product = bmm(grouped(left, batch, only_a, added), grouped(right, batch, added, only_b));
  Labels labels = batch;
  Sizes sizes;
  for (const int label : batch) sizes.push_back(size_of_label(left, label));
  for (const int label : only_a) sizes.push_back(size_of_label(left, label));
  for (const int label : only_b) sizes.push_back(size_of_label(right, label));
  labels.insert(labels.end(), only_a.begin(), only_a.end());
  labels.insert(labels.end(), only_b.begin(), only_b.end());
  return {reshape(product, sizes), labels};
}

/// Without an arrow: the ellipsis, then the letters that occur once, in alphabetical order.
Labels implied_result(std::string_view operands, const std::vector<Term>& terms) {
  std::map<int, int> count;
  Labels ellipsis, letters;
  for (const char ch : operands)
    if (ch != ' ' && ch != ',' && ch != '.') ++count[ch];
  for (const Term& t : terms)
    for (const int label : t.labels)
      if (label < 0) count[label] = 1;
  for (const auto& [label, n] : count) {
    if (label < 0)
      ellipsis.push_back(label);
    else if (n == 1)
      letters.push_back(label);
  }
  ellipsis.insert(ellipsis.end(), letters.begin(), letters.end());
  return ellipsis;
}

std::vector<Term> operands_of(std::string_view equation, std::string_view left, TensorList tensors,
                              int* ellipsis_dims) {
  std::vector<Labels> parsed;
  for (size_t start = 0; start <= left.size();) {
    const size_t end = std::min(left.find(',', start), left.size());
    parsed.push_back(parse_subscripts(left.substr(start, end - start), equation));
    start = end + 1;
  }
  FL_CHECK(parsed.size() == tensors.size(), RuntimeError,
           "einsum(): the equation '{}' has {} operands, but {} were given", equation, parsed.size(),
           tensors.size());
  std::vector<Term> out;
  for (size_t k = 0; k < parsed.size(); ++k) {
    const bool open = contains(parsed[k], kEllipsis);
    const int rest = tensors[k].dim() - static_cast<int>(parsed[k].size()) + (open ? 1 : 0);
    FL_CHECK(
        open ? rest >= 0 : rest == 0, RuntimeError,
        "einsum(): the number of subscripts in the equation ({}) does not match the number of dimensions "
        "({}) for operand {}",
        parsed[k].size() - (open ? 1 : 0), tensors[k].dim(), k);
    if (open) *ellipsis_dims = std::max(*ellipsis_dims, rest);
    out.push_back(without_repeats({tensors[k], with_ellipsis(parsed[k], rest)}));
  }
  return out;
}

Tensor einsum_of(std::string_view equation, TensorList tensors, std::optional<IntList>) {
  FL_CHECK(!tensors.empty(), RuntimeError, "einsum(): must provide at least one operand");
  const size_t arrow = equation.find("->");
  int ellipsis_dims = 0;
  std::vector<Term> terms = operands_of(equation, equation.substr(0, arrow), tensors, &ellipsis_dims);
  const Labels result =
      arrow == std::string_view::npos
          ? implied_result(equation, terms)
          : with_ellipsis(parse_subscripts(equation.substr(arrow + 2), equation), ellipsis_dims);
  for (const int label : result) {
    const bool known =
        std::any_of(terms.begin(), terms.end(), [&](const Term& t) { return contains(t.labels, label); });
    FL_CHECK(known || label < 0, RuntimeError,
             "einsum(): output subscript {} does not appear in the equation for any input operand",
             static_cast<char>(label));
  }
  Term all = terms[0];
  for (size_t k = 1; k < terms.size(); ++k) {
    Labels needed = result;
    for (size_t later = k + 1; later < terms.size(); ++later)
      needed.insert(needed.end(), terms[later].labels.begin(), terms[later].labels.end());
    all = contracted(all, terms[k], needed);
  }
  Labels gone;
  for (const int label : all.labels)
    if (!contains(result, label)) gone.push_back(label);
  all = summed_over(all, gone);
  Sizes order;
  for (const int label : result)
    order.push_back(
        static_cast<int64_t>(std::find(all.labels.begin(), all.labels.end(), label) - all.labels.begin()));
  return permute(all.value, order);
}

std::vector<Sample> einsum_samples(SampleMaker& m, const Samples& o) {
  using List = std::vector<Tensor>;
  const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
  return {
      {{"ij,jk->ik", List{x({2, 3}), x({3, 4})}}, "product", ""},
      {{"bij,bjk", List{x({2, 3, 4}), x({2, 4, 2})}}, "batch, implied", ""},
      {{"ij->ji", List{x({2, 3})}}, "transposed", ""},
      {{"ii", List{x({3, 3})}}, "trace", ""},
      {{"ii->i", List{x({3, 3})}}, "diagonal", ""},
      {{"i,j->ij", List{x({2}), x({3})}}, "outer", ""},
      {{"ij,ij->", List{x({2, 3}), x({2, 3})}}, "inner", ""},
      {{"...ij,...jk->...ik", List{x({2, 3, 4}), x({4, 2})}}, "ellipsis", ""},
      {{"bn,anm,bm->ba", List{x({2, 3}), x({5, 3, 4}), x({2, 4})}}, "three", ""},
      {{"ij,jk", List{x({2, 3})}}, "operands", "RuntimeError: 2 operands"},
      {{"ij->ik", List{x({2, 3})}}, "subscript", "RuntimeError: output subscript k"},
      {{"ij", List{x({2, 3, 4})}}, "dimensions", "RuntimeError: does not match the number of dimensions"}};
}

}  // namespace

void define_einsum(OpTable& t) {
  t.define(
      einsum,
      {.doc =
           "Products of operands whose dimensions are named by letters, added up over the letters that the "
           "result does not name; operands are contracted from left to right.",
       .tags = Tag::NoInPlace | Tag::NoOut,
       .decompose = einsum_of,
       .samples = samples::custom(einsum_samples, {.dtypes = dtypes::full_floats, .tolerance = 1e-4})});
  t.define(cdist, {.doc = "The p-norms of the differences of all pairs of rows of two (batches of) matrices.",
                   .tags = Tag::NoInPlace,
                   .decompose =
                       [](Tensor a, Tensor b, double p, std::string_view mode) {
                         bool known = false;
                         for (const char* m : {"use_mm_for_euclid_dist_if_necessary",
                                               "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"})
                           known = known || mode == m;
                         FL_CHECK(known, ValueError, "{} is not a valid value for compute_mode", mode);
                         FL_CHECK(p >= 0, RuntimeError, "cdist only supports non-negative p values, got {}",
                                  p);
                         FL_CHECK(a.dim() >= 2 && b.dim() >= 2, RuntimeError,
                                  "cdist only supports at least 2D tensors, X1 got: {}D, X2 got: {}D",
                                  a.dim(), b.dim());
                         FL_CHECK(a.size(-1) == b.size(-1), RuntimeError,
                                  "X1 and X2 must have the same number of columns. X1: {} X2: {}", a.size(-1),
                                  b.size(-1));
                         return vector_norm(sub(unsqueeze(a, -2), unsqueeze(b, -3)), p, IntList{SymInt(-1)});
                       },
                   .samples = samples::custom(
                       [](SampleMaker& m, const Samples& o) {
                         const auto x = [&](IntList sizes) { return m.make(sizes, o.low, o.high); };
                         return std::vector<Sample>{{{x({3, 4}), x({5, 4})}, "", ""},
                                                    {{x({2, 3, 4}), x({2, 2, 4}), 1.0}, "batch", ""}};
                       },
                       {.dtypes = dtypes::full_floats, .tolerance = 1e-4})});
}

}  // namespace fl
