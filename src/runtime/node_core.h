// Everything that a node is made of, and the calls that its handles share.
//
// Public calls come in on any thread; they check their arguments, post to the engine and wait there. What is below `// Engine` is touched
// only by the thread that drives.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "crypto/identity.h"
#include "io/epoll_loop.h"
#include "mesh/mesh.h"
#include "nexar/config.h"
#include "nexar/message.h"
#include "nexar/node.h"
#include "nexar/result.h"
#include "runtime/engine.h"
#include "runtime/operation_state.h"
#include "transport/peer_verifier.h"
#include "transport/quic/endpoint.h"

namespace nexar::runtime {

// The group of all ranks.
inline constexpr mesh::GroupId kWorldGroup = 1;

// Who is in the world, by rank.
struct View {
  Epoch epoch = 1;
  std::vector<NodeId> members;
};

class NodeCore final : private transport::PeerVerifier, private transport::quic::LinkAcceptor {
 public:
  // Opens the node's port at `address`, in the network namespace at `network_namespace` if that is not empty.
  struct Options {
    Rank rank = 0;
    View view;
    const crypto::Identity* identity = nullptr;
    Config config;
    io::Address address;
    std::string network_namespace;
  };
  static Result<std::shared_ptr<NodeCore>> open(const Options& options);
  ~NodeCore() override;

  Rank rank() const { return rank_; }
  int size() const { return static_cast<int>(view_.members.size()); }
  const Config& config() const { return config_; }
  const io::Address& address() const { return address_; }

  // Begins links to the members of higher rank; those of lower rank come by themselves.
  Result<void> connect(const std::vector<io::Address>& addresses);

  // Waits until there is a link to everybody; kTimeout names who is missing.
  Result<void> wait_ready(std::chrono::nanoseconds limit);

  // Operations: prepared by the caller, started once, waited for, cancelled.
  // A call may be made here and now; the second form also on a node that is closed, where waiting is short.
  Result<void> check_call(std::string_view call) const;
  Result<void> check_waitable(std::string_view call) const { return engine_->check_outside(call); }
  void start(OperationState& operation);           // of a caller that goes on
  void start_and_stay(OperationState& operation);  // of one that waits next
  Result<Status> wait(OperationState& operation, std::optional<std::chrono::nanoseconds> limit);
  void cancel(OperationState& operation, const Error& verdict);
  void set_callback(OperationState& operation, std::function<void(const Result<Status>&)> callback);
  Result<int> descriptor(OperationState& operation);
  std::optional<std::size_t> wait_any(std::span<OperationState* const> operations, std::optional<std::chrono::nanoseconds> limit);

  Result<std::optional<Status>> probe(mesh::GroupId group, Rank from, std::optional<Tag> tag);
  Result<std::chrono::nanoseconds> ping(Rank peer);
  Result<LinkTraffic> traffic(Rank peer);
  Result<void> close();

 private:
  explicit NodeCore(const Options& options);
  Result<void> start_parts(const Options& options);
  std::optional<base::Time> deadline(std::optional<std::chrono::nanoseconds> limit) const;

  // Engine.
  Result<void> verify(const crypto::Certificate& certificate) override;
  transport::LinkHandler* on_link(transport::Link& link) override;
  std::optional<Rank> rank_of(const NodeId& node) const;
  void on_ready(Rank rank);
  void on_lost(Rank rank, const transport::LinkEnd& end);
  void on_pong(const wire::Pong& pong);
  void begin(OperationState& operation);
  void finish(OperationState& operation, Result<Status> result);
  void stop(OperationState& operation);

  const Rank rank_;
  const View view_;
  const Config config_;
  const crypto::Certificate authority_;
  io::Address address_;
  std::atomic<bool> closed_ = false;

  std::unique_ptr<io::EpollLoop> loop_;
  mesh::Mesh mesh_;
  std::unique_ptr<transport::quic::Endpoint> endpoint_;
  std::unordered_set<OperationState*> active_;
  struct Ping {
    base::Time sent;
    std::optional<base::Time> answered;
    Completion completion;
  };
  std::map<std::uint64_t, Ping*> pings_;
  std::uint64_t next_ping_ = 1;
  std::vector<bool> ready_;
  std::vector<bool> ended_;
  Completion all_ready_;
  Completion all_ended_;
  std::unique_ptr<Engine> engine_;  // last, so that it stops first
};

}  // namespace nexar::runtime
