// Built with a store that publishes without ordering what was written before it: ThreadSanitizer must say so.
#include <cstdio>
#include <thread>
#include <vector>

#include "direct_world.h"

int main() {
  using namespace nexar;
  test::DirectWorld world(2);
  std::vector<std::vector<float>> data(2, std::vector<float>(1'000, 1));
  const auto reducer = reduce::Reducer::make(DataType::kF32, ReduceOp::kSum).value();
  world.run([&](Rank rank) {
    for (Sequence sequence = 1; sequence < 100; ++sequence) {
      collective::direct::Call call;
      call.operation = OperationId::kAllReduce;
      call.sequence = sequence;
      call.send = call.recv = data[static_cast<std::size_t>(rank)].data();
      call.count = 1'000;
      call.type = DataType::kF32;
      call.reducer = &reducer;
      call.op = ReduceOp::kMax;
      if (test::run_blocking(world.area(rank), call) != collective::direct::Outcome::kDone) std::puts("a call failed");
    }
  });
  return 0;
}
