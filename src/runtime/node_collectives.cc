// Collectives of a node: what runs them, and the groups they run in.
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "runtime/node_core.h"

namespace nexar::runtime {

void NodeCore::begin_collectives() {
  plan::Thresholds thresholds;
  thresholds.large_bytes = config_.large_msg_bytes;
  thresholds.segment_bytes = config_.pipeline_segment_bytes;
  thresholds.ring_max_size = static_cast<Rank>(config_.ring_max_world);
  collective_timer_ = std::make_unique<io::Timer>(*loop_, [this] { collectives_->tick(); });
  collectives_ = std::make_unique<collective::Collectives>(
      collective::Collectives::Environment{mesh_->steps(), [this] { return loop_->now(); },
                                           [this](base::Time time) { collective_timer_->set(time); }, pool_,
                                           [this](Rank rank, const std::string& why) {
                                             ++protocol_errors_;
                                             lose(rank, why);
                                           }},
      plan::Chooser(thresholds), collective::Timeouts{config_.entry_timeout, config_.progress_timeout});
  std::vector<Rank> all(static_cast<std::size_t>(size()));
  std::iota(all.begin(), all.end(), 0);
  collectives_->add_group(kWorldGroup, all, rank_, hosts_of(all));
  groups_.emplace_back(kWorldGroup, std::move(all), rank_);
}

// Where every rank is reached over the network, hosts make no difference. Both are agreed: the view says who is where, and ranks compare
// their transport when they join.
plan::Hosts NodeCore::hosts_of(std::span<const Rank> members) const {
  if (config_.transport != Transport::kAuto && config_.transport != Transport::kShm) return {};
  std::vector<int> hosts;
  for (const Rank member : members) hosts.push_back(places_->host_index(member));
  return plan::Hosts(hosts);
}

void NodeCore::add_collective_events(mesh::Events& events) {
  events.verdict = [this](Rank, mesh::GroupId group, const wire::Verdict& verdict) { collectives_->on_verdict(group, verdict); };
  events.probe = [this](Rank from, mesh::GroupId group, const wire::Probe& probe) { collectives_->on_probe(from, group, probe); };
  events.probe_reply = [this](Rank from, mesh::GroupId group, const wire::ProbeReply& reply) {
    collectives_->on_reply(from, group, reply);
  };
}

GroupRecord* NodeCore::add_group(mesh::GroupId id, std::vector<Rank> members, Rank rank) {
  GroupRecord* record = nullptr;
  const CallGate::Pass pass(gate_);
  if (!pass) return nullptr;
  engine_->run([&] {
    collectives_->add_group(id, members, rank, hosts_of(members));
    record = &groups_.emplace_back(id, std::move(members), rank);
  });
  return record;
}

}  // namespace nexar::runtime
