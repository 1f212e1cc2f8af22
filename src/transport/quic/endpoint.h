// One UDP port with all its QUIC connections.
//
// Reads datagrams, finds the connection of each packet by its id, lets strangers in within bounds (admission.h), writes packets in batches,
// and keeps one timer for the connection that expires first.
//
// Thread: engine. Owned by the node; outlives its links.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "crypto/identity.h"
#include "io/address.h"
#include "io/clock.h"
#include "io/loop.h"
#include "io/random.h"
#include "io/timer.h"
#include "io/udp_socket.h"
#include "transport/link.h"
#include "transport/peer_verifier.h"
#include "transport/quic/compat.h"
#include "transport/quic/connection.h"
#include "transport/quic/send_queue.h"
#include "transport/quic/tls.h"

namespace nexar::transport::quic {

// Takes links that peers opened.
class LinkAcceptor {
 public:
  virtual ~LinkAcceptor() = default;
  // `link` is authenticated. Returns its handler, or null to refuse it. The link's on_ready follows.
  virtual LinkHandler* on_link(Link& link) = 0;

  // Whether callers are let in that only want to look: their links have no certificate, whatever is asked of others.
  virtual bool takes_observers() const { return false; }
  virtual LinkHandler* on_observer(Link& link) {
    (void)link;
    return nullptr;
  }
};

// The largest super-packet, and one packet more, which may turn out to be longer than those before it.
inline constexpr std::size_t kLoopbackPacketBytes = 65'000;
inline constexpr std::size_t kSendBufferBytes = io::UdpSocket::kSuperPacketBytesMax + kLoopbackPacketBytes;

// Connections that have ended are answered for by each of their ids, up to this many; beyond it a peer finds out by silence.
inline constexpr std::size_t kTombstonesMax = 1024;

struct EndpointCounters {
  std::uint64_t retries_sent = 0;
  std::uint64_t handshakes_refused = 0;  // of callers whose certificate was not accepted
  std::uint64_t handshakes_dropped = 0;  // of callers that did not end them in time, or made way
  std::uint64_t packets_ignored = 0;     // that belong to no connection and open none
  std::uint64_t sends = 0;               // of one or several packets at once
  std::uint64_t receive_errors = 0;
  std::uint64_t send_errors = 0;  // packets that the kernel did not take, sent again like lost ones
};

class Endpoint final : private io::Poller, private io::Watcher {
 public:
  struct Environment {
    io::Loop& loop;
    io::Random& random;
    // After which a link without a packet ends. Zero: never, where somebody above watches who answers.
    base::Duration idle_timeout = std::chrono::seconds(30);
  };

  // Binds `local` and starts to listen. Both sides of every link show their certificates. `verifier` and `acceptor` outlive the endpoint.
  static Result<std::unique_ptr<Endpoint>> open(Environment environment, const io::Address& local, const crypto::Identity& identity,
                                                PeerVerifier& verifier, LinkAcceptor& acceptor);

  // One that asks its callers for no certificate, and cannot connect: who they are is found out by what they say. Their links have no
  // peer_certificate().
  static Result<std::unique_ptr<Endpoint>> open_to_anybody(Environment environment, const io::Address& local, const crypto::PrivateKey& key,
                                                           const crypto::Certificate& certificate, LinkAcceptor& acceptor);

  // One that has no certificate, and accepts nobody: it connects to those that do not ask for one, if `verifier` accepts theirs.
  static Result<std::unique_ptr<Endpoint>> open_anonymous(Environment environment, const io::Address& local, PeerVerifier& verifier);

  // The same to look at a node or a seed (LinkAcceptor::on_observer).
  static Result<std::unique_ptr<Endpoint>> open_observer(Environment environment, const io::Address& local, PeerVerifier& verifier);

  ~Endpoint() override;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  const io::Address& local_address() const { return local_; }

  // Begins a handshake; not for an endpoint that is open to anybody. The handler hears on_ready or on_end, never from inside this call.
  Result<Link*> connect(const io::Address& peer, LinkHandler& handler);

  // Whether its socket is read only when the loop finds that it can be, and not on every turn: for a node whose peers are reached
  // otherwise.
  void set_quiet(bool quiet) { quiet_ = quiet; }

  // Sends what is due now instead of at the end of the loop's turn.
  void flush() override;

