// A world of nodes in this process, a thread for each rank.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "nexar/node.h"

namespace nexar::test {

class Ranks {
 public:
  // Over shared memory, or over what NEXAR_TRANSPORT names.
  explicit Ranks(int size, const Config& config = Config::from_env().value()) {
    LocalOptions options;
    options.config = config;
    options.log = [](const LogRecord&) {};
    nodes_ = Node::local(size, options).value();
  }

  int size() const { return static_cast<int>(nodes_.size()); }
  Node& node(Rank rank) { return nodes_[static_cast<std::size_t>(rank)]; }

  // Runs `program` on every rank at once; what it throws fails the test.
  void run(const std::function<void(Group world)>& program) {
    std::vector<std::thread> threads;
    for (Node& node : nodes_)
      threads.emplace_back([&program, world = node.world()] {
        try {
          program(world);
        } catch (const std::exception& thrown) {
          ADD_FAILURE() << "rank " << world.rank() << " threw: " << thrown.what();
        }
      });
    for (std::thread& thread : threads) thread.join();
  }

 private:
  std::vector<Node> nodes_;
};

}  // namespace nexar::test
