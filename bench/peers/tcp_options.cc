#include "tcp_options.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <system_error>

#include <getopt.h>

namespace nexar::bench {
namespace {

constexpr char kHelp[] =
    R"(tcp_exchange: what plain TCP does between two processes, to compare with

  tcp_exchange [options]                      both ends on this host: forks a server and a client
  tcp_exchange --listen ADDR:PORT [options]   the server alone
  tcp_exchange --connect ADDR:PORT [options]  the client alone, which reports; both ends need the same options

what       --mode exchange|oneway|pingpong    both ways at once (default) | a message, then a 1-byte reply | there and back
           --bytes 8,1K,64M                   message sizes (default 64M)
           --iters N  --warmup N              of each repetition (default: by size)
           --repeat N                         repetitions, sizes interleaved (default 3)
how        --wait spin|block                  retry at once | sleep in epoll (default)
           --cores A,B                        of server and client (default: the first two allowed)
           --no-pin                           leave the processes to the scheduler
           --congestion LIST                  the first that is permitted (default cubic,reno)
           --buffer SIZE  --call SIZE         socket buffers (default 16M), most bytes of one call (default 256K)
where      --address ADDR  --port PORT        where the forked server listens (default 127.0.0.1, any port)
           --netns-server NAME --netns-client NAME   network namespaces under /run/netns
result     --json FILE|-                      an array of objects beside the table
           --limit SECONDS                    for everything (default 300)
)";

enum Option : int {
  kListen = 256,
  kConnect,
  kMode,
  kBytes,
  kIterations,
  kWarmup,
  kRepeat,
  kWait,
  kCores,
  kNoPin,
  kCongestion,
  kBuffer,
  kCall,
  kAddress,
  kPort,
  kServerNamespace,
  kClientNamespace,
  kJson,
  kLimit,
  kHelpWanted,
};

constexpr option kOptions[] = {{"listen", required_argument, nullptr, kListen},
                               {"connect", required_argument, nullptr, kConnect},
                               {"mode", required_argument, nullptr, kMode},
                               {"bytes", required_argument, nullptr, kBytes},
                               {"iters", required_argument, nullptr, kIterations},
                               {"warmup", required_argument, nullptr, kWarmup},
                               {"repeat", required_argument, nullptr, kRepeat},
                               {"wait", required_argument, nullptr, kWait},
                               {"cores", required_argument, nullptr, kCores},
                               {"no-pin", no_argument, nullptr, kNoPin},
                               {"congestion", required_argument, nullptr, kCongestion},
                               {"buffer", required_argument, nullptr, kBuffer},
                               {"call", required_argument, nullptr, kCall},
                               {"address", required_argument, nullptr, kAddress},
                               {"port", required_argument, nullptr, kPort},
                               {"netns-server", required_argument, nullptr, kServerNamespace},
                               {"netns-client", required_argument, nullptr, kClientNamespace},
                               {"json", required_argument, nullptr, kJson},
                               {"limit", required_argument, nullptr, kLimit},
                               {"help", no_argument, nullptr, kHelpWanted},
                               {nullptr, 0, nullptr, 0}};

[[noreturn]] void refuse(std::string_view text, const std::string& wanted) {
  throw UsageError("'" + std::string(text) + "' is not " + wanted);
}

template <typename T>
T parse_number(std::string_view text, T least, T most, const std::string& what) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    refuse(text, what + " from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

// `8`, `1K`, `64M`, `1G`.
std::size_t parse_size(std::string_view text, std::size_t most) {
  constexpr std::string_view kUnits = "KMG";
  const std::size_t unit = text.empty() ? std::string_view::npos : kUnits.find(text.back());
  const std::string_view digits = unit == std::string_view::npos ? text : text.substr(0, text.size() - 1);
  const std::size_t shift = unit == std::string_view::npos ? 0 : 10 * (unit + 1);
  return parse_number<std::size_t>(digits, 1, most >> shift, "a size (like 8, 1K, 64M)") << shift;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::vector<std::size_t> parse_sizes(std::string_view text) {
  std::vector<std::size_t> sizes;
  for (const std::string_view part : split(text)) sizes.push_back(parse_size(part, Options::kMessageBytesMax));
  if (sizes.size() > Options::kSizesMax) refuse(text, "a list of at most " + std::to_string(Options::kSizesMax) + " sizes");
  return sizes;
}

std::pair<int, int> parse_cores(std::string_view text) {
  constexpr int kCoreMax = 1023;  // what a cpu_set_t holds
  const std::vector<std::string_view> parts = split(text);
  if (parts.size() != 2) refuse(text, "two cores, A,B");
  return {parse_number(parts[0], 0, kCoreMax, "a core"), parse_number(parts[1], 0, kCoreMax, "a core")};
}

std::uint16_t parse_port(std::string_view text) { return parse_number<std::uint16_t>(text, 0, 65535, "a port"); }

void set_endpoint(Options& options, Role role, std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || options.role != Role::kBoth) refuse(text, "the one ADDR:PORT of --listen or --connect");
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  options.role = role;
  options.address = host;
  options.port = parse_port(text.substr(colon + 1));
}

Mode parse_mode(std::string_view text) {
  for (const Mode mode : {Mode::kExchange, Mode::kOneway, Mode::kPingpong}) {
    if (text == to_string(mode)) return mode;
  }
  refuse(text, "exchange, oneway or pingpong");
}

Wait parse_wait(std::string_view text) {
  for (const Wait wait : {Wait::kSpin, Wait::kBlock}) {
    if (text == to_string(wait)) return wait;
  }
  refuse(text, "spin or block");
}

void set_option(Options& options, int which, const std::string& text) {
  constexpr std::size_t kBufferMax = std::size_t{1} << 30;  // an int, and twice that in the kernel
  switch (which) {
    case kListen: return set_endpoint(options, Role::kListen, text);
    case kConnect: return set_endpoint(options, Role::kConnect, text);
    case kMode: options.mode = parse_mode(text); return;
    case kBytes: options.sizes = parse_sizes(text); return;
    case kIterations: options.iterations = parse_number(text, 1, Options::kIterationsMax, "a count"); return;
    case kWarmup: options.warmup = parse_number(text, 0, Options::kIterationsMax, "a count"); return;
    case kRepeat: options.repetitions = parse_number(text, 1, Options::kRepetitionsMax, "a count"); return;
    case kWait: options.wait = parse_wait(text); return;
    case kCores: options.cores = parse_cores(text); return;
    case kNoPin: options.pin = false; return;
    case kBuffer: options.socket_buffer_bytes = parse_size(text, kBufferMax); return;
    case kCall: options.call_bytes = parse_size(text, Options::kMessageBytesMax); return;
    case kAddress: options.address = text; return;
    case kPort: options.port = parse_port(text); return;
    case kServerNamespace: options.server_namespace = text; return;
    case kClientNamespace: options.client_namespace = text; return;
    case kJson: options.json = text; return;
    case kLimit: options.limit_seconds = parse_number(text, 1, Options::kLimitSecondsMax, "a number of seconds"); return;
    case kCongestion:
      options.congestion.clear();
      for (const std::string_view name : split(text)) options.congestion.emplace_back(name);
      return;
    default: throw UsageError("unknown option");
  }
}

}  // namespace

const char* to_string(Mode mode) {
  switch (mode) {
    case Mode::kExchange: return "exchange";
    case Mode::kOneway: return "oneway";
    case Mode::kPingpong: return "pingpong";
  }
  return "unknown";
}

const char* to_string(Wait wait) { return wait == Wait::kSpin ? "spin" : "block"; }

// Enough to move 1 GiB, which takes less than a second; never so few that a median means nothing.
int Options::iterations_for(std::size_t bytes) const {
  return iterations.value_or(static_cast<int>(std::clamp((std::size_t{1} << 30) / bytes, std::size_t{20}, std::size_t{2000})));
}

int Options::warmup_for(std::size_t bytes) const { return warmup.value_or(std::max(iterations_for(bytes) / 10, 2)); }

std::size_t Options::largest() const { return *std::max_element(sizes.begin(), sizes.end()); }

std::optional<Options> parse_options(int argc, char** argv) {
  Options options;
  opterr = 0;
  for (;;) {
    const int at = optind;
    const int which = getopt_long(argc, argv, "+", kOptions, nullptr);
    if (which == -1) break;
    if (which == kHelpWanted) return std::fputs(kHelp, stdout), std::nullopt;
    if (which == '?') throw UsageError("'" + std::string(argv[at]) + "' is not understood, or lacks its value");
    set_option(options, which, optarg != nullptr ? optarg : "");
  }
  if (optind < argc) throw UsageError("'" + std::string(argv[optind]) + "' is not understood");
  const bool alone = options.role != Role::kBoth;
  if (alone && !(options.server_namespace + options.client_namespace).empty()) {
    throw UsageError("--netns-server and --netns-client are for both ends at once, not for --listen or --connect");
  }
  return options;
}

}  // namespace nexar::bench
