// One TCP connection that carries bulk frames both ways.
//
// What it sends it pulls from a BulkSource, frame by frame, sealing from the caller's memory; what it receives it opens into the sinks
// that its handler names. It works in small portions, so that more urgent traffic on the same loop never waits long.
//
//   connects:  kConnecting -> kGreeting -> kOpen -> kClosing -> kEnded        listens:  kOpen -> kClosing -> kEnded
//
// Thread: engine. Owned by whoever made it, who may destroy it at any time but from its own callbacks, on_end() excepted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "io/address.h"
#include "io/loop.h"
#include "io/stream_socket.h"
#include "io/timer.h"
#include "nexar/result.h"
#include "transport/link.h"
#include "transport/tcp/admission.h"
#include "transport/tcp/record_keys.h"
#include "transport/tcp/record_parser.h"
#include "transport/tcp/record_writer.h"
#include "wire/lane_messages.h"

namespace nexar::transport::tcp {

// Where the host's default is BBR a lane has it on long paths only: between neighbours it halves a single connection.
struct LaneOptions {
  // What one turn moves at most, this way or that: some 50 microseconds of one core, so that a line is fed before it runs dry. Twice as
  // much where nothing is sealed, four times where the line takes whatever it is given, and a frame when something more urgent is about.
  std::size_t turn_bytes = 256u << 10;

  // Less than 4 MiB leaves a 64 MiB exchange waiting for the other end's turn; the kernel gives what it may.
  std::size_t receive_buffer_bytes = 8u << 20;

  // What a lane sends from at first, twice as much where nothing is sealed; what that may shrink to where a line takes long over it, and
  // grow to where the path holds more. More than the path holds waits in a queue of the line, comes out of it cold, or is lost there; and
  // where acknowledgements wait in a queue of the other way, the longer of the two slows down the other.
  std::size_t send_buffer_bytes = 320u << 10;
  std::size_t send_buffer_bytes_min = 160u << 10;
  std::size_t send_buffer_bytes_max = 8u << 20;

  base::Duration connect_timeout = std::chrono::seconds(3);  // until the listening end has said hello
  base::Duration close_timeout = std::chrono::seconds(3);    // without progress after close()
  io::Address local = {};                                    // connecting: where to come from
};

// Hears what happens on a lane. Called only from the event loop, never from inside a call to the lane; it may call the lane back.
class LaneHandler {
 public:
  virtual ~LaneHandler() = default;

  // The peer has shown that it has the keys. Comes once, before anything but on_end.
  virtual void on_ready() = 0;

  // As of a link: a bulk frame begins, and its payload goes to the sink, or nowhere when that is null; then it has come. An error ends
  // the lane with the sentence as the reason.
  virtual Result<Sink*> on_frame(const wire::Header& header) = 0;
  virtual Result<void> on_frame_end(const wire::Header& header) = 0;

  // The last call, exactly one: from here on neither sinks nor sources nor the user's memory are touched. The lane may be destroyed in it.
  virtual void on_end(const LinkEnd& end) = 0;
};

struct TcpLaneCounters {
  LaneCounters frames;  // bytes include headers, but not tags
  std::uint64_t records_sealed = 0;
  std::uint64_t records_opened = 0;
  std::size_t bytes_in_kernel = 0;  // sent, not acknowledged
};

class Lane final : private io::Watcher, private io::Poller, private RecordSink {
 public:
  using Options = LaneOptions;

  // Begins to connect. `handler` outlives the lane, and hears on_ready or on_end. Fails at once where there is no way to `to`.
  static Result<std::unique_ptr<Lane>> connect(io::Loop& loop, const io::Address& to, const wire::LaneTicket& ticket, LaneKeys keys,
                                               LaneHandler& handler, const Options& options = {});

  // For the listener: takes over a connection whose hello was opened with `keys`.
  static std::unique_ptr<Lane> accept(io::Loop& loop, io::StreamSocket socket, LaneKeys keys, const Options& options);

  // Of an accepted lane: names its handler, once, when it comes. on_ready follows.
  void start(LaneHandler& handler);

  ~Lane() override;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // How long the way to the peer and back takes at least, as far as its link knows. Of an open lane.
  void fit_congestion_control(base::Duration shortest_round_trip);
  std::string congestion_control() const { return socket_ ? socket_->congestion_control() : std::string(); }

  // As of a link: names where frames come from, or null, and says that there are some again. The source is asked only on ready lanes.
  void set_bulk_source(BulkSource* source);
  void bulk_ready();

  // Asks the source no more, sends what was pulled, and ends when the peer has it all. Frames of the peer's still arrive meanwhile.
  void close();

  // Reads what has come, as far as the kernel has it, without waiting for the loop. The lane may be gone afterwards. Not from a callback.
  void drain();

  // Ends the lane now.
  void abort(std::string_view reason);

  const wire::LaneName& name() const { return terms_.name; }
  bool is_plain() const { return terms_.plain; }
  const std::string& peer() const { return peer_; }  // its address, for messages
  TcpLaneCounters counters() const;

 private:
  enum class State : std::uint8_t { kConnecting, kGreeting, kOpen, kClosing, kEnded };

  Lane(io::Loop& loop, io::StreamSocket socket, LaneKeys keys, const Options& options, State state);

  // io: readiness, turns, time.
  Result<void> watch();
  void on_ready(io::Readiness ready) override;
  bool poll() override;
  bool takes_turns() const override { return true; }
  void on_time();
  void set_active(bool active);
  void set_write_interest(bool interested);

  // One turn.
  bool work();
  bool work_one_way();
  bool receive();
  void cut();
  bool transmit();
  bool fill(std::size_t bytes);
  void hold_back(bool held);
  void fit_send_buffer();
  std::size_t turn_bytes() const;
  void finish_connecting();

  // RecordSink
  Result<Sink*> on_frame(const wire::Header& header) override;
  Result<void> on_frame_end(const wire::Header& header) override;
  Result<void> greeted(const wire::Header& header);

  void say_hello();
  void end(LinkEnd::Kind kind, Error error);
  void fail(const Error& cause);
  void tell_end();
  Error about(ErrorCode code, std::string_view what) const;

  io::Loop& loop_;
  std::optional<io::StreamSocket> socket_;  // none when the lane has ended
  const std::string peer_;
  const LaneTerms terms_;
  const Options options_;
  const std::size_t first_send_buffer_;
  std::size_t send_buffer_;  // what was asked for
  State state_;
  LaneHandler* handler_ = nullptr;
  BulkSource* source_ = nullptr;
  bool source_waits_ = false;  // it had nothing
  RecordWriter writer_;
  RecordParser parser_;
  io::Timer timer_;  // connecting, closing, or telling of the end outside of the call that brought it
  LaneCounters counters_;

  bool watched_ = false;
  bool active_ = false;  // among the loop's pollers
  int idle_polls_ = 0;
  bool working_ = false;
  bool receives_next_ = true;
  bool write_blocked_ = false;
  std::uint64_t looked_at_ = 0;   // bytes sent when the path was last looked at
  std::uint64_t blocked_at_ = 0;  // and when the kernel last left something
  bool held_back_ = false;        // the kernel waits for more before it sends the last packet
  bool ready_due_ = false;
  bool closed_here_ = false;
  bool end_queued_ = false;  // our lane_end is among the records
  bool peer_ended_ = false;  // the peer's has come
  std::optional<LinkEnd> end_;
};

}  // namespace nexar::transport::tcp
