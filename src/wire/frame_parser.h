// Finds the frames in the byte stream of one lane.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "nexar/result.h"
#include "wire/header.h"

namespace nexar::wire {

// Where frames go. An error that it returns ends the lane.
class FrameSink {
 public:
  virtual ~FrameSink() = default;

  // A frame begins.
  virtual Result<void> on_frame(const Header& header) = 0;

  // The next bytes of its payload, as they came; they may be overwritten after the call. Every frame ends with exactly one call whose
  // `last` is true; the piece is empty only there, and only when the frame has no payload.
  virtual Result<void> on_payload(base::ByteView piece, bool last) = 0;
};

// Takes bytes in whatever pieces they arrive and calls the sink at once: payload is never copied and nothing is waited for but the rest
// of a header, of which at most one is kept. Allocates nothing.
//
// After an error the place in the stream is lost: the parser repeats the error, and its owner closes the lane. The sink may not feed the
// parser that calls it.
//
// Thread: the one that reads the lane. Owned by the link, one for each lane.
class FrameParser {
 public:
  explicit FrameParser(Lane lane) : lane_(lane) {}

  Result<void> feed(base::ByteView bytes, FrameSink& sink);

  // The stream ended: kRefused when that is in the middle of a frame.
  Result<void> finish() const;

 private:
  Result<void> step(base::ByteView& bytes, FrameSink& sink);
  Result<void> take_header(base::ByteView& bytes, FrameSink& sink);
  Result<void> begin(base::ByteView bytes, FrameSink& sink);

  Lane lane_;
  std::array<std::byte, kHeaderBytes> partial_{};
  std::size_t partial_size_ = 0;
  bool in_payload_ = false;
  std::uint32_t left_ = 0;  // bytes of payload still to come
  Result<void> failure_;
};

}  // namespace nexar::wire
