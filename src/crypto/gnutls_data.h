// Bytes as GnuTLS passes them. Included only by sources of this layer and of transport/quic.
#pragma once

#include <gnutls/gnutls.h>

#include "base/bytes.h"

namespace nexar::crypto {

// GnuTLS reads a datum it is given as input, although the type does not say so.
inline gnutls_datum_t datum(base::ByteView bytes) {
  static unsigned char nothing = 0;  // some calls take a null pointer for "not given" rather than for "empty"
  if (bytes.empty()) return {&nothing, 0};
  return {reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data())), static_cast<unsigned>(bytes.size())};
}

// A datum that GnuTLS allocated.
class OwnedDatum {
 public:
  OwnedDatum() = default;
  OwnedDatum(const OwnedDatum&) = delete;
  OwnedDatum& operator=(const OwnedDatum&) = delete;
  ~OwnedDatum() { gnutls_free(datum_.data); }

  gnutls_datum_t* out() { return &datum_; }
  base::ByteView view() const { return {reinterpret_cast<const std::byte*>(datum_.data), datum_.size}; }
  base::ByteSpan span() { return {reinterpret_cast<std::byte*>(datum_.data), datum_.size}; }

 private:
  gnutls_datum_t datum_{nullptr, 0};
};

}  // namespace nexar::crypto
