#include "flambeau/nn/data.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <numeric>
#include <set>

#include "environment.h"

namespace fl::testing {
namespace {

using namespace fl::data;

std::string file_with(const std::string& text) {
  const std::string path = ::testing::TempDir() + "flambeau_data_test" + std::to_string(::getpid()) + ".csv";
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST(Batches, CoversEveryRowOnce) {
  const Tensor x = ramp({10, 2}, 1), y = i64({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {10});
  Batches batches({x, y}, {.batch_size = 4, .shuffle = true, .seed = 1});
  EXPECT_EQ(batches.size(), 3);
  std::vector<int64_t> sizes;
  std::multiset<int64_t> labels;
  for (const Tensors& batch : batches) {
    sizes.push_back(batch[0].size(0).expect_int());
    const auto rows = batch[0].to_vector<float>();
    const auto numbers = batch[1].to_vector<int64_t>();
    for (size_t i = 0; i < numbers.size(); ++i) {
      labels.insert(numbers[i]);
      EXPECT_EQ(rows[2 * i], 2 * numbers[i]);  // rows stay together
    }
  }
  EXPECT_EQ(sizes, (std::vector<int64_t>{4, 4, 2}));
  EXPECT_EQ(labels, (std::multiset<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(Batches, DropsTheLastSmallOne) {
  Batches batches({ramp({10}, 1)}, {.batch_size = 4, .drop_last = true});
  std::vector<float> seen;
  for (const Tensors& batch : batches)
    for (float v : batch[0].to_vector<float>()) seen.push_back(v);
  EXPECT_EQ(seen, (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(Batches, OrderFollowsTheSeedAndChangesWithThePass) {
  const auto order = [](Batches& batches) {
    std::vector<float> values;
    for (const Tensors& batch : batches)
      for (float v : batch[0].to_vector<float>()) values.push_back(v);
    return values;
  };
  Batches a({ramp({50}, 1)}, {.batch_size = 7, .shuffle = true, .seed = 5});
  Batches b({ramp({50}, 1)}, {.batch_size = 7, .shuffle = true, .seed = 5});
  Batches c({ramp({50}, 1)}, {.batch_size = 7, .shuffle = true, .seed = 6});
  const auto first = order(a);
  EXPECT_EQ(first, order(b));
  EXPECT_NE(first, order(c));
  EXPECT_NE(first, order(a));
}

TEST(Batches, Errors) {
  EXPECT_EQ(message_of<ValueError>([] { Batches({ramp({3}, 1)}, {.batch_size = 0}); }),
            "batch_size should be a positive integer value, but got batch_size=0");
  EXPECT_EQ(message_of<ValueError>([] {
              Batches({ramp({3}, 1), ramp({4, 2}, 1)}, {});
            }),
            "size mismatch between tensors: expected 3 rows, got sizes [4, 2]");
  EXPECT_EQ(message_of<IndexError>([] { rows(ramp({3}, 1), {0, 3}); }), "row 3 of a tensor of 3 rows");
}

TEST(Permutation, EveryPositionIsLikely) {
  Generator g({}, 3);
  std::vector<double> total(8);
  for (int i = 0; i < 2000; ++i) {
    const auto order = permutation(8, g);
    for (size_t k = 0; k < 8; ++k) total[k] += static_cast<double>(order[k]);
  }
  // Means of 2000 draws of 0 .. 7: 3.5, with a standard deviation of 0.051.
  for (double t : total) EXPECT_NEAR(t / 2000, 3.5, 0.25);
  EXPECT_TRUE(permutation(0, g).empty());
}

TEST(Csv, ReadsNumbers) {
  const Tensor t = read_csv(file_with("1,2.5,-3\r\n4,5,6e1\n"));
  EXPECT_EQ(to_string(IntList(t.sizes())), "[2, 3]");
  EXPECT_EQ(t.to_vector<float>(), (std::vector<float>{1, 2.5, -3, 4, 5, 60}));
}

TEST(Csv, NamesTheBadLine) {
  const auto message = [](const std::string& text) {
    const std::string path = file_with(text);
    const std::string m = message_of<ValueError>([&] { read_csv(path); });
    return m.substr(std::min(path.size(), m.size()));
  };
  EXPECT_EQ(message("1,2\n3,x\n"), ":2: expected a number, got 'x'");
  EXPECT_EQ(message("1,2\n3\n"), ":2: expected 2 numbers, got 1");
  EXPECT_EQ(message("1,2\n\n"), ":2: expected a number, got ''");
  EXPECT_EQ(message("1,2,\n"), ":1: expected a number, got ''");
  EXPECT_EQ(message("1 2\n"), ":1: expected a number, got '1 2'");
  EXPECT_EQ(message_of<RuntimeError>([] { read_csv("/no/such/file"); }), "can't read '/no/such/file'");
}

TEST(Characters, EncodeAndDecode) {
  const Characters characters("hello world");
  EXPECT_EQ(characters.size(), 8);
  const Tensor t = characters.encode("low");
  EXPECT_EQ(characters.decode(t.to_vector<int64_t>()), "low");
  EXPECT_EQ(message_of<ValueError>([&] { characters.encode("x"); }),
            "byte 120 is not among the 8 known characters");
  EXPECT_EQ(message_of<ValueError>([&] { characters.decode({8}); }),
            "8 is not a character's number, of which there are 8");
}

TEST(Digits, FileIsWhole) {
  const Tensor t = read_csv(std::string(FLAMBEAU_SOURCE_DIR) + "/examples/digits/data/digits.csv");
  EXPECT_EQ(to_string(IntList(t.sizes())), "[1797, 65]");
}

}  // namespace
}  // namespace fl::testing
