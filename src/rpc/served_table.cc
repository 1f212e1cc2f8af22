#include "rpc/served_table.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"

namespace nexar::rpc {

Result<std::shared_ptr<Served>> ServedTable::admit(Rank caller, std::uint64_t id, std::uint64_t bytes, base::Time deadline) {
  Peer& from = peer(caller);
  if (from.calls.contains(id))
    return Error(ErrorCode::kRefused, fmt::format("rank {} used the number of a call, {}, a second time", caller, id)).with_rank(caller);
  if (from.calls.size() >= limits_.calls)
    return Error(ErrorCode::kOverloaded, fmt::format("{} calls of rank {} are being served, as many as there may be (rpc_calls_per_peer)",
                                                     from.calls.size(), caller));
  if (from.bytes >= limits_.bytes || bytes > limits_.bytes - from.bytes)
    return Error(ErrorCode::kOverloaded,
                 fmt::format("{} bytes more than the {} that are held for calls of rank {} would be over the limit of "
                             "{} (rpc_bytes_per_peer)",
                             bytes, from.bytes, caller, limits_.bytes));
  auto served = std::make_shared<Served>();
  served->caller = caller;
  served->id = id;
  served->bytes = bytes;
  served->deadline = deadline;
  from.calls.emplace(id, served);
  from.bytes += bytes;
  ++size_;
  if (deadline != base::Time::max()) deadlines_.emplace(deadline, caller, id);
  return served;
}

void ServedTable::hold(Served& served, std::uint64_t bytes) {
  Peer& from = peer(served.caller);
  from.bytes = from.bytes - served.bytes + bytes;
  served.bytes = bytes;
}

std::shared_ptr<Served> ServedTable::find(Rank caller, std::uint64_t id) const {
  const auto found = peer(caller).calls.find(id);
  return found == peer(caller).calls.end() ? nullptr : found->second;
}

void ServedTable::remove(const Served& served) {
  Peer& from = peer(served.caller);
  const std::uint64_t id = served.id;  // the table may be all that keeps it
  deadlines_.erase({served.deadline, served.caller, id});
  from.bytes -= served.bytes;
  const std::size_t removed = from.calls.erase(id);
  NEXAR_ASSERT(removed == 1, "a call that is served ends once");
  --size_;
}

std::vector<std::shared_ptr<Served>> ServedTable::take_due(base::Time now) {
  std::vector<std::shared_ptr<Served>> due;
  while (!deadlines_.empty() && std::get<0>(*deadlines_.begin()) <= now) {
    const auto [time, caller, id] = *deadlines_.begin();
    deadlines_.erase(deadlines_.begin());
    due.push_back(find(caller, id));
  }
  return due;
}

std::vector<std::shared_ptr<Served>> ServedTable::of(Rank caller) const {
  std::vector<std::shared_ptr<Served>> calls;
  for (const auto& [id, served] : peer(caller).calls) calls.push_back(served);
  return calls;
}

std::vector<std::shared_ptr<Served>> ServedTable::all() const {
  std::vector<std::shared_ptr<Served>> calls;
  for (const Peer& from : peers_)
    for (const auto& [id, served] : from.calls) calls.push_back(served);
  return calls;
}

std::uint64_t ServedTable::bytes() const {
  std::uint64_t total = 0;
  for (const Peer& from : peers_) total += from.bytes;
  return total;
}

}  // namespace nexar::rpc
