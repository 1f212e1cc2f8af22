// How packets leave: in batches that one call of the kernel sends.
#include <algorithm>
#include <cstring>
#include <utility>

#include "transport/quic/endpoint.h"

namespace nexar::transport::quic {
namespace {

// Built for one connection before the others have their turn and packets are read again: what fits the second-level cache.
constexpr std::size_t kBytesPerTurn = 256u << 10;

}  // namespace

// Every connection that has something to send, to settle or to bury. Returns whether anything went out or ended.
bool Endpoint::serve_dirty() {
  if (serving_ || dirty_.empty()) return false;
  serving_ = true;
  bool worked = false;
  served_.clear();
  served_.swap(dirty_);
  for (Connection* connection : served_) {
    connection->dirty_ = false;
    connection->settle(environment_.loop.now());
    if (connection->state() != Connection::State::kEnded && write_batches(*connection)) {
      worked = true;
      mark_dirty(*connection);  // it may have more
    }
    if (connection->state() == Connection::State::kEnded) {
      std::erase(dirty_, connection);
      bury(*connection);
      worked = true;  // whoever heard of it may have something to do
    }
  }
  serving_ = false;
  set_timer();
  return worked;
}

void Endpoint::serve_urgent() {
  for (const Connection* connection : dirty_)
    if (connection->is_urgent(environment_.loop.now())) {
      serve_dirty();
      return;
    }
}

// Up to a turn's bytes; returns whether anything was sent.
bool Endpoint::write_batches(Connection& connection) {
  bool sent = false;
  for (std::size_t written = 0; written < kBytesPerTurn && !blocked_;) {
    const std::size_t batch = write_batch(connection);
    if (batch == 0) break;
    written += batch;
    sent = true;
  }
  if (sent) connection.pace(environment_.loop.now());
  return sent;
}

// One super-packet: packets of one size, of which only the last may be shorter. Returns its bytes.
std::size_t Endpoint::write_batch(Connection& connection) {
  const base::Time now = environment_.loop.refresh();  // see read_some()
  const base::ByteSpan buffer(send_buffer_);
  std::size_t segment = 0;
  std::size_t used = 0;
  std::size_t count = 0;
  while (count < io::UdpSocket::kSegmentsMax) {
    const std::size_t limit = connection.packet_bytes();
    if (count > 0 && used + segment > io::UdpSocket::kSuperPacketBytesMax) break;
    const std::size_t size = connection.write_packet(buffer.subspan(used, limit), now);
    if (size == 0) break;
    if (count > 0 && size > segment) {  // longer than the first: it begins a batch of its own
      send_packets(buffer.first(used), segment, connection);
      std::memmove(buffer.data(), buffer.data() + used, size);
      used = count = 0;
      if (blocked_) {
        keep_blocked(buffer.first(size), size, connection);
        return size;
      }
    }
    if (count == 0) segment = size;
    used += size;
    ++count;
    if (size < segment) break;
  }
  if (used > 0) send_packets(buffer.first(used), segment, connection);
  return used;
}

void Endpoint::send_packets(base::ByteView packets, std::size_t segment, Connection& connection) {
  ++counters_.sends;
  const Result<io::Sent> sent = socket_.send(packets, segment, connection.peer_address());
  if (!sent) {
    ++counters_.send_errors;
    return;
  }
  switch (sent->outcome) {
    case io::SendOutcome::kSent: return;
    case io::SendOutcome::kBlocked: return keep_blocked(packets.subspan(sent->bytes), segment, connection);
    case io::SendOutcome::kTooBig:  // a router on the way is narrower than our interface, and the kernel has learnt it
      connection.set_path_bytes(path_bytes(connection.peer_address()));
      [[fallthrough]];
    case io::SendOutcome::kUnreachable:
    case io::SendOutcome::kRefused: ++counters_.send_errors; return;  // as if lost on the way
  }
}

// The socket is full. Nothing more is written until it has room.
void Endpoint::keep_blocked(base::ByteView packets, std::size_t segment, const Connection& connection) {
  if (!blocked_) {
    blocked_.emplace();
    environment_.loop.change(socket_.fd(), {.read = true, .write = true});
  }
  blocked_->push_back({std::vector<std::byte>(packets.begin(), packets.end()), segment, connection.peer_address()});
}

void Endpoint::send_blocked() {
  while (blocked_ && !blocked_->empty()) {
    Blocked& first = blocked_->front();
    const Result<io::Sent> sent = socket_.send(first.packets, first.segment, first.to);
    if (sent && sent->outcome == io::SendOutcome::kBlocked) {
      first.packets.erase(first.packets.begin(), first.packets.begin() + static_cast<std::ptrdiff_t>(sent->bytes));
      return;
    }
    if (!sent || sent->outcome != io::SendOutcome::kSent) ++counters_.send_errors;
    blocked_->pop_front();
  }
  if (!blocked_) return;
  blocked_.reset();
  environment_.loop.change(socket_.fd(), {.read = true});
  for (const auto& connection : connections_) mark_dirty(*connection);
  serve_dirty();
}

}  // namespace nexar::transport::quic
