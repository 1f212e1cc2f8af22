#include "wire/link_messages.h"

#include <cstring>

#include <fmt/format.h>

namespace nexar::wire {
namespace {

template <typename Id>
Id get_id(Reader& reader) {
  Id id;
  const base::ByteView bytes = reader.bytes(kIdBytes);
  if (!bytes.empty()) std::memcpy(id.bytes.data(), bytes.data(), kIdBytes);
  return id;
}

}  // namespace

void Hello::put(Header&, Writer& writer) const {
  writer.number(wire_version);
  writer.number(plan_version);
  writer.bytes(node.bytes);
  writer.bytes(cluster.bytes);
  writer.number(config_digest);
  writer.number(eager_bytes);
  writer.number(eager_messages);
  writer.number(announcements);
  writer.number(features);
}

Hello Hello::get(const Header&, Reader& reader) {
  Hello hello;
  hello.wire_version = reader.number<std::uint16_t>();
  hello.plan_version = reader.number<std::uint16_t>();
  hello.node = get_id<NodeId>(reader);
  hello.cluster = get_id<ClusterId>(reader);
  hello.config_digest = reader.number<std::uint64_t>();
  hello.eager_bytes = reader.number<std::uint64_t>();
  hello.eager_messages = reader.number<std::uint32_t>();
  hello.announcements = reader.number<std::uint32_t>();
  hello.features = reader.number<std::uint64_t>();
  return hello;
}

Result<void> check_compatible(const Hello& ours, const Hello& theirs) {
  const auto refused = [&](std::string_view what, const auto& there, const auto& here) {
    return Error(ErrorCode::kRefused, fmt::format("node {} has {} {}, this node has {}", to_string(theirs.node), what, there, here));
  };
  if (theirs.wire_version != ours.wire_version) return refused("wire version", theirs.wire_version, ours.wire_version);
  if (theirs.plan_version != ours.plan_version) return refused("plan version", theirs.plan_version, ours.plan_version);
  if (theirs.cluster != ours.cluster) return refused("cluster", to_string(theirs.cluster), to_string(ours.cluster));
  if (theirs.config_digest != ours.config_digest)
    return refused("configuration digest", fmt::format("{:016x}", theirs.config_digest), fmt::format("{:016x}", ours.config_digest));
  return {};
}

void Ping::put(Header&, Writer& writer) const {
  writer.number(nonce);
  writer.number(time);
}

Ping Ping::get(const Header&, Reader& reader) {
  Ping ping;
  ping.nonce = reader.number<std::uint64_t>();
  ping.time = reader.number<std::uint64_t>();
  return ping;
}

void Pong::put(Header&, Writer& writer) const {
  writer.number(nonce);
  writer.number(time);
}

Pong Pong::get(const Header&, Reader& reader) {
  Pong pong;
  pong.nonce = reader.number<std::uint64_t>();
  pong.time = reader.number<std::uint64_t>();
  return pong;
}

const char* Goodbye::fault() const { return reason > GoodbyeReason::kProtocol ? "has a reason that does not exist" : nullptr; }

void Goodbye::put(Header&, Writer& writer) const {
  writer.number(static_cast<std::uint8_t>(reason));
  writer.text(text, kTextBytesMax);
}

Goodbye Goodbye::get(const Header&, Reader& reader) {
  Goodbye goodbye;
  goodbye.reason = static_cast<GoodbyeReason>(reader.number<std::uint8_t>());
  goodbye.text = reader.text(kTextBytesMax);
  return goodbye;
}

void Abort::put(Header&, Writer& writer) const { writer.text(reason, kTextBytesMax); }

Abort Abort::get(const Header&, Reader& reader) {
  Abort abort;
  abort.reason = reader.text(kTextBytesMax);
  return abort;
}

}  // namespace nexar::wire
