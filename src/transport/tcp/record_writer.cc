#include "transport/tcp/record_writer.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "base/assert.h"

namespace nexar::transport::tcp {
namespace {

constexpr std::size_t kRecordsPerFrame = wire::kBulkBytes / wire::kRecordBytesMax;

std::size_t frame_bytes_max(bool plain) {
  return kSealedHeaderBytes + (plain ? wire::kBulkBytesMax : wire::kBulkBytes + kRecordsPerFrame * kRecordTagBytes);
}

std::size_t buffer_bytes(bool plain) {
  return (plain ? RecordWriter::kPlainFramesPerWrite : RecordWriter::kFramesPerWrite) * frame_bytes_max(plain);
}

}  // namespace

RecordWriter::RecordWriter(RecordKeys keys, bool plain)
    : keys_(std::move(keys)),
      plain_(plain),
      memory_(std::make_unique_for_overwrite<std::byte[]>(buffer_bytes(plain))),
      spare_(plain ? std::make_unique_for_overwrite<std::byte[]>(buffer_bytes(plain)) : nullptr),
      size_(buffer_bytes(plain)) {}

void RecordWriter::add_clear(base::ByteView bytes) { std::memcpy(take(bytes.size()).data(), bytes.data(), bytes.size()); }

// What settle() puts together has to fit as well, and it is never more than the frames of one write.
bool RecordWriter::has_room() const {
  std::size_t waiting = 0;
  for (const base::ByteView piece : unsent()) waiting += piece.size();
  return size_ - std::max(end_, waiting) >= frame_bytes_max(plain_) && first_ + count_ + 2 <= pieces_.size();
}

bool RecordWriter::add(const wire::Header& header, base::ByteView payload, bool stays) {
  NEXAR_ASSERT(header.length == payload.size(), "a header says how much follows");
  std::array<std::byte, wire::kHeaderBytes> clear;
  wire::encode(header, clear);
  if (!keys_.seal(take(kSealedHeaderBytes), clear)) return false;
  if (plain_) {
    if (stays && !payload.empty())
      append(payload);
    else if (!payload.empty())
      add_clear(payload);
    return true;
  }
  while (!payload.empty()) {
    const base::ByteView piece = payload.first(std::min<std::size_t>(payload.size(), wire::kRecordBytesMax));
    if (!keys_.seal(take(piece.size() + kRecordTagBytes), piece)) return false;
    payload = payload.subspan(piece.size());
  }
  return true;
}

void RecordWriter::sent(std::size_t bytes) {
  while (bytes > 0) {
    base::ByteView& front = pieces_[first_];
    const std::size_t of_front = std::min(bytes, front.size());
    front = front.subspan(of_front);
    bytes -= of_front;
    if (!front.empty()) continue;
    ++first_;
    --count_;
  }
  if (count_ == 0) first_ = end_ = 0;
}

bool RecordWriter::is_ours(base::ByteView piece) const {
  return std::greater_equal<>()(piece.data(), memory_.get()) && std::less<>()(piece.data(), memory_.get() + size_);
}

void RecordWriter::settle() {
  const auto pieces = unsent();
  if (std::all_of(pieces.begin(), pieces.end(), [this](base::ByteView piece) { return is_ours(piece); })) return;
  std::size_t filled = 0;
  for (const base::ByteView piece : pieces) {
    std::memcpy(spare_.get() + filled, piece.data(), piece.size());
    filled += piece.size();
  }
  std::swap(memory_, spare_);
  end_ = filled;
  first_ = 0;
  count_ = 1;
  pieces_[0] = base::ByteView(memory_.get(), filled);
}

// The next bytes of the buffer, which become part of what is to be written.
base::ByteSpan RecordWriter::take(std::size_t bytes) {
  NEXAR_ASSERT(bytes <= size_ - end_, "a frame is added when there is room for it");
  const base::ByteSpan taken(memory_.get() + end_, bytes);
  end_ += bytes;
  append(taken);
  return taken;
}

void RecordWriter::append(base::ByteView piece) {
  if (count_ > 0 && is_ours(piece)) {
    base::ByteView& last = pieces_[first_ + count_ - 1];
    if (last.data() + last.size() == piece.data()) {
      last = base::ByteView(last.data(), last.size() + piece.size());
      return;
    }
  }
  pieces_[first_ + count_++] = piece;
}

}  // namespace nexar::transport::tcp
