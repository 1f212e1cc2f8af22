// Worlds of nodes in this process, a thread for each rank.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "nexar/node.h"

namespace nexar::test {

// Runs `work` on every rank at once and returns when all have.
inline void on_all_ranks(const std::vector<Node>& nodes, const std::function<void(const Group& world)>& work) {
  std::vector<std::thread> threads;
  for (const Node& node : nodes) threads.emplace_back([&work, &node] { work(node.world()); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace nexar::test
