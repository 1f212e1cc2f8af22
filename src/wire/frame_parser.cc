#include "wire/frame_parser.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace nexar::wire {

Result<void> FrameParser::feed(base::ByteView bytes, FrameSink& sink) {
  while (failure_ && !bytes.empty()) failure_ = step(bytes, sink);
  return failure_;
}

Result<void> FrameParser::step(base::ByteView& bytes, FrameSink& sink) {
  if (!in_payload_) return take_header(bytes, sink);
  const base::ByteView piece = bytes.first(std::min<std::size_t>(bytes.size(), left_));
  bytes = bytes.subspan(piece.size());
  left_ -= static_cast<std::uint32_t>(piece.size());
  in_payload_ = left_ != 0;
  return sink.on_payload(piece, !in_payload_);
}

Result<void> FrameParser::take_header(base::ByteView& bytes, FrameSink& sink) {
  if (partial_size_ == 0 && bytes.size() >= kHeaderBytes) {  // whole, as nearly always: read in place
    const base::ByteView header = bytes.first(kHeaderBytes);
    bytes = bytes.subspan(kHeaderBytes);
    return begin(header, sink);
  }
  const base::ByteView piece = bytes.first(std::min(bytes.size(), kHeaderBytes - partial_size_));
  std::memcpy(partial_.data() + partial_size_, piece.data(), piece.size());
  partial_size_ += piece.size();
  bytes = bytes.subspan(piece.size());
  if (partial_size_ < kHeaderBytes) return {};
  partial_size_ = 0;
  return begin(partial_, sink);
}

Result<void> FrameParser::begin(base::ByteView bytes, FrameSink& sink) {
  const Result<Header> header = decode_header(bytes);
  if (!header) return header.error();
  if (header->lane() != lane_)
    return Error(ErrorCode::kRefused, fmt::format("a {} frame came on the {} lane", to_string(header->type), to_string(lane_)));
  left_ = header->length;
  in_payload_ = left_ != 0;
  if (auto taken = sink.on_frame(*header); !taken) return taken;
  return in_payload_ ? Result<void>() : sink.on_payload({}, true);
}

Result<void> FrameParser::finish() const {
  if (!failure_) return failure_;
  if (in_payload_)
    return Error(ErrorCode::kRefused, fmt::format("the {} lane ended {} bytes before the end of a frame", to_string(lane_), left_));
  if (partial_size_ != 0)
    return Error(ErrorCode::kRefused, fmt::format("the {} lane ended after {} bytes of a header", to_string(lane_), partial_size_));
  return {};
}

}  // namespace nexar::wire
