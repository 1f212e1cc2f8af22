#include "wire/lane_messages.h"

#include <cstring>
#include <limits>

namespace nexar::wire {
namespace {

const char* name_fault(const LaneName& name) {
  if (name.lane >= kTcpLanesMax) return "names a lane past the last possible one";
  if (name.generation == 0) return "names generation 0, which no lane has, or one past the last possible one";
  return nullptr;
}

void put_name(const LaneName& name, Header& header) {
  header.part = name.lane;
  header.id = name.generation;
}

// A generation that does not fit becomes 0, so that fault() sees it.
LaneName name_of(const Header& header) {
  const bool fits = header.id <= std::numeric_limits<std::uint32_t>::max();
  return {.lane = header.part, .generation = fits ? static_cast<std::uint32_t>(header.id) : 0};
}

}  // namespace

const char* LaneOffer::fault() const {
  if (port == 0) return "names port 0";
  return name_fault(name);
}

void LaneOffer::put(Header& header, Writer& writer) const {
  put_name(name, header);
  writer.number(port);
  writer.number(static_cast<std::uint8_t>(plain ? 1 : 0));
  writer.bytes(ticket);
}

LaneOffer LaneOffer::get(const Header& header, Reader& reader) {
  LaneOffer offer;
  offer.name = name_of(header);
  offer.port = reader.number<std::uint16_t>();
  const auto plain = reader.number<std::uint8_t>();
  if (plain > 1) reader.fail("is neither plain nor encrypted");
  offer.plain = plain == 1;
  if (const base::ByteView bytes = reader.bytes(offer.ticket.size()); !bytes.empty())
    std::memcpy(offer.ticket.data(), bytes.data(), bytes.size());
  return offer;
}

const char* LaneAnswer::fault() const {
  if (status > LaneAnswerStatus::kOverloaded) return "has a status that does not exist";
  return name_fault(name);
}

void LaneAnswer::put(Header& header, Writer& writer) const {
  put_name(name, header);
  writer.number(static_cast<std::uint8_t>(status));
  writer.text(text, kTextBytesMax);
}

LaneAnswer LaneAnswer::get(const Header& header, Reader& reader) {
  LaneAnswer answer;
  answer.name = name_of(header);
  answer.status = static_cast<LaneAnswerStatus>(reader.number<std::uint8_t>());
  answer.text = reader.text(kTextBytesMax);
  return answer;
}

const char* LaneDown::fault() const { return name_fault(name); }

void LaneDown::put(Header& header, Writer& writer) const {
  put_name(name, header);
  writer.text(reason, kTextBytesMax);
}

LaneDown LaneDown::get(const Header& header, Reader& reader) {
  LaneDown down;
  down.name = name_of(header);
  down.reason = reader.text(kTextBytesMax);
  return down;
}

const char* LaneHello::fault() const { return name_fault(name); }

void LaneHello::put(Header& header, Writer&) const { put_name(name, header); }

LaneHello LaneHello::get(const Header& header, Reader&) { return {.name = name_of(header)}; }

}  // namespace nexar::wire
