// Somebody in the path of a TCP lane who changes, repeats, drops, reorders or cuts what passes.
#include <algorithm>

#include <fmt/format.h>

#include "transport/lane_pair.h"

namespace nexar::transport::test {
namespace {

// Passes connections on to a target. Of the connection's first direction it lets the hello pass, keeps the next `hold` bytes until all of
// them are there, changes them, and passes them and everything after.
class Proxy {
 public:
  explicit Proxy(const io::Address& target) : target_(target), listener_(io::StreamListener::listen(io::Address::loopback_v4(0)).value()) {}

  io::Address address() const { return listener_.local_address(); }

  // Called as often as possible.
  void turn() {
    if (over_) return;
    if (!near_) {
      std::optional<io::StreamSocket> accepted = listener_.accept().value();
      if (!accepted) return;
      near_.emplace(*std::move(accepted));
      far_.emplace(io::StreamSocket::connect(target_).value());
    }
    if (!connected_) {
      const Result<bool> finished = far_->finish_connect();
      connected_ = finished && *finished;
      if (!connected_) return;
    }
    pump(*near_, forth, near_ended_);
    pump(*far_, back, far_ended_);
    write(*far_, edited(), forth_written_);
    write(*near_, back, back_written_);
    if (cut && !edit && forth_written_ == tcp::kHelloBytes + hold) over_ = true;
    if (over_ || near_ended_ || far_ended_) {
      over_ = true;
      near_.reset();
      far_.reset();
    }
  }

  std::size_t hold = 0;
  std::function<void(Bytes&)> edit;  // of the bytes that were held
  bool cut = false;                  // after them
  Bytes forth;                       // what came from the connecting end
  Bytes back;

 private:
  static void pump(io::StreamSocket& from, Bytes& to, bool& ended) {
    std::array<std::byte, 65536> piece;
    while (!ended) {
      const Result<io::Transferred> read = from.read(piece);
      if (!read || read->state == io::Transferred::State::kClosed) ended = true;
      if (!read || read->state != io::Transferred::State::kOpen) return;
      to.insert(to.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(read->bytes));
    }
  }

  // What may go on by now.
  base::ByteView edited() {
    const std::size_t held_until = tcp::kHelloBytes + hold;
    if (hold > 0 && forth.size() < held_until) return base::ByteView(forth).first(std::min(forth.size(), tcp::kHelloBytes));
    if (edit) {
      Bytes held(forth.begin() + tcp::kHelloBytes, forth.begin() + static_cast<std::ptrdiff_t>(held_until));
      std::exchange(edit, nullptr)(held);
      Bytes changed(forth.begin(), forth.begin() + tcp::kHelloBytes);
      changed.insert(changed.end(), held.begin(), held.end());
      changed.insert(changed.end(), forth.begin() + static_cast<std::ptrdiff_t>(held_until), forth.end());
      forth = std::move(changed);
      hold = held.size();
    }
    return cut ? base::ByteView(forth).first(tcp::kHelloBytes + hold) : base::ByteView(forth);
  }

  static void write(io::StreamSocket& to, base::ByteView bytes, std::size_t& written) {
    while (written < bytes.size()) {
      const Result<io::Transferred> wrote = to.write(bytes.subspan(written));
      if (!wrote || wrote->bytes == 0) return;
      written += wrote->bytes;
    }
  }

  io::Address target_;
  io::StreamListener listener_;
  std::optional<io::StreamSocket> near_;
  std::optional<io::StreamSocket> far_;
  bool connected_ = false;
  bool over_ = false;
  bool near_ended_ = false;
  bool far_ended_ = false;
  std::size_t forth_written_ = 0;
  std::size_t back_written_ = 0;
};

// The stream after the hello: frame 0 with one piece, frame 1 with two, frame 2 with one.
constexpr std::size_t kTag = tcp::kRecordTagBytes;
constexpr std::size_t kHeader = tcp::kSealedHeaderBytes;
const std::vector<std::size_t> kPayloads = {1000, 40000, 1000};
const std::vector<std::size_t> kRecords = {kHeader, 1000 + kTag, kHeader, 32768 + kTag, 7232 + kTag, kHeader, 1000 + kTag};

std::size_t start_of(std::size_t record) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < record; ++i) at += kRecords[i];
  return at;
}

