#include "collective/direct/calibrate.h"

#include <array>
#include <vector>

#include "base/assert.h"

namespace nexar::collective::direct {
namespace {

constexpr std::size_t kElements = 16 * 1024;  // 64 KiB of f32: well inside the caches, where the two ways differ most
constexpr int kTurns = 2;                     // of each way, one after the other
constexpr int kCallsPerTurn = 10;
constexpr int kWarmUp = 2;
static_assert(kCalibrationCalls == 2 * kTurns * kCallsPerTurn + 1);

enum Way : std::size_t { kCached, kStreamed };

class Calibration {
 public:
  Calibration(Area& area, Sequence first, Patience& patience, Spin spin) : area_(area), next_(first), patience_(patience), spin_(spin) {}

  template <typename T>
  Outcome all_reduce(T* values, std::uint64_t count, ReduceOp op) {
    const auto reducer = reduce::Reducer::make(data_type_of<T>, op);
    NEXAR_ASSERT(reducer, "sums and maxima of floats are known");
    Call call;
    call.operation = OperationId::kAllReduce;
    call.sequence = next_++;
    call.fingerprint = count;
    call.send = call.recv = values;
    call.count = count;
    call.type = data_type_of<T>;
    call.reducer = &*reducer;
    call.op = op;
    Operation operation(area_, call);
    return run(operation, patience_, spin_);
  }

 private:
  Area& area_;
  Sequence next_;
  Patience& patience_;
  Spin spin_;
};

}  // namespace

Outcome calibrate(Area& area, Sequence first, const io::Clock& clock, Patience& patience, Spin spin) {
  const Tuning before = area.tuning();
  std::array<Tuning, 2> ways{before, before};
  ways[kCached].stream_in = SIZE_MAX;
  ways[kStreamed].stream_in = Tuning{}.stream_in;

  Calibration calibration(area, first, patience, spin);
  std::vector<float> values(kElements);
  std::array<double, 2> nanoseconds{};
  Outcome outcome = Outcome::kDone;
  for (int turn = 0; turn < 2 * kTurns && outcome == Outcome::kDone; ++turn) {
    const auto way = static_cast<std::size_t>(turn % 2);
    area.tune(ways[way]);
    base::Time start = clock.now();
    for (int call = 0; call < kCallsPerTurn && outcome == Outcome::kDone; ++call) {
      if (call == kWarmUp) start = clock.now();
      outcome = calibration.all_reduce(values.data(), values.size(), ReduceOp::kMax);
    }
    nanoseconds[way] += static_cast<double>((clock.now() - start).count());
  }
  if (outcome == Outcome::kDone) outcome = calibration.all_reduce(nanoseconds.data(), nanoseconds.size(), ReduceOp::kSum);
  area.tune(outcome == Outcome::kDone ? ways[nanoseconds[kStreamed] < nanoseconds[kCached] ? kStreamed : kCached] : before);
  return outcome;
}

}  // namespace nexar::collective::direct
