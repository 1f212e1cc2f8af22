// Everything that a node is made of, and the calls that its handles share.
//
// Public calls come in on any thread; they check their arguments, post to the engine and wait there. What is below `// Engine` is touched
// only by the thread that drives. One source for each verb: node_core.cc opens and closes, node_formation.cc forms the world,
// node_operations.cc sends and receives, node_collectives.cc runs collectives, node_memory.cc has them share memory, node_compounds.cc
// makes one operation of several, node_programs.cc has operations that make several calls, node_rpc.cc calls and serves, node_liveness.cc
// finds out who is lost and ends the world, node_counters.cc counts, for the node itself and for observers.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "cluster/core_share.h"
#include "cluster/failure_detector.h"
#include "cluster/formation.h"
#include "cluster/host_formation.h"
#include "cluster/losses.h"
#include "cluster/observers.h"
#include "cluster/token.h"
#include "cluster/view.h"
#include "collective/collectives.h"
#include "collective/host_lending.h"
#include "crypto/identity.h"
#include "io/epoll_loop.h"
#include "io/event_descriptor.h"
#include "io/timer.h"
#include "mesh/lanes.h"
#include "mesh/mesh.h"
#include "nexar/buffer_pool.h"
#include "nexar/config.h"
#include "nexar/device.h"
#include "nexar/log.h"
#include "nexar/message.h"
#include "nexar/node.h"
#include "nexar/result.h"
#include "nexar/seed.h"
#include "plan/hosts.h"
#include "rpc/service.h"
#include "runtime/call_gate.h"
#include "runtime/engine.h"
#include "runtime/group_record.h"
#include "runtime/memory_offer.h"
#include "runtime/operation_state.h"
#include "transport/peer_verifier.h"
#include "transport/quic/endpoint.h"
#include "transport/tcp/listener.h"

namespace nexar::runtime {

class NodeCore final : private transport::PeerVerifier, private transport::quic::LinkAcceptor {
 public:
  struct Options {
    const crypto::Identity* identity = nullptr;
    Config config{};
    io::Address address{};                     // to listen at
    std::uint16_t port_first = 0;              // the first free port of a range, instead of the address's; 0: no range
    std::uint16_t port_last = 0;               // inclusive
    std::string network_namespace{};           // a path; empty: this one
    LogSink log{};                             // empty: standard error
    std::shared_ptr<BufferPool> pool{};        // empty: one of its own, of memory_budget
    std::shared_ptr<DeviceAdapter> adapter{};  // empty: the host's
    const cluster::Token* token = nullptr;     // with it, whoever has it may look at the node
  };

  // Opens the node's port. It has no view yet: who calls is told to come again.
  static Result<std::shared_ptr<NodeCore>> open(const Options& options);
  ~NodeCore() override;

  // Becomes `rank` of the view and begins to link with the others. Once; rank and size are known from here on.
  Result<void> form(Rank rank, cluster::View view);

  // Waits until there is a link to everybody. kRefused, at once, when a member does not accept this node; kPeerLost when one is lost
  // meanwhile; kTimeout names who is missing and why.
  Result<void> wait_ready(std::chrono::nanoseconds limit);

  Rank rank() const { return rank_; }
  int size() const { return view_.size(); }
  const cluster::View& view() const { return view_; }
  const cluster::Places& places() const { return *places_; }
  const cluster::CoreShare& core_share() const { return core_share_; }
  const Config& config() const { return config_; }
  const std::shared_ptr<BufferPool>& pool() const { return pool_; }
  const std::shared_ptr<DeviceAdapter>& adapter() const { return adapter_; }
  const io::Address& address() const { return address_; }

  // Whether a call may be made here and now; the second form also on a node that is closed, where waiting is short.
  Result<void> check_call(std::string_view call) const;
  Result<void> check_waitable(std::string_view call) const { return engine_->check_outside(call); }

  // Operations: prepared by the caller, started once, waited for, cancelled.
  void start(OperationState& operation);                                                         // of a caller that goes on
  Result<Status> run(OperationState& operation, std::optional<std::chrono::nanoseconds> limit);  // of one that waits
  Result<Status> run_both(OperationState& receive, OperationState& send, std::optional<std::chrono::nanoseconds> limit);
  Result<Status> wait(OperationState& operation, std::optional<std::chrono::nanoseconds> limit);
  void cancel(OperationState& operation, const Error& verdict);
  void set_callback(OperationState& operation, std::function<void(const Result<Status>&)> callback);
  Result<int> descriptor(OperationState& operation);
  std::optional<std::size_t> wait_any(std::span<OperationState* const> operations, std::optional<std::chrono::nanoseconds> limit);