// Frames that are complete before a record.
std::size_t frames_before(std::size_t record) { return record < 2 ? 0 : record < 5 ? 1 : record < 7 ? 2 : 3; }

class ProxyTest : public LaneTest, public testing::WithParamInterface<LaneEndpoint::Taking> {
 protected:
  ProxyTest() { server.taking = GetParam(); }

  // Sends three frames through the proxy and runs until the lane is over at the server.
  void run_through(const std::function<void(Bytes&)>& edit, bool cut = false) {
    Proxy proxy(listener->local_address());
    proxy.hold = start_of(kRecords.size());
    if (terms.plain) proxy.hold -= 4 * kTag;  // payloads have none
    proxy.edit = edit;
    proxy.cut = cut;
    client = LaneEndpoint();
    server = LaneEndpoint();
    server.taking = GetParam();
    ++number_;
    expect(number_);
    dial(proxy.address(), number_);
    sent_.clear();
    for (const std::size_t size : kPayloads) {
      sent_.push_back(random_bytes(size, static_cast<unsigned>(size)));
      client.queue(sent_.back());
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!server.end && std::chrono::steady_clock::now() < deadline) {
      loop->turn(base::Duration::zero());
      proxy.turn();
    }
    ASSERT_TRUE(server.end);
    EXPECT_EQ(server.end->kind, LinkEnd::Kind::kBroken);
    EXPECT_EQ(server.lane, nullptr);
    forth = proxy.forth;
    back = proxy.back;
    listener->forget(ticket(number_));
  }

  // The server has so many frames, whole and intact, and of the next not a byte that was not authentic.
  void expect_delivered(std::size_t frames) {
    ASSERT_EQ(server.whole, frames);
    for (std::size_t i = 0; i < frames; ++i) EXPECT_TRUE(server.frames[i].payload == sent_[i]);
    if (server.frames.size() == frames) return;
    const LaneEndpoint::Received& begun = server.frames[frames];
    EXPECT_TRUE(
        std::equal(begun.payload.begin(), begun.payload.begin() + static_cast<std::ptrdiff_t>(begun.filled), sent_[frames].begin()));
    EXPECT_TRUE(std::all_of(begun.payload.begin() + static_cast<std::ptrdiff_t>(begun.filled), begun.payload.end(),
                            [](std::byte byte) { return byte == std::byte{}; }));
  }

  void expect_sentence(const std::string& part) {
    const std::string& sentence = server.end->error.sentence();
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("TCP lane 2 (generation 7) to 127.0.0.1:"), std::string::npos) << sentence;
  }

  Bytes forth;
  Bytes back;
  std::vector<Bytes> sent_;
  unsigned number_ = 0;
};

INSTANTIATE_TEST_SUITE_P(All, ProxyTest,
                         testing::Values(LaneEndpoint::Taking::kTake, LaneEndpoint::Taking::kPlace, LaneEndpoint::Taking::kScatter));

TEST_P(ProxyTest, ThatFlipsABitOfAnyRecordIsFoundOut) {
  for (std::size_t record = 0; record < kRecords.size(); ++record)
    for (const std::size_t place : {std::size_t{0}, kRecords[record] / 2, kRecords[record] - kTag, kRecords[record] - 1}) {
      run_through([&](Bytes& held) { held[start_of(record) + place] ^= std::byte{4}; });
      expect_delivered(frames_before(record));
      expect_sentence(fmt::format("record {} is not what the peer sealed", record + 1));
    }
}

TEST_P(ProxyTest, ThatRepeatsARecordIsFoundOut) {
  for (std::size_t record = 0; record < kRecords.size(); ++record) {
    run_through([&](Bytes& held) {
      const auto begin = held.begin() + static_cast<std::ptrdiff_t>(start_of(record));
      const Bytes copy(begin, begin + static_cast<std::ptrdiff_t>(kRecords[record]));
      held.insert(begin + static_cast<std::ptrdiff_t>(kRecords[record]), copy.begin(), copy.end());
    });
    expect_delivered(frames_before(record + 1));
  }
}

