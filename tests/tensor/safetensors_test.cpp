#include "flambeau/tensor/safetensors.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>

#include "flambeau/tensor/element.h"

namespace fl {
namespace {

/// A file of this header and data.
std::string file(const std::string& header, const std::string& data = "") {
  std::string bytes(8, '\0');
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i));
  return bytes + header + data;
}

std::string damage(const std::string& bytes) {
  try {
    parse_safetensors(bytes);
  } catch (const DeserializationError& e) {
    return e.message();
  }
  return "no error";
}

NamedTensors samples() {
  NamedTensors t;
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    if (dtype == DType::Complex128) continue;
    Tensor x = empty_tensor({2, 3}, dtype);
    for (int i = 0; i < 6; ++i) store_scalar(x.data_as<char>() + i * size_of(dtype), dtype, Scalar(i * 1.5));
    t[std::string(name(dtype))] = x;
  }
  t["empty"] = empty_tensor({0, 4}, DType::Float32);
  t["scalar"] = scalar_tensor(2.5, DType::Float64);
  t["name with \"quotes\" and \xC3\xA4"] = scalar_tensor(7, DType::Int8);
  return t;
}

void expect_equal(const NamedTensors& got, const NamedTensors& want) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, t] : want) {
    ASSERT_TRUE(got.contains(name)) << name;
    const Tensor& g = got.at(name);
    EXPECT_EQ(g.dtype(), t.dtype());
    EXPECT_EQ(to_string(g.sizes()), to_string(t.sizes()));
    EXPECT_EQ(row_major_bytes(g), row_major_bytes(t)) << name;
  }
}

TEST(SafeTensors, RoundTripInMemory) {
  const NamedTensors tensors = samples();
  const SafeTensors back = parse_safetensors(safetensors_bytes(tensors, {{"format", "pt"}}));
  expect_equal(back.tensors, tensors);
  EXPECT_EQ(back.metadata, (Metadata{{"format", "pt"}}));
  EXPECT_TRUE(parse_safetensors(safetensors_bytes({})).tensors.empty());
}

TEST(SafeTensors, RoundTripThroughAFile) {
  const std::string path = testing::TempDir() + "round_trip.safetensors";
  const NamedTensors tensors = samples();
  save_safetensors(path, {{"old", scalar_tensor(1, DType::Int64)}});
  save_safetensors(path, tensors);
  expect_equal(load_safetensors(path).tensors, tensors);
  std::ofstream(path, std::ios::app) << "x";
  EXPECT_THROW(load_safetensors(path), DeserializationError);
  std::filesystem::resize_file(path, 40);
  try {
    load_safetensors(path);
    FAIL();
  } catch (const DeserializationError& e) {
    EXPECT_TRUE(e.message().starts_with(path + ": damaged safetensors file: ")) << e.message();
  }
  std::remove(path.c_str());
  EXPECT_THROW(load_safetensors(path), RuntimeError);
  EXPECT_THROW(save_safetensors("/nonexistent/x.safetensors", tensors), RuntimeError);
}

TEST(SafeTensors, StridedViewIsWrittenInRowMajorOrder) {
  const Tensor t = tensor_from<int64_t>({0, 1, 2, 3, 4, 5}, {2, 3});
  const Tensor view({{3, 2}, {1, 3}, DType::Int64}, t.storage());
  const Tensor back = parse_safetensors(safetensors_bytes({{"x", view}})).tensors.at("x");
  EXPECT_TRUE(back.is_contiguous());
  EXPECT_EQ(back.to_vector<int64_t>(), (std::vector<int64_t>{0, 3, 1, 4, 2, 5}));
}

TEST(SafeTensors, BytesAreTheFormats) {
  const std::string header =
      R"({"__metadata__":{"k":"v"},"b":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
      R"("a":{"dtype":"U8","shape":[],"data_offsets":[8,9]}})";
  std::string padded = header;
  padded.resize((header.size() + 7) / 8 * 8, ' ');
  const float values[] = {1.0f, -2.0f};
  const std::string data = std::string(reinterpret_cast<const char*>(values), 8) + '\x05';
  EXPECT_EQ(
      safetensors_bytes({{"a", scalar_tensor(5, DType::UInt8)}, {"b", tensor_from<float>({1, -2}, {1, 2})}},
                        {{"k", "v"}}),
      file(padded, data));
}

