// What one rank knows, told to all: settings first, of a length that only the root knows; then an array.
//
//   nexar run -n 3 ./broadcast
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "nexar/node.h"

int main() {
  nexar::Node node = nexar::Node::from_env().value();
  const nexar::Group world = node.world();
  constexpr nexar::Rank kRoot = 0;

  // Only the root's bytes count; the others may give none.
  const std::string settings = node.rank() == kRoot ? "rate=0.1 epochs=3" : "";
  const std::vector<std::byte> told = world.broadcast_bytes(std::as_bytes(std::span(settings)), kRoot).value();
  std::printf("rank %d was told %.*s\n", node.rank(), static_cast<int>(told.size()), reinterpret_cast<const char*>(told.data()));

  // An array whose length everybody knows goes into the same place everywhere.
  std::vector<std::int64_t> table(1000);
  if (node.rank() == kRoot)
    for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::int64_t>(i * i);
  world.broadcast(table.data(), table.size(), nexar::DataType::kI64, kRoot).value();
  std::printf("rank %d: the last of the table is %lld\n", node.rank(), static_cast<long long>(table.back()));
  node.close().value();
}
