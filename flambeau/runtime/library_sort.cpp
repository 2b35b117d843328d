// Stable sorting along a dimension: values and their positions; nan counts as the largest.
#include "flambeau/base/parallel.h"
#include "flambeau/runtime/call_arguments.h"
#include "flambeau/runtime/sort_rows.h"
#include "flambeau/runtime/staging.h"

namespace fl::runtime {
namespace {

constexpr int64_t kGrainItems = 1 << 12;

struct RowSort {
  struct Dim {
    int64_t size, self, values, indices;
  };
  DType dtype;
  bool descending;
  Dim along{1, 0, 0, 0};
  std::vector<Dim> outer;  // dimensions that number the rows
  int64_t rows = 1;

  template <class T, class Position>
  void sort_row(const T* self, T* values, int64_t* indices) const {
    using Key = typename SortKey<T>::type;
    using Item = SortItem<Key, Position>;
    const int64_t n = along.size;
    Item* const items = reinterpret_cast<Item*>(staging_memory(2 * n * static_cast<int64_t>(sizeof(Item))));
    for (int64_t i = 0; i < n; ++i) {
      const Key key = sort_key(self[i * along.self]);
      // The complement turns the order around and leaves equal keys in theirs.
      items[i] = {static_cast<Key>(descending ? ~key : key), static_cast<Position>(i)};
    }
    const Item* const sorted = sort_items(items, items + n, n);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t from = static_cast<int64_t>(sorted[i].position);
      values[i * along.values] = self[from * along.self];
      indices[i * along.indices] = from;
    }
  }

  template <class T>
  void sort(const T* self, T* values, int64_t* indices) const {
    const int64_t grain = std::max<int64_t>(1, kGrainItems / along.size);
    parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        int64_t rest = row, self_at = 0, values_at = 0, indices_at = 0;
        for (size_t i = outer.size(); i-- > 0;) {
          const int64_t index = rest % outer[i].size;
          rest /= outer[i].size;
          self_at += index * outer[i].self;
          values_at += index * outer[i].values;
          indices_at += index * outer[i].indices;
        }
        if (along.size <= std::numeric_limits<uint32_t>::max())
          sort_row<T, uint32_t>(self + self_at, values + values_at, indices + indices_at);
        else
          sort_row<T, uint64_t>(self + self_at, values + values_at, indices + indices_at);
      }
    });
  }

  void run(const void* self, void* values, void* indices) const {
    if (rows == 0 || along.size == 0) return;
    visit_dtype(dtype, [&]<class T>(T*) {
      if constexpr (!is_complex_type<T>::value)
        sort(static_cast<const T*>(self), static_cast<T*>(values), static_cast<int64_t*>(indices));
    });
  }
};

}  // namespace

PreparedCall prepare_sort(const CallArguments& call) {
  const int self = call.required_operand("self");
  const OperandLayout &in = call.operands[self], &values = call.result(0), &indices = call.result(1);
  FL_CHECK(!is_complex(in.dtype), NotImplementedError, "{} of complex numbers ({}): they have no order",
           call.op.name(), name(in.dtype));
  FL_CHECK(values.sizes == in.sizes && indices.sizes == in.sizes && values.dtype == in.dtype &&
               indices.dtype == DType::Int64,
           RuntimeError, "{} expects values {} [{}] and int64 indices, got {} [{}] and {} [{}]",
           call.op.name(), name(in.dtype), fmt::join(in.sizes, ", "), name(values.dtype),
           fmt::join(values.sizes, ", "), name(indices.dtype), fmt::join(indices.sizes, ", "));
  auto sort = std::make_shared<RowSort>();
  sort->dtype = in.dtype;
  sort->descending = call.flag("descending", false);
  const int64_t rank = static_cast<int64_t>(in.sizes.size()), dim = wrap_dim(call.integer("dim", -1), rank);
  for (int64_t i = 0; i < rank; ++i) {
    const RowSort::Dim d{in.sizes[i], in.strides[i], values.strides[i], indices.strides[i]};
    if (i == dim) {
      sort->along = d;
    } else {
      sort->outer.push_back(d);
      sort->rows *= d.size;
    }
  }
  return [sort, self](void* const* operands, void* const* results) {
    sort->run(operands[self], results[0], results[1]);
  };
}

}  // namespace fl::runtime
