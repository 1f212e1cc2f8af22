// Gloo over TCP, in the form that users get: asynchronous, with its ring for all_reduce. Each rank is started by hand:
//
//   peer_gloo --rank R --ranks N --store FOLDER [--interface lo] ...
//
// The folder is empty, and the same for all ranks.
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "peer.h"

namespace nexar::bench {
namespace {

struct Options {
  int rank = 0;
  int ranks = 1;
  std::string store;
  std::string interface = "lo";
};

const auto add = static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>);

class GlooPeer : public Peer {
 public:
  explicit GlooPeer(const Options& options) {
    gloo::transport::tcp::attr attributes;
    attributes.iface = options.interface;
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    const auto context = std::make_shared<gloo::rendezvous::Context>(options.rank, options.ranks);
    gloo::rendezvous::FileStore store(options.store);
    context->connectFullMesh(store, device);
    context_ = context;
  }

  std::string name() const override { return "gloo"; }
  int rank() const override { return context_->rank; }
  int size() const override { return context_->size; }

  void barrier() override {
    gloo::BarrierOptions options(context_);
    gloo::barrier(options);
  }

  std::vector<double> gather(std::span<const double> own) override {
    std::vector<double> mine(own.begin(), own.end());
    std::vector<double> all(rank() == 0 ? own.size() * static_cast<std::size_t>(size()) : 0);
    gloo::GatherOptions options(context_);
    options.setInput(mine.data(), mine.size());
    if (rank() == 0) options.setOutput(all.data(), all.size());
    options.setRoot(0);
    gloo::gather(options);
    return all;
  }

  double from_first(double value) override {
    gloo::BroadcastOptions options(context_);
    options.setOutput(&value, 1);
    options.setRoot(0);
    gloo::broadcast(options);
    return value;
  }

  Prepared prepare(const Call& call, Memory& memory) override {
    auto* in = reinterpret_cast<float*>(const_cast<std::byte*>(memory.input()));  // it takes no const pointers, and changes nothing
    auto* out = reinterpret_cast<float*>(memory.output());
    const std::size_t inputs = memory.input_bytes() / sizeof(float);
    const std::size_t outputs = memory.output_bytes() / sizeof(float);
    const bool apart = call.place(rank()) == Place::kApart;
    switch (call.operation) {
      case OperationId::kAllReduce: return all_reduce(apart ? in : nullptr, out, outputs);
      case OperationId::kReduce: return reduce(apart ? in : nullptr, out, inputs, call.root);
      case OperationId::kBroadcast: return broadcast(out, outputs, call.root);
      case OperationId::kAllGather: return apart ? all_gather(in, inputs, out, outputs) : Prepared{};
      case OperationId::kReduceScatter: return apart ? reduce_scatter(memory, call) : Prepared{};
      case OperationId::kAllToAll: return all_to_all(in, out, inputs);
      case OperationId::kBarrier: return {[this] { barrier(); }};
      default: return {};
    }
  }

 private:
  Prepared all_reduce(float* in, float* out, std::size_t count) const {
    const auto options = std::make_shared<gloo::AllreduceOptions>(context_);
    options->setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    options->setReduceFunction(add);
    if (in != nullptr) options->setInput(in, count);
    options->setOutput(out, count);
    return {[options] { gloo::allreduce(*options); }};
  }

  // Every rank needs an output, which those that are not the root have for nothing.
  Prepared reduce(float* in, float* out, std::size_t count, Rank root) const {
    const auto unused = std::make_shared<std::vector<float>>(out == nullptr ? count : 0);
    const auto options = std::make_shared<gloo::ReduceOptions>(context_);
    options->setReduceFunction(add);
    options->setRoot(root);
    if (in != nullptr) options->setInput(in, count);
    options->setOutput(out == nullptr ? unused->data() : out, count);
    return {[options, unused] { gloo::reduce(*options); }};
  }

  Prepared broadcast(float* buffer, std::size_t count, Rank root) const {
    const auto options = std::make_shared<gloo::BroadcastOptions>(context_);
    options->setOutput(buffer, count);
    options->setRoot(root);
    return {[options] { gloo::broadcast(*options); }};
  }

  Prepared all_gather(float* in, std::size_t inputs, float* out, std::size_t outputs) const {
    const auto options = std::make_shared<gloo::AllgatherOptions>(context_);
    options->setInput(in, inputs);
    options->setOutput(out, outputs);
    return {[options] { gloo::allgather(*options); }};
  }

  Prepared all_to_all(float* in, float* out, std::size_t count) const {
    const auto options = std::make_shared<gloo::AlltoallOptions>(context_);
    options->setInput(in, count);
    options->setOutput(out, count);
    return {[options] { gloo::alltoall(*options); }};
  }

  // In place by its interface, with the result at the beginning.
  Prepared reduce_scatter(Memory& memory, const Call& call) const {
    const auto work = std::make_shared<std::vector<float>>(memory.input_bytes() / sizeof(float));
    const std::vector<int> parts(call.counts.begin(), call.counts.end());
    const auto algorithm = std::make_shared<gloo::ReduceScatterHalvingDoubling<float>>(context_, std::vector<float*>{work->data()},
                                                                                       static_cast<int>(work->size()), parts);
    return {[algorithm, work] { algorithm->run(); }, [&memory, work] { std::memcpy(work->data(), memory.input(), memory.input_bytes()); },
            [&memory, work] { std::memcpy(memory.output(), work->data(), memory.output_bytes()); }};
  }

  std::shared_ptr<gloo::Context> context_;
};

}  // namespace
}  // namespace nexar::bench

int main(int argc, char** argv) {
  using namespace nexar::bench;
  Options options;
  const auto add_options = [&](CLI::App& app) {
    app.add_option("--rank", options.rank, "This rank")->required();
    app.add_option("--ranks", options.ranks, "How many there are")->required();
    app.add_option("--store", options.store, "A folder that all ranks share")->required();
    app.add_option("--interface", options.interface, "The network interface to use");
  };
  return run_peer(argc, argv, {add_options, [&] { return std::make_unique<GlooPeer>(options); }});
}
