// Training when the network is the limit: each rank sends a hundredth of its gradient, and keeps the rest for later.
//
//   nexar run -n 4 ./compressed
//
// A top-k compressor sends the elements of largest magnitude. What it leaves out is not lost: it stays in a residual, is added to the next
// gradient, and travels when it has grown (error feedback). So the model gets as good as with whole gradients, with some more steps.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "nexar/compressor.h"
#include "nexar/node.h"

namespace {

using Floats = std::vector<float>;

constexpr std::size_t kWeights = 500;
constexpr std::size_t kSamples = 500;  // of each rank
constexpr int kSteps = 500;
constexpr float kRate = 0.05f;  // smaller than with whole gradients, because what is sent is older
constexpr double kKept = 0.01;  // of a gradient's elements

// y = w · x, with weights w that we hope to find; the same for all ranks, of which each has samples of its own.
struct Data {
  explicit Data(std::uint32_t rank) : inputs(kSamples * kWeights), outputs(kSamples), wanted(kWeights) {
    std::normal_distribution<float> normal;
    std::mt19937 shared(7), own(100 + rank);
    for (float& weight : wanted) weight = normal(shared);
    for (std::size_t s = 0; s < kSamples; ++s)
      for (std::size_t i = 0; i < kWeights; ++i) {
        inputs[s * kWeights + i] = normal(own);
        outputs[s] += wanted[i] * inputs[s * kWeights + i];
      }
  }

  // Of the mean of (w · x - y)^2 / 2 over this rank's samples.
  Floats gradient(const Floats& weights) const {
    Floats gradient(kWeights);
    for (std::size_t s = 0; s < kSamples; ++s) {
      const float* x = inputs.data() + s * kWeights;
      float error = -outputs[s];
      for (std::size_t i = 0; i < kWeights; ++i) error += weights[i] * x[i];
      for (std::size_t i = 0; i < kWeights; ++i) gradient[i] += error * x[i] / kSamples;
    }
    return gradient;
  }

  Floats inputs, outputs, wanted;
};

}  // namespace

int main() {
  nexar::Node node = nexar::Node::from_env().value();
  const nexar::Group world = node.world();
  const Data data(static_cast<std::uint32_t>(node.rank()));

  const std::shared_ptr<const nexar::Compressor> compressor = nexar::Compressor::top_k(kKept).value();
  if (node.rank() == 0)
    std::printf("%s: each step sends %llu bytes instead of %zu\n", std::string(compressor->name()).c_str(),
                static_cast<unsigned long long>(compressor->bytes_max(kWeights, nexar::DataType::kF32)), kWeights * sizeof(float));

  Floats weights(kWeights, 0);
  Floats residual(kWeights, 0);  // what this rank has not sent yet; yours, of the gradient's shape, and zero at first
  for (int step = 0; step < kSteps; ++step) {
    Floats gradient = data.gradient(weights);
    // In: this rank's gradient. Out: the mean of what all ranks sent, the same bits everywhere, so the models stay equal.
    world.all_reduce_compressed(gradient.data(), kWeights, nexar::DataType::kF32, nexar::ReduceOp::kAvg, compressor, residual.data())
        .value();
    for (std::size_t i = 0; i < kWeights; ++i) weights[i] -= kRate * gradient[i];
  }

  double distance = 0;
  for (std::size_t i = 0; i < kWeights; ++i) distance += std::pow(static_cast<double>(weights[i] - data.wanted[i]), 2);
  distance = std::sqrt(distance / kWeights);
  std::printf("rank %d: a weight is off by %.3f on average\n", node.rank(), distance);
  node.close().value();
  return distance < 0.05 ? 0 : 1;
}
