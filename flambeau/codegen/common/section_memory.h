// Memory for the sections of a linked object.
#pragma once
#include <llvm/ExecutionEngine/RuntimeDyld.h>

namespace fl::codegen {

/// All sections in one block: they address each other over 32 bits, and separate ones may lie further apart
/// in a process that has large mappings. LLVM's own manager asks for one after the other.
class SectionMemory final : public llvm::RuntimeDyld::MemoryManager {
 public:
  SectionMemory() = default;
  SectionMemory(const SectionMemory&) = delete;
  ~SectionMemory() override;

  bool needsToReserveAllocationSpace() override { return true; }
  void reserveAllocationSpace(uintptr_t code_bytes, llvm::Align code_align, uintptr_t constant_bytes,
                              llvm::Align constant_align, uintptr_t data_bytes,
                              llvm::Align data_align) override;
  uint8_t* allocateCodeSection(uintptr_t bytes, unsigned align, unsigned, llvm::StringRef) override;
  uint8_t* allocateDataSection(uintptr_t bytes, unsigned align, unsigned, llvm::StringRef,
                               bool constant) override;
  bool finalizeMemory(std::string* error) override;
  void registerEHFrames(uint8_t*, uint64_t, size_t) override {}  // Kernels throw nothing.
  void deregisterEHFrames() override {}

 private:
  struct Part {
    char* begin = nullptr;
    size_t used = 0, size = 0;  // size: whole pages
  };
  uint8_t* take(Part& part, uintptr_t bytes, unsigned align);
  Part code_, constants_, data_;
};

}  // namespace fl::codegen
