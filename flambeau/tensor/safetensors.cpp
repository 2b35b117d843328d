// Layout: 8 bytes n, little-endian; n bytes of JSON, {name: {dtype, shape, data_offsets: [begin, end]}} and
// __metadata__; then the tensors' bytes, without gaps.
#include "flambeau/tensor/safetensors.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "flambeau/tensor/element.h"

namespace fl {

namespace {

using nlohmann::json;

constexpr std::string_view kMetadataKey = "__metadata__";
constexpr uint64_t kPrefix = 8;
constexpr uint64_t kMaxHeader = 100'000'000;  // The format's own limit.
constexpr size_t kMaxDims = 64;

struct FormatName {
  DType dtype;
  std::string_view name;
};
constexpr std::array kFormatNames{
    FormatName{DType::Bool, "BOOL"},   FormatName{DType::UInt8, "U8"},      FormatName{DType::Int8, "I8"},
    FormatName{DType::Int16, "I16"},   FormatName{DType::Int32, "I32"},     FormatName{DType::Int64, "I64"},
    FormatName{DType::Float16, "F16"}, FormatName{DType::BFloat16, "BF16"}, FormatName{DType::Float32, "F32"},
    FormatName{DType::Float64, "F64"}, FormatName{DType::Complex64, "C64"},
};

// ---- writing

using Sink = std::function<void(const void* data, size_t bytes)>;

std::string_view format_name(DType d, const std::string& tensor) {
  for (const FormatName& f : kFormatNames)
    if (f.dtype == d) return f.name;
  FL_RAISE(ValueError, "safetensors files have no dtype {}, got it in tensor '{}'", name(d), tensor);
}

uint64_t bytes_of(const Tensor& t) {
  return static_cast<uint64_t>(t.numel().expect_int() * size_of(t.dtype()));
}

/// Larger elements first, then by name: so every tensor is aligned to its elements.
std::vector<const NamedTensors::value_type*> file_order(const NamedTensors& tensors) {
  std::vector<const NamedTensors::value_type*> order;
  for (const auto& entry : tensors) {
    FL_CHECK(entry.second.defined(), ValueError, "expected a tensor for '{}', got None", entry.first);
    order.push_back(&entry);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return size_of(a->second.dtype()) > size_of(b->second.dtype());
  });
  return order;
}

std::string header_text(const std::vector<const NamedTensors::value_type*>& order, const Metadata& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[std::string(kMetadataKey)] = metadata;
  uint64_t at = 0;
  for (const auto* entry : order) {
    const auto& [name, t] = *entry;
    FL_CHECK(name != kMetadataKey, ValueError, "a tensor can't be named '{}' in a safetensors file", name);
    auto shape = nlohmann::ordered_json::array();
    for (const SymInt size : t.sizes()) shape.push_back(size.expect_int());
    const uint64_t end = at + bytes_of(t);
    header[name] = {{"dtype", format_name(t.dtype(), name)}, {"shape", shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const json::exception& e) {
    FL_RAISE(ValueError, "expected names and metadata in UTF-8 for a safetensors file: {}", e.what());
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  FL_CHECK(text.size() <= kMaxHeader, ValueError,
           "the header of a safetensors file takes {} bytes, more than {}", text.size(), kMaxHeader);
  return text;
}

void write(const NamedTensors& tensors, const Metadata& metadata, const Sink& sink) {
  const auto order = file_order(tensors);
  const std::string header = header_text(order, metadata);
  const uint64_t length = header.size();
  std::array<unsigned char, kPrefix> prefix;
  for (size_t i = 0; i < kPrefix; ++i) prefix[i] = static_cast<unsigned char>(length >> (8 * i));
  sink(prefix.data(), kPrefix);
  sink(header.data(), header.size());
  for (const auto* entry : order) {
    const std::vector<char> bytes = row_major_bytes(entry->second);
    sink(bytes.data(), bytes.size());
  }
}

struct CloseFile {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

// ---- reading

/// Reads `bytes` bytes at `offset` of the file.
using Source = std::function<void(uint64_t offset, void* to, size_t bytes)>;

#define FL_CHECK_FILE(condition, ...) \
  FL_CHECK(condition, DeserializationError, "damaged safetensors file: {}", fmt::format(__VA_ARGS__))

/// The document; raises on a repeated key or on nesting that no header has.
json parse_header(const std::string& text) {
  std::vector<std::set<std::string>> keys;
  const auto check = [&](int depth, json::parse_event_t event, json& value) {
    FL_CHECK_FILE(depth <= 3, "expected a header of 3 levels, got more");
    if (event == json::parse_event_t::object_start) {
      keys.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      FL_CHECK_FILE(keys.back().insert(key).second, "expected each name once in the header, got '{}' twice",
                    key);
    }
    return true;
  };
  FL_CHECK_FILE(!text.empty() && text[0] == '{', "expected the header to begin with '{{', got {}",
                text.empty() ? "nothing" : fmt::format("byte {}", static_cast<unsigned char>(text[0])));
  try {
    return json::parse(text, check);
  } catch (const json::exception& e) {
    FL_RAISE(DeserializationError, "damaged safetensors file: expected a header in JSON: {}", e.what());
  }
}

struct Entry {
  std::string name;
  DType dtype;
  Sizes sizes;
  uint64_t begin, end;
};

uint64_t unsigned_number(const json& v, std::string_view what, const std::string& tensor) {
  FL_CHECK_FILE(v.is_number_unsigned() && v.get<uint64_t>() <= uint64_t{INT64_MAX},
                "tensor '{}': expected {} to be a whole number from 0 to 2^63 - 1, got {}", tensor, what,
                v.dump());
  return v.get<uint64_t>();
}

const json& field(const json& entry, const char* key, const std::string& tensor) {
  const auto at = entry.find(key);
  FL_CHECK_FILE(at != entry.end(), "tensor '{}': expected a field '{}', got none", tensor, key);
  return *at;
}

DType parse_format_name(const json& v, const std::string& tensor) {
  FL_CHECK_FILE(v.is_string(), "tensor '{}': expected the dtype's name, got {}", tensor, v.dump());
  const auto& text = v.get_ref<const std::string&>();
  std::string known;
  for (const FormatName& f : kFormatNames) {
    if (f.name == text) return f.dtype;
    known += (known.empty() ? "" : ", ") + std::string(f.name);
  }
  FL_RAISE(DeserializationError, "safetensors file, tensor '{}': expected a dtype of {}, got {}", tensor,
           known, v.dump());
}

Entry read_entry(const std::string& name, const json& v, uint64_t buffer) {
  FL_CHECK_FILE(v.is_object(), "tensor '{}': expected an object, got {}", name, v.dump());
  for (const auto& [key, value] : v.items())
    FL_CHECK_FILE(key == "dtype" || key == "shape" || key == "data_offsets",
                  "tensor '{}': expected fields dtype, shape and data_offsets, got '{}'", name, key);
  Entry e{name, parse_format_name(field(v, "dtype", name), name), {}, 0, 0};
  const json& shape = field(v, "shape", name);
  FL_CHECK_FILE(shape.is_array() && shape.size() <= kMaxDims,
                "tensor '{}': expected the shape to be a list of up to {} sizes, got {}", name, kMaxDims,
                shape.is_array() ? fmt::format("{} sizes", shape.size()) : shape.dump());
  auto bytes = static_cast<uint64_t>(size_of(e.dtype));
  bool overflow = false, empty = false;
  for (const json& size : shape) {
    const uint64_t n = unsigned_number(size, "a size", name);
    e.sizes.push_back(static_cast<int64_t>(n));
    empty |= n == 0;
    overflow |= __builtin_mul_overflow(bytes, n, &bytes) || bytes > uint64_t{INT64_MAX};
  }
  FL_CHECK_FILE(empty || !overflow, "tensor '{}': expected its size to fit in 63 bits, got shape {}", name,
                shape.dump());
  if (empty) bytes = 0;
  const json& offsets = field(v, "data_offsets", name);
  FL_CHECK_FILE(offsets.is_array() && offsets.size() == 2,
                "tensor '{}': expected data_offsets to be [begin, end], got {}", name, offsets.dump());
  e.begin = unsigned_number(offsets[0], "an offset", name);
  e.end = unsigned_number(offsets[1], "an offset", name);
  FL_CHECK_FILE(e.begin <= e.end && e.end <= buffer,
                "tensor '{}': expected data_offsets in the {} bytes of data, got [{}, {}]", name, buffer,
                e.begin, e.end);
  FL_CHECK_FILE(e.end - e.begin == bytes, "tensor '{}': expected {} bytes for shape {} and dtype {}, got {}",
                name, bytes, shape.dump(), fl::name(e.dtype), e.end - e.begin);
  return e;
}

/// The tensors lie one behind the other and fill the data.
void check_coverage(std::vector<Entry>& entries, uint64_t buffer) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t at = 0;
  for (const Entry& e : entries) {
    FL_CHECK_FILE(e.begin == at,
                  "tensor '{}': expected it to begin at {}, where the one before it ends, got {}", e.name, at,
                  e.begin);
    at = e.end;
  }
  FL_CHECK_FILE(at == buffer, "expected {} bytes of data for the tensors, got {}", at, buffer);
}

Metadata read_metadata(const json& v) {
  FL_CHECK_FILE(v.is_object(), "expected {} to be an object, got {}", kMetadataKey, v.dump());
  Metadata metadata;
  for (const auto& [key, value] : v.items()) {
    FL_CHECK_FILE(value.is_string(), "expected {}['{}'] to be a text, got {}", kMetadataKey, key,
                  value.dump());
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

SafeTensors read(uint64_t size, const Source& source) {
  FL_CHECK_FILE(size >= kPrefix, "expected 8 bytes or more, got {}", size);
  std::array<unsigned char, kPrefix> prefix;
  source(0, prefix.data(), kPrefix);
  uint64_t length = 0;
  for (size_t i = 0; i < kPrefix; ++i) length |= uint64_t{prefix[i]} << (8 * i);
  FL_CHECK_FILE(length <= kMaxHeader, "expected a header of up to {} bytes, got {}", kMaxHeader, length);
  FL_CHECK_FILE(length <= size - kPrefix, "expected a header of {} bytes, got a file of {}", length, size);
  std::string text(length, '\0');
  source(kPrefix, text.data(), length);
  const json header = parse_header(text);
  FL_CHECK_FILE(header.is_object(), "expected the header to be an object");

  const uint64_t data = kPrefix + length, buffer = size - data;
  SafeTensors result;
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == kMetadataKey)
      result.metadata = read_metadata(value);
    else
      entries.push_back(read_entry(name, value, buffer));
  }
  check_coverage(entries, buffer);
  for (const Entry& e : entries) {
    Tensor t = empty_tensor(e.sizes, e.dtype);
    if (e.end > e.begin) source(data + e.begin, t.data(), e.end - e.begin);
    if (e.dtype == DType::Bool) {
      const auto* bytes = t.data_as<uint8_t>();
      for (uint64_t i = 0; i < e.end - e.begin; ++i)
        FL_CHECK_FILE(bytes[i] <= 1, "tensor '{}': expected bool elements of 0 or 1, got {}", e.name,
                      bytes[i]);
    }
    result.tensors.emplace(e.name, std::move(t));
  }
  return result;
}

}  // namespace

std::string safetensors_bytes(const NamedTensors& tensors, const Metadata& metadata) {
  std::string bytes;
  write(tensors, metadata,
        [&](const void* data, size_t n) { bytes.append(static_cast<const char*>(data), n); });
  return bytes;
}

void save_safetensors(const std::string& path, const NamedTensors& tensors, const Metadata& metadata) {
  const std::string partial = fmt::format("{}.{}.partial", path, getpid());
  const auto fail = [&](const char* what) {
    const std::string reason = std::strerror(errno);
    std::remove(partial.c_str());
    FL_RAISE(RuntimeError, "cannot {} {}: {}", what, path, reason);
  };
  File file(std::fopen(partial.c_str(), "wb"));
  if (!file) fail("write");
  try {
    write(tensors, metadata, [&](const void* data, size_t n) {
      if (n > 0 && std::fwrite(data, 1, n, file.get()) != n) fail("write");
    });
  } catch (...) {
    std::remove(partial.c_str());
    throw;
  }
  if (std::fclose(file.release()) != 0) fail("write");
  if (std::rename(partial.c_str(), path.c_str()) != 0) fail("replace");
}

SafeTensors load_safetensors(const std::string& path) {
  File file(std::fopen(path.c_str(), "rb"));
  FL_CHECK(file, RuntimeError, "cannot read {}: {}", path, std::strerror(errno));
  FL_CHECK(std::fseek(file.get(), 0, SEEK_END) == 0, RuntimeError, "cannot read {}: {}", path,
           std::strerror(errno));
  const long size = std::ftell(file.get());
  FL_CHECK(size >= 0, RuntimeError, "cannot read {}: {}", path, std::strerror(errno));
  const int descriptor = fileno(file.get());
  try {
    return read(static_cast<uint64_t>(size), [&](uint64_t offset, void* to, size_t bytes) {
      for (size_t done = 0; done < bytes;) {
        const ssize_t n =
            pread(descriptor, static_cast<char*>(to) + done, bytes - done, static_cast<off_t>(offset + done));
        FL_CHECK(n >= 0 || errno == EINTR, RuntimeError, "cannot read {}: {}", path, std::strerror(errno));
        FL_CHECK_FILE(n != 0, "expected {} bytes, but the file ended while it was read", size);
        if (n > 0) done += static_cast<size_t>(n);
      }
    });
  } catch (const DeserializationError& e) {
    FL_RAISE(DeserializationError, "{}: {}", path, e.message());
  }
}

SafeTensors parse_safetensors(std::string_view bytes) {
  return read(bytes.size(), [&](uint64_t offset, void* to, size_t n) {
    if (n > 0) std::memcpy(to, bytes.data() + offset, n);
  });
}

}  // namespace fl
