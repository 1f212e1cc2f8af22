// How long a plan will take: the work of an algorithm, as a formula, on links of given speed.
//
// A formula costs nanoseconds where a simulation of all ranks would cost milliseconds; the tests compare what it counts with the plans.
#pragma once

#include <cstdint>
#include <string>

namespace nexar::plan {

// What an algorithm asks of its slowest rank and of its longest path. Bytes, as doubles, because they are only compared.
struct Work {
  // The busiest rank, everything overlapping: in or out, whichever is more.
  double messages = 0;
  double bytes = 0;
  double reduced = 0;  // bytes of operands that are added to others
  double copied = 0;

  // The longest chain of things that cannot overlap.
  double hops = 0;
  double path_bytes = 0;
  double path_reduced = 0;

  double message_bytes = 0;  // of the largest message: above the eager limit it costs more

  // In groups with levels (hosts.h), what stays inside a host; the rest is between hosts, and `sharing` times as much of it crosses the
  // line of the busiest host: its ranks have one between them.
  double sharing = 1;
  double local_bytes = 0;
  double local_hops = 0;
  double local_path_bytes = 0;
};

// A link as measured, or guessed. All ranks of a group use the same one, agreed when its view was installed.
struct LinkModel {
  double latency_us = 10;                // from the call of a small send until the receiver has it
  double bandwidth = 1.1e9;              // bytes in a second, each way: a 10 Gbit/s line
  double local_latency_us = 2;           // between ranks of one host, by messages
  double local_bandwidth = 4e9;          // likewise
  double reduce_rate = 8e9;              // bytes in a second, of a reduction that reads both operands from memory
  double copy_rate = 10e9;               // bytes in a second
  double message_overhead_us = 1;        // of both ends' time, for each message
  double bulk_overhead_us = 4;           // the same for a message that is granted
  std::uint64_t eager_limit = 64 << 10;  // the largest message that is not granted

  // Equal for equal models, on every rank.
  std::uint64_t digest() const;
  std::string to_text() const;
  friend bool operator==(const LinkModel&, const LinkModel&) = default;
};

double predict_us(const Work& work, const LinkModel& link);

}  // namespace nexar::plan
