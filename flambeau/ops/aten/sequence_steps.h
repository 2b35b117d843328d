// The steps of a recurrent layer over packed rows: which rows a step has, and where states come from.
#pragma once
#include <algorithm>
#include <vector>

#include "flambeau/ops/functions.h"

namespace fl {

/// Steps are numbered in the order in which they run, which is from the last time back where `reverse`. The
/// rows of time t are batch_sizes[t] rows of a packed tensor, those of the first times first.
class SequenceSteps {
 public:
  SequenceSteps(IntList batch_sizes, bool reverse) : rows_(batch_sizes.begin(), batch_sizes.end()) {
    SymInt start = 0;
    for (SymInt rows : rows_) {
      starts_.push_back(start);
      start += rows;
    }
    if (reverse) {
      std::reverse(rows_.begin(), rows_.end());
      std::reverse(starts_.begin(), starts_.end());
    }
    reverse_ = reverse;
  }

  int count() const { return static_cast<int>(rows_.size()); }
  /// The rows of a step of a packed tensor.
  Tensor part(const Tensor& packed, int step) const {
    return slice(packed, 0, starts_[step], starts_[step] + rows_[step], 1);
  }
  /// A packed tensor from its parts, one a step.
  Tensor joined(std::vector<Tensor> parts) const {
    if (reverse_) std::reverse(parts.begin(), parts.end());
    return parts.size() == 1 ? parts[0] : cat(parts, 0);
  }

  /// The state that a step begins with, from that after the step before: sequences that have ended are gone,
  /// those that begin have their first state.
  Tensor entering(const Tensor& before, const Tensor& first, int step) const {
    if (step == 0) return rows_of(first, 0, rows_[0]);
    const SymInt had = rows_[step - 1], rows = rows_[step];
    if (had == rows) return before;
    if (rows < had) return rows_of(before, 0, rows);
    return cat(std::vector<Tensor>{before, rows_of(first, had, rows)}, 0);
  }
  /// The states that a step of every kind begins with, from all states after a step, packed.
  Tensor all_entering(const Tensor& packed, const Tensor& first) const {
    std::vector<Tensor> parts;
    for (int s = 0; s < count(); ++s) parts.push_back(entering(s ? part(packed, s - 1) : first, first, s));
    return joined(std::move(parts));
  }
  /// Of each sequence, the state after its last step.
  Tensor last(const std::vector<Tensor>& after) const {
    std::vector<Tensor> parts{after.back()};
    for (int s = count() - 1; s-- > 0;)
      if (rows_[s + 1] < rows_[s]) parts.push_back(rows_of(after[s], rows_[s + 1], rows_[s]));
    return parts.size() == 1 ? parts[0] : cat(parts, 0);
  }

  /// Gradient by the state after a step, from that by what the next one began with (not read for the last
  /// step) and that by the last states.
  Tensor leaving(const Tensor& next, const Tensor& last, int step) const {
    const SymInt rows = rows_[step];
    if (step == count() - 1) return rows_of(last, 0, rows);
    const SymInt alive = rows_[step + 1];
    if (alive == rows) return next;
    if (rows < alive) return rows_of(next, 0, rows);
    return cat(std::vector<Tensor>{next, rows_of(last, alive, rows)}, 0);
  }
  /// Gradient by the first state, from those by what each step began with.
  Tensor first(const std::vector<Tensor>& entered) const {
    std::vector<Tensor> parts{entered[0]};
    for (int s = 1; s < count(); ++s)
      if (rows_[s - 1] < rows_[s]) parts.push_back(rows_of(entered[s], rows_[s - 1], rows_[s]));
    return parts.size() == 1 ? parts[0] : cat(parts, 0);
  }

 private:
  static Tensor rows_of(const Tensor& x, SymInt from, SymInt to) {
    return from.same_as(0) && x.sizes()[0] == to ? x : slice(x, 0, from, to, 1);
  }
  std::vector<SymInt> rows_, starts_;  ///< by step
  bool reverse_ = false;
};

}  // namespace fl
