// Where a program is captured, the elements of its tensors must not be read: what it does with them would be
// fixed in the graph.
#pragma once

namespace fl {

/// For a scope on this thread, item() and to_vector() raise UnsupportedError, on wrapped numbers excepted.
class ForbidElementReads {
 public:
  ForbidElementReads();
  ~ForbidElementReads();
  ForbidElementReads(const ForbidElementReads&) = delete;

 private:
  bool previous_;
};

}  // namespace fl
