// What buckets and compression are worth on a network: ratios of times taken side by side, the best of several.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "namespaces.h"
#include "nexar/compressor.h"
#include "nexar/node.h"

namespace nexar::test {
namespace {

using namespace std::chrono_literals;
using Seconds = std::chrono::duration<double>;

constexpr std::size_t kSmall = 1024;     // floats: 4 KiB
constexpr std::size_t kTensors = 1000;   // together 4 MiB
constexpr std::size_t kLarge = 4 << 20;  // floats: 16 MiB

class TensorNetworkLong : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "times mean nothing under a sanitizer";
#endif
    if (const auto why = Namespaces::missing()) GTEST_SKIP() << *why;
    network.emplace(Namespaces::create({}).value());
    LocalOptions options;
    for (int i = 0; i < 2; ++i) options.places.push_back({network->path(i), network->v4(i).host()});
    nodes = Node::local(2, options).value();
  }

  using Work = std::function<void(const Group&)>;

  // How long rank 0 takes for each, the ranks beginning together and the works taking turns, so that what else the machine does falls on
  // all alike; the best of `times`, after one that does not count.
  std::vector<Seconds> best(int times, const std::vector<Work>& works) {
    std::vector<Seconds> least(works.size(), Seconds(1h));
    const auto rank = [&](const Node& node) {
      for (int i = 0; i <= times; ++i) {
        for (std::size_t w = 0; w < works.size(); ++w) {
          node.world().barrier().value();
          const auto began = std::chrono::steady_clock::now();
          works[w](node.world());
          if (node.rank() == 0 && i > 0) least[w] = std::min(least[w], Seconds(std::chrono::steady_clock::now() - began));
        }
      }
    };
    std::thread other([&] { rank(nodes[1]); });
    rank(nodes[0]);
    other.join();
    return least;
  }

  std::optional<Namespaces> network;
  std::vector<Node> nodes;
};

TEST_F(TensorNetworkLong, AThousandSmallTensorsCostLittleMoreThanOneLarge) {
  std::vector<std::vector<std::vector<float>>> tensors(2, std::vector<std::vector<float>>(kTensors, std::vector<float>(kSmall, 1)));
  std::vector<std::vector<float>> whole(2, std::vector<float>(kTensors * kSmall, 1));
  const auto of = [](auto& all, const Group& world) -> auto& { return all[static_cast<std::size_t>(world.rank())]; };
  const Work one = [&](const Group& world) {
    world.all_reduce(of(whole, world).data(), of(whole, world).data(), kTensors * kSmall, DataType::kF32, ReduceOp::kAvg).value();
  };
  const Work bucketed = [&](const Group& world) {
    std::vector<TensorView> views;
    for (std::vector<float>& tensor : of(tensors, world)) views.push_back({tensor.data(), kSmall});
    world.all_reduce_bucketed(views, DataType::kF32, ReduceOp::kAvg).value();
  };
  const Work separate = [&](const Group& world) {
    for (std::vector<float>& tensor : of(tensors, world))
      world.all_reduce(tensor.data(), tensor.data(), kSmall, DataType::kF32, ReduceOp::kAvg).value();
  };
  const std::vector<Seconds> took = best(20, {one, bucketed});
  const std::vector<Seconds> apart = best(5, {bucketed, separate});
  const Seconds quickest = std::min(took[1], apart[0]);
  RecordProperty("bucketed_over_one", std::to_string(took[1] / took[0]));
  RecordProperty("separate_over_bucketed", std::to_string(apart[1] / quickest));
  EXPECT_LE(took[1] / took[0], 1.3);
  EXPECT_GE(apart[1] / quickest, 3);  // how many it is, the property says: judged on a quiet machine only
}

TEST_F(TensorNetworkLong, OnAGigabitLineAHundredthOfTheGradientIsManyTimesFaster) {
  network->set_rate(1'000'000'000, 1 << 20, 50ms).value();
  std::vector<std::vector<float>> gradients(2, std::vector<float>(kLarge));
  std::vector<std::vector<float>> residuals(2, std::vector<float>(kLarge));
  for (std::size_t i = 0; i < kLarge; ++i) gradients[0][i] = gradients[1][i] = static_cast<float>((i * 2654435761u) % 1000003);
  const auto of = [](auto& all, const Group& world) { return all[static_cast<std::size_t>(world.rank())].data(); };
  const auto top_k = Compressor::top_k(0.01).value();
  const Work dense = [&](const Group& world) {
    world.all_reduce(of(gradients, world), of(gradients, world), kLarge, DataType::kF32, ReduceOp::kAvg).value();
  };
  const Work compressed = [&](const Group& world) {
    world.all_reduce_compressed(of(gradients, world), kLarge, DataType::kF32, ReduceOp::kAvg, top_k, of(residuals, world)).value();
  };
  const std::vector<Seconds> took = best(3, {dense, compressed});
  RecordProperty("dense_over_compressed", std::to_string(took[0] / took[1]));
  EXPECT_GE(took[0] / took[1], 8) << "dense " << took[0].count() << " s, compressed " << took[1].count() << " s";
}

}  // namespace
}  // namespace nexar::test
