#include "info_world.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cluster/host_port.h"
#include "cluster/view.h"
#include "io/address.h"
#include "types/node_id.h"
#include "wire/info_messages.h"

namespace nexar::tool {
namespace {

using Json = nlohmann::ordered_json;
using wire::InfoAnswer;
using wire::InfoPeer;

constexpr std::pair<const char*, std::uint64_t InfoAnswer::Counters::*> kCounters[] = {
    {"handshakes_refused", &InfoAnswer::Counters::handshakes_refused},
    {"handshakes_dropped", &InfoAnswer::Counters::handshakes_dropped},
    {"retries_sent", &InfoAnswer::Counters::retries_sent},
    {"packets_ignored", &InfoAnswer::Counters::packets_ignored},
    {"protocol_errors", &InfoAnswer::Counters::protocol_errors},
    {"frames_of_other_epochs", &InfoAnswer::Counters::frames_of_other_epochs},
    {"rpc_calls", &InfoAnswer::Counters::rpc_calls},
    {"rpc_served", &InfoAnswer::Counters::rpc_served},
    {"rpc_refused", &InfoAnswer::Counters::rpc_refused},
    {"rpc_late_answers", &InfoAnswer::Counters::rpc_late_answers},
    {"rpc_calling", &InfoAnswer::Counters::rpc_calling},
    {"rpc_serving", &InfoAnswer::Counters::rpc_serving},
    {"rpc_serving_bytes", &InfoAnswer::Counters::rpc_serving_bytes},
    {"rpc_threads", &InfoAnswer::Counters::rpc_threads},
};
constexpr const char* kLanes[] = {"control", "rpc", "data", "bulk"};

const char* name_of(InfoPeer::Way way) {
  constexpr const char* kNames[] = {"-", "shm", "quic", "tcp"};
  return kNames[static_cast<std::size_t>(way)];
}

const char* name_of(InfoPeer::State state) {
  return state == InfoPeer::State::kLinked ? "linked" : state == InfoPeer::State::kLeft ? "left" : "lost";
}

// Why it is this link and this way of bulk.
std::string reason_of(const WorldInfo& world, const WorldInfo::RankInfo& one, const InfoPeer& peer) {
  if (peer.state != InfoPeer::State::kLinked || peer.link == InfoPeer::Way::kNone) return name_of(peer.state);
  const auto index = static_cast<std::size_t>(peer.rank);
  const bool same_host = index < world.ranks.size() && world.ranks[index].host == one.host;
  std::string reason = !same_host                         ? "another host"
                       : peer.link == InfoPeer::Way::kShm ? "same host"
                       : peer.no_shm.empty()              ? "same host, and the transport that was configured"
                                                          : fmt::format("same host, no memory: {}", peer.no_shm);
  if (peer.tcp_lanes_lost > 0) reason += fmt::format("; {} TCP lanes lost", peer.tcp_lanes_lost);
  if (!peer.no_tcp.empty() && peer.link != InfoPeer::Way::kShm) reason += fmt::format("; TCP lanes: {}", peer.no_tcp);
  return reason;
}

std::uint64_t sent(const InfoPeer& peer) {
  std::uint64_t bytes = peer.tcp_bytes_sent;
  for (const InfoPeer::Lane& lane : peer.lanes) bytes += lane.bytes_sent;
  return bytes;
}

std::uint64_t received(const InfoPeer& peer) {
  std::uint64_t bytes = peer.tcp_bytes_received;
  for (const InfoPeer::Lane& lane : peer.lanes) bytes += lane.bytes_received;
  return bytes;
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string round_trip_text(const InfoPeer& peer) {
  return peer.round_trip_ns == 0 ? "-" : fmt::format("{:.0f} us", static_cast<double>(peer.round_trip_ns) / 1e3);
}

// Rows with columns as wide as they need to be; the last one ends where it ends.
std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += i + 1 == row.size() ? row[i] : fmt::format("{:<{}}  ", row[i], widths[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::vector<std::string> texts(const std::vector<io::Address>& addresses) {
  std::vector<std::string> all;
  for (const io::Address& address : addresses) all.push_back(address.to_string());
  return all;
}

Json json_of(const WorldInfo& world, const WorldInfo::RankInfo& one, const InfoPeer& peer) {
  Json lanes;
  for (std::size_t i = 0; i < peer.lanes.size(); ++i)
    lanes[kLanes[i]] = {{"frames_sent", peer.lanes[i].frames_sent},
                        {"bytes_sent", peer.lanes[i].bytes_sent},
                        {"frames_received", peer.lanes[i].frames_received},
                        {"bytes_received", peer.lanes[i].bytes_received}};
  return {{"rank", peer.rank},
          {"state", name_of(peer.state)},
          {"transport", name_of(peer.link)},
          {"bulk", name_of(peer.bulk)},
          {"reason", reason_of(world, one, peer)},
          {"address", peer.address},
          {"round_trip_us", peer.round_trip_ns == 0 ? Json() : Json(static_cast<double>(peer.round_trip_ns) / 1e3)},
          {"lanes", lanes},
          {"tcp_lanes", peer.tcp_lanes},
          {"tcp_lanes_lost", peer.tcp_lanes_lost},
          {"tcp_bytes_sent", peer.tcp_bytes_sent},
          {"tcp_bytes_received", peer.tcp_bytes_received}};
}

}  // namespace

bool WorldInfo::all_answered() const {
  return std::all_of(ranks.begin(), ranks.end(), [](const RankInfo& one) { return one.seen.has_value(); });
}

Result<WorldInfo> look_at_world(const std::string& place, const cluster::Token& token, base::Duration patience) {
  const Result<cluster::HostPort> where = cluster::parse_host_port(place);
  if (!where) return where.error();
  Result<std::vector<io::Address>> addresses = io::resolve(where->host, where->port);
  if (!addresses) return std::move(addresses).error();
  std::vector<Result<cluster::Observed>> first = cluster::observe(token, {{.addresses = *std::move(addresses), .view = true}}, patience);
  if (!first.front()) return std::move(first.front()).error();
  cluster::Observed& told = *first.front();

  const cluster::Places places(told.view);
  WorldInfo world;
  world.asked = fmt::format("{} ({})", place, told.answer.rank < 0 ? "the seed" : fmt::format("rank {}", told.answer.rank));
  world.epoch = told.view.epoch;
  world.hosts = places.hosts();
  std::vector<cluster::Sight> sights;
  for (Rank rank = 0; rank < told.view.size(); ++rank) {
    const cluster::Member& member = told.view.member(rank);
    world.ranks.push_back({.member = member, .host = places.host_index(rank), .seen = {}, .why = {}});
    sights.push_back({.addresses = member.addresses, .node = member.node});
  }
  std::vector<Result<cluster::Observed>> all = cluster::observe(token, sights, patience);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i])
      world.ranks[i].seen = *std::move(all[i]);
    else
      world.ranks[i].why = all[i].error().sentence();
  }
  return world;
}

std::string as_text(const WorldInfo& world) {
  const auto many = [](std::size_t count, const char* one, const char* more) {
    return fmt::format("{} {}", count, count == 1 ? one : more);
  };
  std::string text = fmt::format("{} on {}, epoch {}, as told by {}\n\n", many(world.ranks.size(), "rank", "ranks"),
                                 many(static_cast<std::size_t>(world.hosts), "host", "hosts"), world.epoch, world.asked);
  std::vector<std::vector<std::string>> ranks = {{"rank", "host", "process", "addresses"}};
  std::vector<std::vector<std::string>> links = {{"link", "by", "bulk", "sent", "received", "round trip", "address", "why"}};
  std::vector<std::vector<std::string>> counters = {{"rank", "counters that are not 0"}};
  for (std::size_t rank = 0; rank < world.ranks.size(); ++rank) {
    const WorldInfo::RankInfo& one = world.ranks[rank];
    ranks.push_back({std::to_string(rank), std::to_string(one.host), one.seen ? one.seen->answer.name : "no answer",
                     one.seen ? fmt::format("{}", fmt::join(texts(one.member.addresses), " ")) : one.why});
    if (!one.seen) continue;
    for (const InfoPeer& peer : one.seen->peers)
      links.push_back({fmt::format("{} -> {}", rank, peer.rank), name_of(peer.link), name_of(peer.bulk), bytes_text(sent(peer)),
                       bytes_text(received(peer)), round_trip_text(peer), peer.address.empty() ? "-" : peer.address,
                       reason_of(world, one, peer)});
    std::vector<std::string> counted;
    for (const auto& [name, counter] : kCounters)
      if (one.seen->answer.counters.*counter > 0) counted.push_back(fmt::format("{} {}", name, one.seen->answer.counters.*counter));
    if (!counted.empty()) counters.push_back({std::to_string(rank), fmt::format("{}", fmt::join(counted, ", "))});
  }
  text += table(ranks);
  if (links.size() > 1) text += "\n" + table(links);
  if (counters.size() > 1) text += "\n" + table(counters);
  return text;
}

std::string as_json(const WorldInfo& world) {
  Json ranks = Json::array();
  for (std::size_t rank = 0; rank < world.ranks.size(); ++rank) {
    const WorldInfo::RankInfo& one = world.ranks[rank];
    Json json = {{"rank", rank},
                 {"host", one.host},
                 {"node", to_string(one.member.node)},
                 {"addresses", texts(one.member.addresses)},
                 {"answered", one.seen.has_value()}};
    if (one.seen) {
      json["process"] = one.seen->answer.name;
      json["address"] = one.seen->address.to_string();
      for (const auto& [name, counter] : kCounters) json["counters"][name] = one.seen->answer.counters.*counter;
      json["links"] = Json::array();
      for (const InfoPeer& peer : one.seen->peers) json["links"].push_back(json_of(world, one, peer));
    } else {
      json["error"] = one.why;
    }
    ranks.push_back(std::move(json));
  }
  const Json json = {{"asked", world.asked}, {"epoch", world.epoch}, {"hosts", world.hosts}, {"ranks", ranks}};
  return json.dump(2) + "\n";
}

}  // namespace nexar::tool
