// What a training step asks of the network: many small tensors beside one large, compressed beside dense, several operations in flight
// beside one after the other, and how much of an all_reduce the user's own work hides. A program of ranks:
//
//   nexar run -n 2 build/release/bin/bench_tensor [rounds]      NEXAR_TRANSPORT=net for what two hosts would use
//
// Cases run in turn, round after round; rank 0 prints medians with their range, and what each is beside.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nexar/compressor.h"
#include "nexar/gradient_bucketer.h"
#include "nexar/node.h"
#include "nexar/operation.h"

namespace {

using nexar::DataType;
using nexar::ReduceOp;
using Clock = std::chrono::steady_clock;
using Floats = std::vector<float>;

constexpr std::size_t kTensors = 1000;
constexpr std::size_t kTensorElements = 1024;     // 4 KiB
constexpr std::size_t kDenseElements = 4u << 20;  // 16 MiB
constexpr std::size_t kInFlight = 8;              // of 4 MiB each
constexpr std::size_t kInFlightElements = 1u << 20;
constexpr double kKept = 0.01;

struct Case {
  std::string name;
  std::string beside;  // the name of the case that its ratio is to
  std::function<void()> run;
  std::vector<double> times_us = {};

  double median() const {
    std::vector<double> sorted = times_us;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

// Work of one core that takes about `us`, here: the sum is there so that it is not left out.
double compute_for(double us) {
  static double per_us = 0;
  volatile double sum = 0;
  const auto spin = [&](std::size_t steps) {
    for (std::size_t i = 0; i < steps; ++i) sum = sum + static_cast<double>(i);
  };
  if (per_us == 0) {
    constexpr std::size_t kSteps = 20'000'000;
    const Clock::time_point start = Clock::now();
    spin(kSteps);
    per_us = kSteps / std::chrono::duration<double, std::micro>(Clock::now() - start).count();
  }
  spin(static_cast<std::size_t>(us * per_us));
  return sum;
}

void print(const std::vector<Case>& cases) {
  std::printf("%-32s%12s%26s%10s  beside\n", "case", "us", "[range]", "times");
  for (const Case& row : cases) {
    const auto [least, most] = std::minmax_element(row.times_us.begin(), row.times_us.end());
    const std::string range = "[" + std::to_string(static_cast<long>(*least)) + "-" + std::to_string(static_cast<long>(*most)) + "]";
    std::printf("%-32s%12.1f%26s", row.name.c_str(), row.median(), range.c_str());
    for (const Case& other : cases)
      if (other.name == row.beside) std::printf("%10.2f  %s", row.median() / other.median(), other.name.c_str());
    std::printf("\n");
  }
}

}  // namespace

int main(int count, char** words) {
  const int rounds = count > 1 ? std::max(1, std::atoi(words[1])) : 11;
  nexar::Result<nexar::Node> joined = nexar::Node::from_env();
  if (!joined) {
    std::fprintf(stderr, "bench_tensor: %s\n", joined.error().to_string().c_str());
    return 1;
  }
  nexar::Node node = *std::move(joined);
  const nexar::Group world = node.world();

  std::vector<Floats> tensors(kTensors, Floats(kTensorElements, 1));  // each in memory of its own
  std::vector<nexar::TensorView> views;
  for (Floats& tensor : tensors) views.push_back({tensor.data(), tensor.size()});
  Floats one(kTensors * kTensorElements, 1);
  Floats dense(kDenseElements, 1), sparse(kDenseElements, 1), residual(kDenseElements, 0);
  for (std::size_t i = 0; i < kDenseElements; ++i) sparse[i] = static_cast<float>((i * 2654435761u) % 1000003u);
  std::vector<Floats> flights(kInFlight, Floats(kInFlightElements, 1));
  const std::shared_ptr<const nexar::Compressor> top_k = nexar::Compressor::top_k(kKept).value();

  const auto reduce = [&](Floats& data) {
    world.all_reduce(data.data(), data.data(), data.size(), DataType::kF32, ReduceOp::kAvg).value();
  };
  const auto start = [&](Floats& data) {
    return world.start_all_reduce(data.data(), data.data(), data.size(), DataType::kF32, ReduceOp::kAvg);
  };
  double dense_us = 0;  // how long the work is that is to hide behind it
  std::vector<Case> cases = {
      {"one of 4 MB", "", [&] { reduce(one); }},
      {"bucketed, 1000 of 4 KiB", "one of 4 MB", [&] { world.all_reduce_bucketed(views, DataType::kF32, ReduceOp::kAvg).value(); }},
      {"bucketer, 1000 of 4 KiB", "one of 4 MB",
       [&] {
         nexar::GradientBucketer bucketer(world, DataType::kF32, ReduceOp::kAvg);
         for (Floats& tensor : tensors) bucketer.add(tensor.data(), tensor.size()).value();
         bucketer.finish().value();
       }},
      {"separate, 1000 of 4 KiB", "bucketed, 1000 of 4 KiB",
       [&] {
         for (Floats& tensor : tensors) reduce(tensor);
       }},
      {"dense, 16 MiB", "", [&] { reduce(dense); }},
      {"top-k of 1 %, 16 MiB", "dense, 16 MiB",
       [&] { world.all_reduce_compressed(sparse.data(), sparse.size(), DataType::kF32, ReduceOp::kAvg, top_k, residual.data()).value(); }},
      {"8 of 4 MiB, in sequence", "",
       [&] {
         for (Floats& flight : flights) reduce(flight);
       }},
      {"8 of 4 MiB, in flight", "8 of 4 MiB, in sequence",
       [&] {
         std::vector<nexar::Operation> operations;
         for (Floats& flight : flights) operations.push_back(start(flight));
         for (nexar::Operation& operation : operations) operation.wait().value();
       }},
      {"work as long as dense", "dense, 16 MiB", [&] { compute_for(dense_us); }},
      {"work beside dense, 16 MiB", "dense, 16 MiB",
       [&] {
         nexar::Operation operation = start(dense);
         compute_for(dense_us);
         operation.wait().value();
       }},
  };

  compute_for(1);
  for (int round = -1; round < rounds; ++round) {  // the first is not counted
    for (Case& one_case : cases) {
      world.barrier().value();
      const Clock::time_point begin = Clock::now();
      one_case.run();
      const double us = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
      if (round >= 0) one_case.times_us.push_back(us);
      if (one_case.name == "dense, 16 MiB") dense_us = round < 0 ? us : one_case.median();
    }
  }
  if (node.rank() == 0) print(cases);
  node.close().value();
  return 0;
}
