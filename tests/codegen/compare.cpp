#include "compare.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>

#include "assemble.h"
#include "flambeau/base/error.h"
#include "flambeau/codegen/gpu/compile.h"
#include "flambeau/loop/interpret.h"

namespace fl::codegen {
namespace {

using loop::BFloat;
using loop::Half;

template <class T>
bool same(T a, T b) {
  return (a != a && b != b) || std::memcmp(&a, &b, sizeof(T)) == 0;
}
bool same(Half a, Half b) { return same(loop::to_float(a), loop::to_float(b)); }
bool same(BFloat a, BFloat b) { return same(loop::to_float(a), loop::to_float(b)); }
template <class T>
bool same(std::complex<T> a, std::complex<T> b) {
  return same(a.real(), b.real()) && same(a.imag(), b.imag());
}

std::string text(const unsigned char* at, DType dtype) {
  std::string out;
  for (int64_t n = size_of(dtype); n-- > 0;) out += fmt::format("{:02x}", at[n]);
  return loop::with_type(dtype, [&](auto t) -> std::string {
    using T = decltype(t);
    T v;
    std::memcpy(&v, at, sizeof(T));
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>)
      return fmt::format("{} (0x{})", loop::to_float(v), out);
    else if constexpr (std::is_arithmetic_v<T>)
      return fmt::format("{} (0x{})", v, out);
    else
      return fmt::format("{}+{}i", v.real(), v.imag());
  });
}

template <class T>
T special_float(std::mt19937_64& random) {
  using L = std::numeric_limits<T>;
  const T values[] = {0,
                      -T(0),
                      1,
                      -1,
                      T(0.5),
                      T(-0.5),
                      T(1.5),
                      T(2.5),
                      2,
                      3,
                      -3,
                      L::infinity(),
                      -L::infinity(),
                      L::quiet_NaN(),
                      L::max(),
                      L::lowest(),
                      L::min(),
                      -L::min(),
                      L::denorm_min(),
                      L::epsilon(),
                      T(1e-30),
                      T(1e30),
                      T(2147483648.0),
                      T(-2147483648.0),
                      T(-2147483649.0),
                      T(9223372036854775808.0),
                      T(-9223372036854775808.0),
                      T(65504),
                      T(65520),
                      T(100.5),
                      T(255.9),
                      T(88.7),
                      T(-104)};
  if (random() % 4 == 0) return values[random() % std::size(values)];
  if (random() % 3 == 0) {  // any bits
    uint64_t bits = random();
    T out;
    std::memcpy(&out, &bits, sizeof(T));
    return out;
  }
  return std::normal_distribution<T>(0, random() % 2 ? T(2) : T(100))(random);
}

template <class T>
T special_integer(std::mt19937_64& random) {
  using L = std::numeric_limits<T>;
  const T values[] = {0,        1,        static_cast<T>(-1),          2, 3, 7, 8, 31, 32, 63, 64,
                      L::max(), L::min(), static_cast<T>(L::min() + 1)};
  if (random() % 2) return values[random() % std::size(values)];
  return static_cast<T>(random());
}

}  // namespace

std::vector<Isa> isas() {
  std::vector<Isa> out;
  for (Isa isa : {Isa::Sse2, Isa::Avx2, Isa::Avx512}) try {
      machine_for(isa);
      out.push_back(isa);
    } catch (const ValueError&) {
    }
  return out;
}

std::string isa_name(Isa isa) {
  return isa == Isa::Sse2 ? "sse2" : isa == Isa::Avx2 ? "avx2" : isa == Isa::Avx512 ? "avx512" : "host";
}

