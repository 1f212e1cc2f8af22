// nexar's own ranks, as a measurement sees them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/timing.h"
#include "nexar/node.h"

namespace nexar::bench {

class NodeWorld : public World {
 public:
  explicit NodeWorld(const Node& node) : group_(node.world()) {}

  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  void barrier() override { group_.barrier().value(); }
  std::vector<double> gather(std::span<const double> own) override;
  double from_first(double value) override;

 private:
  Group group_;
};

// What carries the messages of this node, as rows say it.
std::string transport_used(const Node& node);

// Throws, naming both, when that is not what the configuration asks for.
void require_transport(const Node& node);

}  // namespace nexar::bench
