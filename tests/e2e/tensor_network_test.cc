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

  // How long rank 0 takes, the ranks beginning together; the best of `times`.
  Seconds best(int times, const std::function<void(const Group&)>& work) {
    Seconds least = 1h;
    const auto rank = [&](const Node& node) {
      for (int i = 0; i <= times; ++i) {
        node.world().barrier().value();
        const auto began = std::chrono::steady_clock::now();
        work(node.world());
        if (node.rank() == 0 && i > 0) least = std::min(least, Seconds(std::chrono::steady_clock::now() - began));
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
  const Seconds one = best(10, [&](const Group& world) {
    world.all_reduce(of(whole, world).data(), of(whole, world).data(), kTensors * kSmall, DataType::kF32, ReduceOp::kAvg).value();
  });
  const Seconds bucketed = best(10, [&](const Group& world) {
    std::vector<TensorView> views;
    for (std::vector<float>& tensor : of(tensors, world)) views.push_back({tensor.data(), kSmall});
    world.all_reduce_bucketed(views, DataType::kF32, ReduceOp::kAvg).value();
  });
  const Seconds separate = best(3, [&](const Group& world) {
    for (std::vector<float>& tensor : of(tensors, world))
      world.all_reduce(tensor.data(), tensor.data(), kSmall, DataType::kF32, ReduceOp::kAvg).value();
  });
  RecordProperty("bucketed_over_one", std::to_string(bucketed / one));
  RecordProperty("separate_over_bucketed", std::to_string(separate / bucketed));
  EXPECT_LE(bucketed / one, 1.3);
  EXPECT_GE(separate / bucketed, 10);
}

TEST_F(TensorNetworkLong, OnAGigabitLineAHundredthOfTheGradientIsManyTimesFaster) {
  network->set_rate(1'000'000'000, 1 << 20, 50ms).value();
  std::vector<std::vector<float>> gradients(2, std::vector<float>(kLarge));
  std::vector<std::vector<float>> residuals(2, std::vector<float>(kLarge));
  for (std::size_t i = 0; i < kLarge; ++i) gradients[0][i] = gradients[1][i] = static_cast<float>((i * 2654435761u) % 1000003);
  const auto of = [](auto& all, const Group& world) { return all[static_cast<std::size_t>(world.rank())].data(); };
  const auto top_k = Compressor::top_k(0.01).value();
  const Seconds dense = best(3, [&](const Group& world) {
    world.all_reduce(of(gradients, world), of(gradients, world), kLarge, DataType::kF32, ReduceOp::kAvg).value();
  });
  const Seconds compressed = best(3, [&](const Group& world) {
    world.all_reduce_compressed(of(gradients, world), kLarge, DataType::kF32, ReduceOp::kAvg, top_k, of(residuals, world)).value();
  });
  RecordProperty("dense_over_compressed", std::to_string(dense / compressed));
  EXPECT_GE(dense / compressed, 8) << "dense " << dense.count() << " s, compressed " << compressed.count() << " s";
}

}  // namespace
}  // namespace nexar::test
