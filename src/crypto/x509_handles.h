// Owners for GnuTLS's X.509 objects, and its failures as our errors. Included only by sources of this layer.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "nexar/error.h"

namespace nexar::crypto {

template <auto kDeinit>
struct Deinit {
  template <typename T>
  void operator()(T* handle) const {
    kDeinit(handle);
  }
};

using PrivateKeyHandle = std::unique_ptr<std::remove_pointer_t<gnutls_x509_privkey_t>, Deinit<gnutls_x509_privkey_deinit>>;
using RequestHandle = std::unique_ptr<std::remove_pointer_t<gnutls_x509_crq_t>, Deinit<gnutls_x509_crq_deinit>>;
using CertificateHandle = std::unique_ptr<std::remove_pointer_t<gnutls_x509_crt_t>, Deinit<gnutls_x509_crt_deinit>>;
using PublicKeyHandle = std::unique_ptr<std::remove_pointer_t<gnutls_pubkey_t>, Deinit<gnutls_pubkey_deinit>>;

// An empty object. GnuTLS refuses that only for want of memory.
template <typename Handle, typename Init>
Handle make_handle(Init init) {
  typename Handle::pointer raw = nullptr;
  const int status = init(&raw);
  NEXAR_ASSERT(status == GNUTLS_E_SUCCESS, "there is memory for a small object");
  return Handle(raw);
}

// Remembers the first failure of a series of calls, so that the series reads as a list.
class Calls {
 public:
  void operator()(int status) {
    if (first_failure_ == GNUTLS_E_SUCCESS && status < 0) first_failure_ = status;
  }
  bool ok() const { return first_failure_ == GNUTLS_E_SUCCESS; }
  int first_failure() const { return first_failure_; }

 private:
  int first_failure_ = GNUTLS_E_SUCCESS;
};

// `what` is a sentence without its end, e.g. "this is no certificate".
inline Error gnutls_failure(ErrorCode code, const std::string& what, int status) { return {code, what + ": " + gnutls_strerror(status)}; }

inline std::vector<std::byte> to_vector(base::ByteView bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace nexar::crypto
