#include "wire/host_messages.h"

#include <cstring>

namespace nexar::wire {
namespace {

template <std::size_t size>
void get_bytes(Reader& reader, std::array<std::byte, size>& out) {
  if (const base::ByteView bytes = reader.bytes(size); !bytes.empty()) std::memcpy(out.data(), bytes.data(), size);
}

void put_flag(Writer& writer, bool flag) { writer.number(static_cast<std::uint8_t>(flag ? 1 : 0)); }

bool get_flag(Reader& reader) {
  const auto flag = reader.number<std::uint8_t>();
  if (flag > 1) reader.fail("has a flag that is neither 0 nor 1");
  return flag == 1;
}

}  // namespace

void HostOffer::put(Header&, Writer& writer) const {
  writer.bytes(name);
  writer.bytes(nonce);
}

HostOffer HostOffer::get(const Header&, Reader& reader) {
  HostOffer offer;
  get_bytes(reader, offer.name);
  get_bytes(reader, offer.nonce);
  return offer;
}

void HostAnswer::put(Header&, Writer& writer) const {
  put_flag(writer, ready);
  put_flag(writer, reads);
  writer.text(why, kTextBytesMax);
}

HostAnswer HostAnswer::get(const Header&, Reader& reader) {
  HostAnswer answer;
  answer.ready = get_flag(reader);
  answer.reads = get_flag(reader);
  answer.why = reader.text(kTextBytesMax);
  return answer;
}

void HostVerdict::put(Header&, Writer& writer) const {
  put_flag(writer, memory);
  put_flag(writer, reads);
  writer.text(why, kTextBytesMax);
}

HostVerdict HostVerdict::get(const Header&, Reader& reader) {
  HostVerdict verdict;
  verdict.memory = get_flag(reader);
  verdict.reads = get_flag(reader);
  verdict.why = reader.text(kTextBytesMax);
  return verdict;
}

}  // namespace nexar::wire
