// One training of the network, eagerly or compiled, and what was measured.
#pragma once
#include <string>
#include <vector>

#include "flambeau/compile/compile.h"
#include "flambeau/tensor/tensor.h"

namespace digits {

struct Settings {
  uint64_t seed = 0;
  int epochs = 10;
  int64_t batch_size = 64;
  double learning_rate = 3e-3, weight_decay = 1e-2;
};

struct Data {
  fl::Tensor train_images, train_labels, test_images, test_labels;
};
/// 1,437 images to learn from and 360 to test with, by an order that follows from the seed.
Data load(const std::string& path, uint64_t seed);

struct Result {
  std::vector<double> losses;  ///< mean of an epoch
  double accuracy = 0;         ///< on the test images, in percent
  double first_ms = 0;         ///< the first step, with compilation
  double median_ms = 0;        ///< a step
  double seconds = 0;          ///< all of it
  int64_t peak_bytes = 0;      ///< of tensors
  int64_t parameters = 0;
  fl::Explanation explanation;  ///< of the compiled step
};
/// Shows its progress on one line.
Result train(const Data& data, const Settings& settings, bool compiled);

}  // namespace digits
