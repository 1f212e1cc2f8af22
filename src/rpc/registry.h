// The functions that this node serves.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "nexar/result.h"
#include "nexar/rpc_handler.h"

namespace nexar::rpc {

// A function and what runs it. Calls that run share it, so that it may be withdrawn meanwhile.
struct Registered {
  std::string name;
  RpcHandler handler;
  bool quick = false;
  std::function<std::optional<Rank>(Rank world_rank)> rank_of;  // in the function's group; nothing for others
};

// Found by the group and the function's key. Thread: engine. Owned by the service.
class Registry {
 public:
  // kInvalidArgument when that function is registered already, or another one has the same digest.
  Result<void> add(std::uint64_t scope, const Function& function, Registered registered);

  // False when it is not there.
  bool remove(std::uint64_t scope, const Function& function) { return functions_.erase({scope, function.key()}) > 0; }

  // Null when it is not there; valid until it is withdrawn.
  const std::shared_ptr<const Registered>* find(std::uint64_t scope, std::uint64_t function) const;
  bool is_empty() const { return functions_.empty(); }
  void clear() { functions_.clear(); }

 private:
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::shared_ptr<const Registered>> functions_;
};

}  // namespace nexar::rpc