  // Groups. The world's is there from form() on; records live as long as the node.
  GroupRecord* world() { return &groups_.front(); }
  GroupRecord* add_group(mesh::GroupId id, std::vector<Rank> members, Rank rank);
  // Finds out with all members of a new group whether they share memory for its calls (node_memory.cc).
  Result<void> agree_on_memory(GroupRecord& group);
  // Functions that others call (node_rpc.cc). Scope 0 is the node's own.
  Result<void> serve(std::uint64_t scope, const Function& function, rpc::Registered registered);
  Result<void> withdraw(std::uint64_t scope, const Function& function);

  // One operation that ends when all of `parts` have: with the first error in their order, else with that of `conclude`, which runs on the
  // engine and then has the parts' buffers for itself. Cancelling it cancels the parts.
  static Operation compound(const std::shared_ptr<NodeCore>& core, std::vector<Operation> parts, std::function<Result<void>()> conclude);

  // An operation that makes several calls (program.h), and the calls that it makes.
  static Operation start_program(const std::shared_ptr<NodeCore>& core, GroupRecord& group, std::shared_ptr<Program> program);
  void begin_for_program(OperationState& operation);
  static void stop_for_program(Operation& call, const Error& reason);

  // The number that the next collective of a group will have; waits until what was called before has begun.
  Sequence next_sequence(mesh::GroupId group);

  Result<std::optional<Status>> probe(mesh::GroupId group, Rank from, std::optional<Tag> tag);
  Result<std::chrono::nanoseconds> ping(Rank peer);
  Result<NodeCounters> counters();

  void on_failure(std::function<void(const Error&)> callback);
  int failure_descriptor() const { return failure_event_->fd(); }
  Result<void> abort(const std::string& reason);
  Result<void> close();

  // The seed that this process runs for its world; it ends with the node.
  void keep(Seed seed) { seed_ = std::move(seed); }

  // What cannot be returned. Thread: any.
  void warn(std::string_view message, const Error& error) const;

 private:
  explicit NodeCore(const Options& options);
  Result<void> start_parts(const Options& options);
  Result<void> open_endpoint(const Options& options, const io::Address& address);
  Result<void> open_ports(const Options& options);
  Result<void> open_port(const Options& options, const io::Address& address);
  void open_lanes(const Options& options);
  std::optional<base::Time> deadline(std::optional<std::chrono::nanoseconds> limit) const;
  Error closed_error() const;
  void start_and_stay(OperationState& operation);
  Result<Status> wait_inside(OperationState& operation, std::optional<std::chrono::nanoseconds> limit);
  void cancel_inside(OperationState& operation, const Error& verdict);
  Result<void> wait_for_farewells();
  void wait_for_programs();
  OperationState* first_unstopped() const;
  void finish_handlers();

  // Engine.
  // Formation (node_formation.cc).
  Result<void> verify(const crypto::Certificate& certificate) override;
  transport::LinkHandler* on_link(transport::Link& link) override;
  bool takes_observers() const override { return observers_ != nullptr; }
  transport::LinkHandler* on_observer(transport::Link& link) override { return observers_->accept(link); }
  wire::Hello hello() const;
  mesh::Events mesh_events();
  void form_host();
  bool is_formed() const;
  void on_linked(Rank rank);
  void on_lanes_settled(Rank rank);
  void end_formation_if_ready();
  void end_formation(std::optional<Error> error);

  // Calls (node_rpc.cc).
  void begin_call(OperationState& operation);
  RpcCounters rpc_counters() const;

  // Operations (node_operations.cc).
  void begin(OperationState& operation);
  void enter(OperationState& operation);
  void begin_collective(OperationState& operation);
  void finish(OperationState& operation, Result<Status> result);
  void stop(OperationState& operation);

  // Collectives (node_collectives.cc).
  void begin_collectives();
  plan::Hosts hosts_of(std::span<const Rank> members) const;
  void add_collective_events(mesh::Events& events);

  // Shared memory of groups (node_memory.cc).
  void offer_memory(GroupRecord& group, std::function<void(Result<void>)> done);
  void on_offers_compared(MemoryOffer& offer, Result<void> result);
  void cancel_offers(const Error& error);

  // Compounds (node_compounds.cc).
  void attach_parts(OperationState& whole);
  void on_part_ended(OperationState& whole);
  void stop_parts(OperationState& whole);

  // Programs (node_programs.cc).
  class ProgramPoller;
  struct RunningProgram {
    std::shared_ptr<Program> program;
    OperationState* operation;  // until it has ended
    mesh::GroupId group;
    collective::DirectGroup* direct;
    bool in_line;  // until all its calls have begun
  };
  struct InLine {  // one of these
    std::shared_ptr<Program> program{};
    OperationState* call = nullptr;
    std::unique_ptr<collective::Call> withdrawn{};  // the place of a call that was cancelled while it waited
    std::function<void()> visitor{};                // is told when all before it have begun
    base::Time since{};                             // when a call came
  };
  void begin_program(OperationState& operation);
  bool step_programs();
  void leave_line(RunningProgram& one);
  void begin_lined(OperationState& operation, base::Time since);
  bool line_up(OperationState& operation);
  void withdraw_from_line(OperationState& operation);
  void stop_program(OperationState& operation);
  void cancel_programs(const Error& error);

