// One process's place in a cluster.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nexar/buffer_pool.h"
#include "nexar/config.h"
#include "nexar/device.h"
#include "nexar/export.h"
#include "nexar/group.h"
#include "nexar/ids.h"
#include "nexar/log.h"
#include "nexar/result.h"

namespace nexar {

// What has passed a link, for each lane in the order control, rpc, data, bulk.
struct LinkTraffic {
  std::uint64_t frames_sent[4] = {};
  std::uint64_t bytes_sent[4] = {};
  std::uint64_t frames_received[4] = {};
  std::uint64_t bytes_received[4] = {};
};

// How a node finds its world.
struct JoinOptions {
  Config config;

  std::string seed;          // HOST:PORT of the rendezvous; empty: config.seed
  std::string token;         // the join token; empty: config.token, or what config.token_file holds
  std::optional<Rank> rank;  // the rank to ask for; unset: in the order of arrival

  // How long to try until the world stands: the seed may not have been started yet, and others may come late. Then the error says who has
  // come and who is missing, as the seed knows it; where the seed is about to give up too, its verdict is awaited, up to 3 s longer.
  std::chrono::nanoseconds deadline = std::chrono::seconds(60);

  // Where this node listens: one UDP port for all peers. PORT, or FIRST-LAST for the first free one of a range; empty: any.
  std::string port;

  // Which of its addresses peers are told, tried in this order. Each is an interface's name, an address, or a network (10.0.0.0/8). Empty:
  // all addresses of interfaces that are up; those of loopback only when there are no others or the seed is on loopback.
  std::vector<std::string> interfaces;

  // Where the node's own messages go; empty: standard error.
  LogSink log{};

  // Host memory for staging and buckets, which nodes of a process may share; empty: one of its own, of config.memory_budget.
  std::shared_ptr<BufferPool> pool{};

  // Whose memory a Buffer<Device> is that names no adapter, and a Communicator's pointers are; empty: the host's. Each buffer may name
  // another.
  std::shared_ptr<DeviceAdapter> adapter{};
};

struct LocalOptions {
  Config config;

  // The network namespace and address of each node; empty: here, on loopback. Entering a namespace needs root.
  struct Place {
    std::string network_namespace;  // a path such as /run/netns/NAME
    std::string address;            // without a port: 10.0.0.1, fd00::1
  };
  std::vector<Place> places{};

  // Where the nodes' own messages go; empty: standard error.
  LogSink log{};

  // Host memory for staging and buckets, shared by all of them; empty: one for each, of config.memory_budget.
  std::shared_ptr<BufferPool> pool{};

  // Whose memory a Buffer<Device> is that names no adapter, and a Communicator's pointers are; empty: the host's. Each buffer may name
  // another.
  std::shared_ptr<DeviceAdapter> adapter{};
};

// How large transfers to and from a peer travel: by TCP lanes where there are some, else by its QUIC link. Lanes are opened when the first
// large transfer wants them.
struct BulkCounters {
  Transport transport = Transport::kQuic;  // kTcp while lanes are open
  std::string reason;                      // why there are no lanes; or why one was lost, when others are left
  int tcp_lanes = 0;                       // open now
  std::uint64_t tcp_lanes_lost = 0;        // that broke or stalled; what they carried went on by another way
  std::uint64_t tcp_bytes_sent = 0;        // headers included; what went by QUIC is in LinkTraffic
  std::uint64_t tcp_bytes_received = 0;
};

// What is known about a peer now.
struct PeerCounters {
  Rank rank = 0;
  enum class State : std::uint8_t { kSelf, kLinked, kLeft, kLost } state = State::kSelf;
  std::string address;    // that its link uses; empty without one
  std::string transport;  // what its link is: shm or quic; empty without one
  std::string no_shm;     // why it is not shm though it is on this host; empty otherwise, and where that was configured
  std::optional<std::chrono::nanoseconds> rtt;  // of the last heartbeat that was answered
  LinkTraffic traffic;
  BulkCounters bulk;
};

// Calls of functions (rpc.h): what has happened, and what is here now.
struct RpcCounters {
  std::uint64_t calls = 0;         // made
  std::uint64_t served = 0;        // handlers that have run
  std::uint64_t refused = 0;       // calls of others that were not taken
  std::uint64_t late_answers = 0;  // that came when their call had ended
  std::uint64_t calling = 0;       // calls that have not ended
  std::uint64_t serving = 0;       // calls of others that are here
  std::uint64_t serving_bytes = 0;
  std::uint64_t threads = 0;  // that run handlers, or are ready to
};

// Shared buffers (shared_buffer.h) that ranks of this host read in place.
struct LendingCounters {
  std::uint64_t lent = 0;        // of this rank, mapped by all other ranks of its host
  std::uint64_t borrowed = 0;    // of the others, mapped here
  std::uint64_t bytes_lent = 0;  // that this rank's collectives gave without copying them
};

// A snapshot of everything a node counts.
struct NodeCounters {
  std::vector<PeerCounters> peers;           // by rank
  std::uint64_t handshakes_refused = 0;      // of callers with a wrong or no certificate
  std::uint64_t handshakes_dropped = 0;      // that did not end in time or made way for others
  std::uint64_t retries_sent = 0;            // callers asked to prove their address
  std::uint64_t packets_ignored = 0;         // that belong to no connection
  std::uint64_t protocol_errors = 0;         // peers disconnected because of an impossible frame
  std::uint64_t frames_of_other_epochs = 0;  // drained
  RpcCounters rpc;
  LendingCounters lending;
};

// Move-only; owns its links and threads. Groups and operations keep what they need of it, but end when it is closed. The destructor closes.
class NEXAR_API Node {
 public:
  // A world of `n` nodes in this process, linked over real QUIC, with an authority in memory: for tests, and to try things out. Node i has
  // rank i.
  static Result<std::vector<Node>> local(int n, const LocalOptions& options = {});

