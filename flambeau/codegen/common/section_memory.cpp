#include "flambeau/codegen/common/section_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "flambeau/base/error.h"

namespace fl::codegen {
namespace {

size_t whole_pages(size_t bytes) {
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

}  // namespace

SectionMemory::~SectionMemory() {
  if (code_.begin) munmap(code_.begin, code_.size + constants_.size + data_.size);
}

void SectionMemory::reserveAllocationSpace(uintptr_t code_bytes, llvm::Align code_align,
                                           uintptr_t constant_bytes, llvm::Align constant_align,
                                           uintptr_t data_bytes, llvm::Align data_align) {
  FL_ASSERT(!code_.begin, "a second object in the memory of one");
  code_.size = whole_pages(code_bytes + code_align.value());
  constants_.size = whole_pages(constant_bytes + constant_align.value());
  data_.size = whole_pages(data_bytes + data_align.value());
  const size_t total = code_.size + constants_.size + data_.size;
  void* block = mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  FL_CHECK(block != MAP_FAILED, OutOfMemoryError, "no memory for {} bytes of machine code: {}", total,
           std::strerror(errno));
  code_.begin = static_cast<char*>(block);
  constants_.begin = code_.begin + code_.size;
  data_.begin = constants_.begin + constants_.size;
}

uint8_t* SectionMemory::take(Part& part, uintptr_t bytes, unsigned align) {
  const size_t unit = align ? align : 16;
  const size_t at = (part.used + unit - 1) / unit * unit;
  FL_ASSERT(part.begin && at + bytes <= part.size, "a section of {} bytes in {} of {}", bytes, at, part.size);
  part.used = at + bytes;
  return reinterpret_cast<uint8_t*>(part.begin + at);
}

uint8_t* SectionMemory::allocateCodeSection(uintptr_t bytes, unsigned align, unsigned, llvm::StringRef) {
  return take(code_, bytes, align);
}

uint8_t* SectionMemory::allocateDataSection(uintptr_t bytes, unsigned align, unsigned, llvm::StringRef,
                                            bool constant) {
  return take(constant ? constants_ : data_, bytes, align);
}

bool SectionMemory::finalizeMemory(std::string* error) {
  __builtin___clear_cache(code_.begin, code_.begin + code_.size);
  if (mprotect(code_.begin, code_.size, PROT_READ | PROT_EXEC) == 0 &&
      mprotect(constants_.begin, constants_.size, PROT_READ) == 0)
    return false;
  if (error) *error = std::strerror(errno);
  return true;
}

}  // namespace fl::codegen
