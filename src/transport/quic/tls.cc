#include "transport/quic/tls.h"

#include <fmt/format.h>

#include "base/assert.h"
#include "transport/quic/packet_keys.h"

namespace nexar::transport::quic {
namespace {

// One suite: the one that our AEAD speaks. X25519 first, P-256 for those who must.
constexpr const char* kPriorities =
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:%DISABLE_TLS13_COMPAT_MODE";

// Both ends say it; another protocol on the same port is refused in the handshake. The number is the wire version's major.
constexpr std::string_view kProtocol = "nexar/1";

// What observers say instead: they have no certificate, and no link of theirs is ever taken for a member's.
constexpr std::string_view kObserverProtocol = "nexar-info/1";

Error tls_error(std::string_view what, int code) {
  return Error(ErrorCode::kInternal, fmt::format("TLS: {}: {}", what, gnutls_strerror(code)));
}

gnutls_datum_t datum(base::ByteView bytes) {
  return {reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data())), static_cast<unsigned>(bytes.size())};
}

}  // namespace

Result<std::unique_ptr<TlsContext>> TlsContext::make(std::optional<Credentials> credentials, Callers callers, Purpose purpose) {
  std::unique_ptr<TlsContext> context(new TlsContext);
  context->callers_ = callers;
  context->purpose_ = purpose;
  if (const int code = gnutls_certificate_allocate_credentials(&context->credentials_); code < 0) return tls_error("credentials", code);
  if (const int code = gnutls_priority_init(&context->priorities_, kPriorities, nullptr); code < 0) return tls_error("priorities", code);

  if (!credentials) return context;
  const gnutls_datum_t certificate = datum(credentials->certificate.der());
  const gnutls_datum_t key = datum(credentials->key.der().view());
  if (const int code = gnutls_certificate_set_x509_key_mem(context->credentials_, &certificate, &key, GNUTLS_X509_FMT_DER); code < 0)
    return tls_error("our certificate and key", code);
  return context;
}

TlsContext::~TlsContext() {
  if (credentials_ != nullptr) gnutls_certificate_free_credentials(credentials_);
  if (priorities_ != nullptr) gnutls_priority_deinit(priorities_);
}

Result<std::unique_ptr<TlsSession>> TlsSession::make(const TlsContext& context, Side side, PeerVerifier* verifier, bool observers) {
  std::unique_ptr<TlsSession> made(new TlsSession(verifier));
  const bool server = side == Side::kServer;
  const unsigned flags = (server ? GNUTLS_SERVER | GNUTLS_NO_AUTO_SEND_TICKET : GNUTLS_CLIENT) | GNUTLS_NO_END_OF_EARLY_DATA;
  if (const int code = gnutls_init(&made->session_, flags); code < 0) return tls_error("session", code);
  gnutls_session_t session = made->session_;
  if ((server ? ngtcp2_crypto_gnutls_configure_server_session(session) : ngtcp2_crypto_gnutls_configure_client_session(session)) != 0)
    return Error(ErrorCode::kInternal, "TLS: the session could not be configured for QUIC");
  install_own_keys(session);

  made->reference_.user_data = made.get();
  made->reference_.get_conn = [](ngtcp2_crypto_conn_ref* reference) { return static_cast<TlsSession*>(reference->user_data)->conn_; };
  gnutls_session_set_ptr(session, &made->reference_);
  if (const int code = gnutls_priority_set(session, context.priorities_); code < 0) return tls_error("priorities", code);
  if (const int code = gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, context.credentials_); code < 0)
    return tls_error("credentials", code);
  const bool observes = !server && context.purpose_ == TlsContext::Purpose::kObserve;
  const gnutls_datum_t protocols[] = {datum(std::as_bytes(std::span(observes ? kObserverProtocol : kProtocol))),
                                      datum(std::as_bytes(std::span(kObserverProtocol)))};
  if (const int code = gnutls_alpn_set_protocols(session, protocols, server && observers ? 2 : 1, GNUTLS_ALPN_MANDATORY); code < 0)
    return tls_error("protocol name", code);
  const bool verified = !server || context.callers_ == TlsContext::Callers::kShowCertificate;
  NEXAR_ASSERT(!verified || verifier != nullptr, "somebody verifies the certificate that is asked for");
  if (server) gnutls_certificate_server_set_request(session, verified ? GNUTLS_CERT_REQUIRE : GNUTLS_CERT_IGNORE);
  if (verified) gnutls_session_set_verify_function(session, &TlsSession::verify_peer);
  if (server && verified && observers)
    gnutls_handshake_set_hook_function(session, GNUTLS_HANDSHAKE_CLIENT_HELLO, GNUTLS_HOOK_POST, &TlsSession::choose_request);
  return made;
}

TlsSession& TlsSession::of(gnutls_session_t session) {
  return *static_cast<TlsSession*>(static_cast<ngtcp2_crypto_conn_ref*>(gnutls_session_get_ptr(session))->user_data);
}

bool TlsSession::is_observed() const {
  gnutls_datum_t protocol{};
  if (gnutls_alpn_get_selected_protocol(session_, &protocol) < 0) return false;
  return std::string_view(reinterpret_cast<const char*>(protocol.data), protocol.size) == kObserverProtocol;
}

// Runs when the client has said what it is there for, before it is asked for a certificate.
int TlsSession::choose_request(gnutls_session_t session, unsigned, unsigned, unsigned, const gnutls_datum_t*) {
  gnutls_certificate_server_set_request(session, of(session).is_observed() ? GNUTLS_CERT_IGNORE : GNUTLS_CERT_REQUIRE);
  return 0;
}

void TlsSession::attach(ngtcp2_conn* conn) {
  conn_ = conn;
  ngtcp2_conn_set_tls_native_handle(conn, session_);
}

TlsSession::~TlsSession() {
  if (session_ != nullptr) gnutls_deinit(session_);
}

// Runs inside the handshake, after the peer's chain has come. GnuTLS itself checks that the peer holds the certificate's key.
int TlsSession::verify_peer(gnutls_session_t session) {
  TlsSession& self = of(session);
  Result<crypto::Certificate> certificate = self.check_peer();
  if (!certificate) {
    self.refusal_ = certificate.error();
    return GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR;
  }
  self.peer_ = *std::move(certificate);
  return 0;
}

Result<crypto::Certificate> TlsSession::check_peer() const {
  unsigned count = 0;
  const gnutls_datum_t* chain = gnutls_certificate_get_peers(session_, &count);
  if (chain == nullptr || count == 0) return Error(ErrorCode::kRefused, "the peer showed no certificate");
  Result<crypto::Certificate> certificate =
      crypto::Certificate::parse(base::ByteView(reinterpret_cast<const std::byte*>(chain[0].data), chain[0].size));
  if (!certificate) return certificate;
  if (auto accepted = verifier_->verify(*certificate); !accepted) return std::move(accepted).error();
  return certificate;
}

Result<void> TlsSession::export_key(std::string_view label, base::ByteView context, base::ByteSpan key) const {
  const int code = gnutls_prf_rfc5705(session_, label.size(), label.data(), context.size(), reinterpret_cast<const char*>(context.data()),
                                      key.size(), reinterpret_cast<char*>(key.data()));
  if (code < 0) return tls_error("exporter", code);
  return {};
}

}  // namespace nexar::transport::quic
