#include "wire/join_messages.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace nexar::wire {
namespace {

template <std::size_t N>
std::array<std::byte, N> get_array(Reader& reader) {
  std::array<std::byte, N> array{};
  const base::ByteView bytes = reader.bytes(N);
  if (!bytes.empty()) std::memcpy(array.data(), bytes.data(), N);
  return array;
}

void put_der(const std::vector<std::byte>& der, Writer& writer) {
  writer.number(static_cast<std::uint16_t>(der.size()));
  writer.bytes(der);
}

std::vector<std::byte> get_der(Reader& reader) {
  const auto size = reader.number<std::uint16_t>();
  if (size > kDerBytesMax) reader.fail("has a certificate or request that is longer than allowed");
  const base::ByteView bytes = reader.bytes(size);
  return {bytes.begin(), bytes.end()};
}

static_assert(CoreSet::kBytesMax == kCoresBytesMax);

void put_cores(const CoreSet& cores, Writer& writer) {
  writer.number(static_cast<std::uint8_t>(cores.bytes().size()));
  writer.bytes(cores.bytes());
}

CoreSet get_cores(Reader& reader) {
  const auto size = reader.number<std::uint8_t>();
  const std::optional<CoreSet> cores = CoreSet::from_bytes(reader.bytes(size));
  if (!cores) reader.fail("has a set of cores that is longer than allowed, or than it need be");
  return cores.value_or(CoreSet());
}

const char* addresses_fault(const std::vector<NodeAddress>& addresses) {
  if (addresses.size() > kAddressesMax) return "has more addresses than allowed";
  for (const NodeAddress& address : addresses)
    if (const char* fault = address.fault(); fault != nullptr) return fault;
  return nullptr;
}

void put_addresses(const std::vector<NodeAddress>& addresses, Writer& writer) {
  writer.number(static_cast<std::uint8_t>(addresses.size()));
  for (const NodeAddress& address : addresses) address.put(writer);
}

std::vector<NodeAddress> get_addresses(Reader& reader) {
  const auto count = reader.number<std::uint8_t>();
  if (count > kAddressesMax) reader.fail("has more addresses than allowed");
  std::vector<NodeAddress> addresses;
  for (unsigned i = 0; i < count && !reader.failed(); ++i) addresses.push_back(NodeAddress::get(reader));
  return addresses;
}

}  // namespace

void JoinProof::put(Header&, Writer& writer) const { writer.bytes(proof); }

JoinProof JoinProof::get(const Header&, Reader& reader) { return {get_array<kProofBytes>(reader)}; }

void SeedProof::put(Header&, Writer& writer) const { writer.bytes(proof); }

SeedProof SeedProof::get(const Header&, Reader& reader) { return {get_array<kProofBytes>(reader)}; }

const char* JoinRequest::fault() const {
  if (rank < -1) return "asks for a rank that cannot be";
  return request.size() > kDerBytesMax ? "has a request that is longer than allowed" : nullptr;
}

void JoinRequest::put(Header&, Writer& writer) const {
  writer.number(wire_version);
  writer.number(plan_version);
  writer.number(rank);
  writer.number(config_digest);
  writer.bytes(host.bytes);
  put_cores(cores, writer);
  writer.text(agreed, kAgreedBytesMax);
  put_der(request, writer);
  writer.text(name, kNodeNameBytesMax);
}

JoinRequest JoinRequest::get(const Header&, Reader& reader) {
  JoinRequest join;
  join.wire_version = reader.number<std::uint16_t>();
  join.plan_version = reader.number<std::uint16_t>();
  join.rank = reader.number<Rank>();
  join.config_digest = reader.number<std::uint64_t>();
  join.host.bytes = get_array<kIdBytes>(reader);
  join.cores = get_cores(reader);
  join.agreed = reader.text(kAgreedBytesMax);
  join.request = get_der(reader);
  join.name = reader.text(kNodeNameBytesMax);
  return join;
}

