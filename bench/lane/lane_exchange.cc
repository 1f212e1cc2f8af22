// Two processes exchange messages over one TCP lane: what a lane costs beside plain TCP, which tcp_exchange measures in the same way.
//
//   parent --fork--> server (first core, its namespace) <--- one lane ---> client (second core, its namespace), which reports
//
// `--help` shows the options. Exit status: 0 success, 1 the measurement failed or bytes were wrong, 2 the command line was not understood.
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/epoll_loop.h"
#include "io/network_namespace.h"
#include "io/thread.h"
#include "transport/tcp/lane.h"
#include "transport/tcp/listener.h"
#include "wire/frame.h"
#include "wire/transfer_messages.h"

namespace nexar::bench {
namespace {

using transport::BulkSource;
using transport::LinkEnd;
using transport::Sink;
using transport::tcp::Lane;
using transport::tcp::LaneKeys;
using transport::tcp::Listener;
using transport::tcp::Side;

constexpr char kHelp[] =
    "usage: lane_exchange [--plain] [--take] [--spin] [--oneway] [--bytes N] [--iters N] [--warmup N] [--turn-bytes N] [--send-buffer N]\n"
    "                     [--netns-server NAME --netns-client NAME --address IP] [--json]\n"
    "--take: the sink takes bytes instead of naming their place, as a reduction does\n";

struct Options {
  bool plain = false;
  bool take = false;
  bool spin = false;
  bool oneway = false;
  bool json = false;
  std::size_t bytes = std::size_t{64} << 20;
  int iterations = 8;
  int warmup = 2;
  transport::tcp::LaneOptions lane;
  std::string server_namespace;
  std::string client_namespace;
  std::string address = "127.0.0.1";
};

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "lane_exchange: %s\n", what.c_str());
  std::exit(1);
}

template <typename T>
T must(Result<T> result) {
  if (!result) die(result.error().to_string());
  return *std::move(result);
}

std::uint64_t word_at(std::uint64_t seed, std::size_t index) { return (seed + index) * 0x9e3779b97f4a7c15; }

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) { return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec); };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// One end: sends its message once for each iteration, and receives the other's into memory of its own.
class End final : public transport::tcp::LaneHandler, public BulkSource, public Sink, public transport::tcp::LaneAcceptor {
 public:
  End(const Options& options, Side side)
      : options_(options), side_(side), loop_(must(io::EpollLoop::open())), out_(options.bytes), in_(options.bytes, std::byte{1}) {
    for (std::size_t at = 0; at + 8 <= out_.size(); at += 8) base::store_le(out_.data() + at, word_at(seed(side), at));
  }

  void listen(int tell) {
    const io::Address local = must(io::Address::parse(options_.address + ":0"));
    listener_ = must(Listener::open(*loop_, local, options_.lane));
    if (auto expected = listener_->expect({}, keys(), *this); !expected) die(expected.error().to_string());
    const std::uint16_t port = listener_->local_address().port();
    if (write(tell, &port, sizeof port) != sizeof port) die("cannot tell the port");
  }

  void connect(int hear) {
    std::uint16_t port = 0;
    if (read(hear, &port, sizeof port) != sizeof port) die("the server did not start");
    const io::Address to = must(io::Address::parse(options_.address + ":0")).with_port(port);
    lane_ = must(Lane::connect(*loop_, to, {}, keys(), *this, options_.lane));
  }

  void run() {
    turn_until([&] { return ready_; });
    lane_->set_bulk_source(this);
    for (int i = 0; i < options_.warmup; ++i) iterate();
    const double cpu = cpu_seconds();
    for (int i = 0; i < options_.iterations; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      iterate();
      times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
    }
    cpu_per_gb = (cpu_seconds() - cpu) / (1e-9 * static_cast<double>(options_.bytes) * options_.iterations);
    const Side other = side_ == Side::kConnects ? Side::kListens : Side::kConnects;
    if (receives())
      for (std::size_t at = 0; at + 8 <= in_.size(); at += 8)
        wrong += base::load_le<std::uint64_t>(in_.data() + at) != word_at(seed(other), at);
    lane_->close();
    turn_until([&] { return ended_; });
  }

