// Logistic regression on data that every rank makes for itself, with gradients reduced as the first argument says. Prints the loss.
//
//   logistic dense | feedback | forgetful
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "nexar/compressor.h"
#include "nexar/node.h"

namespace {

constexpr int kFeatures = 200;
constexpr int kSamples = 200;  // of each rank
constexpr int kSteps = 1000;
constexpr float kRate = 0.3f;
constexpr float kNoise = 2.0f;  // so that no weights explain every label, and the loss has a minimum
constexpr double kKept = 0.01;

using Vector = std::vector<float>;

// Labels follow from weights that all ranks share. Features have scales of their own, so that some matter rarely.
struct Data {
  explicit Data(std::uint32_t rank) : features(kSamples * kFeatures), labels(kSamples) {
    std::mt19937 shared(7);
    std::normal_distribution<float> normal;
    Vector weights(kFeatures);
    for (float& weight : weights) weight = normal(shared);
    std::mt19937 own(100 + rank);
    for (int s = 0; s < kSamples; ++s) {
      float score = 0;
      for (int f = 0; f < kFeatures; ++f) {
        float& value = features[static_cast<std::size_t>(s * kFeatures + f)];
        value = normal(own) / std::sqrt(static_cast<float>(1 + f % 50));
        score += value * weights[static_cast<std::size_t>(f)];
      }
      labels[static_cast<std::size_t>(s)] = score + kNoise * normal(own) > 0 ? 1.0f : 0.0f;
    }
  }

  const float* sample(int s) const { return features.data() + static_cast<std::size_t>(s) * kFeatures; }

  Vector features;
  Vector labels;
};

// The mean loss of this rank's samples, and its gradient.
double loss(const Data& data, const Vector& weights, Vector& gradient) {
  gradient.assign(kFeatures, 0);
  double total = 0;
  for (int s = 0; s < kSamples; ++s) {
    const float* x = data.sample(s);
    float score = 0;
    for (int f = 0; f < kFeatures; ++f) score += x[f] * weights[static_cast<std::size_t>(f)];
    const float label = data.labels[static_cast<std::size_t>(s)];
    const float margin = label > 0.5f ? score : -score;
    total += std::log1p(std::exp(-static_cast<double>(margin)));
    const float error = 1.0f / (1.0f + std::exp(-score)) - label;
    for (int f = 0; f < kFeatures; ++f) gradient[static_cast<std::size_t>(f)] += error * x[f] / kSamples;
  }
  return total / kSamples;
}

int run(const std::string& how) {
  nexar::Node node = nexar::Node::from_env().value();
  const nexar::Group world = node.world();
  const auto top_k = nexar::Compressor::top_k(kKept).value();
  const Data data(static_cast<std::uint32_t>(world.rank()));
  Vector weights(kFeatures);
  Vector gradient;
  Vector residual(kFeatures);
  for (int step = 0; step < kSteps; ++step) {
    loss(data, weights, gradient);
    if (how == "dense")
      world.all_reduce(gradient.data(), gradient.data(), kFeatures, nexar::DataType::kF32, nexar::ReduceOp::kAvg).value();
    else
      world
          .all_reduce_compressed(gradient.data(), kFeatures, nexar::DataType::kF32, nexar::ReduceOp::kAvg, top_k,
                                 how == "feedback" ? residual.data() : nullptr)
          .value();
    for (int f = 0; f < kFeatures; ++f) weights[static_cast<std::size_t>(f)] -= kRate * gradient[static_cast<std::size_t>(f)];
  }
  double mean = loss(data, weights, gradient);
  world.all_reduce(&mean, &mean, 1, nexar::DataType::kF64, nexar::ReduceOp::kAvg).value();
  if (world.rank() == 0) std::printf("loss %.9f\n", mean);
  node.close().value();
  return 0;
}

}  // namespace

int main(int argc, char** argv) try { return run(argc > 1 ? argv[1] : "dense"); } catch (const nexar::Exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
