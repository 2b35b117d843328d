#include "flambeau/codegen/cpu/object_cache.h"

#include "flambeau/base/option.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace fl::codegen {
namespace {

constexpr char kMagic[8] = {'f', 'l', 'o', 'b', 'j', '0', '0', '1'};

struct Header {
  char magic[8];
  uint64_t size;
  Hash128 key, checksum;
};

class File {
 public:
  File(const char* path, int flags, mode_t mode = 0) : descriptor_(::open(path, flags | O_CLOEXEC, mode)) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  bool is_open() const { return descriptor_ >= 0; }
  uint64_t size() const {
    struct stat s;
    return ::fstat(descriptor_, &s) == 0 ? static_cast<uint64_t>(s.st_size) : 0;
  }
  bool read(void* to, size_t size) const {
    char* at = static_cast<char*>(to);
    while (size > 0) {
      const ssize_t n = ::read(descriptor_, at, size);
      if (n <= 0) return false;
      at += n;
      size -= static_cast<size_t>(n);
    }
    return true;
  }
  bool write(const void* from, size_t size) const {
    const char* at = static_cast<const char*>(from);
    while (size > 0) {
      const ssize_t n = ::write(descriptor_, at, size);
      if (n <= 0) return false;
      at += n;
      size -= static_cast<size_t>(n);
    }
    return true;
  }

 private:
  int descriptor_;
};

}  // namespace

ObjectCache::ObjectCache() {
  if (option("FLAMBEAU_CACHE") == "0") return;
  folder_ = option("FLAMBEAU_CACHE_DIR");
  if (!folder_.empty()) return;
  const std::string shared = option("XDG_CACHE_HOME"), home = option("HOME");
  if (!shared.empty())
    folder_ = shared + "/flambeau";
  else if (!home.empty())
    folder_ = home + "/.cache/flambeau";
}

std::string ObjectCache::path(const Hash128& key) const { return fmt::format("{}/{}.o", folder_, key.hex()); }

std::optional<std::string> ObjectCache::load(const Hash128& key) const {
  if (folder_.empty()) return std::nullopt;
  const File file(path(key).c_str(), O_RDONLY);
  Header header;
  if (!file.is_open() || !file.read(&header, sizeof header)) return std::nullopt;
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || !(header.key == key) ||
      file.size() != sizeof header + header.size)
    return std::nullopt;
  std::string object(header.size, '\0');
  if (!file.read(object.data(), object.size()) || !(hash128(object) == header.checksum)) return std::nullopt;
  return object;
}

// Written beside and renamed, so that no reader sees a part of a file.
void ObjectCache::store(const Hash128& key, const std::string& object) const {
  if (folder_.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  static std::atomic<int> serial{0};
  const std::string beside = fmt::format("{}.{}.{}", path(key), ::getpid(), serial.fetch_add(1));
  Header header{{}, object.size(), key, hash128(object)};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  bool written;
  {
    const File file(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (!file.is_open()) return;
    written = file.write(&header, sizeof header) && file.write(object.data(), object.size());
  }
  if (!written || ::rename(beside.c_str(), path(key).c_str()) != 0) ::unlink(beside.c_str());
}

void dump_kernel(const loop::Kernel& k) {
  if (option("FLAMBEAU_DUMP").find("kernels") != std::string::npos)
    std::fprintf(stderr, "%s\n", k.str().c_str());
}

}  // namespace fl::codegen
