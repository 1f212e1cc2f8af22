#include "doctor/peers.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cluster/candidates.h"
#include "doctor/echo.h"
#include "doctor/encryption_rate.h"
#include "doctor/introduction.h"
#include "doctor/judge_path.h"
#include "io/random.h"

namespace nexar::tool::doctor {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr Tag kIntroduceTag = 1;
constexpr Tag kTurnTag = 2;
constexpr Tag kRoundsTag = 3;
constexpr Tag kBulkTag = 4;

constexpr auto kPatience = 2s;
constexpr int kPings = 20;
constexpr std::size_t kBulkBytes = std::size_t{1} << 20;
constexpr auto kBulkTime = 500ms;
constexpr double kRoundsMax = 256;

// Certificates are back-dated by 10 minutes; half of it is too near, and logs are hard to compare long before.
constexpr double kClockWrong = 300;
constexpr double kClockWarning = 5;

// A wire that carries less than this share of what it is made for, with nothing else on it, has a fault.
constexpr double kShareOfWire = 0.25;

class Exam {
 public:
  Exam(const Node& node, const Surroundings& here) : node_(node), group_(node.world()), here_(here) {}

  Result<Findings> run() {
    const std::uint64_t run = io::system_random().number<std::uint64_t>();
    const Result<Ports> ports = parse_ports(here_.port);
    if (!ports) return ports.error();
    auto echo = Echo::open(*ports, EchoDialect(run, node_.rank()));
    if (!echo) return std::move(echo).error();
    rate_ = encryption_rate();
    if (auto met = introduce({run, (*echo)->udp_port(), (*echo)->tcp_port(), own_addresses(), rate_, wall_seconds()}); !met)
      return std::move(met).error();
    for (Rank turn = 0; turn < node_.size(); ++turn)
      if (auto taken = take_turn(turn); !taken) return std::move(taken).error();
    return findings_;
  }

 private:
  static double wall_seconds() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }
  static std::string name(Rank peer) { return fmt::format("rank {}", peer); }

  std::vector<std::string> own_addresses() const {
    std::vector<std::string> texts;
    if (const auto present = io::interface_addresses())
      if (const auto chosen = cluster::choose_candidates(*present, {.interfaces = here_.interfaces, .port = 1}))
        for (const io::Address& address : *chosen) texts.push_back(address.to_string());
    return texts;
  }

  // Everybody tells everybody.
  Result<void> introduce(const Introduction& own) {
    const std::string text = to_text(own);
    std::vector<Operation> sends;
    for (Rank peer = 0; peer < node_.size(); ++peer)
      if (peer != node_.rank()) sends.push_back(group_.start_send(text.data(), text.size(), peer, kIntroduceTag));
    peers_.resize(static_cast<std::size_t>(node_.size()));
    for (Rank peer = 0; peer < node_.size(); ++peer) {
      if (peer == node_.rank()) continue;
      const Result<OwnedMessage> message = group_.recv_owned(peer, kIntroduceTag);
      if (!message) return message.error();
      Result<Introduction> met = introduction_from(message->bytes);
      if (!met) return std::move(met).error();
      judge_clock(peer, met->clock - wall_seconds());
      peers_[static_cast<std::size_t>(peer)] = *std::move(met);
    }
    for (Operation& send : sends)
      if (auto sent = send.wait(); !sent) return sent.error();
    return {};
  }

  void judge_clock(Rank peer, double ahead) {
    const std::string seen = fmt::format("{} s {} this one", std::llround(std::abs(ahead)), ahead < 0 ? "behind" : "ahead of");
    const std::string check = "clock of " + name(peer);
    const char* remedy = "set both clocks by NTP: `timedatectl set-ntp true`";
    if (std::abs(ahead) >= kClockWrong)
      findings_.push_back(wrong(check, seen + ": certificates are refused from 10 minutes on", remedy));
    else if (std::abs(ahead) >= kClockWarning)
      findings_.push_back(warning(check, seen, remedy));
  }

  Result<void> take_turn(Rank turn) {
    if (turn != node_.rank()) {
      if (turn < node_.rank())
        if (auto helped = exchange_bulk(turn, false); !helped) return helped.error();
      const Result<Status> over = group_.recv(nullptr, 0, turn, kTurnTag);
      if (!over) return over.error();
      return {};
    }
    for (Rank peer = 0; peer < node_.size(); ++peer) {
      if (peer == turn) continue;
      if (auto examined = examine(peer); !examined) return examined;
      if (peer < turn) continue;
      const Result<double> rate = exchange_bulk(peer, true);
      if (!rate) return rate.error();
      judge_bandwidth(peer, *rate);
    }
    for (Rank peer = 0; peer < node_.size(); ++peer)
      if (peer != turn)
        if (auto told = group_.send(nullptr, 0, peer, kTurnTag); !told) return told;
    return {};
  }

  // The address that the link to a peer uses.
  Result<io::Address> address_of(Rank peer) const {
    const Result<NodeCounters> counters = node_.counters();
    if (!counters) return counters.error();
    return io::Address::parse(counters->peers[static_cast<std::size_t>(peer)].address);
  }

  Result<void> examine(Rank peer) {
    const Introduction& met = peers_[static_cast<std::size_t>(peer)];
    const Result<io::Address> used = address_of(peer);
    if (!used) return used.error();
    if (auto pinged = ping(peer, *used); !pinged) return pinged;

    const EchoDialect dialect(met.run, peer);
    auto prober = Prober::open(used->with_port(met.udp), dialect);
    const Path path = prober ? prober->examine(kPatience) : Path{};
    if (path.reach == Reach::kAnswered) {
      findings_.push_back(judge_loss(name(peer), path));
      findings_.push_back(judge_size(name(peer), path, interface_towards(*used)));
    } else {
      findings_.push_back(wrong("udp to " + name(peer),
                                fmt::format("the link at {} works, and UDP port {} there is silent", used->to_string(), met.udp),
                                "let UDP pass between the hosts, for all ports or for the range of NEXAR_PORT on both"));
    }
    examine_tcp(peer, used->with_port(met.tcp));
    examine_others(peer, *used, dialect);
    return {};
  }

