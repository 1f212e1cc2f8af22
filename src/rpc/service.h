// Calls between nodes: those that this one makes and those that it serves.
//
//   caller                                        callee
//   start()   -- rpc_request ------------------>  admitted, or refused at once
//                                                 quick: its handler runs here, on the engine
//                                                 otherwise: on a worker, which hands it back
//   done()   <-- rpc_reply or rpc_failure ------  answered
//
// What is longer than a frame holds is announced by rpc_large_request or rpc_large_reply and travels as a transfer. What a node calls on
// itself takes the same steps without frames. One source for each half: service_calls.cc calls, service_serving.cc serves.
//
// Thread: engine, where nothing else is said. Owned by the node.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/time.h"
#include "io/loop.h"
#include "io/timer.h"
#include "mesh/mesh.h"
#include "mesh/rpc_frames.h"
#include "nexar/result.h"
#include "rpc/call_table.h"
#include "rpc/frame_queue.h"
#include "rpc/limits.h"
#include "rpc/registry.h"
#include "rpc/served_table.h"
#include "rpc/worker_pool.h"
#include "wire/rpc_messages.h"

namespace nexar::rpc {

// What has happened so far, and what is here now.
struct ServiceCounters {
  std::uint64_t calls = 0;         // made
  std::uint64_t served = 0;        // handlers that have run
  std::uint64_t refused = 0;       // calls of others that were not taken
  std::uint64_t late_answers = 0;  // that came when their call had ended
  std::uint64_t calling = 0;       // calls made that have not ended
  std::uint64_t serving = 0;       // calls of others that are here
  std::uint64_t serving_bytes = 0;
  std::uint64_t threads = 0;
};

class Service final : private mesh::RpcFrames {
 public:
  // Both outlive it.
  Service(io::Loop& loop, mesh::Mesh& mesh, const Limits& limits);
  ~Service() override;
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  Registry& registry() { return registry_; }

  // All but what the table and the service keep is set, and the rank is in range. `done` is called exactly once, perhaps before this
  // returns.
  void start(Call& call);

  // Ends a call that has not ended, with kCancelled, and tells the callee.
  void cancel(Call& call);

  // The world is over: calls end with `verdict`, later ones too, and handlers are told that nobody waits.
  void end_all(const Error& verdict);

  // From here on nothing is taken on, what waits for a worker is refused with `why`, and handlers that run are told that nobody waits;
  // their results are still sent.
  void begin_close(const Error& why);

  // After begin_close(): returns when no handler runs any more. `slow` is called now and then while some do. Thread: any but a worker's.
  void stop_workers(std::chrono::nanoseconds patience, const std::function<void(std::size_t running)>& slow);
  bool is_worker() const { return pool_->is_worker(); }

  // After that: calls `drained` when every answer has gone, perhaps at once.
  void when_answered(std::function<void()> drained);

  ServiceCounters counters() const;

 private:
  // mesh::RpcFrames
  Result<void> on_rpc_frame(Rank from, const wire::Header& header, std::vector<std::byte>& payload) override;
  void on_rpc_room(Rank to) override;
  void on_rpc_gone(Rank peer, const Error& why) override;

  // Calling (service_calls.cc).
  void send_request(Call& call, base::Time now);
  void call_self(const Call& call);
  void on_reply(Rank from, std::uint64_t id, std::vector<std::byte> result);
  Result<void> on_large_reply(Rank from, std::uint64_t scope, const wire::RpcLargeReply& reply);
  void on_failure(Rank from, const wire::RpcFailure& failure);
  void finish(Call& call, Result<std::vector<std::byte>> result);
  void drop_transfers(Call& call);
  void tell_cancelled(Call& call);

  // Serving (service_serving.cc).
  struct Request {
    Rank from;
    std::uint64_t scope;
    std::uint64_t call;
    std::uint64_t function;
    std::uint32_t deadline_ms;
  };
  Result<void> on_request(const Request& request, std::vector<std::byte>& arguments);
  Result<void> on_large_request(const Request& request, std::uint64_t transfer, std::uint64_t bytes);
  void on_cancel(Rank from, std::uint64_t id);
  struct Callee {
    const std::shared_ptr<const Registered>& function;  // the registry's, which nobody changes while a frame is being served
    Rank caller;                                        // in the function's group
  };
  std::optional<Callee> find_callee(const Request& request);
  Result<std::shared_ptr<Served>> take_on(const Request& request, const Callee& callee, std::uint64_t bytes);
  void refuse(const Request& request, wire::RpcStatus status, const Error& error);
  Result<void> run_quick(const Request& request, const Callee& callee, base::ByteView arguments);
  void submit(const std::shared_ptr<Served>& served);
  void take_finished();
  void answer(const std::shared_ptr<Served>& served);
  void reply(Rank to, std::uint64_t scope, std::uint64_t call, std::vector<std::byte> result);
  void reply_large(const std::shared_ptr<Served>& served, std::vector<std::byte> result);
  void fail(Rank to, std::uint64_t scope, std::uint64_t call, wire::RpcStatus status, const Error& error);
  void give_up(const std::shared_ptr<Served>& served);
  void remove(const Served& served);
  base::Time deadline_of(const Request& request);

  void tick();
  void arm(base::Time time);
  FrameQueue& frames(Rank peer) { return frames_[static_cast<std::size_t>(peer)]; }

  io::Loop& loop_;
  mesh::Mesh& mesh_;
  Registry registry_;
  CallTable calls_;
  ServedTable served_;
  std::vector<FrameQueue> frames_;  // by rank
  io::Timer timer_;
  base::Time armed_for_ = base::Time::max();
  std::optional<Error> closing_;  // why nothing more is called or served
  std::function<void()> drained_;
  ServiceCounters counters_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // what was posted looks whether the service still is
  const std::uint32_t forks_at_start_;
  std::unique_ptr<WorkerPool> pool_;  // last, so that it stops first
};

}  // namespace nexar::rpc
