// What a launcher tells the far end of a remote shell, through its standard input.
//
//   one line of JSON: the RankRequest        then records:  'D' length:u16 bytes   for the program's standard input
//                                                           'E'                    that input has ended
//                                                           'S' signal:u8          for the program's process group
//
// Lengths are little-endian. The end of the stream means that the launcher is gone. Secrets travel here and never on a command line, which
// everybody on a host can read.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "nexar/result.h"

namespace nexar::launch {

// Arguments and environment of a process have two megabytes by default; this is the same with room for escapes.
inline constexpr std::size_t kRequestMax = std::size_t{4} << 20;

// Binds a rank to its share of the far host's cores.
struct Binding {
  int local_rank = 0;
  int local_size = 1;

  friend bool operator==(const Binding&, const Binding&) = default;
};

struct RankRequest {
  std::vector<std::string> words;  // the program and its arguments
  std::string directory;
  std::map<std::string, std::string> environment;  // in addition to what the far end has
  bool has_input = false;                          // otherwise its standard input is empty
  std::optional<Binding> binding{};                // otherwise it runs wherever the far end may

  friend bool operator==(const RankRequest&, const RankRequest&) = default;
};

// With the newline. kInvalidArgument when an argument is no UTF-8 or all is too long.
Result<std::string> encode(const RankRequest& request);

// Without the newline.
Result<RankRequest> decode_request(std::string_view line);

// One record, of at most kDataMax bytes of input.
inline constexpr std::size_t kDataMax = 4096;
std::string input_record(std::string_view bytes);
std::string input_end_record();
std::string signal_record(int signal);

// Takes a stream of records apart.
class RecordReader {
 public:
  struct Input {
    std::string bytes;
  };
  struct InputEnd {};
  struct Signal {
    int number;
  };
  using Record = std::variant<Input, InputEnd, Signal>;

  // The records that these bytes complete. After an error the stream means nothing any more.
  Result<std::vector<Record>> add(std::string_view bytes);

 private:
  std::string rest_;  // of an incomplete record: less than 3 + 65535 bytes
};

}  // namespace nexar::launch
