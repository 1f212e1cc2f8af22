// Training with several ranks: each has a part of the data, all have the same model.
//
//   nexar run -n 4 ./data_parallel
//
// The model is a small neural network that learns y = sin(3x). In each step every rank computes gradients from its own samples; the mean of
// all ranks' gradients is the gradient of all samples. Gradients are known layer by layer, from the last layer to the first, so a
// GradientBucketer sends those that are ready while the rest is still being computed:
//
//   compute    layer 3 | layer 2 | layer 1 |
//   travel             | layer 3 | layer 2 | layer 1 | and all of them are there
//
// All ranks get the same bits, so their models stay equal without being compared.
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <random>
#include <vector>

#include "nexar/gradient_bucketer.h"
#include "nexar/node.h"

namespace {

using Floats = std::vector<float>;

constexpr std::size_t kUnits = 16;    // of a hidden layer
constexpr std::size_t kSamples = 64;  // of each rank
constexpr int kSteps = 1000;
constexpr float kRate = 0.1f;

// One layer: out = weights · in + bias, for all samples at once; hidden layers then take the tanh of it.
struct Layer {
  Layer(std::size_t inputs, std::size_t outputs, bool is_hidden)
      : ins(inputs), outs(outputs), hidden(is_hidden), weights(ins * outs), bias(outs), weight_gradient(ins * outs), bias_gradient(outs) {}

  const Floats& forward(const Floats& in) {
    out.assign(kSamples * outs, 0);
    for (std::size_t s = 0; s < kSamples; ++s)
      for (std::size_t o = 0; o < outs; ++o) {
        float sum = bias[o];
        for (std::size_t i = 0; i < ins; ++i) sum += weights[o * ins + i] * in[s * ins + i];
        out[s * outs + o] = hidden ? std::tanh(sum) : sum;
      }
    return out;
  }

  // `slope` is how the loss changes with this layer's output; returns how it changes with its input, and fills the gradients.
  Floats backward(const Floats& in, Floats slope) {
    weight_gradient.assign(weights.size(), 0);
    bias_gradient.assign(bias.size(), 0);
    Floats slope_in(kSamples * ins, 0);
    for (std::size_t s = 0; s < kSamples; ++s)
      for (std::size_t o = 0; o < outs; ++o) {
        const float y = out[s * outs + o];
        const float d = slope[s * outs + o] * (hidden ? 1 - y * y : 1);
        bias_gradient[o] += d;
        for (std::size_t i = 0; i < ins; ++i) {
          weight_gradient[o * ins + i] += d * in[s * ins + i];
          slope_in[s * ins + i] += d * weights[o * ins + i];
        }
      }
    return slope_in;
  }

  void step() {
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= kRate * weight_gradient[i];
    for (std::size_t i = 0; i < bias.size(); ++i) bias[i] -= kRate * bias_gradient[i];
  }

  std::size_t ins, outs;
  bool hidden;
  Floats weights, bias, weight_gradient, bias_gradient, out;
};

// The mean of (y - wanted)^2 over this rank's samples, and how it changes with each y.
float loss_of(const Floats& y, const Floats& wanted, Floats& slope) {
  float loss = 0;
  slope.resize(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const float error = y[i] - wanted[i];
    loss += error * error / kSamples;
    slope[i] = 2 * error / kSamples;
  }
  return loss;
}

}  // namespace

int main() {
  nexar::Node node = nexar::Node::from_env().value();
  const nexar::Group world = node.world();

  // The part of the data that this rank has: every n-th sample, of x from -1 to 1.
  Floats x, wanted;
  for (std::size_t s = 0; s < kSamples; ++s) {
    const auto n = static_cast<float>(s * static_cast<std::size_t>(node.size()) + static_cast<std::size_t>(node.rank()));
    x.push_back(2 * n / static_cast<float>(kSamples * static_cast<std::size_t>(node.size())) - 1);
    wanted.push_back(std::sin(3 * x.back()));
  }

  // Rank 0 makes the model that all begin with.
  std::vector<Layer> layers = {{1, kUnits, true}, {kUnits, kUnits, true}, {kUnits, 1, false}};
  std::mt19937 random(1);
  for (Layer& layer : layers) {
    std::normal_distribution<float> normal(0, 1 / std::sqrt(static_cast<float>(layer.ins)));
    if (node.rank() == 0)
      for (float& weight : layer.weights) weight = normal(random);
    world.broadcast(layer.weights.data(), layer.weights.size(), nexar::DataType::kF32, 0).value();
  }

  // Real models have buckets of 25 MiB, which is the default; this one has so few parameters that its buckets have 512 bytes.
  nexar::GradientBucketer bucketer(world, nexar::DataType::kF32, nexar::ReduceOp::kAvg, {.bucket_bytes = 512});
  float first_loss = 0, loss = 0;
  for (int step = 0; step < kSteps; ++step) {
    const Floats* y = &x;
    for (Layer& layer : layers) y = &layer.forward(*y);
    Floats slope;
    loss = loss_of(*y, wanted, slope);
    if (step == 0) first_loss = loss;

    for (std::size_t i = layers.size(); i-- > 0;) {
      Layer& layer = layers[i];
      slope = layer.backward(i == 0 ? x : layers[i - 1].out, slope);
      // From here until finish() this memory belongs to the bucketer: it is being reduced in place.
      bucketer.add(layer.weight_gradient.data(), layer.weight_gradient.size()).value();
      bucketer.add(layer.bias_gradient.data(), layer.bias_gradient.size()).value();
    }
    bucketer.finish().value();
    for (Layer& layer : layers) layer.step();
  }

  // The loss of all samples is the mean of the ranks' losses.
  float losses[2] = {first_loss, loss};
  world.all_reduce(losses, losses, 2, nexar::DataType::kF32, nexar::ReduceOp::kAvg).value();
  std::printf("rank %d: the loss went from %.3f to %.4f\n", node.rank(), static_cast<double>(losses[0]), static_cast<double>(losses[1]));
  node.close().value();
  return losses[1] < 0.01f ? 0 : 1;
}
