#include "transport/quic/connection.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/units.h"
#include "transport/quic/admission.h"
#include "transport/quic/callbacks.h"
#include "transport/quic/endpoint.h"
#include "wire/frame.h"

namespace nexar::transport::quic {
namespace {

constexpr std::size_t kHandshakePacketBytes = PacketSize::kSmallBytes;  // a larger buffer would only be padded
constexpr ngtcp2_duration kKeepAlive = 10 * NGTCP2_SECONDS;

// What the peer is told when an application closes.
constexpr std::uint64_t kCloseNormal = 0;
constexpr std::uint64_t kCloseAbort = 1;
constexpr std::uint64_t kCloseProtocol = 2;
constexpr std::uint64_t kCloseExpelled = 3;
constexpr std::size_t kCloseTextMax = 512;  // fits into one closing packet beside its headers

ngtcp2_tstamp stamp(base::Time time) { return static_cast<ngtcp2_tstamp>(time.time_since_epoch().count()); }

CloseReason application_reason(std::uint64_t code, const std::string& text) {
  return CloseReason::from_application(code, text.data(), std::min(text.size(), kCloseTextMax));
}

}  // namespace

std::uint64_t key_of(const std::uint8_t* id, std::size_t size) {
  std::uint64_t key = 0;
  std::memcpy(&key, id, std::min(size, sizeof key));
  return key;
}

Connection::Connection(Endpoint& endpoint, const io::Address& peer)
    : endpoint_(endpoint),
      peer_(peer),
      outgoing_{{OutgoingLane(endpoint.small_blocks(), kLaneBytesMax[0]), OutgoingLane(endpoint.small_blocks(), kLaneBytesMax[1]),
                 OutgoingLane(endpoint.small_blocks(), kLaneBytesMax[2]), OutgoingLane(endpoint.bulk_blocks(), kLaneBytesMax[3])}},
      incoming_{{IncomingLane(*this, wire::Lane::kControl), IncomingLane(*this, wire::Lane::kRpc), IncomingLane(*this, wire::Lane::kData),
                 IncomingLane(*this, wire::Lane::kBulk)}},
      packet_size_(endpoint.path_bytes(peer)) {}

Connection::~Connection() {
  if (conn_ != nullptr) ngtcp2_conn_del(conn_);
}

Result<void> Connection::start_client(const TlsContext& tls, PeerVerifier* verifier, base::Time now) {
  const ngtcp2_callbacks callbacks = connection_callbacks();
  const ngtcp2_settings settings = connection_settings(packet_size_.bytes(), endpoint_.random(), now);
  const ngtcp2_transport_params parameters = connection_parameters(endpoint_.idle_timeout());
  const ngtcp2_cid destination = random_id(endpoint_.random());
  const ngtcp2_cid source = random_id(endpoint_.random());
  const ngtcp2_path path = endpoint_.path_to(peer_);
  if (const int code = ngtcp2_conn_client_new(&conn_, &destination, &source, &path, NGTCP2_PROTO_VER_V1, &callbacks, &settings, &parameters,
                                              nullptr, this);
      code != 0)
    return Error(ErrorCode::kInternal,
                 fmt::format("QUIC: a connection to {} could not be made: {}", peer_.to_string(), ngtcp2_strerror(code)));
  endpoint_.add_id(source, *this);
  return finish_start(tls, TlsSession::Side::kClient, verifier);
}

Result<void> Connection::start_server(const TlsContext& tls, PeerVerifier* verifier, const FirstPacket& first, bool observers,
                                      base::Time now) {
  server_ = true;
  const ngtcp2_callbacks callbacks = connection_callbacks();
  ngtcp2_settings settings = connection_settings(packet_size_.bytes(), endpoint_.random(), now);
  ngtcp2_transport_params parameters = connection_parameters(endpoint_.idle_timeout());
  if (first.original_dcid != nullptr) {
    set_original_dcid(parameters, *first.original_dcid);
    set_token(settings, token_of(first.header));
    parameters.retry_scid = first.header.dcid;
    parameters.retry_scid_present = 1;
  } else {
    set_original_dcid(parameters, first.header.dcid);
  }
  const ngtcp2_cid source = random_id(endpoint_.random());
  const ngtcp2_path path = endpoint_.path_to(peer_);
  if (const int code = ngtcp2_conn_server_new(&conn_, &first.header.scid, &source, &path, first.header.version, &callbacks, &settings,
                                              &parameters, nullptr, this);
      code != 0)
    return Error(ErrorCode::kInternal,
                 fmt::format("QUIC: a connection from {} could not be made: {}", peer_.to_string(), ngtcp2_strerror(code)));
  endpoint_.add_id(source, *this);
  endpoint_.add_id(first.header.dcid, *this);
  return finish_start(tls, TlsSession::Side::kServer, verifier, observers);
}

Result<void> Connection::finish_start(const TlsContext& tls, TlsSession::Side side, PeerVerifier* verifier, bool observers) {
  Result<std::unique_ptr<TlsSession>> session = TlsSession::make(tls, side, verifier, observers);
  if (!session) return std::move(session).error();
  tls_ = *std::move(session);
  tls_->attach(conn_);
  ngtcp2_conn_set_keep_alive_timeout(conn_, kKeepAlive);
  return {};
}

void Connection::read(base::ByteView packet, base::Time now) {
  if (state_ == State::kEnded) return;
  const ngtcp2_path path = endpoint_.path_to(peer_);
  const ngtcp2_pkt_info info{};
  ++unanswered_packets_;
  unanswered_bytes_ += packet.size();
  brought_ = progress_ = false;
  const int code =
      ngtcp2_conn_read_pkt(conn_, &path, &info, reinterpret_cast<const std::uint8_t*>(packet.data()), packet.size(), stamp(now));
  if (progress_) packet_size_.acknowledged(!has_in_flight(), now);
  if (brought_ && !unanswered_since_) unanswered_since_ = now;
  if (code != 0) fail(code, now);
}

void Connection::pace(base::Time now) {
  if (state_ != State::kEnded) ngtcp2_conn_update_pkt_tx_time(conn_, stamp(now));
}

base::Time Connection::expiry() const {
  if (state_ == State::kEnded) return base::Time::max();
  const ngtcp2_tstamp at = ngtcp2_conn_get_expiry(conn_);
  const auto latest = static_cast<ngtcp2_tstamp>(base::Time::max().time_since_epoch().count());
  const base::Time due(base::Duration(static_cast<base::Duration::rep>(std::min(at, latest))));
  return put_off_ || keeps_acknowledgement(due) ? *unanswered_since_ + kAcknowledgementWaits : due;
}

// Of little that has come: what is sent next takes the acknowledgement along, and a packet of its own costs both ends as much as a message.
// Whoever sends much needs it at once.
bool Connection::keeps_acknowledgement(base::Time now) const {
  return state_ == State::kOpen && unanswered_since_ && now < *unanswered_since_ + kAcknowledgementWaits &&
         unanswered_packets_ <= kUnansweredPacketsMax && unanswered_bytes_ < kUnansweredBytesMax;
}

void Connection::handle_expiry(base::Time now) {
  if (state_ == State::kEnded) return;
  if (!keeps_acknowledgement(now)) put_off_ = false;
  if (const int code = ngtcp2_conn_handle_expiry(conn_, stamp(now)); code != 0) return fail(code, now);
  packet_size_.expired(base::Duration(ngtcp2_conn_get_pto(conn_)), now);
}

bool Connection::is_urgent(base::Time now) const {
  if (state_ != State::kOpen || ready_due_ || room_due_ || abort_due_ || handler_error_) return true;
  if (unanswered_packets_ > 1 && !keeps_acknowledgement(now)) return true;
  return std::any_of(outgoing_.begin(), outgoing_.end(), [](const OutgoingLane& lane) { return lane.queue.has_unsent(); });
}

std::size_t Connection::packet_bytes() const { return state_ == State::kHandshake ? kHandshakePacketBytes : packet_size_.bytes(); }

void Connection::close(wire::GoodbyeReason reason, std::string_view text) {
  if (state_ == State::kHandshake) return abort(text);
  if (state_ != State::kOpen) return;
  close_reason_ = reason;
  close_text_ = text;
  state_ = State::kDraining;
  endpoint_.mark_dirty(*this);
}

void Connection::abort(std::string_view reason) {
  if (state_ == State::kEnded) return;
  close_text_ = reason;
  abort_due_ = true;
  endpoint_.mark_dirty(*this);
}

void Connection::expel(std::string_view reason) {
  expels_ = true;
  abort(reason);
}

Result<void> Connection::export_key(std::string_view label, base::ByteView context, base::ByteSpan key) const {
  if (!authenticated()) return Error(ErrorCode::kInternal, "keys were asked of a link before its handshake was done");
  return tls_->export_key(label, context, key);
}

base::Duration Connection::shortest_round_trip() const {
  const ngtcp2_duration shortest = conn_ == nullptr ? kNoRoundTrip : quic::shortest_round_trip(conn_);
  return shortest == kNoRoundTrip ? base::Duration::zero() : base::Duration(shortest);
}

void Connection::settle(base::Time now) {
  if (state_ == State::kEnded) return;
  announce_ready();
  if (handler_error_) {
    const std::string text = handler_error_->sentence();
    const CloseReason reason = application_reason(kCloseProtocol, text);
    Error error = *std::exchange(handler_error_, std::nullopt);
    return end({LinkEnd::Kind::kProtocol, std::move(error)}, &reason, now);
  }
  if (abort_due_ || (state_ == State::kFarewell && everything_acknowledged())) {
    const std::uint64_t aborted = expels_ ? kCloseExpelled : kCloseAbort;
    const CloseReason reason = application_reason(abort_due_ ? aborted : kCloseNormal, close_text_);
    return end({LinkEnd::Kind::kClosedHere, Error(ErrorCode::kCancelled, "closed here: " + close_text_)}, &reason, now);
  }
  if (state_ == State::kDraining && everything_acknowledged()) say_goodbye();
  if (room_due_) announce_room();
}

// The last frame. It concerns the link and not a view, so its epoch is 0.
void Connection::say_goodbye() {
  state_ = State::kFarewell;
  std::vector<std::byte> frame(wire::frame_bytes_max<wire::Goodbye>());
  frame.resize(wire::encode_frame(wire::Goodbye{.reason = close_reason_, .text = close_text_}, {}, frame));
  queue_frame(outgoing_.front(), *wire::decode_header(frame), base::ByteView(frame).subspan(wire::kHeaderBytes));
}

bool Connection::everything_acknowledged() const {
  return std::all_of(outgoing_.begin(), outgoing_.end(), [](const OutgoingLane& lane) { return lane.queue.held() == 0; });
}

// An error of ngtcp2: the connection is over. Some are the peer's doing and need no answer, others are told to it.
void Connection::fail(int code, base::Time now) {
  const std::string who = peer_.to_string();
  const auto broken = [&](ErrorCode kind, std::string sentence) {
    return LinkEnd{LinkEnd::Kind::kBroken, Error(kind, std::move(sentence))};
  };
  switch (code) {
    case NGTCP2_ERR_DRAINING: return end(end_told_by_peer(), nullptr, now);
    case NGTCP2_ERR_IDLE_CLOSE: return end(broken(ErrorCode::kTimeout, fmt::format("{} has been silent for too long", who)), nullptr, now);
    case NGTCP2_ERR_HANDSHAKE_TIMEOUT:
      if (server_) ++endpoint_.counters_.handshakes_dropped;
      return end(broken(ErrorCode::kTimeout,
                        fmt::format("{} did not complete the handshake within {}", who, base::format_duration(kHandshakeTimeout))),
                 nullptr, now);
    case NGTCP2_ERR_DROP_CONN:
    case NGTCP2_ERR_RETRY:
      return end(broken(ErrorCode::kIo, fmt::format("{} sent a first packet that opens no connection", who)), nullptr, now);
    case NGTCP2_ERR_CRYPTO: {
      if (server_) ++endpoint_.counters_.handshakes_refused;
      const std::uint8_t alert = ngtcp2_conn_get_tls_alert(conn_);
      const CloseReason reason = CloseReason::from_alert(alert);
      const std::string why = tls_->refusal() ? tls_->refusal()->sentence() : fmt::format("TLS alert {}", alert);
      return end({LinkEnd::Kind::kRefused, Error(ErrorCode::kRefused, fmt::format("the handshake with {} failed: {}", who, why))}, &reason,
                 now);
    }
    case NGTCP2_ERR_CALLBACK_FAILURE:
      if (handler_error_) return;  // settle() tells it
      [[fallthrough]];
    default: {
      const CloseReason reason = CloseReason::from_library(code);
      return end(broken(ErrorCode::kIo, fmt::format("QUIC connection with {}: {}", who, ngtcp2_strerror(code))), &reason, now);
    }
  }
}

LinkEnd Connection::end_told_by_peer() const {
  const CloseReason::Native told = CloseReason::received(conn_);
  const std::string who = peer_.to_string();
  const std::string text(reinterpret_cast<const char*>(told.reason), told.reasonlen);
  if (state_ == State::kFarewell)  // how a peer answers a goodbye
    return {LinkEnd::Kind::kClosedHere, Error(ErrorCode::kCancelled, "closed here: " + close_text_)};
  if (CloseReason::is_application(told) && told.error_code == kCloseNormal)
    return {LinkEnd::Kind::kClosedByPeer, Error(ErrorCode::kPeerLost, fmt::format("{} closed the link: {}", who, text))};
  if (CloseReason::is_application(told) && told.error_code == kCloseProtocol)
    return {LinkEnd::Kind::kRefused, Error(ErrorCode::kRefused, fmt::format("{} ended the link: {}", who, text))};
  if (CloseReason::is_application(told) && told.error_code == kCloseExpelled)
    return {LinkEnd::Kind::kExpelled, Error(ErrorCode::kPeerLost, fmt::format("{} ended the link: {}", who, text))};
  if (CloseReason::is_application(told))
    return {LinkEnd::Kind::kBroken, Error(ErrorCode::kPeerLost, fmt::format("{} ended the link: {}", who, text))};
  constexpr std::uint64_t kTlsAlerts = 0x100;  // RFC 9000 section 20.1: 0x100 and the alert
  if (told.error_code >= kTlsAlerts && told.error_code < 2 * kTlsAlerts)
    return {LinkEnd::Kind::kRefused,
            Error(ErrorCode::kRefused, fmt::format("{} refused our identity (TLS alert {})", who, told.error_code - kTlsAlerts))};
  return {LinkEnd::Kind::kBroken,
          Error(ErrorCode::kPeerLost, fmt::format("{} ended the QUIC connection with error {:#x}", who, told.error_code))};
}

void Connection::end(const LinkEnd& end, const CloseReason* reason, base::Time now) {
  if (state_ == State::kEnded) return;
  state_ = State::kEnded;
  if (reason != nullptr) {
    std::array<std::byte, kHandshakePacketBytes> packet;
    ngtcp2_pkt_info info;
    const ngtcp2_ssize size = ngtcp2_conn_write_connection_close(conn_, nullptr, &info, reinterpret_cast<std::uint8_t*>(packet.data()),
                                                                 packet.size(), reason->native(), stamp(now));
    if (size > 0) endpoint_.send_closing_packet(*this, base::ByteView(packet).first(static_cast<std::size_t>(size)));
  }
  endpoint_.mark_dirty(*this);  // to be buried
  if (handler_ != nullptr) std::exchange(handler_, nullptr)->on_end(end);
}

}  // namespace nexar::transport::quic
