// A stream gives the same frames and the same error whole and in pieces of any sizes.
//
// Input: a byte that chooses the lane, a byte from which the sizes of the pieces follow, the stream.
#include <algorithm>
#include <string>
#include <vector>

#include "fuzz.h"
#include "wire/frame_parser.h"

namespace nexar::wire {
namespace {

// Notes everything that the parser says, pieces of one payload as one.
class Recorder : public FrameSink {
 public:
  Result<void> on_frame(const Header& header) override {
    NEXAR_ASSERT(!open_, "a frame begins when the last has ended");
    open_ = true;
    left_ = header.length;
    headers.push_back(header);
    return {};
  }

  Result<void> on_payload(base::ByteView piece, bool last) override {
    NEXAR_ASSERT(open_ && piece.size() <= left_, "a payload is as long as its header says");
    left_ -= piece.size();
    NEXAR_ASSERT(last == (left_ == 0), "the last piece is marked");
    NEXAR_ASSERT(!piece.empty() || headers.back().length == 0, "only an empty payload has an empty piece");
    payload.insert(payload.end(), piece.begin(), piece.end());
    open_ = !last;
    return {};
  }

  std::vector<Header> headers;
  std::vector<std::byte> payload;
  std::string end;

 private:
  bool open_ = false;
  std::size_t left_ = 0;
};

// Feeds the stream in pieces whose sizes follow from `sizes`; in one piece when that is 0.
Recorder parse(Lane lane, base::ByteView stream, std::uint32_t sizes) {
  Recorder recorder;
  FrameParser parser(lane);
  const bool whole = sizes == 0;
  while (!stream.empty()) {
    sizes = sizes * 1664525u + 1013904223u;
    const std::size_t size = whole ? stream.size() : std::min<std::size_t>(1 + (sizes >> 16) % 97, stream.size());
    if (!parser.feed(stream.first(size), recorder)) break;
    stream = stream.subspan(size);
  }
  const Result<void> finished = parser.finish();
  recorder.end = finished ? "" : finished.error().to_string();
  return recorder;
}

void try_stream(base::ByteView input) {
  if (input.size() < 2) return;
  const auto lane = static_cast<Lane>(static_cast<unsigned>(input[0]) % 4);
  const Recorder whole = parse(lane, input.subspan(2), 0);
  const Recorder pieces = parse(lane, input.subspan(2), 1 + static_cast<std::uint32_t>(input[1]));
  NEXAR_ASSERT(whole.headers == pieces.headers, "pieces give the same headers");
  NEXAR_ASSERT(whole.end == pieces.end, "pieces give the same end");
  NEXAR_ASSERT(whole.payload == pieces.payload, "pieces give the same payload");
}

}  // namespace
}  // namespace nexar::wire

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  nexar::wire::try_stream(nexar::fuzz::view(data, size));
  return 0;
}
