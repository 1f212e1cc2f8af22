// A peer that has the keys and seals anything gives frames that were sealed, or an error, the same whole and in pieces of any sizes; and
// somebody in between who changes a byte is found out before anything of it is delivered.
//
// Input: flags (1 plain, 2 sinks take, 4 a byte is changed), a byte from which the sizes of the pieces follow, two bytes that say where the
// change is, then headers in clear, each followed by its payload as far as there is one.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "fuzz.h"
#include "transport/tcp/record_keys.h"
#include "transport/tcp/record_parser.h"
#include "wire/header.h"

namespace nexar::transport::tcp {
namespace {

constexpr std::size_t kPrefix = 4;

RecordKeys make_keys(bool plain) {
  const std::array<std::byte, kMaterialBytes> material{};
  // A key for every three records, so that the change of keys is passed too.
  return RecordKeys(material, {.name = {.lane = 1, .generation = 1}, .plain = plain}, Side::kConnects, {.records_per_key = 3});
}

void append_sealed(std::vector<std::byte>& stream, RecordKeys& keys, base::ByteView clear) {
  const std::size_t at = stream.size();
  stream.resize(at + clear.size() + kRecordTagBytes);
  NEXAR_ASSERT(keys.seal(base::ByteSpan(stream).subspan(at), clear), "there are numbers enough");
}

// What a sender would make of the input: every 48 bytes that come where a header is due are sealed, sensible or not.
std::vector<std::byte> seal_all(base::ByteView input, bool plain) {
  RecordKeys keys = make_keys(plain);
  std::vector<std::byte> stream;
  while (input.size() >= wire::kHeaderBytes) {
    append_sealed(stream, keys, input.first(wire::kHeaderBytes));
    const Result<wire::Header> header = wire::decode_header(input);
    input = input.subspan(wire::kHeaderBytes);
    std::size_t left = header ? header->length : 0;
    while (left > 0 && !input.empty()) {
      const base::ByteView piece = input.first(std::min({input.size(), left, std::size_t{wire::kRecordBytesMax}}));
      if (plain)
        stream.insert(stream.end(), piece.begin(), piece.end());
      else
        append_sealed(stream, keys, piece);
      left -= piece.size();
      input = input.subspan(piece.size());
    }
  }
  return stream;
}

enum class Sinks : std::uint8_t { kTake, kPlace, kMixed };

// Notes everything that the parser delivers.
class Recorder final : public RecordSink, public Sink {
 public:
  explicit Recorder(Sinks how) : how_(how) {}

  Result<Sink*> on_frame(const wire::Header& header) override {
    NEXAR_ASSERT(left_ == 0, "a frame begins when the last has ended");
    left_ = header.length;
    headers.push_back(header);
    return static_cast<Sink*>(this);
  }
  Result<void> on_frame_end(const wire::Header& header) override {
    NEXAR_ASSERT(left_ == 0 && header == headers.back(), "a frame ends with its last byte");
    ++whole;
    return {};
  }
  void take(base::ByteView bytes) override {
    count(bytes.size());
    payload.insert(payload.end(), bytes.begin(), bytes.end());
  }
  std::size_t place(std::size_t bytes, std::span<base::ByteSpan> regions) override {
    NEXAR_ASSERT(bytes <= left_, "no more is placed than the header says");
    if (how_ == Sinks::kTake || (how_ == Sinks::kMixed && headers.size() % 3 != 0)) return 0;
    place_.assign(bytes, std::byte{});
    const std::size_t first = bytes / 2;
    regions[0] = base::ByteSpan(place_).first(first);
    regions[1] = base::ByteSpan(place_).subspan(first);
    return 2;
  }
  void placed(std::size_t bytes) override {
    count(bytes);
    payload.insert(payload.end(), place_.begin(), place_.begin() + static_cast<std::ptrdiff_t>(bytes));
  }

  std::vector<wire::Header> headers;
  std::vector<std::byte> payload;
  std::size_t whole = 0;
  std::string end;

 private:
  void count(std::size_t bytes) {
    NEXAR_ASSERT(bytes > 0 && bytes <= left_, "a payload is as long as its header says");
    left_ -= bytes;
  }

  const Sinks how_;
  std::size_t left_ = 0;
  std::vector<std::byte> place_;
};

// Reads the stream as a socket gives it: never more than is wanted, and less as `sizes` says; all that is wanted when that is 0.
Recorder parse(base::ByteView stream, bool plain, Sinks takes, std::uint32_t sizes) {
  Recorder recorder(takes);
  RecordParser parser(make_keys(plain), plain, recorder);
  const bool whole = sizes == 0;
  while (!stream.empty()) {
    sizes = sizes * 1664525u + 1013904223u;
    std::size_t most = whole ? stream.size() : std::min<std::size_t>(1 + (sizes >> 16) % 977, stream.size());
    std::size_t read = 0;
    for (const base::ByteSpan region : parser.wanted()) {
      const std::size_t part = std::min(region.size(), most);
      std::copy_n(stream.begin(), part, region.begin());
      stream = stream.subspan(part);
      most -= part;
      read += part;
    }
    NEXAR_ASSERT(read > 0, "a parser always wants something");
    if (const Result<void> parsed = parser.received(read); !parsed) {
      recorder.end = parsed.error().to_string();
      return recorder;
    }
  }
  if (parser.in_frame()) recorder.end = "cut";
  return recorder;
}

void try_stream(base::ByteView input) {
  if (input.size() < kPrefix) return;
  const auto flags = static_cast<unsigned>(input[0]);
  const bool plain = (flags & 1) != 0;
  const Sinks takes = (flags & 8) != 0 ? Sinks::kMixed : (flags & 2) != 0 ? Sinks::kTake : Sinks::kPlace;
  std::vector<std::byte> stream = seal_all(input.subspan(kPrefix), plain);
  const Recorder sent = parse(stream, plain, takes, 0);
  const Recorder pieces = parse(stream, plain, takes, 1 + static_cast<std::uint32_t>(input[1]));
  NEXAR_ASSERT(sent.headers == pieces.headers, "pieces give the same headers");
  NEXAR_ASSERT(sent.payload == pieces.payload, "pieces give the same payload");
  NEXAR_ASSERT(sent.end == pieces.end, "pieces give the same end");
  if ((flags & 4) == 0 || stream.empty()) return;

  stream[base::load_le<std::uint16_t>(input.data() + 2) % stream.size()] ^= std::byte{0x10};
  const Recorder changed = parse(stream, plain, takes, 0);
  NEXAR_ASSERT(changed.headers.size() <= sent.headers.size(), "no frame is made by changing one");
  NEXAR_ASSERT(std::equal(changed.headers.begin(), changed.headers.end(), sent.headers.begin()), "no header is changed");
  if (plain) return;
  NEXAR_ASSERT(changed.payload.size() <= sent.payload.size(), "nothing is added");
  NEXAR_ASSERT(std::equal(changed.payload.begin(), changed.payload.end(), sent.payload.begin()), "nothing changed is delivered");
}

}  // namespace
}  // namespace nexar::transport::tcp

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  nexar::transport::tcp::try_stream(nexar::fuzz::view(data, size));
  return 0;
}
