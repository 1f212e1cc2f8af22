#include "tcp_report.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace nexar::bench {
namespace {

// The smallest value that at least this share of all does not exceed. Never of nothing: there is at least one iteration.
double quantile(std::vector<double> values, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size()))) - 1;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(rank), values.end());
  return values[rank];
}

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

}  // namespace

Row summarize(Mode mode, std::size_t bytes, const std::vector<Sample>& repetitions) {
  Row row;
  row.bytes = bytes;
  std::vector<double> all;
  std::vector<double> medians;
  for (const Sample& sample : repetitions) {
    std::vector<double> microseconds;
    for (const std::uint64_t time : sample.nanoseconds) microseconds.push_back(static_cast<double>(time) / 1e3);
    all.insert(all.end(), microseconds.begin(), microseconds.end());
    medians.push_back(median(std::move(microseconds)));
    row.wrong += sample.wrong;
  }
  row.iterations = all.size();
  row.time_us = median(medians);
  row.fastest_us = *std::min_element(medians.begin(), medians.end());
  row.slowest_us = *std::max_element(medians.begin(), medians.end());
  row.p99_us = quantile(std::move(all), 0.99);
  const double ways = mode == Mode::kPingpong ? 2 : 1;
  row.algbw_gbps = ways * static_cast<double>(bytes) / row.time_us / 1e3;
  return row;
}

void print_setting(std::FILE* out, const Options& options, const Setting& setting) {
  std::fprintf(out, "# tcp %s, wait %s, congestion %s, socket buffers %zu KiB to send and %zu KiB to receive, %zu KiB a call\n",
               to_string(options.mode), to_string(options.wait), setting.congestion.c_str(), setting.send_buffer_bytes >> 10,
               setting.receive_buffer_bytes >> 10, options.call_bytes >> 10);
}

void print_table(std::FILE* out, const std::vector<Row>& rows) {
  std::fprintf(out, "#%11s %8s %12s %25s %12s %12s %8s\n", "bytes", "iters", "time (us)", "[of repetitions]", "p99 (us)", "algbw (GB/s)",
               "wrong");
  for (const Row& row : rows) {
    std::fprintf(out, "%12zu %8zu %12.2f [%11.2f-%11.2f] %12.2f %12.3f %8llu\n", row.bytes, row.iterations, row.time_us, row.fastest_us,
                 row.slowest_us, row.p99_us, row.algbw_gbps, static_cast<unsigned long long>(row.wrong));
  }
}

// No text here needs escapes: modes are ours, and the kernel names a congestion control by a plain word.
void print_json(std::FILE* out, const Options& options, const Setting& setting, const std::vector<Row>& rows) {
  std::fputs("[", out);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    std::fprintf(out,
                 "%s\n  {\"op\": \"%s\", \"ranks\": 2, \"bytes\": %zu, \"transport\": \"tcp\", \"time_us\": %.3f, \"p99_us\": %.3f, "
                 "\"algbw_GBps\": %.6g, \"wrong\": %llu, \"iters\": %zu, \"time_us_min\": %.3f, \"time_us_max\": %.3f, \"wait\": \"%s\", "
                 "\"congestion\": \"%s\"}",
                 i == 0 ? "" : ",", to_string(options.mode), row.bytes, row.time_us, row.p99_us, row.algbw_gbps,
                 static_cast<unsigned long long>(row.wrong), row.iterations, row.fastest_us, row.slowest_us, to_string(options.wait),
                 setting.congestion.c_str());
  }
  std::fputs("\n]\n", out);
}

}  // namespace nexar::bench
