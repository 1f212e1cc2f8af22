#include "wire/operation_messages.h"

#include <cstring>

namespace nexar::wire {

void Verdict::put(Header& header, Writer& writer) const {
  header.key = sequence;
  put_error(error, writer);
}

Verdict Verdict::get(const Header& header, Reader& reader) { return {.sequence = header.key, .error = get_error(reader)}; }

const char* Progress::fault() const {
  if (steps_done > steps_total) return "has done more steps than there are";
  if (waits_for < -1) return "waits for a rank that cannot be";
  return nullptr;
}

void Progress::put(Writer& writer) const {
  writer.number(steps_done);
  writer.number(steps_total);
  writer.number(bytes_done);
  writer.number(waits_for);
}

Progress Progress::get(Reader& reader) {
  Progress progress;
  progress.steps_done = reader.number<std::uint32_t>();
  progress.steps_total = reader.number<std::uint32_t>();
  progress.bytes_done = reader.number<std::uint64_t>();
  progress.waits_for = reader.number<Rank>();
  return progress;
}

const char* Probe::fault() const {
  const char* fault = call.fault();
  return fault != nullptr ? fault : progress.fault();
}

void Probe::put(Header& header, Writer& writer) const {
  header.key = sequence;
  call.put(writer);
  progress.put(writer);
}

Probe Probe::get(const Header& header, Reader& reader) {
  Probe probe{.sequence = header.key};
  probe.call = CallDescriptor::get(reader);
  probe.progress = Progress::get(reader);
  return probe;
}

const char* ProbeReply::fault() const {
  if (state > OperationState::kEnded) return "has a state that does not exist";
  if (state == OperationState::kNotEntered && call) return "describes a call that was not entered";
  if (state == OperationState::kRunning && !call) return "does not describe the call that runs";
  if (call && call->fault() != nullptr) return call->fault();
  return progress.fault();
}

void ProbeReply::put(Header& header, Writer& writer) const {
  header.key = sequence;
  writer.number(static_cast<std::uint8_t>(state));
  writer.number(static_cast<std::uint8_t>(call ? 1 : 0));
  progress.put(writer);
  if (call) call->put(writer);
}

ProbeReply ProbeReply::get(const Header& header, Reader& reader) {
  ProbeReply reply{.sequence = header.key};
  reply.state = static_cast<OperationState>(reader.number<std::uint8_t>());
  const auto described = reader.number<std::uint8_t>();
  if (described > 1) reader.fail("describes more than one call");
  reply.progress = Progress::get(reader);
  if (described == 1) reply.call = CallDescriptor::get(reader);
  return reply;
}

const char* Revoke::fault() const {
  return lost.empty() || lost.size() > kLostNodesMax ? "names no lost node, or more than allowed" : nullptr;
}

void Revoke::put(Header&, Writer& writer) const {
  writer.number(static_cast<std::uint16_t>(lost.size()));
  for (const NodeId& node : lost) writer.bytes(node.bytes);
}

Revoke Revoke::get(const Header&, Reader& reader) {
  Revoke revoke;
  const auto count = reader.number<std::uint16_t>();
  const base::ByteView bytes = reader.bytes(count * kIdBytes);
  revoke.lost.resize(bytes.size() / kIdBytes);  // of bytes that are here
  if (!bytes.empty()) std::memcpy(revoke.lost.data(), bytes.data(), bytes.size());
  return revoke;
}

}  // namespace nexar::wire
