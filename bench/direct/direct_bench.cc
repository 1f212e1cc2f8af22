// How fast the direct kernels are between processes that share memory: no runtime around them.
//
//   bench_direct [--ranks 2] [--op all_reduce] [--sizes 8,1024,...] [--reps 9] [--rep-ms 30] [--slot 524288] [--one-stage 4096]
//                [--stream-in 16384] [--stream-out 4194304] [--shared] [--fixed] [--equal]
//
// f32 sums; the size is that of the buffer, for all_gather, reduce_scatter and all_to_all of the whole one. Ranks call back to back, as
// nccl-tests do; a repetition takes about --rep-ms, and the median and the least over repetitions are printed, in microseconds, as rank 0
// sees them. With --shared the buffers lie in memory that all ranks have mapped. With --fixed large calls do not find out whether to store
// through the caches or past them: --stream-in and --stream-out say it. With --equal all ranks reduce as much, however fast they are.
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "collective/direct/area.h"
#include "collective/direct/run.h"
#include "nexar/data_type.h"
#include "reduce/reducer.h"

namespace {

using namespace nexar;
using namespace nexar::collective::direct;

struct Options {
  Rank ranks = 2;
  OperationId operation = OperationId::kAllReduce;
  std::vector<std::size_t> sizes = {8, 1 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
  int reps = 9;
  double rep_ms = 30;
  std::size_t slot = kSlotBytes;
  bool shared = false;
  bool learns = true;
  Tuning tuning{};
};

std::byte* map_shared(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) std::perror("mmap"), std::exit(1);
  return static_cast<std::byte*>(memory);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    const auto value = [&] { return std::string(++i < argc ? argv[i] : ""); };
    if (name == "--ranks") {
      options.ranks = std::stoi(value());
    } else if (name == "--reps") {
      options.reps = std::stoi(value());
    } else if (name == "--rep-ms") {
      options.rep_ms = std::stod(value());
    } else if (name == "--slot") {
      options.slot = std::stoul(value());
    } else if (name == "--one-stage") {
      options.tuning.one_stage = options.tuning.one_stage_two_ranks = std::stoul(value());
    } else if (name == "--stream-in") {
      options.tuning.stream_in = std::stoul(value());
    } else if (name == "--stream-out") {
      options.tuning.stream_out = std::stoul(value());
    } else if (name == "--fixed") {
      options.learns = false;
    } else if (name == "--equal") {
      options.tuning.shares_by_pace = SIZE_MAX;
    } else if (name == "--shared") {
      options.shared = true;
    } else if (name == "--op") {
      const std::string wanted = value();
      for (std::uint8_t id = 1; id <= kOperationIdMax; ++id)
        if (to_string(OperationId{id}) == wanted) options.operation = OperationId{id};
    } else if (name == "--sizes") {
      options.sizes.clear();
      const std::string list = value();
      for (std::size_t at = 0; at < list.size(); at = list.find(',', at) == std::string::npos ? list.size() : list.find(',', at) + 1)
        options.sizes.push_back(std::stoul(list.substr(at)));
    } else {
      std::fprintf(stderr, "unknown option %s\n", argv[i]);
      std::exit(2);
    }
  }
  return options;
}

// All buffers lie in one piece of memory that was mapped before the ranks were made: everybody's addresses are the same.
class OneMapping : public Lending {
 public:
  OneMapping(std::byte* base, std::size_t bytes) : base_(base), bytes_(bytes) {}
  std::optional<Lent> find(const void* memory, std::uint64_t) const override {
    return Lent{1, 0, static_cast<std::uint64_t>(static_cast<const std::byte*>(memory) - base_)};
  }
  const std::byte* address(Rank, std::uint32_t, std::uint64_t offset, std::uint64_t bytes) const override {
    return offset <= bytes_ && bytes <= bytes_ - offset ? base_ + offset : nullptr;
  }
  void begin_reading() const override {}
  void end_reading() const override {}

 private:
  std::byte* base_;
  std::size_t bytes_;
};

class Endless : public Patience {
 public:
  Outcome look(std::uint64_t) override { return Outcome::kWaiting; }
};

class RankRun {
 public:
  RankRun(const Options& options, Area& area, std::byte* send, std::byte* recv)
      : options_(options), area_(area), send_(send), recv_(recv), spin_(Spin::where(options.ranks > sysconf(_SC_NPROCESSORS_ONLN))) {}

