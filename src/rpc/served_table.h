// The calls of others that this node serves.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "nexar/ids.h"
#include "nexar/result.h"
#include "rpc/body.h"
#include "rpc/limits.h"
#include "rpc/registry.h"

namespace nexar::rpc {

// A call that is being served, from its request until its answer has gone. The engine and the worker that runs its handler share it.
struct Served : std::enable_shared_from_this<Served> {
  Rank caller = 0;  // in the world
  std::uint64_t id = 0;
  std::uint64_t scope = 0;
  base::Time deadline = base::Time::max();
  std::shared_ptr<const Registered> function;
  Rank caller_in_group = 0;
  std::optional<RpcContext::Clock::time_point> clock_deadline;

  std::atomic<bool> cancelled = false;  // nobody wants the result; the handler may ask

  // Written before the handler runs, and by its worker until it hands the call back.
  std::vector<std::byte> arguments;
  std::optional<Result<std::vector<std::byte>>> outcome;
  bool refused = false;  // no worker could take it

  // Engine.
  enum class State : std::uint8_t { kArriving, kWithWorkers, kAnswering };
  State state = State::kArriving;
  bool answered = false;    // its caller has an answer already, or wants none
  Body receiving;           // large arguments
  Body sending;             // a large result
  std::uint64_t bytes = 0;  // held for it
};

// Who is served what, within limits. A machine without I/O: time is an argument.
//
// Thread: engine. Owned by the service.
class ServedTable {
 public:
  ServedTable(int peers, const PeerLimits& limits) : limits_(limits), peers_(static_cast<std::size_t>(peers)) {}

  // Takes a call on; `bytes` are its arguments. kOverloaded when its caller has as many calls or bytes here as it may; kRefused for a
  // number that is in use, which nobody may send.
  Result<std::shared_ptr<Served>> admit(Rank caller, std::uint64_t id, std::uint64_t bytes, base::Time deadline);

  // Its bytes are another number now: the result has taken the place of the arguments. Never refused, because the result is there.
  void hold(Served& served, std::uint64_t bytes);

  std::shared_ptr<Served> find(Rank caller, std::uint64_t id) const;
  void remove(const Served& served);

  // Those whose deadline has come; each is named once.
  std::vector<std::shared_ptr<Served>> take_due(base::Time now);
  base::Time next_deadline() const { return deadlines_.empty() ? base::Time::max() : std::get<0>(*deadlines_.begin()); }

  std::vector<std::shared_ptr<Served>> of(Rank caller) const;
  std::vector<std::shared_ptr<Served>> all() const;
  std::size_t size() const { return size_; }
  std::uint64_t bytes() const;

 private:
  struct Peer {
    std::unordered_map<std::uint64_t, std::shared_ptr<Served>> calls;
    std::uint64_t bytes = 0;
  };
  Peer& peer(Rank rank) { return peers_[static_cast<std::size_t>(rank)]; }
  const Peer& peer(Rank rank) const { return peers_[static_cast<std::size_t>(rank)]; }

  PeerLimits limits_;
  std::vector<Peer> peers_;
  std::size_t size_ = 0;
  std::set<std::tuple<base::Time, Rank, std::uint64_t>> deadlines_;
};

}  // namespace nexar::rpc
