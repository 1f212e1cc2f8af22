#include "cluster/join_link.h"

#include <utility>

#include <fmt/format.h>

#include "base/assert.h"

namespace nexar::cluster {

bool JoinLink::send_frame(transport::Link& link, base::ByteView frame) {
  const Result<wire::Header> header = wire::decode_header(frame);
  NEXAR_ASSERT(header.has_value(), "a frame of ours has a header of ours");
  return link.send(*header, frame.subspan(wire::kHeaderBytes));
}

// Types bound their length, so what is gathered is bounded by what is expected.
Result<transport::Sink*> JoinLink::on_frame(const wire::Header& header) {
  if (header.type != wire::FrameType::kGoodbye && !expects(header.type))
    return Error(ErrorCode::kRefused, fmt::format("a {} frame came where it has no place", to_string(header.type)));
  payload_.clear();
  payload_.reserve(header.length);
  return static_cast<transport::Sink*>(this);
}

void JoinLink::take(base::ByteView bytes) { payload_.insert(payload_.end(), bytes.begin(), bytes.end()); }

Result<void> JoinLink::on_frame_end(const wire::Header& header) {
  const std::vector<std::byte> payload = std::exchange(payload_, {});
  if (header.type != wire::FrameType::kGoodbye) return on_message(header, payload);
  const Result<wire::Goodbye> goodbye = wire::decode_frame<wire::Goodbye>(header, payload);
  if (!goodbye) return goodbye.error();
  on_goodbye(*goodbye);
  return {};
}

}  // namespace nexar::cluster
