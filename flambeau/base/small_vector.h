// A vector whose first N elements live inside it.
#pragma once
#include <boost/container/small_vector.hpp>
#include <span>

namespace fl {
template <class T, size_t N = 6>
using SmallVector = boost::container::small_vector<T, N>;
}  // namespace fl
