// Identities in use: GnuTLS's own verification and a TLS 1.3 handshake in memory accept what we issue.
#include "crypto/identity.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <deque>

#include <gnutls/gnutls.h>
#include <gtest/gtest.h>

#include "crypto/hex.h"

namespace nexar::crypto {
namespace {

using std::chrono::sys_seconds;

constexpr std::time_t kNow = 1'800'000'000;

std::time_t test_clock(std::time_t* out) {
  if (out != nullptr) *out = kNow;
  return kNow;
}

gnutls_datum_t datum_of(base::ByteView bytes) {
  return {reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data())), static_cast<unsigned>(bytes.size())};
}

// One side of a TLS session whose other side is in the same thread.
class Side {
 public:
  Side(unsigned role, const Identity& identity, const NodeId& expected) : host_name_(host_name(expected)) {
    gnutls_certificate_allocate_credentials(&credentials_);
    const gnutls_datum_t certificate = datum_of(identity.certificate.der());
    const gnutls_datum_t key = datum_of(identity.key.der().view());
    const gnutls_datum_t authority = datum_of(identity.authority.der());
    EXPECT_GE(gnutls_certificate_set_x509_key_mem(credentials_, &certificate, &key, GNUTLS_X509_FMT_DER), 0);
    EXPECT_EQ(gnutls_certificate_set_x509_trust_mem(credentials_, &authority, GNUTLS_X509_FMT_DER), 1);
    gnutls_init(&session_, role | GNUTLS_NONBLOCK);
    EXPECT_EQ(gnutls_priority_set_direct(session_, "NORMAL:-VERS-ALL:+VERS-TLS1.3", nullptr), 0);
    gnutls_credentials_set(session_, GNUTLS_CRD_CERTIFICATE, credentials_);
    if (role == GNUTLS_SERVER) gnutls_certificate_server_set_request(session_, GNUTLS_CERT_REQUIRE);
    gnutls_session_set_verify_cert(session_, host_name_.c_str(), 0);
    gnutls_transport_set_ptr(session_, this);
    gnutls_transport_set_push_function(session_, push);
    gnutls_transport_set_pull_function(session_, pull);
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
  ~Side() {
    gnutls_deinit(session_);
    gnutls_certificate_free_credentials(credentials_);
  }

  void connect_to(Side& other) { other_ = &other; }

  // True when nothing more is to be done; `failed` tells whether that is a success.
  bool step() {
    if (done_) return true;
    const int status = gnutls_handshake(session_);
    done_ = status == GNUTLS_E_SUCCESS || gnutls_error_is_fatal(status) != 0;
    failed_ = done_ && status != GNUTLS_E_SUCCESS;
    return done_;
  }
  bool failed() const { return failed_; }

  Certificate peer() const {
    unsigned count = 0;
    const gnutls_datum_t* chain = gnutls_certificate_get_peers(session_, &count);
    EXPECT_EQ(count, 1u);
    return Certificate::parse({reinterpret_cast<const std::byte*>(chain[0].data), chain[0].size}).value();
  }

 private:
  static ssize_t push(gnutls_transport_ptr_t self, const void* data, std::size_t size) {
    const auto* bytes = static_cast<const char*>(data);
    auto& inbox = static_cast<Side*>(self)->other_->inbox_;
    inbox.insert(inbox.end(), bytes, bytes + size);
    return static_cast<ssize_t>(size);
  }

  static ssize_t pull(gnutls_transport_ptr_t self, void* data, std::size_t size) {
    auto* side = static_cast<Side*>(self);
    if (side->inbox_.empty()) {
      gnutls_transport_set_errno(side->session_, EAGAIN);
      return -1;
    }
    const std::size_t count = std::min(size, side->inbox_.size());
    const auto end = side->inbox_.begin() + static_cast<std::ptrdiff_t>(count);
    std::copy(side->inbox_.begin(), end, static_cast<char*>(data));
    side->inbox_.erase(side->inbox_.begin(), end);
    return static_cast<ssize_t>(count);
  }

  std::string host_name_;
  gnutls_certificate_credentials_t credentials_ = nullptr;
  gnutls_session_t session_ = nullptr;
  Side* other_ = nullptr;
  std::deque<char> inbox_;
  bool done_ = false;
  bool failed_ = false;
};

// True when both sides succeed.
bool shake_hands(Side& client, Side& server) {
  client.connect_to(server);
  server.connect_to(client);
  for (int turn = 0; turn < 100; ++turn) {
    const bool client_done = client.step();
    const bool server_done = server.step();
    if (client.failed() || server.failed()) return false;
    if (client_done && server_done) return true;
  }
  ADD_FAILURE() << "the handshake does not end";
  return false;
}

class IdentityInTls : public testing::Test {
 protected:
  IdentityInTls() { gnutls_global_set_time_function(test_clock); }
  ~IdentityInTls() override { gnutls_global_set_time_function(std::time); }

  Identity make_node(const LocalAuthority& authority, unsigned char id) const {
    return authority.make_node(node_id(id), sys_seconds(std::chrono::seconds(kNow))).value();
  }

  const LocalAuthority authority_ = LocalAuthority::make(cluster_id(1)).value();
};

TEST_F(IdentityInTls, TwoNodesOfAClusterAcceptEachOther) {
  const Identity one = make_node(authority_, 1);
  const Identity two = make_node(authority_, 2);
  Side client(GNUTLS_CLIENT, one, node_id(2));
  Side server(GNUTLS_SERVER, two, node_id(1));
  ASSERT_TRUE(shake_hands(client, server));
  EXPECT_EQ(client.peer().node(), node_id(2));
  EXPECT_EQ(server.peer().node(), node_id(1));
}

TEST_F(IdentityInTls, ANodeOfAnotherAuthorityIsRefused) {
  const LocalAuthority other = LocalAuthority::make(cluster_id(1)).value();
  const Identity one = make_node(authority_, 1);
  const Identity stranger = make_node(other, 2);
  Side client(GNUTLS_CLIENT, one, node_id(2));
  Side server(GNUTLS_SERVER, stranger, node_id(1));
  EXPECT_FALSE(shake_hands(client, server));
}

TEST_F(IdentityInTls, AnotherNodeThanTheExpectedOneIsRefused) {
  const Identity one = make_node(authority_, 1);
  const Identity two = make_node(authority_, 2);
  Side client(GNUTLS_CLIENT, one, node_id(3));
  Side server(GNUTLS_SERVER, two, node_id(1));
  EXPECT_FALSE(shake_hands(client, server));
}

}  // namespace
}  // namespace nexar::crypto