Bytes sample_data(DType dtype, int64_t count, std::mt19937_64& random) {
  Bytes out(static_cast<size_t>(count * size_of(dtype)));
  for (int64_t n = 0; n < count; ++n)
    loop::with_type(dtype, [&](auto t) {
      using T = decltype(t);
      T v{};
      if constexpr (std::is_same_v<T, bool>)
        v = random() & 1;
      else if constexpr (std::is_integral_v<T>)
        v = special_integer<T>(random);
      else if constexpr (std::is_floating_point_v<T>)
        v = special_float<T>(random);
      else if constexpr (std::is_same_v<T, Half>)
        v = random() % 2 ? Half{static_cast<uint16_t>(random())}
                         : loop::to_half(special_float<float>(random));
      else if constexpr (std::is_same_v<T, BFloat>)
        v = random() % 2 ? BFloat{static_cast<uint16_t>(random())}
                         : loop::to_bfloat(special_float<float>(random));
      else
        v = T(special_float<typename T::value_type>(random), special_float<typename T::value_type>(random));
      std::memcpy(out.data() + n * sizeof(T), &v, sizeof(T));
    });
  return out;
}

Bytes small_data(DType dtype, int64_t count, std::mt19937_64& random) {
  Bytes out;
  for (int64_t n = 0; n < count; ++n) {
    const auto bits = loop::ScalarBits::of(dtype, Literal(static_cast<int64_t>(random() % 9) - 4));
    out.insert(out.end(), bits.bytes, bits.bytes + size_of(dtype));
  }
  return out;
}

Outcome run_on(std::vector<Bytes> data, const std::function<void(std::span<void* const>)>& launch) {
  Outcome out{std::move(data), ""};
  std::vector<void*> pointers;
  for (Bytes& b : out.buffers) pointers.push_back(b.data());
  try {
    launch(pointers);
  } catch (const IndexError& e) {
    out.error = e.message();
  }
  return out;
}

std::string first_difference(const loop::Kernel& k, const std::vector<Bytes>& expected,
                             const std::vector<Bytes>& got) {
  for (size_t b = 0; b < expected.size(); ++b) {
    const DType d = k.buffers[b].dtype;
    for (size_t at = 0; at < expected[b].size(); at += static_cast<size_t>(size_of(d))) {
      const bool equal = loop::with_type(d, [&](auto t) {
        decltype(t) x, y;
        std::memcpy(&x, expected[b].data() + at, sizeof x);
        std::memcpy(&y, got[b].data() + at, sizeof y);
        return same(x, y);
      });
      if (!equal)
        return fmt::format("{}[{}] is {}, expected {}", k.buffers[b].name,
                           at / static_cast<size_t>(size_of(d)), text(got[b].data() + at, d),
                           text(expected[b].data() + at, d));
    }
  }
  return "";
}

std::string difference(const loop::Kernel& k, const std::vector<Bytes>& buffers,
                       const std::vector<int64_t>& sizes, const std::vector<loop::ScalarBits>& params) {
  const Outcome expected =
      run_on(buffers, [&](std::span<void* const> p) { loop::interpret(k, p, sizes, params); });
  for (Isa isa : isas()) {
    // Kept for the other sizes that a test tries.
    static std::map<std::string, std::shared_ptr<const CompiledKernel>> known;
    if (known.size() > 300) known.clear();
    auto& compiled = known[isa_name(isa) + k.str()];
    if (!compiled) compiled = compile_kernel(k, {.isa = isa, .cached = false});
    const Outcome got = run_on(buffers, [&](std::span<void* const> p) {
      compiled->launch({p.data(), sizes.data(), params.data()});
    });
    if (got.error != expected.error)
      return fmt::format("{}: the error is '{}', expected '{}'\n{}", isa_name(isa), got.error, expected.error,
                         k.str());
    const std::string differs = first_difference(k, expected.buffers, got.buffers);
    if (!differs.empty()) return fmt::format("{}: {}\n{}", isa_name(isa), differs, k.str());
  }
  const char* asked = std::getenv("FLAMBEAU_TEST_DEVICE");
  const std::string_view device = asked ? asked : "";
  static std::set<std::string> assembled;
  if (device == "ptxas" && assembled.insert(k.str()).second) try {
      const std::string problem = assemble(make_kernel_ptx(k, {}));
      if (!problem.empty()) return fmt::format("{}\n{}", problem, k.str());
    } catch (const NotImplementedError&) {
    }
  if (device == "cuda") {
    FL_CHECK(gpu_difference, ValueError, "these tests are built without CUDA");
    return gpu_difference(k, expected, buffers, sizes, params);
  }
  return "";
}

}  // namespace fl::codegen