  // Joins the world of a seed, trying again until the deadline. Errors name the address, file or ranks: kInvalidArgument for what can
  // never work, kTimeout when the seed does not answer or the world is not complete in time, kRefused when the token, a version or the
  // configuration is not the world's.
  static Result<Node> join(const JoinOptions& options);

  // The same with everything from the environment: NEXAR_* (NEXAR_SEED, NEXAR_TOKEN or NEXAR_TOKEN_FILE, NEXAR_RANK, NEXAR_PORT,
  // NEXAR_INTERFACES, NEXAR_JOIN_TIMEOUT), or the variables of torchrun, Slurm or Open MPI together with NEXAR_TOKEN; there rank 0 runs the
  // seed itself, from NEXAR_SEED_FILE. What is missing is named.
  static Result<Node> from_env();

  Node(Node&&) noexcept;
  Node& operator=(Node&&) noexcept;
  ~Node();

  Rank rank() const;
  int size() const;
  Group world() const;

  // Where the ranks are. Hosts are numbered in the order of their lowest ranks, local ranks in the order of ranks.
  int host_index() const;
  int hosts() const;
  int local_rank() const;
  int local_size() const;
  int host_index(Rank rank) const;  // of another; -1 for a rank that does not exist

  const Config& config() const;

  // The functions of this node (rpc.h), by ranks of the world.
  Rpc rpc() const;

  // The time that a ping to `peer` and its answer take now, on the control lane.
  Result<std::chrono::nanoseconds> ping(Rank peer) const;

  Result<NodeCounters> counters() const;

  // Calls back once when the world is over for this node: a rank is lost (kPeerLost with the rank) or somebody aborted (kCancelled with the
  // reason). At once if that has happened. The callback may not call nexar; a second one replaces the first. A rank that leaves with
  // close() is no failure.
  Result<void> on_failure(std::function<void(const Error&)> callback);

  // Readable when the world is over; stays so. Belongs to the node.
  Result<int> failure_descriptor() const;

  // Ends the world: every operation of every rank that has not ended ends with kCancelled and the reason, and so does every later call.
  Result<void> abort(const std::string& reason);

  // Sends what is queued, says goodbye, and waits for acknowledgements, 5 s at most: kTimeout names the ranks that have not given theirs,
  // and the node is closed all the same. Operations that have not ended end with kCancelled. Others notice only if they still need
  // something from this rank. Idempotent.
  Result<void> close();

  // For the runtime.
  explicit Node(std::shared_ptr<runtime::NodeCore> core);

 private:
  std::shared_ptr<runtime::NodeCore> core_;
};

}  // namespace nexar