  // LaneHandler
  void on_ready() override { ready_ = true; }
  Result<Sink*> on_frame(const wire::Header& header) override {
    in_offset_ = header.key;
    return static_cast<Sink*>(this);
  }
  Result<void> on_frame_end(const wire::Header& header) override {
    received_ += header.length;
    return {};
  }
  void on_end(const LinkEnd& end) override {
    ended_ = true;
    if (end.kind != LinkEnd::Kind::kClosedHere && end.kind != LinkEnd::Kind::kClosedByPeer) die(end.error.to_string());
  }

  // BulkSource
  std::optional<Frame> next(std::size_t bytes_max) override {
    if (to_send_ == 0) return std::nullopt;
    const std::size_t offset = options_.bytes - to_send_;
    const std::size_t size = std::min<std::size_t>(bytes_max, to_send_);
    to_send_ -= size;
    const wire::Bulk bulk{.transfer = 1, .stripe = 0, .generation = 0, .offset = offset};
    return Frame{wire::header_of(bulk, {1, 1}, static_cast<std::uint32_t>(size)), base::ByteView(out_).subspan(offset, size), true};
  }
  bool has_next() const override { return to_send_ > 0; }

  // Sink
  void take(base::ByteView bytes) override {
    std::memcpy(in_.data() + in_offset_, bytes.data(), bytes.size());
    in_offset_ += bytes.size();
  }
  std::size_t place(std::size_t bytes, std::span<base::ByteSpan> regions) override {
    if (options_.take) return 0;
    regions[0] = base::ByteSpan(in_).subspan(in_offset_, bytes);
    return 1;
  }
  void placed(std::size_t bytes) override { in_offset_ += bytes; }

  // LaneAcceptor
  void on_lane(const wire::LaneTicket&, std::unique_ptr<Lane> lane) override {
    lane_ = std::move(lane);
    lane_->start(*this);
  }

  std::vector<double> times;
  double cpu_per_gb = 0;
  std::uint64_t wrong = 0;

 private:
  static std::uint64_t seed(Side side) { return side == Side::kConnects ? 1u << 20 : 5u << 20; }
  bool sends() const { return !options_.oneway || side_ == Side::kConnects; }
  bool receives() const { return !options_.oneway || side_ == Side::kListens; }

  LaneKeys keys() const {
    const std::array<std::byte, transport::tcp::kMaterialBytes> material{};  // a benchmark has no secrets
    return LaneKeys::derive(material, {.name = {.lane = 0, .generation = 1}, .plain = options_.plain}, side_);
  }

  // As in tcp_exchange: an iteration ends when the message has come and the other one was given to the kernel.
  void iterate() {
    if (sends()) {
      to_send_ = options_.bytes;
      lane_->bulk_ready();
    }
    ++iteration_;
    turn_until([&] { return to_send_ == 0 && (!receives() || received_ >= iteration_ * options_.bytes); });
  }

  template <typename Done>
  void turn_until(const Done& done) {
    while (!done()) {
      if (ended_) die("the lane ended early");
      loop_->turn(options_.spin ? base::Duration::zero() : std::chrono::seconds(1));
    }
  }

  const Options& options_;
  const Side side_;
  std::unique_ptr<io::EpollLoop> loop_;
  std::vector<std::byte> out_;
  std::vector<std::byte> in_;
  std::size_t to_send_ = 0;
  std::size_t in_offset_ = 0;
  std::uint64_t received_ = 0;
  std::uint64_t iteration_ = 0;
  bool ready_ = false;
  bool ended_ = false;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Lane> lane_;
};

