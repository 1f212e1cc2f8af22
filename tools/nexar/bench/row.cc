#include "bench/row.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace nexar::bench {
namespace {

// Microseconds with as many digits as mean something.
std::string time_text(double us) { return us < 100 ? fmt::format("{:.2f}", us) : fmt::format("{:.1f}", us); }

}  // namespace

Row row_of(const Call& call, const Timing& timing) {
  const Collective& collective = collective_of(call.operation);
  const bool is_barrier = call.operation == OperationId::kBarrier;
  Row row;
  row.op = to_string(call.operation);
  row.ranks = call.ranks();
  row.bytes = call.bytes();
  row.count = is_barrier ? 0 : call.count();
  row.type = is_barrier ? "-" : std::string(to_string(call.type));
  row.redop = collective.reduces ? std::string(to_string(call.op)) : "-";
  row.time_us = timing.median_us;
  row.p99_us = timing.p99_us;
  row.algbw = timing.median_us > 0 ? static_cast<double>(row.bytes) / timing.median_us / 1e3 : 0;
  row.busbw = row.algbw * collective.factor(row.ranks);
  return row;
}

int status_of(const std::vector<Row>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.wrong.value_or(0) != 0; }) ? 1 : 0;
}

std::string table_head() {
  return fmt::format(
      "{:<18}{:>12}{:>12}{:>8}{:>7}{:>12}{:>12}{:>9}{:>9}{:>8}  {:<10}{}\n{:<18}{:>12}{:>12}{:>8}{:>7}{:>12}{:>12}{:>9}{:>9}\n", "# op",
      "size", "count", "type", "redop", "time", "p99", "algbw", "busbw", "#wrong", "transport", "algorithm", "#", "(B)", "(elements)", "",
      "", "(us)", "(us)", "(GB/s)", "(GB/s)");
}

std::string table_line(const Row& row) {
  const std::string at_once = row.in_flight > 1 ? fmt::format(", {} at once", row.in_flight) : "";
  const std::string wrong = row.wrong ? std::to_string(*row.wrong) : "-";
  return fmt::format("{:<18}{:>12}{:>12}{:>8}{:>7}{:>12}{:>12}{:>9.2f}{:>9.2f}{:>8}  {:<10}{}{}\n", row.op, row.bytes, row.count, row.type,
                     row.redop, time_text(row.time_us), time_text(row.p99_us), row.algbw, row.busbw, wrong, row.transport, row.algorithm,
                     at_once);
}

std::string json_of(const std::vector<Row>& rows) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    nlohmann::ordered_json object = {
        {"op", row.op},         {"ranks", row.ranks},         {"bytes", row.bytes},         {"dtype", row.type},
        {"redop", row.redop},   {"transport", row.transport}, {"algorithm", row.algorithm}, {"time_us", row.time_us},
        {"p99_us", row.p99_us}, {"algbw_GBps", row.algbw},    {"busbw_GBps", row.busbw},    {"wrong", nullptr}};
    if (row.wrong) object["wrong"] = *row.wrong;
    if (row.in_flight > 1) object["in_flight"] = row.in_flight;
    if (!row.peer.empty()) object["peer"] = row.peer;
    array.push_back(std::move(object));
  }
  return array.dump(1) + "\n";
}

void write_text(const std::string& text, const std::string& file) {
  if (file == "-") {
    fmt::print("{}", text);
    return;
  }
  std::ofstream out(file);
  out << text;
  out.flush();
  if (!out) throw std::runtime_error("cannot write " + file);
}

}  // namespace nexar::bench
