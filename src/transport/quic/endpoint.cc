#include "transport/quic/endpoint.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "transport/quic/admission.h"
#include "transport/quic/callbacks.h"

namespace nexar::transport::quic {
namespace {

constexpr std::size_t kSmallBlockBytes = 16u << 10;
constexpr std::size_t kBulkBlockBytes = 256u << 10;
constexpr std::size_t kSmallBlocksKept = 64;
constexpr std::size_t kBulkBlocksKept = 8;

constexpr std::size_t kIpv4UdpHeaders = 28;
constexpr std::size_t kIpv6UdpHeaders = 48;
constexpr std::size_t kEthernetMtu = 1500;  // when the kernel does not know the way

// A closing packet is repeated for as long as the peer may not have seen it.
constexpr base::Duration kTombstoneLifetime = std::chrono::seconds(2);

// More packets than a socket's buffer holds: what comes faster than it is read does not keep the loop.
constexpr int kDrainReadsMax = 65536;

}  // namespace

Result<std::unique_ptr<Endpoint>> Endpoint::open(Environment environment, const io::Address& local, const crypto::Identity& identity,
                                                 PeerVerifier& verifier, LinkAcceptor& acceptor) {
  return open_with(environment, local, TlsContext::make(TlsContext::Credentials{identity.key, identity.certificate}), &verifier, &acceptor);
}

Result<std::unique_ptr<Endpoint>> Endpoint::open_to_anybody(Environment environment, const io::Address& local,
                                                            const crypto::PrivateKey& key, const crypto::Certificate& certificate,
                                                            LinkAcceptor& acceptor) {
  return open_with(environment, local, TlsContext::make(TlsContext::Credentials{key, certificate}, TlsContext::Callers::kNotAsked), nullptr,
                   &acceptor);
}

Result<std::unique_ptr<Endpoint>> Endpoint::open_anonymous(Environment environment, const io::Address& local, PeerVerifier& verifier) {
  return open_with(environment, local, TlsContext::make(std::nullopt), &verifier, nullptr);
}

Result<std::unique_ptr<Endpoint>> Endpoint::open_observer(Environment environment, const io::Address& local, PeerVerifier& verifier) {
  return open_with(environment, local, TlsContext::make(std::nullopt, TlsContext::Callers::kShowCertificate, TlsContext::Purpose::kObserve),
                   &verifier, nullptr);
}

Result<std::unique_ptr<Endpoint>> Endpoint::open_with(Environment environment, const io::Address& local,
                                                      Result<std::unique_ptr<TlsContext>> tls, PeerVerifier* verifier,
                                                      LinkAcceptor* acceptor) {
  if (!tls) return std::move(tls).error();
  Result<io::UdpSocket> socket = io::UdpSocket::open(local);
  if (!socket) return std::move(socket).error();
  const io::Address bound = socket->local_address();
  std::unique_ptr<Endpoint> endpoint(new Endpoint(environment, *std::move(socket), bound, *std::move(tls), verifier, acceptor));
  if (auto watched = environment.loop.watch(endpoint->socket_.fd(), {.read = true}, *endpoint); !watched) return std::move(watched).error();
  environment.loop.add_poller(*endpoint);
  endpoint->registered_ = true;
  return endpoint;
}

Endpoint::Endpoint(Environment environment, io::UdpSocket socket, const io::Address& local, std::unique_ptr<TlsContext> tls,
                   PeerVerifier* verifier, LinkAcceptor* acceptor)
    : environment_(environment),
      socket_(std::move(socket)),
      local_(local),
      tls_(std::move(tls)),
      verifier_(verifier),
      acceptor_(acceptor),
      timer_(environment.loop, [this] { expire(); }),
      small_blocks_(kSmallBlockBytes, kSmallBlocksKept),
      bulk_blocks_(kBulkBlockBytes, kBulkBlocksKept),
      receive_buffer_(io::UdpSocket::kReceiveBufferMin),
      send_buffer_(kSendBufferBytes) {
  random().fill(retry_secret_);
}

Endpoint::~Endpoint() {
  if (registered_) {
    environment_.loop.remove_poller(*this);
    environment_.loop.unwatch(socket_.fd());
  }
}

Result<Link*> Endpoint::connect(const io::Address& peer, LinkHandler& handler) {
  NEXAR_ASSERT(verifier_ != nullptr, "who connects verifies whom it has reached");
  auto connection = std::make_unique<Connection>(*this, peer);
  connection->set_handler(handler);
  if (auto started = connection->start_client(*tls_, verifier_, environment_.loop.refresh()); !started) {
    for (const std::uint64_t id : connection->ids_) by_id_.erase(id);
    return std::move(started).error();
  }
  mark_dirty(*connection);
  connections_.push_back(std::move(connection));
  return static_cast<Link*>(connections_.back().get());
}

// The largest packet that the way to `peer` takes, as far as this host knows.
std::size_t Endpoint::path_bytes(const io::Address& peer) const {
  const Result<std::size_t> known = socket_.path_mtu(peer);
  const std::size_t mtu = known ? *known : kEthernetMtu;
  const std::size_t headers = peer.family() == io::Address::Family::kV4 ? kIpv4UdpHeaders : kIpv6UdpHeaders;
  return std::clamp(mtu - headers, std::size_t{NGTCP2_MAX_UDP_PAYLOAD_SIZE}, kLoopbackPacketBytes);
}

ngtcp2_path Endpoint::path_to(const io::Address& peer) const {
  ngtcp2_path path{};
  path.local = {const_cast<ngtcp2_sockaddr*>(local_.data()), local_.size()};
  path.remote = {const_cast<ngtcp2_sockaddr*>(peer.data()), peer.size()};
  return path;
}

// What waits is sent before anything is read. An acknowledgement alone waits until the next turn, because the answer to what was read is
// often there by then and takes it along; frames that reading made, and acknowledgements that a sender of bulk needs, go at once.
//
// Looking at an empty socket costs as much as a short message takes to cross the machine. So a turn that has sent something does not look,
// unless the one before did not either.
bool Endpoint::poll() { return quiet_ ? serve_dirty() : serve(); }

bool Endpoint::serve() {
  const bool sent = serve_dirty();
  if (sent && !std::exchange(skipped_reading_, true)) return true;
  skipped_reading_ = false;
  const bool read = read_some();
  if (read) serve_urgent();
  return sent || read;
}

// Reading is serve()'s; this is how a blocked turn hears of packets, and of room in the socket.
void Endpoint::on_ready(io::Readiness ready) {
  if (ready.write) send_blocked();
  if (ready.read) serve();
}

void Endpoint::flush() { serve_dirty(); }

void Endpoint::drain() {
  NEXAR_ASSERT(!serving_, "a handler does not read the socket that calls it");
  for (int i = 0; i < kDrainReadsMax && read_some(); ++i) {
  }
  serve_dirty();
}

void Endpoint::expire() {
  const base::Time now = environment_.loop.now();
  std::erase_if(tombstones_, [now](const auto& entry) { return entry.second->until <= now; });
  for (std::size_t i = 0; i < connections_.size(); ++i) {  // a handler that hears of an end may connect again
    Connection& connection = *connections_[i];
    if (connection.expiry() > now) continue;
    connection.handle_expiry(now);
    mark_dirty(connection);
  }
  serve_dirty();
  set_timer();
}

void Endpoint::set_timer() {
  base::Time next = base::Time::max();
  for (const auto& connection : connections_) next = std::min(next, connection->expiry());
  for (const auto& [id, tombstone] : tombstones_) next = std::min(next, tombstone->until);
  if (next == base::Time::max())
    timer_.cancel();
  else
    timer_.set(next);
}

void Endpoint::mark_dirty(Connection& connection) {
  if (std::exchange(connection.dirty_, true)) return;
  dirty_.push_back(&connection);
}

void Endpoint::add_id(const ngtcp2_cid& id, Connection& connection) {
  const std::uint64_t key = key_of(id.data, id.datalen);
  by_id_[key] = &connection;
  connection.ids_.push_back(key);
}

void Endpoint::remove_id(const ngtcp2_cid& id) { by_id_.erase(key_of(id.data, id.datalen)); }

void Endpoint::handshake_done(const Connection& connection) {
  if (connection.is_server()) --pending_;
}

// Who shows no certificate where it is asked for one is an observer, and nothing else.
LinkHandler* Endpoint::handler_for(Connection& connection) {
  if (connection.is_observed()) return acceptor_->on_observer(connection);
  if (verifier_ != nullptr && connection.peer_certificate() == nullptr) return nullptr;
  return acceptor_->on_link(connection);
}

void Endpoint::send_closing_packet(Connection& connection, base::ByteView packet) {
  connection.closing_packet_.assign(packet.begin(), packet.end());
  send_packets(packet, packet.size(), connection);
}

// The connection has ended and its handler knows. Its ids answer for it a little longer.
void Endpoint::bury(Connection& connection) {
  if (connection.is_server() && !connection.authenticated()) --pending_;
  const auto tombstone = std::make_shared<Tombstone>(
      Tombstone{std::move(connection.closing_packet_), connection.peer_address(), environment_.loop.now() + kTombstoneLifetime, 0});
  for (const std::uint64_t id : connection.ids_) {
    by_id_.erase(id);
    if (tombstones_.size() < kTombstonesMax) tombstones_[id] = tombstone;
  }
  std::erase_if(connections_, [&](const auto& one) { return one.get() == &connection; });
}

}  // namespace nexar::transport::quic
