#include "flambeau/ops/aten/ctc_loss.h"

#include <limits>

#include "flambeau/ops/aten/reduce_loss.h"
#include "flambeau/ops/functions.h"
#include "flambeau/ops/rules.h"
#include "flambeau/ops/samples.h"

namespace fl {
namespace {

/// The logarithm of 0 in sums of paths: finite, so that differences are.
constexpr double kNever = -1e30;

std::vector<int64_t> whole_numbers(IntList list) {
  std::vector<int64_t> out;
  for (const SymInt s : list) out.push_back(s.guard_int());
  return out;
}

Tensor numbers_tensor(const std::vector<int64_t>& values, Device device) {
  return to_device(tensor_from<int64_t>(values, Sizes{SymInt(static_cast<int64_t>(values.size()))}), device);
}

struct Call {
  std::vector<int64_t> inputs, targets;  ///< lengths
  int64_t steps, batch, classes, longest = 0;
};

Call checked(const Tensor& log_probs, const Tensor& targets, IntList input_lengths, IntList target_lengths,
             int64_t blank) {
  check_dtype("ctc_loss", log_probs.dtype(), Takes::Floating);
  FL_CHECK(targets.dtype() == DType::Int64 || targets.dtype() == DType::Int32, RuntimeError,
           "ctc_loss: targets must be of type int32 or int64, got {}", name(targets.dtype()));
  Call c{whole_numbers(input_lengths), whole_numbers(target_lengths), log_probs.sizes()[0].guard_int(),
         log_probs.sizes()[1].guard_int(), log_probs.sizes()[2].guard_int()};
  FL_CHECK(c.batch > 0, RuntimeError, "log_probs tensor must not be empty, got sizes {}",
           to_string(log_probs.sizes()));
  FL_CHECK(blank >= 0 && blank < c.classes, RuntimeError, "blank must be in label range [0, {}), got {}",
           c.classes, blank);
  FL_CHECK(static_cast<int64_t>(c.inputs.size()) == c.batch, RuntimeError,
           "input_lengths must be of size batch_size = {}, got {}", c.batch, c.inputs.size());
  FL_CHECK(static_cast<int64_t>(c.targets.size()) == c.batch, RuntimeError,
           "target_lengths must be of size batch_size = {}, got {}", c.batch, c.targets.size());
  int64_t all = 0;
  for (const int64_t length : c.targets) {
    FL_CHECK(length >= 0, RuntimeError, "Expected target_lengths to have value at least 0, but got {}",
             length);
    c.longest = std::max(c.longest, length);
    all += length;
  }
  for (const int64_t length : c.inputs)
    FL_CHECK(length >= 0 && length <= c.steps, RuntimeError,
             "Expected input_lengths to have value at most {}, but got value {}", c.steps, length);
  if (targets.dim() == 1) {
    FL_CHECK(targets.sizes()[0] == SymInt(all), RuntimeError,
             "Expected tensor to have size {} at dimension 0, but got size {} for the targets", all,
             targets.sizes()[0]);
  } else {
    FL_CHECK(targets.dim() == 2 && targets.sizes()[0] == SymInt(c.batch) &&
                 targets.sizes()[1] >= SymInt(c.longest),
             RuntimeError,
             "Expected tensor to have size at least {} at dimension 1, but got size {} for the targets",
             c.longest, to_string(targets.sizes()));
  }
  return c;
}

/// Each sequence's labels in a row, (batch, longest); blanks after its end.
Tensor label_rows(const Tensor& targets, const Call& c, int64_t blank, Device device) {
  if (c.longest == 0) return zeros({SymInt(c.batch), SymInt(0)}, DType::Int64, device);
  const Tensor column = arange_end(SymInt(c.longest), DType::Int64, device);
  const Tensor used = lt(column, unsqueeze(numbers_tensor(c.targets, device), 1));
  Tensor rows;
  if (targets.dim() == 2) {
    rows = slice(targets, 1, 0, SymInt(c.longest), 1);
  } else {
    std::vector<int64_t> starts;
    int64_t at = 0;
    for (const int64_t length : c.targets) starts.push_back(at), at += length;
    const Tensor place = where(used, add(unsqueeze(numbers_tensor(starts, device), 1), column), 0);
    rows = at ? _index(targets, std::vector<Tensor>{place}) : zeros(place.sizes(), DType::Int64, device);
  }
  return where(used, to_dtype(rows, DType::Int64), blank);
}

/// x moved by `by` places to the right, kNever before it.
Tensor moved(const Tensor& x, int64_t by) {
  const SymInt size = x.sizes()[1];
  return constant_pad_nd(slice(x, 1, 0, std::max<int64_t>(size.guard_int() - by, 0), 1),
                         {SymInt(by), SymInt(0)}, kNever);
}

/// Minus the logarithm of the probability of all alignments: (batch), in the compute dtype.
Tensor path_losses(const Tensor& log_probs, const Tensor& labels, const Call& c, int64_t blank) {
  const Device device = log_probs.device();
  const int64_t states = 2 * c.longest + 1;
  const Tensor blanks = full({SymInt(c.batch), SymInt(c.longest)}, blank, DType::Int64, device);
  const Tensor last = full({SymInt(c.batch), SymInt(1)}, blank, DType::Int64, device);
  // blank, label, blank, label, ..., blank
  const Tensor pairs = flatten(stack(std::vector<Tensor>{blanks, labels}, 2), 1, -1);
  const Tensor symbols = cat(std::vector<Tensor>{pairs, last}, 1);
  const Tensor two_back = constant_pad_nd(slice(symbols, 1, 0, std::max<int64_t>(states - 2, 0), 1),
                                          {SymInt(std::min<int64_t>(2, states)), SymInt(0)}, blank);
  const Tensor may_skip = logical_and(ne(symbols, blank), ne(symbols, two_back));
  const Tensor input_lengths = unsqueeze(numbers_tensor(c.inputs, device), 1);
  Tensor paths = expand(where(eq(arange_end(SymInt(states), DType::Int64, device), 0), 0.0,
                              full({}, kNever, log_probs.dtype(), device)),
                        {SymInt(c.batch), SymInt(states)});
  for (int64_t step = 0; step < c.steps; ++step) {
    const Tensor emitted = gather(select(log_probs, 0, step), 1, symbols);
    Tensor next;
    if (step == 0) {
      // A first step is at the first blank or at the first label.
      const Tensor first = lt(arange_end(SymInt(states), DType::Int64, device), 2);
      next = where(first, emitted, kNever);
    } else {
      const Tensor stay = logaddexp(paths, moved(paths, 1));
      next = add(where(may_skip, logaddexp(stay, moved(paths, 2)), stay), emitted);
    }
    paths = where(gt(input_lengths, step), next, paths);
  }
  const Tensor end = unsqueeze(mul(numbers_tensor(c.targets, device), 2), 1);
  const Tensor at_blank = gather(paths, 1, end);
  const Tensor at_label = where(gt(end, 0), gather(paths, 1, clamp_min(sub(end, 1), 0)), kNever);
  return neg(squeeze_dim(logaddexp(at_blank, at_label), 1));
}

/// PyTorch's gradient is by what log_softmax gave log_probs from: it adds the probabilities at every step
/// that counts. A difference that is 0 carries them.
Tensor with_probabilities(const Tensor& losses, const Tensor& log_probs, const Call& c) {
  const Tensor steps = view(arange_end(SymInt(c.steps), DType::Int64, log_probs.device()), {-1, 1, 1});
  const Tensor counts = lt(steps, view(numbers_tensor(c.inputs, log_probs.device()), {1, -1, 1}));
  const Tensor masses = sum(where(counts, exp(log_probs), 0), IntList{SymInt(0), SymInt(2)});
  return add(losses, sub(masses, detach(masses)));
}

Tensor batch_loss(const Tensor& log_probs, const Tensor& targets, const Call& c, int64_t blank,
                  int64_t reduction, bool zero_infinity) {
  const Tensor x = to_compute(log_probs);
  Tensor losses =
      with_probabilities(path_losses(x, label_rows(targets, c, blank, x.device()), c, blank), x, c);
  const double none = zero_infinity ? 0.0 : std::numeric_limits<double>::infinity();
  losses = where(gt(losses, -kNever / 2), none, losses);
  if (loss_reduction(reduction) == LossReduction::Mean) {
    const Tensor lengths = clamp_min(numbers_tensor(c.targets, x.device()), 1);
    return to_dtype(mean_all(div(losses, to_dtype(lengths, losses.dtype()))), log_probs.dtype());
  }
  return to_dtype(reduce_loss(losses, reduction), log_probs.dtype());
}

Tensor loss_of(Tensor log_probs, Tensor targets, IntList input_lengths, IntList target_lengths, int64_t blank,
               int64_t reduction, bool zero_infinity) {
  FL_CHECK(log_probs.dim() == 2 || log_probs.dim() == 3, RuntimeError,
           "ctc_loss: expected log_probs of 2 or 3 dimensions, got sizes {}", to_string(log_probs.sizes()));
  const bool one = log_probs.dim() == 2;
  const Tensor x = one ? unsqueeze(log_probs, 1) : log_probs;
  const Tensor y = one && targets.dim() == 1 ? unsqueeze(targets, 0) : targets;
  const Call c = checked(x, y, input_lengths, target_lengths, blank);
  const Tensor loss = batch_loss(x, y, c, blank, reduction, zero_infinity);
  return one && loss.dim() == 1 ? squeeze_dim(loss, 0) : loss;
}

Sizes lengths_of(const Tensor& lengths) {
  FL_CHECK(is_integral(lengths.dtype()), RuntimeError, "input_lengths and target_lengths must be integral");
  Sizes out;
  const Tensor flat = reshape(lengths, {SymInt(-1)});
  for (int64_t k = 0; k < flat.sizes()[0].guard_int(); ++k)
    out.push_back(SymInt(select(flat, 0, k).item().to_int()));
  return out;
}

}  // namespace

void define_ctc_loss(OpTable& t) {
  constexpr Tag kTags = Tag::NoInPlace | Tag::NoOut;
  constexpr const char* kDoc =
      "Minus the log-probability of all alignments of targets (batch, length), or one after the other, with "
      "log_probs (time, batch, classes). The mean is of the losses by target length.";
  // Finite differences don't see that PyTorch's gradient is by the logits.
  t.define(ctc_loss, {.doc = kDoc,
                      .tags = kTags,
                      .decompose = loss_of,
                      .samples = samples::custom(
                          [](SampleMaker& m, const Samples& o) {
                            const auto x = [&] { return log_softmax(m.make({5, 2, 4}, o.low, o.high), 2); };
                            const Tensor rows = tensor_from<int64_t>({1, 2, 3, 3}, Sizes{2, 2});
                            const Tensor flat = tensor_from<int64_t>({1, 3, 3}, Sizes{3});
                            return std::vector<Sample>{
                                {{x(), rows, Sizes{5, 4}, Sizes{2, 2}}, "", ""},
                                {{x(), flat, Sizes{5, 4}, Sizes{1, 2}, 0, 0}, "one after the other", ""},
                                {{x(), rows, Sizes{5, 2}, Sizes{2, 2}, 0, 2, true}, "impossible", ""},
                                {{x(), rows, Sizes{6, 4}, Sizes{2, 2}}, "length", "RuntimeError: at most 5"}};
                          },
                          {.dtypes = dtypes::full_floats, .tolerance = 1e-4, .gradient = false})});
  t.define(
      ctc_loss_tensor,
      {.doc = kDoc,
       .tags = kTags | Tag::DataDependent,
       .decompose =
           [](Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int64_t blank,
              int64_t reduction, bool zero_infinity) {
             return loss_of(log_probs, targets, lengths_of(input_lengths), lengths_of(target_lengths), blank,
                            reduction, zero_infinity);
           },
       .samples = samples::custom(
           [](SampleMaker& m, const Samples& o) {
             const Tensor rows = tensor_from<int64_t>({1, 2, 3, 3}, Sizes{2, 2});
             const auto lengths = [](std::vector<int64_t> l) { return tensor_from<int64_t>(l, Sizes{2}); };
             return std::vector<Sample>{
                 {{log_softmax(m.make({5, 2, 4}, o.low, o.high), 2), rows, lengths({5, 4}), lengths({2, 2})},
                  "",
                  ""}};
           },
           {.dtypes = dtypes::full_floats, .tolerance = 1e-4, .gradient = false})});
}

}  // namespace fl
