#include "bench/burst.h"

namespace nexar::bench {

Burst::Burst(const Group& group, const Call& call, std::size_t calls, Order order, const CallOptions& options, std::uint64_t seed,
             const Allocate& allocate)
    : at_once_(order == Order::kAtOnce && calls > 1) {
  for (std::size_t i = 0; i < calls; ++i) parts_.push_back(std::make_unique<Part>(group, call, options, seed + i, allocate));
}

void Burst::once() {
  if (at_once_) return at_once();
  for (const auto& part : parts_) part->call.once().value();
}

void Burst::at_once() {
  for (const auto& part : parts_) part->operation = part->call.start();
  for (const auto& part : parts_) {
    static_cast<void>(part->operation.wait().value());
    part->call.take(part->operation);
  }
}

std::string Burst::algorithm() {
  Operation operation = parts_[0]->call.start();
  static_cast<void>(operation.wait().value());
  return operation.algorithm();
}

std::uint64_t Burst::check() {
  for (const auto& part : parts_) part->memory.fill();
  once();
  std::uint64_t wrong = 0;
  for (const auto& part : parts_) wrong += part->call.count_wrong();
  return wrong;
}

}  // namespace nexar::bench
