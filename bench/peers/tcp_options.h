// What tcp_exchange was asked to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace nexar::bench {

// What ends the program with one line on standard error.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A command line that is not understood: exit status 2 instead of 1.
class UsageError : public Failure {
 public:
  using Failure::Failure;
};

enum class Mode : std::uint8_t {
  kExchange,  // both ends send a message while they receive one
  kOneway,    // the client sends a message, the server answers with one byte
  kPingpong,  // a message there, and one of the same length back
};

enum class Wait : std::uint8_t {
  kSpin,   // try again at once
  kBlock,  // sleep in epoll
};

enum class Role : std::uint8_t {
  kBoth,     // fork a server and a client
  kListen,   // be the server
  kConnect,  // be the client
};

struct Options {
  // Bounds. A message of 1 GiB takes 2 GiB at each end; 8 MB hold a million samples; the rest keeps a typing error from running for days.
  static constexpr std::size_t kMessageBytesMax = std::size_t{1} << 30;
  static constexpr std::size_t kSizesMax = 64;
  static constexpr int kIterationsMax = 1'000'000;
  static constexpr int kRepetitionsMax = 100;
  static constexpr int kLimitSecondsMax = 3600;

  Role role = Role::kBoth;
  Mode mode = Mode::kExchange;
  Wait wait = Wait::kBlock;
  std::vector<std::size_t> sizes = {std::size_t{64} << 20};
  std::optional<int> iterations;  // of each repetition; by size when none is given
  std::optional<int> warmup;
  int repetitions = 3;

  // One call moves at most this much, so that both directions advance in turn and what was just copied is still in the cache.
  std::size_t call_bytes = std::size_t{256} << 10;
  std::size_t socket_buffer_bytes = std::size_t{16} << 20;
  std::vector<std::string> congestion = {"cubic", "reno"};  // the first that is permitted

  bool pin = true;
  std::optional<std::pair<int, int>> cores;  // of server and client; the first two of those allowed when none are given

  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any that is free
  std::string server_namespace;
  std::string client_namespace;

  std::string json;         // a file, "-" for standard output, empty for none
  int limit_seconds = 300;  // for everything

  int iterations_for(std::size_t bytes) const;
  int warmup_for(std::size_t bytes) const;
  std::size_t largest() const;
};

const char* to_string(Mode mode);
const char* to_string(Wait wait);

// Throws UsageError; prints the help and returns nothing when that is what was asked for.
std::optional<Options> parse_options(int argc, char** argv);

}  // namespace nexar::bench
