#include "rpc/registry.h"

#include <fmt/format.h>

namespace nexar::rpc {

Result<void> Registry::add(std::uint64_t scope, const Function& function, Registered registered) {
  const auto [at, added] = functions_.try_emplace({scope, function.key()});
  if (!added)
    return Error(ErrorCode::kInvalidArgument, at->second->name == registered.name
                                                  ? fmt::format("function {} is registered already", registered.name)
                                                  : fmt::format("function {} has the same digest as {}, which is registered: rename one",
                                                                registered.name, at->second->name));
  at->second = std::make_shared<const Registered>(std::move(registered));
  return {};
}

const std::shared_ptr<const Registered>* Registry::find(std::uint64_t scope, std::uint64_t function) const {
  const auto found = functions_.find({scope, function});
  return found == functions_.end() ? nullptr : &found->second;
}

}  // namespace nexar::rpc
