#include "types/operation_id.h"

#include <array>
#include <cstddef>

namespace nexar {
namespace {

// By number; number 0 is nothing.
constexpr std::array<std::string_view, kOperationIdMax + 1> kNames = {"unknown",
                                                                      "all_reduce",
                                                                      "all_reduce_bucketed",
                                                                      "all_reduce_compressed",
                                                                      "reduce_scatter",
                                                                      "all_gather",
                                                                      "broadcast",
                                                                      "reduce",
                                                                      "gather",
                                                                      "scatter",
                                                                      "all_to_all",
                                                                      "all_gather_v",
                                                                      "reduce_scatter_v",
                                                                      "all_to_all_v",
                                                                      "gather_v",
                                                                      "scatter_v",
                                                                      "scan",
                                                                      "exclusive_scan",
                                                                      "barrier",
                                                                      "all_reduce_rs_ag",
                                                                      "broadcast_bytes",
                                                                      "all_gather_bytes",
                                                                      "gather_bytes"};

}  // namespace

std::string_view to_string(OperationId operation) {
  const auto index = static_cast<std::size_t>(operation);
  return kNames[index < kNames.size() ? index : 0];
}

}  // namespace nexar