const char* JoinAccept::fault() const {
  if (rank < -1) return "gives a rank that cannot be";
  return std::max(certificate.size(), authority.size()) > kDerBytesMax ? "has a certificate that is longer than allowed" : nullptr;
}

void JoinAccept::put(Header&, Writer& writer) const {
  writer.number(rank);
  put_der(certificate, writer);
  put_der(authority, writer);
}

JoinAccept JoinAccept::get(const Header&, Reader& reader) {
  JoinAccept accept;
  accept.rank = reader.number<Rank>();
  accept.certificate = get_der(reader);
  accept.authority = get_der(reader);
  return accept;
}

const char* NodeAddress::fault() const {
  if (port == 0) return "has an address without a port";
  const auto zero = [](base::ByteView bytes) { return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; }); };
  const base::ByteView all(ip);
  if (family == Family::kV4) return zero(all.subspan(4)) ? nullptr : "has an IPv4 address of more than four bytes";
  if (family != Family::kV6) return "has an address of a family that does not exist";
  const bool mapped = zero(all.first(10)) && all[10] == std::byte{0xff} && all[11] == std::byte{0xff};
  return mapped ? "has an IPv4 address that is written as IPv6" : nullptr;
}

void NodeAddress::put(Writer& writer) const {
  writer.number(static_cast<std::uint8_t>(family));
  writer.bytes(ip);
  writer.number(port);
}

NodeAddress NodeAddress::get(Reader& reader) {
  NodeAddress address;
  address.family = static_cast<Family>(reader.number<std::uint8_t>());
  address.ip = get_array<16>(reader);
  address.port = reader.number<std::uint16_t>();
  return address;
}

const char* JoinReady::fault() const { return addresses.empty() ? "names no address" : addresses_fault(addresses); }

void JoinReady::put(Header&, Writer& writer) const { put_addresses(addresses, writer); }

JoinReady JoinReady::get(const Header&, Reader& reader) { return {get_addresses(reader)}; }

void JoinState::put(Header&, Writer& writer) const {
  writer.number(left_ns);
  put_error(error, writer);
}

JoinState JoinState::get(const Header&, Reader& reader) {
  const auto left = reader.number<std::uint64_t>();
  return {left, get_error(reader)};
}

const char* JoinView::fault() const {
  if (size == 0 || size > kWorldMax) return "is of a world of no nodes, or of more than allowed";
  if (members.empty() || members.size() > kViewPartMembersMax) return "has no members, or more than allowed";
  if (first >= size || members.size() > size - first) return "has members that are not in its world";
  for (const Member& member : members)
    if (const char* fault = addresses_fault(member.addresses); fault != nullptr) return fault;
  return nullptr;
}

void JoinView::put(Header&, Writer& writer) const {
  writer.number(epoch);
  writer.number(size);
  writer.number(first);
  writer.number(static_cast<std::uint16_t>(members.size()));
  for (const Member& member : members) {
    writer.bytes(member.node.bytes);
    writer.bytes(member.host.bytes);
    put_cores(member.cores, writer);
    put_addresses(member.addresses, writer);
  }
}

JoinView JoinView::get(const Header&, Reader& reader) {
  JoinView view;
  view.epoch = reader.number<Epoch>();
  view.size = reader.number<std::uint32_t>();
  view.first = reader.number<std::uint32_t>();
  const auto count = reader.number<std::uint16_t>();
  if (count > kViewPartMembersMax) reader.fail("has more members than allowed");
  for (unsigned i = 0; i < count && !reader.failed(); ++i) {
    Member member;
    member.node.bytes = get_array<kIdBytes>(reader);
    member.host.bytes = get_array<kIdBytes>(reader);
    member.cores = get_cores(reader);
    member.addresses = get_addresses(reader);
    view.members.push_back(std::move(member));
  }
  return view;
}

}  // namespace nexar::wire