  // Liveness (node_liveness.cc).
  void beat();
  void send_heartbeat(Rank rank);
  void on_pong(Rank rank, const wire::Pong& pong);
  void on_lost(Rank rank, const transport::LinkEnd& end);
  void on_left(Rank rank);
  void on_ended(Rank rank);
  void on_revoked(Rank from, const wire::Revoke& revoke);
  void on_aborted(Rank from, const std::string& reason);
  void lose(Rank rank, const std::string& why);
  void schedule_verdict();
  void pronounce();
  void announce_failure(const Error& error);
  NodeCounters count() const;
  PeerCounters peer_counters(Rank rank) const;
  Result<cluster::Observers::Snapshot> snapshot() const;

  Rank rank_ = -1;
  cluster::View view_;
  std::optional<cluster::Places> places_;
  cluster::CoreShare core_share_;
  const Config config_;
  const std::shared_ptr<BufferPool> pool_;
  const std::shared_ptr<DeviceAdapter> adapter_;
  const crypto::Certificate authority_;
  const NodeId node_;
  const std::string network_namespace_;
  io::Address address_;
  std::optional<Seed> seed_;  // of a process that runs it too
  std::atomic<bool> closed_ = false;
  CallGate gate_;
  std::shared_ptr<std::mutex> log_mutex_ = std::make_shared<std::mutex>();
  base::Logger log_;

  std::unique_ptr<io::EpollLoop> loop_;
  std::unique_ptr<transport::quic::Endpoint> endpoint_;
  std::unique_ptr<transport::tcp::Listener> listener_;  // where TCP lanes are wanted and the port could be opened
  std::optional<mesh::LaneEnvironment> lanes_;
  std::unique_ptr<cluster::Formation> formation_;
  std::unique_ptr<cluster::Observers> observers_;         // of a node that has a token
  std::unique_ptr<mesh::Mesh> mesh_;                      // from form() on
  std::unique_ptr<collective::HostLending> lending_;      // likewise
  std::unique_ptr<cluster::HostFormation> host_;          // likewise
  std::unique_ptr<rpc::Service> rpc_;                     // likewise
  std::unique_ptr<collective::Collectives> collectives_;  // likewise
  std::unique_ptr<io::Timer> collective_timer_;
  std::list<std::unique_ptr<MemoryOffer>> offers_;  // of groups that are being made
  std::unique_ptr<io::Poller> direct_poller_;       // from the first group that shares memory on
  std::list<GroupRecord> groups_;                   // changed on the engine; each of them is for any thread
  std::vector<OperationState*> active_;             // in any order; each knows its place

  struct ProgramWork {
    std::list<RunningProgram> running;                  // in the order of their calls
    std::map<mesh::GroupId, std::deque<InLine>> lines;  // of groups that have one; a program is first in each
    std::unique_ptr<io::Poller> poller;                 // from the first program on
    std::unique_ptr<io::Timer> timer;                   // while a device has to be polled
    bool stepping = false;
    Completion* over = nullptr;  // of who waits until there is none
  };
  ProgramWork programs_;

  bool agreeing_ = false;  // everybody is linked, and whether the world shares memory is being found out
  Completion formed_;
  std::optional<Error> formation_error_;

  struct Ping {
    base::Time sent;
    std::optional<base::Time> answered;
    Completion completion;
  };
  std::map<std::uint64_t, Ping*> pings_;
  std::uint64_t next_ping_ = 1;  // 0 is a heartbeat

  struct Heartbeat {
    std::optional<base::Time> sent;
    std::optional<base::Duration> round_trip;
    std::string address;
  };
  std::vector<Heartbeat> heartbeats_;  // by rank
  std::unique_ptr<cluster::FailureDetector> detector_;
  std::unique_ptr<io::Timer> heartbeat_timer_;
  cluster::Losses losses_;
  std::optional<Error> aborted_;
  bool verdict_due_ = false;
  std::optional<Error> failure_;
  std::optional<io::EventDescriptor> failure_event_;
  std::function<void(const Error&)> failure_callback_;
  std::uint64_t protocol_errors_ = 0;
  std::vector<Completion*> farewells_;  // of threads that wait until no link is left
  std::unique_ptr<Engine> engine_;      // last, so that it stops first
};

}  // namespace nexar::runtime