  // Microseconds of one call in each repetition.
  std::vector<double> measure(std::size_t bytes) {
    const auto n = static_cast<std::uint64_t>(options_.ranks);
    const bool blocks = options_.operation == OperationId::kReduceScatter || options_.operation == OperationId::kAllToAll ||
                        options_.operation == OperationId::kAllGather;
    const std::uint64_t count = std::max<std::uint64_t>(1, bytes / sizeof(float) / (blocks ? n : 1));
    const int warm_up = bytes < (1 << 20) ? 50 : static_cast<int>(Streaming::trials(bytes)) + 2;
    const auto begin = now();
    for (int i = 0; i < warm_up; ++i) once(count);
    const double each = static_cast<double>((now() - begin).count()) / 1e3 / warm_up;
    int iterations = agreed(static_cast<float>(std::clamp(options_.rep_ms * 1e3 / std::max(each, 0.1), 2.0, 20'000.0)));
    std::vector<double> times;
    for (int rep = 0; rep < options_.reps; ++rep) {
      barrier();
      const auto start = now();
      for (int i = 0; i < iterations; ++i) once(count);
      times.push_back(static_cast<double>((now() - start).count()) / 1e3 / iterations);
    }
    std::sort(times.begin(), times.end());
    return times;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static std::chrono::nanoseconds now() { return Clock::now().time_since_epoch(); }

  Call call(OperationId operation, std::uint64_t count) const {
    Call call;
    call.operation = operation;
    call.fingerprint = count;
    call.send = send_;
    call.recv = operation == OperationId::kAllReduce || operation == OperationId::kBroadcast ? send_ : recv_;
    if (operation == OperationId::kReduce || operation == OperationId::kScan) call.recv = send_;
    call.count = count;
    call.type = DataType::kF32;
    call.reducer = &sum_;
    call.op = ReduceOp::kSum;
    return call;
  }

  void finish(Call call) {
    call.sequence = ++sequence_;
    Operation operation(area_, call);
    if (run(operation, endless_, spin_) != Outcome::kDone) std::fprintf(stderr, "a call failed\n"), std::exit(1);
  }
  void once(std::uint64_t count) { finish(call(options_.operation, count)); }
  void barrier() { finish(call(OperationId::kBarrier, 0)); }
  int agreed(float mine) {
    Call largest = call(OperationId::kAllReduce, 1);
    float value = mine;
    largest.send = largest.recv = &value;
    finish(largest);
    return static_cast<int>(value / static_cast<float>(options_.ranks));
  }

  const Options& options_;
  Area& area_;
  std::byte* send_;
  std::byte* recv_;
  Spin spin_;
  Endless endless_;
  Sequence sequence_ = 0;
  reduce::Reducer sum_ = reduce::Reducer::make(DataType::kF32, ReduceOp::kSum).value();
};

int run_rank(const Options& options, std::byte* area_memory, const Layout& layout, std::byte* buffers, std::size_t buffer_bytes,
             Rank rank) {
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(rank % cores), &set);
  sched_setaffinity(0, sizeof set, &set);
  const std::size_t all = static_cast<std::size_t>(options.ranks) * 2 * buffer_bytes;
  const OneMapping mapping(buffers, all);
  Area area(area_memory, layout, rank, nullptr, options.shared ? &mapping : nullptr, options.tuning,
            options.learns ? &io::real_clock() : nullptr);
  std::byte* mine = buffers + static_cast<std::size_t>(rank) * 2 * buffer_bytes;
  if (!options.shared) {
    mine = static_cast<std::byte*>(std::aligned_alloc(4096, 2 * buffer_bytes));
    std::memset(mine, 0, 2 * buffer_bytes);
  }
  RankRun run(options, area, mine, mine + buffer_bytes);
  if (rank == 0) std::printf("%12s %12s %12s %10s\n", "bytes", "median_us", "least_us", "GB/s");
  for (const std::size_t bytes : options.sizes) {
    const auto times = run.measure(bytes);
    if (rank != 0) continue;
    const double median = times[times.size() / 2];
    std::printf("%12zu %12.2f %12.2f %10.2f\n", bytes, median, times.front(), static_cast<double>(bytes) / median / 1e3);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const Layout layout(options.ranks, options.slot);
  std::byte* area = map_shared(layout.bytes());
  layout.initialise(area, 1);
  const std::size_t buffer_bytes = (*std::max_element(options.sizes.begin(), options.sizes.end()) + 4095) / 4096 * 4096 + 4096;
  std::byte* buffers = map_shared(options.shared ? static_cast<std::size_t>(options.ranks) * 2 * buffer_bytes : 4096);
  for (Rank rank = 1; rank < options.ranks; ++rank)
    if (fork() == 0) std::_Exit(run_rank(options, area, layout, buffers, buffer_bytes, rank));
  const int status = run_rank(options, area, layout, buffers, buffer_bytes, 0);
  while (wait(nullptr) > 0) {
  }
  return status;
}