TEST(SafeTensors, WhatTheFormatCannotHoldRaises) {
  EXPECT_THROW(safetensors_bytes({{"c", scalar_tensor(1, DType::Complex128)}}), ValueError);
  EXPECT_THROW(safetensors_bytes({{"__metadata__", scalar_tensor(1, DType::Int64)}}), ValueError);
  EXPECT_THROW(safetensors_bytes({{"\xFF\xFE", scalar_tensor(1, DType::Int64)}}), ValueError);
  EXPECT_THROW(safetensors_bytes({{"none", Tensor()}}), ValueError);
  EXPECT_THROW(safetensors_bytes({{"m", empty_tensor({2}, DType::Int8, {DeviceType::Meta})}}), RuntimeError);
}

TEST(SafeTensors, DamageIsNamed) {
  const std::string d = "damaged safetensors file: ";
  EXPECT_EQ(damage("abc"), d + "expected 8 bytes or more, got 3");
  EXPECT_EQ(damage(std::string("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 8)),
            d + "expected a header of up to 100000000 bytes, got 18446744073709551615");
  EXPECT_EQ(damage(std::string("\x10\0\0\0\0\0\0\0{}", 10)),
            d + "expected a header of 16 bytes, got a file of 10");
  EXPECT_EQ(damage(file("")), d + "expected the header to begin with '{', got nothing");
  EXPECT_EQ(damage(file("[]")), d + "expected the header to begin with '{', got byte 91");
  EXPECT_NE(damage(file("{\"a\":")).find("expected a header in JSON"), std::string::npos);
  EXPECT_NE(damage(file("{\"a\xFF\":1}")).find("expected a header in JSON"), std::string::npos);
  EXPECT_EQ(damage(file("{}", "x")), d + "expected 0 bytes of data for the tensors, got 1");
  EXPECT_EQ(damage(file(R"({"a":1})")), d + "tensor 'a': expected an object, got 1");
  EXPECT_EQ(damage(file(R"({"__metadata__":{"k":1}})")),
            d + "expected __metadata__['k'] to be a text, got 1");
}

/// The message for a header whose only tensor is this, with 4 bytes of data.
std::string entry(const std::string& fields) { return damage(file("{\"a\":{" + fields + "}}", "abcd")); }

TEST(SafeTensors, DamagedEntriesAreNamed) {
  const std::string d = "damaged safetensors file: tensor 'a': expected ";
  EXPECT_EQ(entry(R"("dtype":"U8","shape":[4],"data_offsets":[0,4])"), "no error");
  EXPECT_EQ(entry(R"("shape":[4],"data_offsets":[0,4])"), d + "a field 'dtype', got none");
  EXPECT_EQ(entry(R"("dtype":"U8","shape":[4],"data_offsets":[0,4],"x":1)"),
            d + "fields dtype, shape and data_offsets, got 'x'");
  EXPECT_EQ(
      entry(R"("dtype":"Q8","shape":[4],"data_offsets":[0,4])"),
      "safetensors file, tensor 'a': expected a dtype of BOOL, U8, I8, I16, I32, I64, F16, BF16, F32, F64, "
      "C64, got \"Q8\"");
  EXPECT_EQ(entry(R"("dtype":8,"shape":[4],"data_offsets":[0,4])"), d + "the dtype's name, got 8");
  EXPECT_EQ(entry(R"("dtype":"U8","shape":4,"data_offsets":[0,4])"),
            d + "the shape to be a list of up to 64 sizes, got 4");
  EXPECT_EQ(entry(R"("dtype":"U8","shape":[-4],"data_offsets":[0,4])"),
            d + "a size to be a whole number from 0 to 2^63 - 1, got -4");
  EXPECT_EQ(entry(R"("dtype":"U8","shape":[4.0],"data_offsets":[0,4])"),
            d + "a size to be a whole number from 0 to 2^63 - 1, got 4.0");
  EXPECT_EQ(entry(R"("dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,4])"),
            d + "its size to fit in 63 bits, got shape [4611686018427387904]");
  EXPECT_EQ(entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"),
            d + "8 bytes for shape [2] and dtype float32, got 4");
  EXPECT_EQ(entry(R"("dtype":"U8","shape":[5],"data_offsets":[0,5])"),
            d + "data_offsets in the 4 bytes of data, got [0, 5]");
  EXPECT_EQ(entry(R"("dtype":"U8","shape":[4],"data_offsets":[4,0])"),
            d + "data_offsets in the 4 bytes of data, got [4, 0]");
  EXPECT_EQ(entry(R"("dtype":"U8","shape":[4],"data_offsets":[0])"),
            d + "data_offsets to be [begin, end], got [0]");
  EXPECT_EQ(entry(R"("dtype":"U8","shape":[3],"data_offsets":[1,4])"),
            d + "it to begin at 0, where the one before it ends, got 1");
  EXPECT_EQ(entry(R"("dtype":"BOOL","shape":[4],"data_offsets":[0,4])"),
            d + "bool elements of 0 or 1, got 97");
  EXPECT_NE(entry(R"("dtype":"U8","shape":[[4]],"data_offsets":[0,4])").find("3 levels"), std::string::npos);
}

TEST(SafeTensors, OverlapsHolesAndRepetitionsAreNamed) {
  const auto two = [](const char* a, const char* b, const char* second = "b") {
    return damage(file(fmt::format(R"({{"a":{{"dtype":"U8","shape":[2],"data_offsets":{}}},)"
                                   R"("{}":{{"dtype":"U8","shape":[2],"data_offsets":{}}}}})",
                                   a, second, b),
                       "abcd"));
  };
  EXPECT_EQ(two("[0,2]", "[2,4]"), "no error");
  EXPECT_EQ(two("[2,4]", "[0,2]"), "no error");
  EXPECT_NE(two("[0,2]", "[1,3]").find("tensor 'b': expected it to begin at 2"), std::string::npos);
  EXPECT_NE(two("[0,2]", "[0,2]").find("tensor 'b': expected it to begin at 2"), std::string::npos);
  EXPECT_NE(two("[0,2]", "[2,4]", "a").find("got 'a' twice"), std::string::npos);
}

TEST(SafeTensors, NestingAndLongShapesRaise) {
  std::string deep = "{\"a\":";
  deep.append(200000, '[');
  EXPECT_NE(damage(file(deep)).find("3 levels"), std::string::npos);
  std::string ones = "1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  EXPECT_NE(entry("\"dtype\":\"F32\",\"shape\":[" + ones + "],\"data_offsets\":[0,4]").find("got 65 sizes"),
            std::string::npos);
}

TEST(SafeTensors, EveryTruncationRaises) {
  const std::string whole = safetensors_bytes(samples(), {{"k", "v"}});
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_NE(damage(whole.substr(0, n)), "no error") << n;
}

// Any change gives either an error of the right type or a well-formed result; sanitizers watch the rest.
TEST(SafeTensors, FlippedBytesNeverCrash) {
  const std::string whole = safetensors_bytes(samples(), {{"k", "v"}});
  std::mt19937 random(1);
  int errors = 0;
  const int rounds = 20000;
  for (int i = 0; i < rounds; ++i) {
    std::string bytes = whole;
    const int flips = 1 + static_cast<int>(random() % 3);
    for (int k = 0; k < flips; ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
    try {
      for (const auto& [name, t] : parse_safetensors(bytes).tensors)
        EXPECT_EQ(row_major_bytes(t).size(),
                  static_cast<size_t>(t.numel().expect_int() * size_of(t.dtype())));
    } catch (const DeserializationError&) {
      ++errors;
    }
  }
  EXPECT_GT(errors, rounds / 2);
  EXPECT_LT(errors, rounds);
}

}  // namespace
}  // namespace fl
