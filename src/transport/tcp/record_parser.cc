#include "transport/tcp/record_parser.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"

namespace nexar::transport::tcp {
namespace {

static_assert(RecordParser::kPlacesMax <= crypto::kAeadRegionsMax);

}  // namespace

RecordParser::RecordParser(RecordKeys keys, bool plain, RecordSink& sink)
    : keys_(std::move(keys)),
      plain_(plain),
      sink_(sink),
      memory_(std::make_unique_for_overwrite<std::byte[]>(kReadBytes)),
      buffer_(memory_.get(), kReadBytes) {}

// What is left of a record goes to the front, where it is sure to have room.
void RecordParser::use_front() {
  if (begin_ == 0) return;
  std::memmove(buffer_.data(), buffer_.data() + begin_, buffered());
  end_ -= std::exchange(begin_, 0);
}

std::span<const base::ByteSpan> RecordParser::wanted() {
  placed_ = 0;
  use_front();
  if (plain_) return wanted_plain();
  wanted_[0] = buffer_.subspan(end_);
  return std::span(wanted_).first(1);
}

std::span<const base::ByteSpan> RecordParser::wanted_plain() {
  NEXAR_ASSERT(in_payload_ ? buffered() == 0 : buffered() < kSealedHeaderBytes, "what is read is used up but for a part of a header");
  if (!in_payload_) {
    wanted_[0] = buffer_.subspan(end_, kSealedHeaderBytes - end_);
    return std::span(wanted_).first(1);
  }
  std::size_t count = to_ == nullptr ? 0 : to_->place(left_, std::span(wanted_).first(kPlacesMax));
  if (count > 0) placed_ = left_;
  wanted_[count] = buffer_.first(std::min(buffer_.size(), left_ - placed_ + kSealedHeaderBytes));
  return std::span(wanted_).first(count + 1);
}

Result<void> RecordParser::received(std::size_t bytes) {
  if (const std::size_t placed = std::min(bytes, std::exchange(placed_, 0)); placed > 0) {
    bytes -= placed;
    left_ -= placed;
    to_->placed(placed);
    if (left_ == 0)
      if (auto ended = end_payload(); !ended) return ended;
  }
  end_ += bytes;
  return parse();
}

Result<void> RecordParser::parse() {
  for (;;) {
    Result<void> done;
    if (!in_payload_) {
      if (buffered() < kSealedHeaderBytes) return {};
      done = open_header();
    } else if (plain_) {
      if (buffered() == 0) return {};
      done = deliver_plain();
    } else {
      const std::size_t piece = std::min<std::size_t>(left_, wire::kRecordBytesMax);
      if (buffered() < piece + kRecordTagBytes) return {};
      done = open_payload(piece);
    }
    if (!done) return done;
  }
}

Result<void> RecordParser::open_header() {
  const base::ByteSpan record = buffer_.subspan(begin_, kSealedHeaderBytes);
  std::array<std::byte, wire::kHeaderBytes> clear;
  if (!keys_.open(clear, record)) return forged(record);
  begin_ += record.size();
  const Result<wire::Header> header = wire::decode_header(clear);
  if (!header) return header.error();
  if (header->lane() != wire::Lane::kBulk)
    return Error(ErrorCode::kRefused, fmt::format("a {} frame came by a bulk lane", wire::to_string(header->type)));
  Result<Sink*> sink = sink_.on_frame(*header);
  if (!sink) return std::move(sink).error();
  header_ = *header;
  to_ = *sink;
  left_ = header->length;
  in_payload_ = true;
  if (left_ == 0) return end_payload();
  return {};
}

Result<void> RecordParser::open_payload(std::size_t bytes) {
  const base::ByteSpan record = buffer_.subspan(begin_, bytes + kRecordTagBytes);
  const std::size_t places = to_ == nullptr ? 0 : to_->place(bytes, std::span(wanted_).first(kPlacesMax));
  if (places > 0) {
    if (!keys_.open(std::span(wanted_).first(places), record)) return forged(record);
    to_->placed(bytes);
  } else {
    // In place. Where that fails the record is lost, so nothing more can be said of it.
    const base::ByteSpan clear = record.first(bytes);
    if (!keys_.open(clear, record)) return forged({});
    if (to_ != nullptr) to_->take(clear);
  }
  begin_ += record.size();
  left_ -= bytes;
  return left_ == 0 ? end_payload() : Result<void>();
}

Result<void> RecordParser::deliver_plain() {
  const base::ByteView bytes = buffer_.subspan(begin_, std::min(left_, buffered()));
  begin_ += bytes.size();
  left_ -= bytes.size();
  if (to_ != nullptr) to_->take(bytes);
  return left_ == 0 ? end_payload() : Result<void>();
}

Result<void> RecordParser::end_payload() {
  in_payload_ = false;
  to_ = nullptr;
  return sink_.on_frame_end(header_);
}

Error RecordParser::forged(base::ByteView sealed) const {
  const std::uint64_t due = keys_.number();
  const std::optional<std::uint64_t> number = keys_.number_of(sealed);
  if (number && *number < due)
    return Error(ErrorCode::kRefused, fmt::format("record {} came a second time, where {} was due", *number, due));
  if (number) return Error(ErrorCode::kRefused, fmt::format("record {} came where {} was due: some are missing", *number, due));
  return Error(ErrorCode::kRefused,
               fmt::format("record {} is not what the peer sealed: its bytes were changed, or it is not the peer's", due));
}

}  // namespace nexar::transport::tcp
