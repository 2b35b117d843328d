#include "flambeau/codegen/common/machine.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/Host.h>

#include "flambeau/base/error.h"

namespace fl::codegen {
namespace {

constexpr const char* kAvx2 = "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt";
constexpr const char* kAvx512 = ",+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512cd";

Machine describe(Isa isa) {
  Machine m;
  m.triple = llvm::sys::getProcessTriple();
  const llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  const auto has = [&](const char* feature) { return host.lookup(feature); };
  const bool avx2 = has("avx2") && has("fma") && has("f16c") && has("bmi2");
  const bool avx512 = avx2 && has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl");
  FL_CHECK(isa != Isa::Avx2 || avx2, ValueError, "this processor lacks AVX2");
  FL_CHECK(isa != Isa::Avx512 || avx512, ValueError, "this processor lacks AVX-512");
  if (isa == Isa::Host) isa = avx512 ? Isa::Avx512 : avx2 ? Isa::Avx2 : Isa::Sse2;
  m.cpu = "x86-64";
  switch (isa) {
    case Isa::Avx512:
      m.vector_bytes = 64;
      m.features = std::string(kAvx2) + kAvx512;
      m.has_masked_memory = m.has_half_conversion = m.has_gather = true;
      break;
    case Isa::Avx2:
      m.vector_bytes = 32;
      m.features = kAvx2;
      m.has_half_conversion = true;
      break;
    default:
      m.vector_bytes = 16;
      if (!llvm::StringRef(m.triple).starts_with("x86_64")) {
        m.cpu = llvm::sys::getHostCPUName().str();
        m.has_half_conversion = true;
      }
  }
  return m;
}

}  // namespace

const Machine& machine_for(Isa isa) {
  static const Machine host = describe(Isa::Host);
  if (isa == Isa::Host) return host;
  static const Machine sse2 = describe(Isa::Sse2);
  if (isa == Isa::Sse2) return sse2;
  if (isa == Isa::Avx2) {
    static const Machine avx2 = describe(Isa::Avx2);
    return avx2;
  }
  static const Machine avx512 = describe(Isa::Avx512);
  return avx512;
}

}  // namespace fl::codegen
