// Packet protection by our own AEAD, where that is faster than the one ngtcp2 brings.
//
// ngtcp2 asks for encryption through callbacks that know neither connection nor level, only an opaque key handle. Handles of ours have
// their lowest bit set, so that the callbacks can tell them from GnuTLS's, which keep protecting the handshake.
#pragma once

#include <gnutls/gnutls.h>

#include "transport/quic/compat.h"

namespace nexar::transport::quic {

// Puts our functions where ngtcp2 looks for packet protection. They pass handles that are not ours on to ngtcp2's own.
void set_packet_protection(ngtcp2_callbacks& callbacks);

// Makes the session install our keys for application data. Does nothing where GnuTLS's are as fast. Call after the session was configured
// for ngtcp2 and its user pointer is an ngtcp2_crypto_conn_ref.
void install_own_keys(gnutls_session_t session);

}  // namespace nexar::transport::quic