TEST_P(ProxyTest, ThatRepeatsAFrameIsNamed) {
  run_through([&](Bytes& held) {
    held.insert(held.begin() + static_cast<std::ptrdiff_t>(start_of(2)), held.begin(),
                held.begin() + static_cast<std::ptrdiff_t>(start_of(2)));
  });
  expect_delivered(1);
  expect_sentence("record 1 came a second time, where 3 was due");
}

TEST_P(ProxyTest, ThatDropsAFrameIsNamed) {
  run_through([&](Bytes& held) { held.erase(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(start_of(2))); });
  expect_delivered(0);
  expect_sentence("record 3 came where 1 was due");
}

TEST_P(ProxyTest, ThatDropsAnyRecordIsFoundOut) {
  for (std::size_t record = 0; record + 1 < kRecords.size(); ++record) {
    run_through(
        [&](Bytes& held) {
          const auto begin = held.begin() + static_cast<std::ptrdiff_t>(start_of(record));
          held.erase(begin, begin + static_cast<std::ptrdiff_t>(kRecords[record]));
        },
        true);
    expect_delivered(frames_before(record));
  }
}

TEST_P(ProxyTest, ThatSwapsTwoFramesIsFoundOut) {
  run_through([&](Bytes& held) {
    std::rotate(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(start_of(2)),
                held.begin() + static_cast<std::ptrdiff_t>(start_of(5)));
  });
  expect_delivered(0);
  expect_sentence("record 3 came where 1 was due");
}

TEST_P(ProxyTest, ThatCutsTheStreamAnywhereIsFoundOut) {
  for (std::size_t record = 0; record < kRecords.size(); ++record)
    for (const std::size_t place : {std::size_t{0}, std::size_t{1}, kRecords[record] / 2, kRecords[record] - 1}) {
      run_through([&](Bytes& held) { held.resize(start_of(record) + place); }, true);
      expect_delivered(frames_before(record));
      // Closing a socket whose data were not read resets the connection; then the kernel says so.
      if (server.end->error.code() == ErrorCode::kPeerLost) expect_sentence("the stream was cut");
    }
}

TEST_P(ProxyTest, ThatReplaysAWholeConnectionIsRefused) {
  run_through(nullptr, true);
  expect_delivered(3);
  // Once to the end that listens, where the ticket was used up.
  const std::uint64_t unknown = listener->counters().unknown_tickets;
  io::StreamSocket replay = io::StreamSocket::connect(listener->local_address()).value();
  run_until([&] { return replay.finish_connect().value(); });
  ASSERT_TRUE(replay.write(forth));
  run_until([&] { return listener->counters().unknown_tickets > unknown; });
  EXPECT_EQ(listener->counters().unknown_tickets, unknown + 1);
  EXPECT_EQ(listener->counters().accepted, 1u);

  // And once to an end that connects, for which the keys are those of another generation.
  io::StreamListener fake = io::StreamListener::listen(io::Address::loopback_v4(0)).value();
  client = LaneEndpoint();
  dial(fake.local_address(), 50, tcp::LaneTerms{.name = {.lane = 2, .generation = 8}});
  std::optional<io::StreamSocket> accepted;
  run_until([&] { return accepted || (accepted = fake.accept().value()).has_value(); });
  ASSERT_TRUE(accepted->write(back));
  run_until([&] { return client.end.has_value(); });
  ASSERT_TRUE(client.end);
  EXPECT_EQ(client.end->kind, LinkEnd::Kind::kRefused);
  EXPECT_EQ(client.readies, 0);
}

// A plain lane trusts the network with its payload, and with nothing else.
TEST_P(ProxyTest, ThatChangesTheHeaderOfAPlainFrameIsFoundOut) {
  terms.plain = true;
  run_through([&](Bytes& held) { held[17] ^= std::byte{1}; }, true);
  EXPECT_EQ(server.whole, 0u);
  expect_sentence("record 1 is not what the peer sealed");
}

}  // namespace
}  // namespace nexar::transport::test
