// How fast compressors are, as multiples of one pass of `a += b` over the same tensor in the same run.
//
//   bench_compress [MEGA_ELEMENTS [ROUNDS]]      16 and 7 unless told
//
// In each round every row runs once, one after the other, so that a slow moment of the machine does not fall on one row alone. The median
// counts. `sort` orders the magnitudes alone: the least that a selection by sorting would do.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "compress/feedback.h"
#include "nexar/compressor.h"
#include "reduce/reducer.h"

namespace nexar::bench {
namespace {

struct Row {
  std::string name;
  std::function<void()> before;  // not counted
  std::function<void()> run;
  std::vector<double> seconds{};

  double median() {
    std::sort(seconds.begin(), seconds.end());
    return seconds[seconds.size() / 2];
  }
};

// Like a gradient's: most near zero, some far out.
std::vector<float> gradient(std::size_t count) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = 1e-3f * normal(random) * std::abs(normal(random));
  return values;
}

class Bench {
 public:
  explicit Bench(std::size_t count) : a_(gradient(count)), b_(a_), residual_(count), sum_(count), out_(count * 8 + 4) {
    const reduce::Reducer add = reduce::Reducer::make(DataType::kF32, ReduceOp::kSum).value();
    rows_.push_back({"a += b", [this] { b_ = a_; }, [this, add] { add.combine(b_.data(), a_.data(), b_.data(), a_.size()).value(); }});
    rows_.push_back({"sort", [this] { std::transform(a_.begin(), a_.end(), b_.begin(), [](float x) { return std::abs(x); }); },
                     [this] { std::sort(b_.begin(), b_.end(), std::greater<>()); }});
    for (const double ratio : {0.001, 0.01, 0.1, 1.0}) compressor(Compressor::top_k(ratio).value());
    compressor(Compressor::random_k(0.01).value());
    for (const auto& other : {Compressor::none(), Compressor::int8(), Compressor::fp8(), Compressor::sign()}) compressor(other);
  }

  void round() {
    for (Row& row : rows_) {
      if (row.before) row.before();
      const auto begin = std::chrono::steady_clock::now();
      row.run();
      row.seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
  }

  void print() {
    const double pass = rows_[0].median();
    const double sort = rows_[1].median();
    std::printf("%-28s %10s %12s %12s\n", "", "ms", "of a += b", "sort over it");
    for (Row& row : rows_)
      std::printf("%-28s %10.2f %12.2f %12.1f\n", row.name.c_str(), row.median() * 1e3, row.median() / pass, sort / row.median());
  }

 private:
  void compressor(const std::shared_ptr<const Compressor>& made) {
    const std::string name(made->name());
    const auto length = std::make_shared<std::size_t>();
    rows_.push_back({name + " compress", nullptr,
                     [this, made, length] { *length = made->compress(std::as_bytes(std::span(a_)), DataType::kF32, {}, out_).value(); }});
    rows_.push_back({name + " add", nullptr,
                     [this, made, length] { made->add(std::span(out_).first(*length), DataType::kF32, {}, std::span(sum_)).value(); }});
    rows_.push_back({name + " feedback", nullptr, [this, made] {
                       compress::compress_with_feedback(*made, std::as_bytes(std::span(a_)), std::as_writable_bytes(std::span(residual_)),
                                                        DataType::kF32, {}, out_)
                           .value();
                     }});
  }

  std::vector<float> a_;
  std::vector<float> b_;
  std::vector<float> residual_;
  std::vector<float> sum_;
  std::vector<std::byte> out_;
  std::vector<Row> rows_;
};

}  // namespace
}  // namespace nexar::bench

int main(int argc, char** argv) {
  const std::size_t count = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 16) << 20;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 7;
  if (count == 0 || rounds < 1) {
    std::fprintf(stderr, "usage: %s [MEGA_ELEMENTS [ROUNDS]]\n", argv[0]);
    return 2;
  }
  nexar::bench::Bench bench(count);
  for (int i = 0; i < rounds; ++i) bench.round();
  std::printf("%zu elements of f32, median of %d rounds\n", count, rounds);
  bench.print();
  return 0;
}
