// Records what expand() emits, and runs the recording on arrays with C++ scalars.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "flambeau/op/scalar_ops.h"

namespace fl::loop {

class Program : public ScalarOps {
 public:
  Program(ScalarOp op, DType dtype);  ///< expand(op) on one or two inputs of dtype

  Val emit(ScalarOp op, DType dtype, Val a, Val b, Val c) override;
  Val constant(DType dtype, Literal value) override;
  Val index(const sym::Expr& e) override;

  /// Operations, constants apart.
  int operations() const;
  template <class T>
  std::vector<T> run(const std::vector<T>& a, const std::vector<T>& b = {}) const;

 private:
  struct Step {
    ScalarOp op;
    DType from, to;
    int a = -1, b = -1, c = -1;
    uint64_t bits = 0;
  };
  void check(const Step& step, Val a, Val b, Val c) const;
  std::vector<Step> steps_;
  int inputs_ = 1;
  Val result_;
};

}  // namespace fl::loop
