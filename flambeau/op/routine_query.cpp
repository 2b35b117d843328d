#include "flambeau/op/routine_query.h"

#include <array>

namespace fl {
namespace {

std::array<HasRoutine, 256> g_queries{};

}  // namespace

void install_routine_query(DeviceType type, HasRoutine f) { g_queries[static_cast<uint8_t>(type)] = f; }

bool has_routine(const OpInfo& op, const Value* args) {
  const HasRoutine f = g_queries[static_cast<uint8_t>(args[0].tensor().device().type)];
  return f && f(op, args);
}

}  // namespace fl