Options parse(int argc, char** argv) {
  Options options;
  const auto usage = [](const std::string& what) {
    std::fprintf(stderr, "lane_exchange: %s\n%s", what.c_str(), kHelp);
    std::exit(2);
  };
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 >= argc) usage(word + " needs a value");
      return argv[++i];
    };
    const auto number = [&] {
      const std::string text = value();
      char* rest = nullptr;
      const unsigned long long read = std::strtoull(text.c_str(), &rest, 10);
      if (*rest != '\0' || text.empty()) usage("'" + text + "' is no number");
      return static_cast<std::size_t>(read);
    };
    if (word == "--plain")
      options.plain = true;
    else if (word == "--take")
      options.take = true;
    else if (word == "--spin")
      options.spin = true;
    else if (word == "--oneway")
      options.oneway = true;
    else if (word == "--json")
      options.json = true;
    else if (word == "--bytes")
      options.bytes = number() / 8 * 8;
    else if (word == "--iters")
      options.iterations = static_cast<int>(number());
    else if (word == "--warmup")
      options.warmup = static_cast<int>(number());
    else if (word == "--turn-bytes")
      options.lane.turn_bytes = number();
    else if (word == "--send-buffer")
      options.lane.send_buffer_bytes = number();
    else if (word == "--netns-server")
      options.server_namespace = value();
    else if (word == "--netns-client")
      options.client_namespace = value();
    else if (word == "--address")
      options.address = value();
    else
      usage("'" + word + "' is not understood");
  }
  if (options.bytes == 0 || options.iterations <= 0) usage("there must be something to send");
  return options;
}

void serve(const Options& options, int tell, int report) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  io::pin_thread(0);
  End end(options, Side::kListens);
  const std::string path = options.server_namespace.empty() ? "" : "/run/netns/" + options.server_namespace;
  if (auto listening = io::in_network_namespace(path, [&] { return end.listen(tell), Result<void>(); }); !listening)
    die(listening.error().to_string());
  end.run();
  const std::array<double, 2> result = {end.cpu_per_gb, static_cast<double>(end.wrong)};
  if (write(report, result.data(), sizeof result) != sizeof result) die("cannot report");
}

int run(const Options& options) {
  std::array<int, 2> port{};
  std::array<int, 2> report{};
  if (pipe(port.data()) != 0 || pipe(report.data()) != 0) die("cannot open a pipe");
  const pid_t server = fork();
  if (server < 0) die("cannot fork");
  if (server == 0) {
    serve(options, port[1], report[1]);
    std::_Exit(0);
  }
  ::close(port[1]);
  ::close(report[1]);
  io::pin_thread(1);
  End end(options, Side::kConnects);
  const std::string path = options.client_namespace.empty() ? "" : "/run/netns/" + options.client_namespace;
  if (auto connected = io::in_network_namespace(path, [&] { return end.connect(port[0]), Result<void>(); }); !connected)
    die(connected.error().to_string());
  end.run();
  std::array<double, 2> theirs{};
  if (read(report[0], theirs.data(), sizeof theirs) != sizeof theirs) die("the server failed");
  waitpid(server, nullptr, 0);

  std::vector<double> times = end.times;
  std::sort(times.begin(), times.end());
  const double time = times[times.size() / 2];
  const double wrong = theirs[1] + static_cast<double>(end.wrong);
  const double bandwidth = static_cast<double>(options.bytes) / time * 1e-3;
  if (options.json)
    std::printf("[{\"bytes\": %zu, \"time_us\": %.3f, \"algbw_GBps\": %.4f, \"wrong\": %.0f, \"cpu_s_per_GB\": [%.4f, %.4f]}]\n",
                options.bytes, time, bandwidth, wrong, end.cpu_per_gb, theirs[0]);
  else
    std::printf("%zu bytes: %.1f us, %.3f GB/s a direction, CPU seconds for a GB each way %.3f and %.3f, %.0f wrong\n", options.bytes, time,
                bandwidth, end.cpu_per_gb, theirs[0], wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace nexar::bench

int main(int argc, char** argv) { return nexar::bench::run(nexar::bench::parse(argc, argv)); }
