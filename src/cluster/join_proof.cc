#include "cluster/join_proof.h"

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace nexar::cluster {
namespace {

constexpr std::string_view kLabel = "nexar join proof";
constexpr std::string_view kExporter = "EXPORTER-nexar-join";
constexpr std::string_view kRoles[] = {"worker", "seed", "observer", "observed"};  // in the order of JoinRole

base::ByteView bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace

Result<crypto::Sha256> join_proof(JoinRole role, base::ByteView secret, const ClusterId& cluster, const transport::Link& link) {
  std::array<std::byte, 32> exported;
  if (Result<void> done = link.export_key(kExporter, {}, exported); !done) return std::move(done).error();
  const std::string_view name = kRoles[static_cast<std::size_t>(role)];
  const std::array<std::byte, 1> length = {static_cast<std::byte>(name.size())};
  return crypto::hmac_sha256(secret, {bytes_of(kLabel), length, bytes_of(name), cluster.bytes, exported});
}

}  // namespace nexar::cluster
