// Data sets in memory, batches of them, and readers of files.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "flambeau/op/grad_ctx.h"
#include "flambeau/tensor/generator.h"

namespace fl::data {

/// 0 .. n-1 in an order drawn from the generator (Fisher and Yates).
std::vector<int64_t> permutation(int64_t n, Generator& generator);

/// Copies of the rows with these numbers. Raises IndexError.
Tensor rows(const Tensor& t, const std::vector<int64_t>& indices);

struct BatchOptions {
  int64_t batch_size = 1;
  bool shuffle = false;
  bool drop_last = false;  ///< no smaller batch at the end
  uint64_t seed = 0;       ///< of the orders: each pass over the data has the next one
};
/// Goes over tensors of equally many rows, batch by batch:
///   for (const Tensors& batch : batches) train(batch[0], batch[1]);
class Batches {
 public:
  /// Raises ValueError on a batch size under 1 or on tensors of different lengths.
  Batches(Tensors columns, BatchOptions options);
  int64_t row_count() const { return row_count_; }
  int64_t size() const;  ///< batches in a pass

  class Iterator {
   public:
    Tensors operator*() const;
    Iterator& operator++() {
      ++batch_;
      return *this;
    }
    bool operator!=(const Iterator& o) const { return batch_ != o.batch_; }

   private:
    friend class Batches;
    Iterator(const Batches* from, int64_t batch) : from_(from), batch_(batch) {}
    const Batches* from_;
    int64_t batch_;
  };
  Iterator begin();  ///< Starts a pass: shuffles anew.
  Iterator end() const { return {this, size()}; }

 private:
  Tensors columns_;
  BatchOptions options_;
  int64_t row_count_ = 0;
  Ref<Generator> generator_;
  std::vector<int64_t> order_;
};

/// Lines of comma-separated numbers as a float32 tensor (lines, columns). Raises ValueError naming the line
/// on anything that isn't a number or on lines of different lengths, RuntimeError on a file that can't be
/// read.
Tensor read_csv(const std::string& path);
std::string read_text(const std::string& path);

/// The distinct bytes of a text, in order of their values, numbered from 0.
class Characters {
 public:
  explicit Characters(const std::string& text);
  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }
  /// int64 (length). Raises ValueError on a byte that the text did not have.
  Tensor encode(const std::string& text) const;
  std::string decode(const std::vector<int64_t>& numbers) const;

 private:
  std::string bytes_;
  std::vector<int> number_of_;
};

}  // namespace fl::data
