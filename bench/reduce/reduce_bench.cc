// How fast reductions are, beside memcpy and a plain native loop in the same run.
//
// Names are FORM/TYPE/OP/BYTES. Bytes per second count the bytes of one buffer, whatever the number of sources.
//
//   pair        out = op(out, in)
//   native      the same by the plain loop
//   many8       out = op(8 sources), one pass
//   many8_nt    the same with streaming stores
//   pairs7      the same by seven pair reductions
//   memcpy      of one buffer
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "native_loop.h"
#include "reduce/reducer.h"

namespace nexar::bench {
namespace {

using reduce::Reducer;
using reduce::Store;

constexpr std::size_t kSizes[] = {4 << 10, 256 << 10, 64 << 20};  // in L1, in L2, in memory
constexpr std::size_t kSources = 8;

// Bytes that are small numbers in every type, so that no timing depends on overflow, subnormals or NaN.
class Buffer {
 public:
  Buffer(DataType type, std::size_t bytes) : bytes_(static_cast<std::byte*>(std::aligned_alloc(4096, bytes))) {
    std::memset(bytes_.get(), 0, bytes);
    if (is_float(type)) {
      const std::size_t size = size_of(type);
      for (std::size_t i = size - 1; i < bytes; i += size) bytes_.get()[i] = std::byte{0x3c};
    } else {
      std::memset(bytes_.get(), 1, bytes);
    }
  }

  std::byte* data() const { return bytes_.get(); }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> bytes_;
};

// The result is put back by the op itself (x op x settles or stays finite), so iterations do not need to reset it.
template <typename F>
void measure(benchmark::State& state, std::size_t bytes, F&& once) {
  for (auto _ : state) {
    once();
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(bytes));
}

void add(const std::string& name, std::size_t bytes, void (*body)(benchmark::State&, DataType, ReduceOp, std::size_t), DataType type,
         ReduceOp op) {
  benchmark::RegisterBenchmark(
      (name + "/" + std::string(to_string(type)) + "/" + std::string(to_string(op)) + "/" + std::to_string(bytes)).c_str(),
      [=](benchmark::State& state) { body(state, type, op, bytes); });
}

void pair(benchmark::State& state, DataType type, ReduceOp op, std::size_t bytes) {
  const Buffer out(type, bytes);
  const Buffer in(type, bytes);
  const Reducer reducer = Reducer::make(type, op).value();
  measure(state, bytes, [&] { reducer.combine(out.data(), in.data(), out.data(), bytes / size_of(type)).value(); });
}

void native(benchmark::State& state, DataType type, ReduceOp op, std::size_t bytes) {
  const Buffer out(type, bytes);
  const Buffer in(type, bytes);
  const NativeLoop loop = native_loop(type, op);
  measure(state, bytes, [&] { loop(out.data(), in.data(), bytes / size_of(type)); });
}

// `out` and the sources, all distinct.
struct Many {
  Many(DataType type, std::size_t bytes) : out(type, bytes) {
    for (std::size_t i = 0; i < kSources; ++i) buffers.emplace_back(type, bytes);
    for (const Buffer& buffer : buffers) sources.push_back(buffer.data());
  }
  Buffer out;
  std::vector<Buffer> buffers;
  std::vector<const void*> sources;
};

template <Store store>
void many(benchmark::State& state, DataType type, ReduceOp op, std::size_t bytes) {
  const Many m(type, bytes);
  const Reducer reducer = Reducer::make(type, op).value();
  measure(state, bytes, [&] { reducer.combine_many(m.sources, m.out.data(), bytes / size_of(type), kSources, store).value(); });
}

void pairs(benchmark::State& state, DataType type, ReduceOp op, std::size_t bytes) {
  const Many m(type, bytes);
  const Reducer reducer = Reducer::make(type, op).value();
  const std::size_t count = bytes / size_of(type);
  measure(state, bytes, [&] {
    reducer.combine(m.sources[0], m.sources[1], m.out.data(), count).value();
    for (std::size_t s = 2; s < kSources; ++s) reducer.combine(m.out.data(), m.sources[s], m.out.data(), count).value();
  });
}

void copy(benchmark::State& state, std::size_t bytes) {
  const Buffer out(DataType::kU8, bytes);
  const Buffer in(DataType::kU8, bytes);
  measure(state, bytes, [&] { std::memcpy(out.data(), in.data(), bytes); });
}

void register_all() {
  for (const std::size_t bytes : kSizes) {
    benchmark::RegisterBenchmark(("memcpy/u8/copy/" + std::to_string(bytes)).c_str(), [=](benchmark::State& state) { copy(state, bytes); });
    for (const DataType type : kDataTypes) {
      for (const ReduceOp op : kReduceOps) {
        if (!check_reducible(type, op)) continue;
        add("pair", bytes, pair, type, op);
        if (native_loop(type, op) != nullptr) add("native", bytes, native, type, op);
      }
      add("many8", bytes, many<Store::kCached>, type, ReduceOp::kSum);
      add("many8_nt", bytes, many<Store::kStreaming>, type, ReduceOp::kSum);
      add("pairs7", bytes, pairs, type, ReduceOp::kSum);
    }
  }
}

}  // namespace
}  // namespace nexar::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  nexar::bench::register_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
