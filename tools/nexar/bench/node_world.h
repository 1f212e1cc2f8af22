// nexar's own ranks, as a measurement sees them.
#pragma once

#include <cstdint>
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

// What carries a node's messages, from when it is made.
class Carrier {
 public:
  explicit Carrier(const Node& node);

  // The way that most bytes have taken since; "none" when there were none, as in a world of one.
  std::string name() const;

 private:
  struct Way {
    const char* name;
    std::uint64_t bytes;  // to and from all peers
  };
  std::vector<Way> ways() const;

  const Node& node_;
  std::vector<Way> before_;
};

// Throws when the configuration asks for a way and messages of `bytes` took another. Small ones never take the way of bulk.
void require_carrier(Transport asked, const std::string& carrier, std::uint64_t bytes);

}  // namespace nexar::bench
