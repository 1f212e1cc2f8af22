#include "rpc/call_table.h"

#include <fmt/format.h>

#include "base/assert.h"

namespace nexar::rpc {
namespace {

Error too_many(const Call& call, std::uint64_t calls) {
  return Error(ErrorCode::kOverloaded,
               fmt::format("{} calls to rank {} are under way, as many as there may be (rpc_calls_per_peer)", calls, call.peer));
}

Error too_much(const Call& call, std::uint64_t bytes, std::uint64_t held, std::uint64_t limit) {
  return Error(ErrorCode::kOverloaded,
               fmt::format("{} bytes more than the {} that are held for calls to rank {} would be over the limit of {} "
                           "(rpc_bytes_per_peer)",
                           bytes, held, call.peer, limit));
}

}  // namespace

Result<void> CallTable::admit(base::Time now, Call& call) {
  NEXAR_ASSERT(call.id == 0, "a call is started once");
  Load& peer = load(call.peer);
  const std::uint64_t bytes = call.arguments.size();
  if (peer.calls >= limits_.calls) return too_many(call, peer.calls);
  if (bytes > limits_.bytes - peer.bytes) return too_much(call, bytes, peer.bytes, limits_.bytes);
  ++peer.calls;
  peer.bytes += bytes;
  call.id = next_id_++;
  call.deadline = call.limit && *call.limit < base::Time::max() - now ? now + *call.limit : base::Time::max();
  calls_.emplace(call.id, Entry{&call, bytes});
  if (call.deadline != base::Time::max()) deadlines_.emplace_hint(deadlines_.end(), call.deadline, call.id);
  return {};
}

Result<void> CallTable::admit_result(Call& call, std::uint64_t bytes) {
  Load& peer = load(call.peer);
  if (bytes > limits_.bytes - peer.bytes) return too_much(call, bytes, peer.bytes, limits_.bytes);
  peer.bytes += bytes;
  calls_.at(call.id).bytes += bytes;
  return {};
}

Call* CallTable::find(Rank peer, std::uint64_t id) const {
  const auto found = calls_.find(id);
  return found == calls_.end() || found->second.call->peer != peer ? nullptr : found->second.call;
}

void CallTable::remove(Call& call) {
  const auto found = calls_.find(call.id);
  NEXAR_ASSERT(found != calls_.end(), "a call ends once");
  Load& peer = load(call.peer);
  --peer.calls;
  peer.bytes -= found->second.bytes;
  deadlines_.erase({call.deadline, call.id});
  calls_.erase(found);
  call.id = 0;
}

Call* CallTable::due(base::Time now) const {
  return deadlines_.empty() || deadlines_.begin()->first > now ? nullptr : calls_.at(deadlines_.begin()->second).call;
}

std::vector<Call*> CallTable::to(Rank peer) const {
  std::vector<Call*> calls;
  for (const auto& [id, entry] : calls_)
    if (entry.call->peer == peer) calls.push_back(entry.call);
  return calls;
}

std::vector<Call*> CallTable::all() const {
  std::vector<Call*> calls;
  for (const auto& [id, entry] : calls_) calls.push_back(entry.call);
  return calls;
}

}  // namespace nexar::rpc
