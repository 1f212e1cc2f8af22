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
  if (2 * size_ >= places_.size()) make_places();
  while (place(next_id_).call != nullptr) ++next_id_;
  call.id = next_id_++;
  call.deadline = call.limit && *call.limit < base::Time::max() - now ? now + *call.limit : base::Time::max();
  place(call.id) = {.call = &call, .bytes = bytes};
  ++size_;
  if (call.deadline != base::Time::max()) line_up(call);
  return {};
}

// Twice as many. Two calls that had places of their own still do.
void CallTable::make_places() {
  std::vector<Place> old(2 * places_.size());
  old.swap(places_);
  for (const Place& one : old)
    if (one.call != nullptr) place(one.call->id) = one;
}

void CallTable::line_up(const Call& call) {
  if (last_ != 0 && call.deadline < place(last_).call->deadline) {
    out_of_line_.emplace(call.deadline, call.id);
    return;
  }
  place(call.id).in_line = true;
  place(call.id).earlier = last_;
  (last_ != 0 ? place(last_).later : first_) = call.id;
  last_ = call.id;
}

void CallTable::leave_line(const Call& call) {
  const Place& left = place(call.id);
  if (!left.in_line) {
    out_of_line_.erase({call.deadline, call.id});
    return;
  }
  (left.earlier != 0 ? place(left.earlier).later : first_) = left.later;
  (left.later != 0 ? place(left.later).earlier : last_) = left.earlier;
}

Result<void> CallTable::admit_result(Call& call, std::uint64_t bytes) {
  Load& peer = load(call.peer);
  if (bytes > limits_.bytes - peer.bytes) return too_much(call, bytes, peer.bytes, limits_.bytes);
  peer.bytes += bytes;
  place(call.id).bytes += bytes;
  return {};
}

Call* CallTable::find(Rank peer, std::uint64_t id) const {
  Call* call = place(id).call;
  return call == nullptr || call->id != id || call->peer != peer ? nullptr : call;
}

void CallTable::remove(Call& call) {
  NEXAR_ASSERT(call.id != 0 && place(call.id).call == &call, "a call ends once");
  Load& peer = load(call.peer);
  --peer.calls;
  peer.bytes -= place(call.id).bytes;
  if (call.deadline != base::Time::max()) leave_line(call);
  place(call.id) = {};
  --size_;
  call.id = 0;
}

// Of those in line the first, unless one that is not is earlier.
Call* CallTable::next_due() const {
  Call* first = first_ != 0 ? place(first_).call : nullptr;
  if (out_of_line_.empty()) return first;
  const auto& [time, id] = *out_of_line_.begin();
  return first != nullptr && first->deadline <= time ? first : place(id).call;
}

Call* CallTable::due(base::Time now) const {
  Call* next = next_due();
  return next == nullptr || next->deadline > now ? nullptr : next;
}

std::vector<Call*> CallTable::to(Rank peer) const {
  std::vector<Call*> calls;
  for (const Place& one : places_)
    if (one.call != nullptr && one.call->peer == peer) calls.push_back(one.call);
  return calls;
}

std::vector<Call*> CallTable::all() const {
  std::vector<Call*> calls;
  for (const Place& one : places_)
    if (one.call != nullptr) calls.push_back(one.call);
  return calls;
}

}  // namespace nexar::rpc
