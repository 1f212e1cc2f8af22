// Open MPI or MPICH, whichever this is compiled with. Started by its mpirun.
#include <unistd.h>

#include <climits>
#include <csignal>
#include <cstdio>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <mpi.h>

#include "peer.h"

namespace nexar::bench {
namespace {

void must(int status, const char* call) {
  if (status != MPI_SUCCESS) throw std::runtime_error(std::string(call) + " failed");
}

constexpr unsigned kSecondsToEnd = 5;

int count_of(std::uint64_t count) {
  if (count > INT_MAX) throw std::runtime_error("MPI counts elements in an int");
  return static_cast<int>(count);
}

class MpiPeer : public Peer {
 public:
  MpiPeer() {
    must(MPI_Init(nullptr, nullptr), "MPI_Init");
    must(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    must(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
  }
  // MPICH over UCX sometimes does not come back from here on a busy machine. Everything that was measured has been written by now.
  ~MpiPeer() override {
    std::fflush(nullptr);
    std::signal(SIGALRM, [](int) { ::_exit(0); });
    ::alarm(kSecondsToEnd);
    MPI_Finalize();
    ::alarm(0);
  }
  MpiPeer(const MpiPeer&) = delete;
  MpiPeer& operator=(const MpiPeer&) = delete;

  std::string name() const override { return NEXAR_PEER_NAME; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void barrier() override { must(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier"); }

  std::vector<double> gather(std::span<const double> own) override {
    std::vector<double> all(rank_ == 0 ? own.size() * static_cast<std::size_t>(size_) : 0);
    const int count = count_of(own.size());
    must(MPI_Gather(own.data(), count, MPI_DOUBLE, all.data(), count, MPI_DOUBLE, 0, MPI_COMM_WORLD), "MPI_Gather");
    return all;
  }

  double from_first(double value) override {
    must(MPI_Bcast(&value, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD), "MPI_Bcast");
    return value;
  }

  Prepared prepare(const Call& call, Memory& memory) override {
    const void* in = memory.input();
    void* out = memory.output();
    const int count = count_of(call.count());
    const int root = call.root;
    const Place place = call.place(rank_);
    // A slot of the other buffer is where MPI expects it, too, except in reduce_scatter, whose result would be at the beginning.
    const void* send = place == Place::kSame || place == Place::kInputSlot ? MPI_IN_PLACE : in;
    void* recv = place == Place::kOutputSlot ? MPI_IN_PLACE : out;
    switch (call.operation) {
      case OperationId::kAllReduce:
        return {[=] { must(MPI_Allreduce(send, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD), "MPI_Allreduce"); }};
      case OperationId::kReduce:
        return {[=] { must(MPI_Reduce(send, out, count, MPI_FLOAT, MPI_SUM, root, MPI_COMM_WORLD), "MPI_Reduce"); }};
      case OperationId::kBroadcast: return {[=] { must(MPI_Bcast(out, count, MPI_FLOAT, root, MPI_COMM_WORLD), "MPI_Bcast"); }};
      case OperationId::kAllGather:
        return {[=] { must(MPI_Allgather(send, count, MPI_FLOAT, out, count, MPI_FLOAT, MPI_COMM_WORLD), "MPI_Allgather"); }};
      case OperationId::kReduceScatter:
        if (place != Place::kApart) return {};
        return {[=] { must(MPI_Reduce_scatter_block(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD), "MPI_Reduce_scatter_block"); }};
      case OperationId::kGather:
        return {[=] { must(MPI_Gather(send, count, MPI_FLOAT, out, count, MPI_FLOAT, root, MPI_COMM_WORLD), "MPI_Gather"); }};
      case OperationId::kScatter:
        return {[=] { must(MPI_Scatter(in, count, MPI_FLOAT, recv, count, MPI_FLOAT, root, MPI_COMM_WORLD), "MPI_Scatter"); }};
      case OperationId::kAllToAll:
        return {[=] { must(MPI_Alltoall(in, count, MPI_FLOAT, out, count, MPI_FLOAT, MPI_COMM_WORLD), "MPI_Alltoall"); }};
      case OperationId::kScan: return {[=] { must(MPI_Scan(send, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD), "MPI_Scan"); }};
      case OperationId::kBarrier: return {[this] { barrier(); }};
      default: return {};
    }
  }

 private:
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace
}  // namespace nexar::bench

int main(int argc, char** argv) {
  return nexar::bench::run_peer(argc, argv, {{}, [] { return std::make_unique<nexar::bench::MpiPeer>(); }});
}
