// Decides who may be at the other end of a link.
#pragma once

#include "crypto/certificate.h"
#include "nexar/result.h"

namespace nexar::transport {

// Called during the handshake with the certificate whose key the peer has proved to hold. An error refuses the peer, and its sentence is
// what both sides log. Thread: engine. Outlives every endpoint that uses it.
class PeerVerifier {
 public:
  virtual ~PeerVerifier() = default;
  virtual Result<void> verify(const crypto::Certificate& certificate) = 0;
};

}  // namespace nexar::transport
