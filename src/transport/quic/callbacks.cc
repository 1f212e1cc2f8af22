#include "transport/quic/callbacks.h"

#include <algorithm>
#include <span>

#include "io/random.h"
#include "transport/quic/admission.h"
#include "transport/quic/connection.h"
#include "transport/quic/endpoint.h"
#include "transport/quic/packet_keys.h"

namespace nexar::transport::quic {
namespace {

// The receiver always drains: windows only bound what a peer may have in flight. Less than 2 MiB costs speed, more than the socket's buffer
// brings none.
constexpr std::uint64_t kWindowBytes = 8u << 20;

// A lost last packet is noticed after the peer's acknowledgement delay and a round trip: on a local network that delay would be most of it.
constexpr ngtcp2_duration kAckDelay = 1 * NGTCP2_MILLISECONDS;
// Before the first round trip is measured, three times this passes until a lost first packet is sent again.
constexpr ngtcp2_duration kInitialRoundTrip = 10 * NGTCP2_MILLISECONDS;

// ngtcp2 grows a window to 5.8 of what it takes for the largest packet, and beyond that only to 2.9 times the product of the rate and the
// shortest round trip. On a local network that round trip is some 50 us and tells nothing of a full pipe, in which packets wait for
// processors and for the bursts of a shaper, so windows of 43 KB stayed that small. With this unit they reach 370 KB at any packet size,
// which is 3 ms of 1 Gbit/s; with half of it a line of that rate ran empty whenever processors were late.
constexpr std::size_t kWindowUnit = 64000;

base::ByteSpan bytes_of(std::uint8_t* data, std::size_t size) { return {reinterpret_cast<std::byte*>(data), size}; }

}  // namespace

// Leads from ngtcp2's user pointer into the connection.
struct Callbacks {
  static Connection& self(void* user) { return *static_cast<Connection*>(user); }

  static int handshake_completed(ngtcp2_conn*, void* user) { return self(user).open_streams(); }

  static int recv_stream_data(ngtcp2_conn* conn, std::uint32_t, std::int64_t stream, std::uint64_t, const std::uint8_t* data,
                              std::size_t size, void* user, void*) {
    Connection& connection = self(user);
    if (auto taken = connection.receive_stream(stream, {reinterpret_cast<const std::byte*>(data), size}); !taken) {
      connection.handler_error_ = std::move(taken).error();
      return NGTCP2_ERR_CALLBACK_FAILURE;
    }
    ngtcp2_conn_extend_max_stream_offset(conn, stream, size);
    ngtcp2_conn_extend_max_offset(conn, size);
    return 0;
  }

  static int acked_stream_data_offset(ngtcp2_conn*, std::int64_t stream, std::uint64_t offset, std::uint64_t size, void* user, void*) {
    self(user).acknowledged(stream, offset + size);
    return 0;
  }

  static int stream_reset(ngtcp2_conn*, std::int64_t, std::uint64_t, std::uint64_t, void* user, void*) {
    self(user).handler_error_ = Error(ErrorCode::kRefused, "the peer reset a lane");
    return NGTCP2_ERR_CALLBACK_FAILURE;
  }

  static int get_new_connection_id(ngtcp2_conn*, ngtcp2_cid* id, std::uint8_t* token, std::size_t size, void* user) {
    Connection& connection = self(user);
    id->datalen = size;
    connection.endpoint_.random().fill(bytes_of(id->data, size));
    connection.endpoint_.random().fill(bytes_of(token, NGTCP2_STATELESS_RESET_TOKENLEN));
    connection.endpoint_.add_id(*id, connection);
    return 0;
  }

  static int remove_connection_id(ngtcp2_conn*, const ngtcp2_cid* id, void* user) {
    self(user).endpoint_.remove_id(*id);
    return 0;
  }

  static void rand(std::uint8_t* data, std::size_t size, const ngtcp2_rand_ctx* context) {
    static_cast<io::Random*>(context->native_handle)->fill(bytes_of(data, size));
  }
};

ngtcp2_callbacks connection_callbacks() {
  ngtcp2_callbacks callbacks{};
  callbacks.client_initial = ngtcp2_crypto_client_initial_cb;
  callbacks.recv_client_initial = ngtcp2_crypto_recv_client_initial_cb;
  callbacks.recv_crypto_data = ngtcp2_crypto_recv_crypto_data_cb;
  callbacks.recv_retry = ngtcp2_crypto_recv_retry_cb;
  callbacks.get_path_challenge_data = ngtcp2_crypto_get_path_challenge_data_cb;
  callbacks.version_negotiation = ngtcp2_crypto_version_negotiation_cb;
  callbacks.handshake_completed = Callbacks::handshake_completed;
  callbacks.recv_stream_data = Callbacks::recv_stream_data;
  callbacks.acked_stream_data_offset = Callbacks::acked_stream_data_offset;
  callbacks.stream_reset = Callbacks::stream_reset;
  callbacks.get_new_connection_id = Callbacks::get_new_connection_id;
  callbacks.remove_connection_id = Callbacks::remove_connection_id;
  callbacks.rand = Callbacks::rand;
  set_packet_protection(callbacks);
  return callbacks;
}

ngtcp2_settings connection_settings(std::size_t path_bytes, io::Random& random, base::Time now) {
  ngtcp2_settings settings;
  ngtcp2_settings_default(&settings);
  settings.initial_ts = static_cast<ngtcp2_tstamp>(now.time_since_epoch().count());
  settings.rand_ctx.native_handle = &random;
  settings.cc_algo = NGTCP2_CC_ALGO_CUBIC;
  settings.initial_rtt = kInitialRoundTrip;
  settings.handshake_timeout = static_cast<ngtcp2_duration>(kHandshakeTimeout.count());
  // The length of the buffer that a packet is written into decides its size, not ngtcp2's own search, which ends at 1,444 bytes.
  settings.max_tx_udp_payload_size = std::max(path_bytes, kWindowUnit);
  settings.no_tx_udp_payload_size_shaping = 1;
  settings.no_pmtud = 1;
  return settings;
}

ngtcp2_transport_params connection_parameters(base::Duration idle_timeout) {
  ngtcp2_transport_params parameters;
  ngtcp2_transport_params_default(&parameters);
  parameters.initial_max_data = kWindowBytes;
  parameters.initial_max_stream_data_uni = kWindowBytes;
  parameters.initial_max_streams_uni = kLanes;
  parameters.initial_max_streams_bidi = 0;
  parameters.max_idle_timeout = static_cast<ngtcp2_duration>(idle_timeout.count());
  parameters.max_ack_delay = kAckDelay;
  parameters.active_connection_id_limit = 2;
  parameters.disable_active_migration = 1;
  return parameters;
}

ngtcp2_cid random_id(io::Random& random) {
  ngtcp2_cid id;
  id.datalen = kConnectionIdBytes;
  random.fill(bytes_of(id.data, id.datalen));
  return id;
}

}  // namespace nexar::transport::quic
