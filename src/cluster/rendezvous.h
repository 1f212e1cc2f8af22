// How nodes become a world: the seed's side, as a machine without I/O.
//
// A client is a link to the seed on which the secret was proved; a member is a key that has a place in the world. A member whose link has
// ended is *away*: it keeps its place, the world waits for it, and only a newcomer that finds no other place takes it. Ranks that were
// asked for are kept; all others are given out in the order of arrival when the world is complete, so that a rank that is asked for late is
// still there.
//
//   request ->  accept (the same for the same key, however often)   or refuse
//   ready   ->  view, to everybody, when all members are ready; at once for whoever comes again afterwards
//
// Thread: its owner's. Owned by the seed's service; what a call returns is to be done in that order.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/time.h"
#include "cluster/view.h"
#include "crypto/hash.h"
#include "nexar/error.h"
#include "nexar/ids.h"
#include "types/node_id.h"

namespace nexar::cluster {

using ClientId = std::uint64_t;  // given by the owner, never twice

// Clients that have proved the secret and not yet asked to join, beyond one for each node of the world: repeats and strays of a start-up
// storm.
inline constexpr std::size_t kSpareClients = 64;

// How long a client may take to ask, and a member to say where it listens. Each is one round trip away; the second also has sockets to
// open. Both are shorter than the silence after which a link is dead, so that the node is told and comes again.
inline constexpr base::Duration kRequestTimeout = std::chrono::seconds(5);
inline constexpr base::Duration kReadyTimeout = std::chrono::seconds(20);

class Rendezvous {
 public:
  struct Options {
    int world = 1;
    base::Duration formation = std::chrono::seconds(60);  // from the first request until all are here: programs load data before they join
  };

  struct Request {
    crypto::Sha256 key{};  // the fingerprint of the public key: what a member is known by
    std::optional<Rank> rank{};
    HostId host{};
    CoreSet cores{};
    std::uint16_t plan_version = 0;
    std::string agreed{};  // the settings that must be the same everywhere
    std::string name{};    // for people
  };

  struct Accept {
    ClientId client;
    Rank rank;                        // -1 while it is not decided
    NodeId node;                      // for which the client gets a certificate
    std::chrono::sys_seconds issued;  // as of when: the same for every repeat
  };
  struct Refuse {  // the client is told and forgotten
    ClientId client;
    Error error;
  };
  struct SendView {
    ClientId client;
    std::shared_ptr<const View> view;
  };
  struct Close {  // the client is forgotten without an answer; it may come again
    ClientId client;
    std::string reason;
  };
  using Action = std::variant<Accept, Refuse, SendView, Close>;
  using Actions = std::vector<Action>;

  // What a new member is called and since when, if this request makes one.
  struct Birth {
    NodeId node;
    std::chrono::sys_seconds now;
  };

  explicit Rendezvous(const Options& options) : options_(options) {}

  // A client has proved that it knows the secret.
  Actions proved(base::Time now, ClientId client);

  Actions requested(base::Time now, ClientId client, const Request& request, const Birth& birth);
  Actions ready(base::Time now, ClientId client, std::vector<io::Address> addresses);

  // The link is gone.
  void gone(ClientId client);

  // Time has passed; to be called at next_time(), which is Time::max() for never.
  Actions expire(base::Time now);
  base::Time next_time() const;

  // The world, once it is formed; why it will not be, once that is known.
  const std::shared_ptr<const View>& view() const { return view_; }
  const std::optional<Error>& failure() const { return failure_; }

  // Who has come and who is missing, and until when that can change; before the world is formed or given up.
  Error state() const { return missing(""); }
  base::Time deadline() const { return deadline_; }

  std::size_t clients() const { return clients_.size(); }
  std::size_t members() const { return members_.size(); }

 private:
  struct Member {
    crypto::Sha256 key{};
    NodeId node;
    HostId host;
    CoreSet cores;
    std::chrono::sys_seconds issued;
    std::optional<Rank> asked;
    std::string name;
    std::uint64_t arrival = 0;         // its turn when ranks are given out
    std::optional<ClientId> client{};  // none while it is away
    bool ready = false;
    std::vector<io::Address> addresses{};

    std::string to_string() const;
  };
  struct Client {
    base::Time due = base::Time::max();  // when it must have got on
    Member* member = nullptr;            // null until it has asked
  };
  // What all that are here have in common.
  struct Settings {
    std::uint16_t plan_version = 0;
    std::string agreed;
  };

  void set_due(ClientId id, Client& client, base::Time due);
  void forget(ClientId client);
  void leave(Member& member);
  void refuse(Actions& actions, ClientId client, Error error);

  std::optional<Error> compare(const Request& request);
  Result<Member*> place_for(const Request& request, const Birth& birth);
  void remove(Member& member);
  Member* longest_away() const;
  void form(Actions& actions);
  Rank rank_of(const Member& member) const;
  Error missing(const std::string& within) const;

  Options options_;
  base::Time deadline_ = base::Time::max();  // of the world; never while nobody has asked
  std::map<ClientId, Client> clients_;
  std::set<std::pair<base::Time, ClientId>> due_;
  std::size_t asking_ = 0;  // of clients_, those without a member

  std::map<crypto::Sha256, std::unique_ptr<Member>> members_;
  std::map<Rank, Member*> asked_;             // by the rank they asked for
  std::map<std::uint64_t, Member*> present_;  // by arrival
  std::map<std::uint64_t, Member*> away_;     // by the order in which they left
  std::map<const Member*, std::uint64_t> left_;
  std::optional<Settings> settings_;
  std::uint64_t counter_ = 0;  // orders arrivals and departures
  std::size_t ready_count_ = 0;
  std::shared_ptr<const View> view_;
  std::optional<Error> failure_;
};

}  // namespace nexar::cluster
