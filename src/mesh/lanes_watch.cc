// Watching lanes: which of them are dead, what they have moved.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "mesh/lanes.h"
#include "wire/link_messages.h"

namespace nexar::mesh {
namespace {

// A lane on which nothing moved in four checks, while the peer answered on its link after each, is dead: one second.
constexpr base::Duration kCheckInterval = std::chrono::milliseconds(250);
constexpr int kStalledChecksMax = 4;

// The rest of a transfer that is worth a change from the link to a lane: what is on its way by the link is sent twice.
constexpr std::uint64_t kMoveBytesMin = 16u << 20;

void add(transport::LaneCounters& sum, const transport::LaneCounters& more) {
  sum.frames_sent += more.frames_sent;
  sum.bytes_sent += more.bytes_sent;
  sum.frames_received += more.frames_received;
  sum.bytes_received += more.bytes_received;
}

}  // namespace

void Lanes::hurry() {
  if (around_.environment != nullptr) around_.environment->loop.hurry();
}

void Lanes::drain() {
  for (Slot& slot : slots_)
    if (slot.lane != nullptr && slot.lane->is_open()) slot.lane->drain();
}

int Lanes::open_lanes() const {
  return static_cast<int>(
      std::count_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.lane != nullptr && slot.lane->is_open(); }));
}

void Lanes::arm() {
  if (!timer_->is_set()) timer_->set(around_.environment->loop.now() + kCheckInterval);
}

void Lanes::tick() {
  const base::Time now = around_.environment->loop.now();
  bool busy = check_lanes();
  for (Slot& slot : slots_) {
    if (slot.ticket && now >= slot.offer_ends) fail(slot, fmt::format("rank {} did not connect in time", around_.peer));
    busy = busy || slot.ticket;
  }
  if (std::exchange(move_due_, false) && open_lanes() > 0) around_.incoming.leave_way(kLinkWay, kMoveBytesMin);
  if (busy) arm();
}

// Whether any lane has something on its way.
bool Lanes::check_lanes() {
  bool busy = false;
  const bool answered = asked_ && ping_ == 0;
  for (Slot& slot : slots_) {
    if (slot.lane == nullptr || !slot.lane->is_waiting()) continue;
    busy = true;
    const int checks = slot.lane->check(answered);
    if (checks < kStalledChecksMax) continue;
    const std::string why = "nothing moved on it for a second, while the peer answered";
    around_.control.send(wire::LaneDown{.name = slot.lane->name(), .reason = why}, 0);
    fail(slot, why);
  }
  asked_ = busy;
  if (busy && ping_ == 0) {
    ping_ = next_ping_++;
    around_.control.send(wire::Ping{.nonce = ping_, .time = 0}, 0);
  }
  return busy;
}

void Lanes::on_pong(std::uint64_t nonce) {
  if (nonce == ping_) ping_ = 0;
}

LaneReport Lanes::report() const {
  LaneReport report = ended_;
  report.open = open_lanes();
  for (const Slot& slot : slots_) {
    if (slot.lane == nullptr || !slot.lane->is_open()) continue;
    add(report.traffic, slot.lane->counters());
  }
  return report;
}

}  // namespace nexar::mesh
