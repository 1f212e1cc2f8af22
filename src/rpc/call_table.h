// The calls that this node has made and that have not ended.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "nexar/ids.h"
#include "nexar/result.h"
#include "rpc/body.h"
#include "rpc/limits.h"

namespace nexar::rpc {

// A call, from when it is started until it is done. Whoever starts it owns it and keeps it until `done` has been called. The arguments are
// read only between the two, and not after cancel() has returned.
struct Call {
  std::uint64_t scope = 0;  // the group that the function is registered with; 0 for the node
  Rank peer = 0;            // in the world
  std::uint64_t function = 0;
  std::string name;  // of the function, for people
  base::ByteView arguments;
  std::optional<base::Duration> limit;  // none: it may wait for ever
  std::function<void(Result<std::vector<std::byte>>)> done;

  // Kept by the table.
  std::uint64_t id = 0;  // 0 when it is not under way
  base::Time deadline = base::Time::max();
  // Kept by the service.
  Body sending;    // large arguments
  Body receiving;  // a large result
};

// Which calls wait for which peer until when. A machine without I/O: time is an argument, and what has ended is handed back to be told.
//
// Nothing is allocated for a call as a rule. Its number says where it lies: numbers are given in turn, but for those whose place is taken
// by a call that lasts. Deadlines mostly come in the order of the calls, and make a line then; the others are sorted.
//
// Thread: engine. Owned by the service.
class CallTable {
 public:
  CallTable(int peers, const PeerLimits& limits) : limits_(limits), peers_(static_cast<std::size_t>(peers)) {}

  // Gives the call its number and deadline. kOverloaded when the peer has as many calls or bytes in flight as it may.
  Result<void> admit(base::Time now, Call& call);

  // More bytes are held for the call: its result, which is about to arrive.
  Result<void> admit_result(Call& call, std::uint64_t bytes);

  // The call of that number to that peer; null when it has ended: its answer is late and nobody wants it.
  Call* find(Rank peer, std::uint64_t id) const;

  // It has ended, however.
  void remove(Call& call);

  // One whose deadline has come, the earliest; null when there is none.
  Call* due(base::Time now) const;
  base::Time next_deadline() const { return next_due() == nullptr ? base::Time::max() : next_due()->deadline; }

  std::vector<Call*> to(Rank peer) const;
  std::vector<Call*> all() const;
  std::size_t size() const { return size_; }

 private:
  struct Load {
    std::uint32_t calls = 0;
    std::uint64_t bytes = 0;
  };
  Load& load(Rank peer) { return peers_[static_cast<std::size_t>(peer)]; }
  struct Place {
    Call* call = nullptr;     // null when it is free
    std::uint64_t bytes = 0;  // held for it
    bool in_line = false;
    std::uint64_t earlier = 0;  // its neighbours there; 0 for none
    std::uint64_t later = 0;
  };
  Place& place(std::uint64_t id) { return places_[static_cast<std::size_t>(id) & (places_.size() - 1)]; }
  const Place& place(std::uint64_t id) const { return places_[static_cast<std::size_t>(id) & (places_.size() - 1)]; }
  Call* next_due() const;
  void make_places();
  void line_up(const Call& call);
  void leave_line(const Call& call);

  PeerLimits limits_;
  std::vector<Load> peers_;
  std::uint64_t next_id_ = 1;
  std::vector<Place> places_ = std::vector<Place>(64);  // a power of two of them, half of which are free at least
  std::size_t size_ = 0;
  std::uint64_t first_ = 0;  // of the line; 0 for none
  std::uint64_t last_ = 0;
  std::set<std::pair<base::Time, std::uint64_t>> out_of_line_;  // deadlines that are earlier than one of a call before
};

}  // namespace nexar::rpc
