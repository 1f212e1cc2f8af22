// Everything about a node that can be set, in one struct.
//
// Precedence: a field set in code, then the environment, then the default. So a program starts from the environment and sets what it
// insists on:
//
//   Config config = Config::from_env().value();
//   config.reproducible = true;
//
// Each field NAME is read from NEXAR_NAME. Durations are written `500ms`, `30s`, `10min`; sizes `65536`, `64KiB`, `2MiB`; booleans
// `true` or `false`.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "nexar/export.h"
#include "nexar/log.h"
#include "nexar/result.h"

namespace nexar {

// Which peers a node has a link to; the others are reached by relays.
struct Topology {
  enum class Kind : std::uint8_t { kFullMesh, kHypercube, kKRegular };

  Kind kind = Kind::kFullMesh;
  int degree = 0;  // of kKRegular: even, at least 2

  friend bool operator==(const Topology&, const Topology&) = default;
};

// How a node reaches a peer.
enum class Transport : std::uint8_t {
  kAuto,  // shared memory on one host, kNet otherwise
  kShm,
  kNet,   // as between hosts: quic, with tcp for bulk where it passes
  kQuic,  // quic alone
  kTcp,   // bulk forced onto tcp
};

// What happens to the others when a member is lost.
enum class RecoveryPolicy : std::uint8_t { kAutomatic, kManual, kAbort };

struct NEXAR_API Config {
  using Duration = std::chrono::nanoseconds;

  Topology topology;                                     // full_mesh, hypercube, k_regular:K
  Duration entry_timeout = std::chrono::minutes(10);     // somebody has not called yet
  Duration progress_timeout = std::chrono::seconds(30);  // everybody is in and nothing moves
  Duration rpc_timeout = std::chrono::seconds(30);
  Duration recovery_timeout = std::chrono::seconds(30);
  std::optional<Duration> p2p_timeout;         // none: a receive may wait for ever
  bool reproducible = false;                   // one fixed expression for every reduction, whatever the algorithm
  std::uint64_t memory_budget = 256ull << 20;  // queues, credit and staging of the node
  std::optional<std::uint64_t> shm_budget;     // of a host; unset: see shm_budget_for()
  std::uint64_t large_msg_bytes = 8ull << 20;  // from here on collectives are pipelined, until costs are measured
  std::uint64_t pipeline_segment_bytes = 2ull << 20;
  std::uint32_t ring_max_world = 8;  // largest world that starts with rings
  Duration heartbeat_interval = std::chrono::seconds(1);
  Duration heartbeat_timeout = std::chrono::seconds(5);
  bool elastic_enabled = false;  // nodes may join and leave while the job runs
  std::uint32_t min_world = 1;
  std::uint32_t max_world = 0;  // 0: no limit
  Duration resize_timeout = std::chrono::seconds(60);
  RecoveryPolicy recovery_policy = RecoveryPolicy::kAutomatic;
  Transport transport = Transport::kAuto;
  bool encrypt_bulk = true;                                    // false: plain-text bulk, for networks that are trusted
  std::uint32_t tcp_lanes = 1;                                 // that carry bulk to a peer at once, 1 to 4
  std::uint64_t compressed_all_reduce_max_bytes = 4ull << 30;  // 0: no limit
  std::uint32_t rpc_workers = 4;                               // handlers that run at once
  std::uint32_t rpc_spare_workers = 64;                        // threads that stand in for handlers that wait in nexar
  std::uint32_t rpc_queue = 1024;                              // calls that wait for a worker; more are refused
  std::uint32_t rpc_calls_per_peer = 1024;                     // in flight, made and served apart
  std::uint64_t rpc_bytes_per_peer = 256ull << 20;             // of arguments and results that are held for them, apart as well
  std::string token;                                           // the join token itself, or
  std::string token_file;                                      // the file that holds it
  std::string seed;                                            // host:port of the rendezvous; read from NEXAR_SEED
  std::string host_id;                                         // divides one host into several: other ranks with another are elsewhere
  LogLevel log = LogLevel::kWarning;
  // How long a waiting thread polls before it sleeps; 0: never, as on a single core that it shares. In a collective of ranks that share
  // memory fifty times as long, or five times where they outnumber cores.
  Duration spin = std::chrono::microseconds(200);

  // Defaults overridden by the environment, validated. kInvalidArgument names the variable, its value and what is accepted.
  static Result<Config> from_env();

  // The same from any source of variables: `lookup` returns the value of a name, or nothing.
  using Lookup = std::function<std::optional<std::string>(const std::string& name)>;
  static Result<Config> from_variables(const Lookup& lookup);

  // Checks each field and their combinations. kInvalidArgument names the field.
  Result<void> validate() const;

  // Bytes of shared memory for a host with that many ranks: shm_budget, or 64 MiB and 4 MiB for each rank.
  std::uint64_t shm_budget_for(std::uint32_t local_ranks) const;

  // One `name=value` line for each field. The token is not shown, only whether there is one.
  std::string to_string() const;

  // The lines of to_string() on which all ranks must agree, and a digest of them that ranks compare when they join.
  std::string agreed() const;
  std::uint64_t digest() const;
};

}  // namespace nexar