  // Reads everything that has come, so that what a peer sent before it died is here. Not from a handler's call.
  void drain();

  std::size_t pending_handshakes() const { return pending_; }  // of strangers
  std::size_t connections() const { return connections_.size(); }
  std::size_t tombstones() const { return tombstones_.size(); }
  const EndpointCounters& counters() const { return counters_; }

 private:
  friend class Connection;
  friend struct Callbacks;

  // A connection that is over: its closing packet, repeated while the peer still sends; empty when the peer closed.
  struct Tombstone {
    std::vector<std::byte> packet;
    io::Address peer;
    base::Time until;
    std::uint64_t heard = 0;
  };

  Endpoint(Environment environment, io::UdpSocket socket, const io::Address& local, std::unique_ptr<TlsContext> tls, PeerVerifier* verifier,
           LinkAcceptor* acceptor);
  static Result<std::unique_ptr<Endpoint>> open_with(Environment environment, const io::Address& local,
                                                     Result<std::unique_ptr<TlsContext>> tls, PeerVerifier* verifier,
                                                     LinkAcceptor* acceptor);

  bool poll() override;
  bool serve();
  void on_ready(io::Readiness ready) override;

  // Reading (endpoint_read.cc).
  bool read_some();
  void read_packet(base::ByteView packet, const io::Address& from);
  void send_versions(const ngtcp2_version_cid& ids, const io::Address& to);
  void answer_for(Tombstone& tombstone);
  Connection* accept(base::ByteView packet, const io::Address& from);
  void send_retry(const ngtcp2_pkt_hd& header, const io::Address& to);
  std::optional<ngtcp2_cid> original_dcid(const ngtcp2_pkt_hd& header, const io::Address& from) const;
  void drop_oldest_pending();

  // Writing (endpoint_write.cc).
  bool serve_dirty();
  void serve_urgent();
  bool write_batches(Connection& connection);
  std::size_t write_batch(Connection& connection);
  void send_packets(base::ByteView packets, std::size_t segment, Connection& connection);
  void keep_blocked(base::ByteView packets, std::size_t segment, const Connection& connection);
  void send_blocked();

  void expire();
  void set_timer();
  void bury(Connection& connection);

  // For connections.
  io::Random& random() { return environment_.random; }
  base::Duration idle_timeout() const { return environment_.idle_timeout; }
  BlockPool& small_blocks() { return small_blocks_; }
  BlockPool& bulk_blocks() { return bulk_blocks_; }
  std::size_t path_bytes(const io::Address& peer) const;
  ngtcp2_path path_to(const io::Address& peer) const;
  void add_id(const ngtcp2_cid& id, Connection& connection);
  void remove_id(const ngtcp2_cid& id);
  void mark_dirty(Connection& connection);
  void handshake_done(const Connection& connection);
  LinkHandler* handler_for(Connection& connection);
  void send_closing_packet(Connection& connection, base::ByteView packet);

  Environment environment_;
  io::UdpSocket socket_;
  io::Address local_;
  std::unique_ptr<TlsContext> tls_;
  PeerVerifier* verifier_;  // null when callers are not asked who they are
  LinkAcceptor* acceptor_;  // null when nobody is accepted
  io::Timer timer_;
  BlockPool small_blocks_;
  BlockPool bulk_blocks_;
  std::vector<std::byte> receive_buffer_;
  std::vector<std::byte> send_buffer_;
  std::array<std::byte, 32> retry_secret_{};

  std::vector<std::unique_ptr<Connection>> connections_;  // oldest first
  std::unordered_map<std::uint64_t, Connection*> by_id_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Tombstone>> tombstones_;
  std::vector<Connection*> dirty_;   // with something to send, to settle or to bury
  std::size_t pending_ = 0;          // of connections_, those of strangers that have not proved who they are
  std::vector<Connection*> served_;  // dirty_ while it is worked on
  bool skipped_reading_ = false;
  bool quiet_ = false;
  bool registered_ = false;
  bool serving_ = false;

  // What the socket did not take; at most two batches, because nothing is written meanwhile.
  struct Blocked {
    std::vector<std::byte> packets;
    std::size_t segment = 0;
    io::Address to;
  };
  std::optional<std::deque<Blocked>> blocked_;
  EndpointCounters counters_;
};

}  // namespace nexar::transport::quic
