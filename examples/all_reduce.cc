// The sum of everybody's numbers, at everybody.
//
//   nexar run -n 4 ./all_reduce
//
// All ranks call the same collectives in the same order. What comes out has the same bits on every rank.
#include <cstdio>
#include <vector>

#include "nexar/node.h"

int main() {
  nexar::Node node = nexar::Node::from_env().value();
  const nexar::Group world = node.world();

  // Rank r brings r + 1 in every place; the sum over n ranks is n (n + 1) / 2.
  std::vector<float> values(1'000'000, static_cast<float>(node.rank() + 1));
  const float expected = static_cast<float>(node.size() * (node.size() + 1)) / 2;

  // In place: what is sent and what is received are the same buffer.
  world.all_reduce(values.data(), values.data(), values.size(), nexar::DataType::kF32, nexar::ReduceOp::kSum).value();

  for (const float value : values)
    if (value != expected) {
      std::fprintf(stderr, "rank %d: %g instead of %g\n", node.rank(), static_cast<double>(value), static_cast<double>(expected));
      return 1;
    }
  std::printf("rank %d: a million sums, each %g\n", node.rank(), static_cast<double>(expected));

  // The same without waiting for it: compute while the numbers travel.
  float largest = static_cast<float>(node.rank());
  nexar::Operation operation = world.start_all_reduce(&largest, &largest, 1, nexar::DataType::kF32, nexar::ReduceOp::kMax);
  operation.wait().value();
  std::printf("rank %d: the largest rank is %g\n", node.rank(), static_cast<double>(largest));
  node.close().value();
}
