// The receiving half of a lane without its socket: says where the next bytes are to be read, and turns them into frames.
//
//   encrypted   the kernel copies into the buffer, the cipher writes to the sink's memory, or in place before a sink takes them
//   plain       the kernel copies to the sink's memory, or into the buffer before a sink takes them
//
// Of a plain lane it asks for no bytes past the header after the frame that it is in, so that no payload is in the buffer that should be
// elsewhere. The largest frames there nearly fill the buffer.
//
// Thread: engine. Owned by its lane.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "nexar/result.h"
#include "transport/link.h"
#include "transport/tcp/record_keys.h"
#include "wire/header.h"

namespace nexar::transport::tcp {

// Where frames go: only what was authenticated, but for plain payloads. An error ends the lane.
class RecordSink {
 public:
  virtual ~RecordSink() = default;
  virtual Result<Sink*> on_frame(const wire::Header& header) = 0;
  virtual Result<void> on_frame_end(const wire::Header& header) = 0;
};

class RecordParser {
 public:
  // Spans that a sink may name for one record. What is scattered more than that is decrypted in the buffer and taken from there.
  static constexpr std::size_t kPlacesMax = 8;

  // What is read at once into the buffer: what the other end writes at once, with its headers and tags, so that nothing of it is left for
  // another read. Beyond this the buffer leaves the cache before it is opened.
  static constexpr std::size_t kReadBytes = 260u << 10;
  static_assert(kReadBytes >= wire::kRecordBytesMax + kRecordTagBytes);

  RecordParser(RecordKeys keys, bool plain, RecordSink& sink);

  // Where the next bytes go, in order; never nothing. Valid until received(), which is to follow before the sink can change its mind.
  std::span<const base::ByteSpan> wanted();

  // So many bytes came, at most what was wanted. After an error the place in the stream is lost.
  Result<void> received(std::size_t bytes);

  // Bytes of an unfinished record or frame are there: a stream that ends now was cut in the middle.
  bool in_frame() const { return in_payload_ || end_ > begin_; }

  std::uint64_t records() const { return keys_.number(); }

 private:
  std::span<const base::ByteSpan> wanted_plain();
  void use_front();
  Result<void> parse();
  Result<void> open_header();
  Result<void> open_payload(std::size_t bytes);
  Result<void> deliver_plain();
  Result<void> end_payload();
  Error forged(base::ByteView sealed) const;
  std::size_t buffered() const { return end_ - begin_; }

  RecordKeys keys_;
  const bool plain_;
  RecordSink& sink_;
  const std::unique_ptr<std::byte[]> memory_;  // not touched before it is used: an idle lane has none of it
  const base::ByteSpan buffer_;
  std::size_t begin_ = 0;  // of what is read and not yet used
  std::size_t end_ = 0;

  // Of the frame that is being received.
  bool in_payload_ = false;
  wire::Header header_{};
  Sink* to_ = nullptr;
  std::size_t left_ = 0;    // of its payload
  std::size_t placed_ = 0;  // plain: bytes at the front of wanted() that are in the sink's memory

  std::array<base::ByteSpan, kPlacesMax + 1> wanted_;
};

}  // namespace nexar::transport::tcp
