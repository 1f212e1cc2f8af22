// The TLS side of a QUIC handshake: TLS 1.3, mutual unless said otherwise, one cipher suite, no tickets, no early data.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include <gnutls/gnutls.h>

#include "base/bytes.h"
#include "crypto/certificate.h"
#include "crypto/private_key.h"
#include "nexar/result.h"
#include "transport/peer_verifier.h"
#include "transport/quic/compat.h"

namespace nexar::transport::quic {

// What all sessions of an endpoint share: who we are and which algorithms we speak.
class TlsContext {
 public:
  // What we show to the peer.
  struct Credentials {
    const crypto::PrivateKey& key;
    const crypto::Certificate& certificate;
  };
  enum class Callers : std::uint8_t {
    kShowCertificate,  // and it is verified
    kNotAsked,
  };

  // What a client is there for. A server that takes observers asks them for no certificate, whatever it asks of others.
  enum class Purpose : std::uint8_t { kLink, kObserve };

  // Without credentials only the client's side can be played, against a server that does not ask.
  static Result<std::unique_ptr<TlsContext>> make(std::optional<Credentials> credentials, Callers callers = Callers::kShowCertificate,
                                                  Purpose purpose = Purpose::kLink);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

 private:
  friend class TlsSession;
  TlsContext() = default;

  gnutls_certificate_credentials_t credentials_ = nullptr;
  gnutls_priority_t priorities_ = nullptr;
  Callers callers_ = Callers::kShowCertificate;
  Purpose purpose_ = Purpose::kLink;
};

// The handshake of one connection, and what is known of the peer after it. Owned by its connection.
class TlsSession {
 public:
  enum class Side { kClient, kServer };

  // `verifier` outlives the session; it is null for a server that asks for no certificate. `observers`: whether a server takes them.
  static Result<std::unique_ptr<TlsSession>> make(const TlsContext& context, Side side, PeerVerifier* verifier, bool observers = false);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // Ties the session to the connection whose handshake it is.
  void attach(ngtcp2_conn* conn);

  // Whether the two ends have agreed that the client only observes. After the client's first message.
  bool is_observed() const;

  // The peer's certificate once it has been accepted.
  const crypto::Certificate* peer() const { return peer_ ? &*peer_ : nullptr; }

  // Why the peer was not accepted; nothing if it was, or did not come so far.
  const std::optional<Error>& refusal() const { return refusal_; }

  // Keying material that both ends and nobody else can compute, for `label` and `context`.
  Result<void> export_key(std::string_view label, base::ByteView context, base::ByteSpan key) const;

 private:
  explicit TlsSession(PeerVerifier* verifier) : verifier_(verifier) {}
  static TlsSession& of(gnutls_session_t session);
  static int verify_peer(gnutls_session_t session);
  static int choose_request(gnutls_session_t session, unsigned type, unsigned when, unsigned incoming, const gnutls_datum_t* message);
  Result<crypto::Certificate> check_peer() const;

  PeerVerifier* verifier_;
  ngtcp2_crypto_conn_ref reference_{};  // leads from the session back to here
  ngtcp2_conn* conn_ = nullptr;
  gnutls_session_t session_ = nullptr;
  std::optional<crypto::Certificate> peer_;
  std::optional<Error> refusal_;
};

}  // namespace nexar::transport::quic
