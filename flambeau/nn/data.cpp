#include "flambeau/nn/data.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <numeric>
#include <sstream>

namespace fl::data {

std::vector<int64_t> permutation(int64_t n, Generator& generator) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  const PhiloxSlot slot = generator.take(n);
  for (int64_t i = n - 1; i > 0; --i) {
    const PhiloxBlock block = philox(slot, i);
    const uint64_t word = static_cast<uint64_t>(block[0]) << 32 | block[1];
    // The word scaled to [0, i].
    const auto j = static_cast<int64_t>(static_cast<unsigned __int128>(word) * (i + 1) >> 64);
    std::swap(order[i], order[j]);
  }
  return order;
}

Tensor rows(const Tensor& t, const std::vector<int64_t>& indices) {
  FL_CHECK(t.dim() >= 1 && t.is_contiguous(), ValueError,
           "rows are taken of a contiguous tensor of 1 or more dimensions, got sizes {} and strides {}",
           to_string(IntList(t.sizes())), to_string(IntList(t.strides())));
  Sizes sizes = t.sizes();
  sizes[0] = static_cast<int64_t>(indices.size());
  const Tensor result = empty_tensor(sizes, t.dtype());
  const int64_t count = t.size(0).expect_int();
  const int64_t bytes = count == 0 ? 0 : t.numel().expect_int() / count * size_of(t.dtype());
  const char* from = static_cast<const char*>(t.data());
  char* to = static_cast<char*>(result.data());
  for (int64_t i : indices) {
    FL_CHECK(i >= 0 && i < count, IndexError, "row {} of a tensor of {} rows", i, count);
    std::memcpy(to, from + i * bytes, static_cast<size_t>(bytes));
    to += bytes;
  }
  return result;
}

Batches::Batches(Tensors columns, BatchOptions options)
    : columns_(std::move(columns)),
      options_(options),
      generator_(make_ref<Generator>(Device{}, options.seed)) {
  FL_CHECK(options.batch_size > 0, ValueError,
           "batch_size should be a positive integer value, but got batch_size={}", options.batch_size);
  FL_CHECK(!columns_.empty() && columns_[0].dim() > 0, ValueError,
           "expected one or more tensors of 1 or more dimensions");
  row_count_ = columns_[0].size(0).expect_int();
  for (const Tensor& c : columns_)
    FL_CHECK(c.dim() > 0 && c.size(0) == row_count_, ValueError,
             "size mismatch between tensors: expected {} rows, got sizes {}", row_count_,
             to_string(IntList(c.sizes())));
  order_.resize(static_cast<size_t>(row_count_));
  std::iota(order_.begin(), order_.end(), 0);
}

int64_t Batches::size() const {
  const int64_t b = options_.batch_size;
  return options_.drop_last ? row_count_ / b : (row_count_ + b - 1) / b;
}

Batches::Iterator Batches::begin() {
  if (options_.shuffle) order_ = permutation(row_count_, *generator_);
  return {this, 0};
}

Tensors Batches::Iterator::operator*() const {
  const int64_t first = batch_ * from_->options_.batch_size;
  const int64_t last = std::min(first + from_->options_.batch_size, from_->row_count_);
  const std::vector<int64_t> indices(from_->order_.begin() + first, from_->order_.begin() + last);
  Tensors batch;
  for (const Tensor& column : from_->columns_) batch.push_back(rows(column, indices));
  return batch;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  FL_CHECK(file, RuntimeError, "can't read '{}'", path);
  std::ostringstream text;
  text << file.rdbuf();
  FL_CHECK(!file.bad(), RuntimeError, "can't read '{}'", path);
  return text.str();
}

Tensor read_csv(const std::string& path) {
  const std::string text = read_text(path);
  std::vector<float> values;
  int64_t line = 0;
  size_t columns = 0;
  for (const char *p = text.data(), *end = p + text.size(); p < end;) {
    ++line;
    const char* line_end = std::find(p, end, '\n');
    const char* next = line_end < end ? line_end + 1 : end;
    if (line_end > p && line_end[-1] == '\r') --line_end;
    const size_t before = values.size();
    while (true) {
      float value = 0;
      const auto [stop, error] = std::from_chars(p, line_end, value);
      FL_CHECK(error == std::errc{} && (stop == line_end || *stop == ','), ValueError,
               "{}:{}: expected a number, got '{}'", path, line, std::string(p, std::find(p, line_end, ',')));
      values.push_back(value);
      if (stop == line_end) break;
      p = stop + 1;
    }
    if (line == 1) columns = values.size();
    FL_CHECK(values.size() - before == columns, ValueError, "{}:{}: expected {} numbers, got {}", path, line,
             columns, values.size() - before);
    p = next;
  }
  return tensor_from(values, {line, static_cast<int64_t>(columns)});
}

Characters::Characters(const std::string& text) : number_of_(256, -1) {
  std::vector<bool> seen(256);
  for (const char c : text) seen[static_cast<unsigned char>(c)] = true;
  for (int byte = 0; byte < 256; ++byte)
    if (seen[byte]) {
      number_of_[byte] = static_cast<int>(bytes_.size());
      bytes_.push_back(static_cast<char>(byte));
    }
}

Tensor Characters::encode(const std::string& text) const {
  std::vector<int64_t> numbers;
  numbers.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    FL_CHECK(number_of_[byte] >= 0, ValueError, "byte {} is not among the {} known characters", byte, size());
    numbers.push_back(number_of_[byte]);
  }
  return tensor_from(numbers, {static_cast<int64_t>(numbers.size())});
}

std::string Characters::decode(const std::vector<int64_t>& numbers) const {
  std::string text;
  for (const int64_t n : numbers) {
    FL_CHECK(n >= 0 && n < size(), ValueError, "{} is not a character's number, of which there are {}", n,
             size());
    text.push_back(bytes_[static_cast<size_t>(n)]);
  }
  return text;
}

}  // namespace fl::data
