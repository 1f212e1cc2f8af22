// The results as a table and as JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tcp_end.h"
#include "tcp_options.h"

namespace nexar::bench {

// One size: the median of the repetitions' medians, their spread, and the 99th percentile of all iterations. Bytes per second are those of
// one direction in 10^9; of a ping-pong they are those of both ways, because they go one after the other.
struct Row {
  std::size_t bytes = 0;
  std::size_t iterations = 0;
  double time_us = 0;
  double fastest_us = 0;
  double slowest_us = 0;
  double p99_us = 0;
  double algbw_gbps = 0;
  std::uint64_t wrong = 0;
};

Row summarize(Mode mode, std::size_t bytes, const std::vector<Sample>& repetitions);

void print_table(std::FILE* out, const std::vector<Row>& rows);

// What one run used, beside what it was asked to use.
struct Setting {
  std::string congestion;
  std::size_t send_buffer_bytes = 0;
  std::size_t receive_buffer_bytes = 0;
};

void print_setting(std::FILE* out, const Options& options, const Setting& setting);
void print_json(std::FILE* out, const Options& options, const Setting& setting, const std::vector<Row>& rows);

}  // namespace nexar::bench
