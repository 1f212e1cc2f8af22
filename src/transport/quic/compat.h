// The two generations of ngtcp2 under one set of names: 0.12 of Debian 12 and Ubuntu 24.04, 1.x of Debian 13. Nothing else in the tree asks
// for the version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>
#include <ngtcp2/ngtcp2_crypto_gnutls.h>

#define NEXAR_NGTCP2_1 (NGTCP2_VERSION_NUM >= 0x010000)

namespace nexar::transport::quic {

// Why a connection is closed, as it is told to the peer.
class CloseReason {
 public:
#if NEXAR_NGTCP2_1
  using Native = ngtcp2_ccerr;
  static CloseReason from_library(int error) {
    CloseReason reason;
    ngtcp2_ccerr_set_liberr(&reason.native_, error, nullptr, 0);
    return reason;
  }
  static CloseReason from_alert(std::uint8_t alert) {
    CloseReason reason;
    ngtcp2_ccerr_set_tls_alert(&reason.native_, alert, nullptr, 0);
    return reason;
  }
  // `text` must outlive the reason.
  static CloseReason from_application(std::uint64_t code, const char* text, std::size_t length) {
    CloseReason reason;
    ngtcp2_ccerr_set_application_error(&reason.native_, code, reinterpret_cast<const std::uint8_t*>(text), length);
    return reason;
  }
  static Native received(ngtcp2_conn* conn) { return *ngtcp2_conn_get_ccerr(conn); }
  static bool is_application(const Native& native) { return native.type == NGTCP2_CCERR_TYPE_APPLICATION; }
  CloseReason() { ngtcp2_ccerr_default(&native_); }
#else
  using Native = ngtcp2_connection_close_error;
  static CloseReason from_library(int error) {
    CloseReason reason;
    ngtcp2_connection_close_error_set_transport_error_liberr(&reason.native_, error, nullptr, 0);
    return reason;
  }
  static CloseReason from_alert(std::uint8_t alert) {
    CloseReason reason;
    ngtcp2_connection_close_error_set_transport_error_tls_alert(&reason.native_, alert, nullptr, 0);
    return reason;
  }
  // `text` must outlive the reason.
  static CloseReason from_application(std::uint64_t code, const char* text, std::size_t length) {
    CloseReason reason;
    ngtcp2_connection_close_error_set_application_error(&reason.native_, code, reinterpret_cast<const std::uint8_t*>(text), length);
    return reason;
  }
  static Native received(ngtcp2_conn* conn) {
    Native native;
    ngtcp2_conn_get_connection_close_error(conn, &native);
    return native;
  }
  static bool is_application(const Native& native) { return native.type == NGTCP2_CONNECTION_CLOSE_ERROR_CODE_TYPE_APPLICATION; }
  CloseReason() { ngtcp2_connection_close_error_default(&native_); }
#endif

  const Native* native() const { return &native_; }

 private:
  Native native_;
};

// The token of a client's first packet, and how a server hands it to its connection.
inline std::span<const std::uint8_t> token_of(const ngtcp2_pkt_hd& header) {
#if NEXAR_NGTCP2_1
  return {header.token, header.tokenlen};
#else
  return {header.token.base, header.token.len};
#endif
}

inline void set_token(ngtcp2_settings& settings, std::span<const std::uint8_t> token) {
#if NEXAR_NGTCP2_1
  settings.token = token.data();
  settings.tokenlen = token.size();
#else
  settings.token = {const_cast<std::uint8_t*>(token.data()), token.size()};
#endif
}

// The client's first destination id, which a server must repeat to it.
inline void set_original_dcid(ngtcp2_transport_params& params, const ngtcp2_cid& id) {
  params.original_dcid = id;
#if NEXAR_NGTCP2_1
  params.original_dcid_present = 1;
#endif
}

// The shortest round trip of a connection; kNoRoundTrip when none was measured.
inline constexpr ngtcp2_duration kNoRoundTrip = UINT64_MAX;

inline ngtcp2_duration shortest_round_trip(ngtcp2_conn* conn) {
#if NEXAR_NGTCP2_1
  ngtcp2_conn_info info;
  ngtcp2_conn_get_conn_info(conn, &info);
#else
  ngtcp2_conn_stat info;
  ngtcp2_conn_get_conn_stat(conn, &info);
#endif
  return info.min_rtt;
}

}  // namespace nexar::transport::quic