  Result<void> ping(Rank peer, const io::Address& used) {
    std::vector<std::chrono::nanoseconds> times;
    for (int i = 0; i < kPings; ++i) {
      const auto time = node_.ping(peer);
      if (!time) return time.error();
      times.push_back(*time);
    }
    std::sort(times.begin(), times.end());
    findings_.push_back(ok("link to " + name(peer), fmt::format("{}, ping {}", used.to_string(), time_text(times[times.size() / 2]))));
    return {};
  }

  void examine_tcp(Rank peer, const io::Address& at) {
    const std::string check = "tcp to " + name(peer);
    if (reach_tcp(at, kPatience) == Reach::kAnswered)
      findings_.push_back(ok(check, "connects"));
    else
      findings_.push_back(wrong(check, fmt::format("no connection to {}: bulk has to go over QUIC, at half the speed", at.to_string()),
                                "let TCP pass between the hosts, for all ports or for the range of NEXAR_PORT on both"));
  }

  // A peer may tell addresses that lead nowhere from here, such as those of a container bridge; each costs time when a world forms.
  void examine_others(Rank peer, const io::Address& used, const EchoDialect& dialect) {
    const Introduction& met = peers_[static_cast<std::size_t>(peer)];
    std::vector<std::string> useless;
    for (const std::string& text : met.addresses) {
      const Result<io::Address> address = io::Address::parse(text);
      if (!address || address->host() == used.host()) continue;
      auto prober = Prober::open(address->with_port(met.udp), dialect);
      if (!prober || prober->reach(500ms) != Reach::kAnswered) useless.push_back(address->host());
    }
    if (useless.empty()) return;
    findings_.push_back(warning("addresses of " + name(peer), fmt::format("{} cannot be reached from here", fmt::join(useless, ", ")),
                                fmt::format("set NEXAR_INTERFACES there to what is reached: {}", used.host())));
  }

  std::string interface_towards(const io::Address& to) const {
    const auto source = io::source_address(to);
    const auto present = io::interface_addresses();
    return source && present ? interface_of(*present, *source) : "";
  }

  // Both ways at once; bytes a second of one way. The rank whose turn it is times one exchange and then decides how many more there are.
  Result<double> exchange_bulk(Rank peer, bool lead) {
    std::vector<std::byte> out(kBulkBytes);
    std::vector<std::byte> in(kBulkBytes);
    const auto exchange = [&](int times) -> Result<double> {
      const Clock::time_point begun = Clock::now();
      for (int i = 0; i < times; ++i) {
        const auto done = group_.exchange(out.data(), out.size(), peer, kBulkTag, in.data(), in.size(), peer, kBulkTag);
        if (!done) return done.error();
      }
      return std::chrono::duration<double>(Clock::now() - begun).count();
    };
    const Result<double> once = exchange(1);
    if (!once) return once;
    std::int32_t rounds = static_cast<std::int32_t>(std::clamp(std::chrono::duration<double>(kBulkTime).count() / *once, 1.0, kRoundsMax));
    if (lead) {
      if (auto told = group_.send(&rounds, sizeof rounds, peer, kRoundsTag); !told) return told.error();
    } else if (const auto heard = group_.recv(&rounds, sizeof rounds, peer, kRoundsTag); !heard) {
      return heard.error();
    }
    const Result<double> time = exchange(rounds);
    if (!time) return time;
    return static_cast<double>(rounds) * kBulkBytes / *time;
  }

  void judge_bandwidth(Rank peer, double rate) {
    const std::string check = "bandwidth to " + name(peer);
    const double there = peers_[static_cast<std::size_t>(peer)].rate;
    const std::string seen =
        fmt::format("{:.3f} GB/s each way at once; a core encrypts {:.1f} GB/s here, {:.1f} there", rate / 1e9, rate_ / 1e9, there / 1e9);
    const auto used = address_of(peer);
    const std::uint64_t megabits =
        used ? here_.system.number(fmt::format("/sys/class/net/{}/speed", interface_towards(*used))).value_or(0) : 0;
    // A virtual cable says 10 Gbit/s whatever it carries, and a core that encrypts and copies may be slower than a wire.
    const double possible = std::min({static_cast<double>(megabits) * 1e6 / 8, rate_ / 4, there / 4});
    if (rate >= kShareOfWire * possible) {
      findings_.push_back(ok(check, seen));
      return;
    }
    findings_.push_back(warning(check, fmt::format("{}; the interface is made for {} Mbit/s", seen, megabits),
                                "look for losses and small socket buffers above, for other traffic, and for a core that is shared"));
  }

  const Node& node_;
  Group group_;
  const Surroundings& here_;
  double rate_ = 0;  // bytes a second that a core encrypts
  std::vector<Introduction> peers_;
  Findings findings_;
};

}  // namespace

Findings check_peers(const Node& node, const Surroundings& here) {
  if (node.size() == 1) return {};
  Result<Findings> found = Exam(node, here).run();
  if (found) return *std::move(found);
  return {wrong("world", found.error().to_string(),
                "run the same version of `nexar doctor --seed` on all hosts, and see that none of them was interrupted")};
}

}  // namespace nexar::tool::doctor
