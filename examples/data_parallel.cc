// Training with several ranks: each has a part of the data, all have the same model.
//
//   nexar run -n 4 ./data_parallel
//
// The model is a line, y = a x + b, fitted by gradient descent. In each step every rank computes the gradient of its own samples; the mean
// of all gradients is the gradient of all samples. Because an all_reduce gives the same bits to every rank, the models stay equal.
#include <cmath>
#include <cstdio>
#include <vector>

#include "nexar/node.h"

namespace {

constexpr double kSlope = 2.5;
constexpr double kOffset = -1;
constexpr int kSamples = 256;  // of each rank
constexpr int kSteps = 400;
constexpr double kRate = 0.5;

struct Sample {
  double x, y;
};

// The part of the data that a rank has: points on the line that we hope to find.
std::vector<Sample> samples_of(int rank, int ranks) {
  std::vector<Sample> samples;
  for (int i = 0; i < kSamples; ++i) {
    const double x = static_cast<double>(i * ranks + rank) / (kSamples * ranks);
    samples.push_back({x, kSlope * x + kOffset});
  }
  return samples;
}

}  // namespace

int main() {
  nexar::Node node = nexar::Node::from_env().value();
  const nexar::Group world = node.world();
  const std::vector<Sample> samples = samples_of(node.rank(), node.size());

  double model[2] = {0, 0};  // slope, offset
  for (int step = 0; step < kSteps; ++step) {
    // The loss is the mean of (a x + b - y)^2.
    double gradient[2] = {0, 0};
    for (const Sample& sample : samples) {
      const double error = model[0] * sample.x + model[1] - sample.y;
      gradient[0] += 2 * error * sample.x / kSamples;
      gradient[1] += 2 * error / kSamples;
    }
    world.all_reduce(gradient, gradient, 2, nexar::DataType::kF64, nexar::ReduceOp::kAvg).value();
    for (int i = 0; i < 2; ++i) model[i] -= kRate * gradient[i];
  }

  std::printf("rank %d found y = %.3f x %+.3f\n", node.rank(), model[0], model[1]);
  node.close().value();
  return std::abs(model[0] - kSlope) < 0.01 && std::abs(model[1] - kOffset) < 0.01 ? 0 : 1;
}
