#include "transport/tcp/record_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"

namespace nexar::transport::tcp {
namespace {

constexpr std::size_t kRecordsPerFrame = wire::kBulkBytesMax / wire::kRecordBytesMax;
constexpr std::size_t kFrameBytesMax = kSealedHeaderBytes + wire::kBulkBytesMax + kRecordsPerFrame * kRecordTagBytes;

std::size_t buffer_bytes(bool plain) { return (plain ? 1 : RecordWriter::kFramesPerWrite) * kFrameBytesMax; }

}  // namespace

RecordWriter::RecordWriter(RecordKeys keys, bool plain)
    : keys_(std::move(keys)),
      plain_(plain),
      memory_(std::make_unique_for_overwrite<std::byte[]>(buffer_bytes(plain))),
      buffer_(memory_.get(), buffer_bytes(plain)) {}

void RecordWriter::add_clear(base::ByteView bytes) { std::memcpy(take(bytes.size()).data(), bytes.data(), bytes.size()); }

bool RecordWriter::has_room() const { return plain_ ? empty() : buffer_.size() - end_ >= kFrameBytesMax; }

bool RecordWriter::add(const wire::Header& header, base::ByteView payload) {
  NEXAR_ASSERT(header.length == payload.size(), "a header says how much follows");
  std::array<std::byte, wire::kHeaderBytes> clear;
  wire::encode(header, clear);
  if (!keys_.seal(take(kSealedHeaderBytes), clear)) return false;
  if (plain_) {
    payload_ = payload;
    return true;
  }
  while (!payload.empty()) {
    const base::ByteView piece = payload.first(std::min<std::size_t>(payload.size(), wire::kRecordBytesMax));
    if (!keys_.seal(take(piece.size() + kRecordTagBytes), piece)) return false;
    payload = payload.subspan(piece.size());
  }
  return true;
}

std::array<base::ByteView, 2> RecordWriter::unsent() const { return {buffer_.subspan(begin_, end_ - begin_), payload_}; }

void RecordWriter::sent(std::size_t bytes) {
  const std::size_t of_buffer = std::min(bytes, end_ - begin_);
  begin_ += of_buffer;
  payload_ = payload_.subspan(bytes - of_buffer);
  if (begin_ == end_) begin_ = end_ = 0;
}

void RecordWriter::settle() {
  if (payload_.empty()) return;
  if (begin_ > 0) {  // in the middle of a header: its rest goes to the front, where a whole payload fits behind it
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
  }
  const base::ByteView rest = std::exchange(payload_, {});
  std::memcpy(take(rest.size()).data(), rest.data(), rest.size());
}

base::ByteSpan RecordWriter::take(std::size_t bytes) {
  NEXAR_ASSERT(bytes <= buffer_.size() - end_, "a frame is added when there is room for it");
  end_ += bytes;
  return buffer_.subspan(end_ - bytes, bytes);
}

}  // namespace nexar::transport::tcp
