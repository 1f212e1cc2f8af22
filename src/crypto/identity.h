// What a node needs to prove who it is and to check who others are.
#pragma once

#include <chrono>
#include <utility>

#include "crypto/authority.h"
#include "crypto/certificate.h"
#include "crypto/private_key.h"
#include "nexar/result.h"
#include "types/node_id.h"

namespace nexar::crypto {

struct Identity {
  PrivateKey key;
  Certificate certificate;  // of this node
  Certificate authority;    // that issued it, and every other of the cluster
};

// An authority in memory, for clusters that live and die with one process (Node::local) and for tests. Nobody else can join them.
//
// Thread: any, several at once.
class LocalAuthority {
 public:
  // With a key that is made now and kept nowhere.
  static Result<LocalAuthority> make(const ClusterId& cluster);

  const Authority& authority() const { return authority_; }

  // A new key for `node` and a certificate for it.
  Result<Identity> make_node(const NodeId& node, std::chrono::sys_seconds now) const;

 private:
  explicit LocalAuthority(Authority authority) : authority_(std::move(authority)) {}

  Authority authority_;
};

}  // namespace nexar::crypto
