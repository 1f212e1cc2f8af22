// What a measurement of a collective says, as a line of a table and as an object of JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/call.h"
#include "bench/timing.h"

namespace nexar::bench {

struct Row {
  std::string op;
  int ranks = 0;
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;  // elements of a rank's part
  std::string type;         // "-" where there are none
  std::string redop;        // "-" where nothing is reduced
  std::string transport;
  std::string algorithm;
  double time_us = 0;
  double p99_us = 0;
  double algbw = 0;  // GB/s
  double busbw = 0;
  std::optional<std::uint64_t> wrong;  // nothing when it was not checked
  std::size_t in_flight = 1;           // calls at once, of which the times are those of one
  std::string peer;                    // who it is set beside; empty for nexar
};

// A row with everything but how it was carried.
Row row_of(const Call& call, const Timing& timing);

// What a benchmark exits with: 1 when something was checked and is wrong, in any row, 0 otherwise.
int status_of(const std::vector<Row>& rows);

std::string table_head();
std::string table_line(const Row& row);

// An array with an object for each row.
std::string json_of(const std::vector<Row>& rows);

// To a file, or to standard output for `-`. Throws when it cannot.
void write_text(const std::string& text, const std::string& file);

}  // namespace nexar::bench
