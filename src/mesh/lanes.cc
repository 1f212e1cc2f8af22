#include "mesh/lanes.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "wire/limits.h"
#include "wire/link_messages.h"

namespace nexar::mesh {
namespace {

constexpr std::string_view kExporter = "EXPORTER-nexar-lane";

// From an offer to the connection: what the peer needs to find out that TCP does not pass, and a little more.
constexpr base::Duration kOfferTimeout = std::chrono::seconds(5);

// A lane that died is not missed for long; one that a firewall swallows is tried seldom.
constexpr base::Duration kPauseMax = std::chrono::minutes(5);

std::string shortened(const std::string& text) { return text.substr(0, wire::kTextBytesMax); }

}  // namespace

Lanes::Lanes(Surroundings surroundings) : around_(std::move(surroundings)) {
  if (around_.environment == nullptr) {
    ended_.reason = "TCP lanes are not wanted here";
    return;
  }
  NEXAR_ASSERT(around_.environment->count() <= wire::kLowersFirstLane, "each end has numbers for all lanes");
  ended_.reason = "no transfer has wanted one yet";
  timer_.emplace(around_.environment->loop, [this] { tick(); });
}

Lanes::~Lanes() { end(); }

void Lanes::begin(transport::Link& link) {
  link_ = &link;
  if (around_.environment != nullptr && around_.environment->forced) want();
}

void Lanes::end() {
  link_ = nullptr;
  for (Slot& slot : slots_) drop(slot);
  if (timer_) timer_->cancel();
}

// The higher rank begins. Lanes that could not be had, or died, are offered again after a while.
void Lanes::want() {
  if (around_.environment == nullptr || link_ == nullptr || !is_higher()) return;
  const base::Time now = around_.environment->loop.now();
  if (now < offer_again_) return;
  for (std::uint32_t lane = 0; lane < around_.environment->count(); ++lane)
    if (!has_either(lane)) offer(lane);
  arm();
}

bool Lanes::has_either(std::uint32_t lane) const {
  const std::uint32_t other = lane < wire::kLowersFirstLane ? lane + wire::kLowersFirstLane : lane - wire::kLowersFirstLane;
  return slots_[lane].is_used() || slots_[other].is_used();
}

Result<transport::tcp::LaneKeys> Lanes::keys(const wire::LaneName& name, transport::tcp::Side side) const {
  std::array<std::byte, transport::tcp::kMaterialBytes> material;
  if (auto exported = link_->export_key(kExporter, {}, material); !exported) return std::move(exported).error();
  return transport::tcp::LaneKeys::derive(material, {name, around_.environment->plain}, side, around_.environment->records);
}

// Where nobody listens the other end is told, as if it had failed to connect: it may offer the lane's counterpart.
void Lanes::offer(std::uint32_t lane) {
  const LaneEnvironment& environment = *around_.environment;
  Slot& slot = slots_[lane];
  const wire::LaneName name{lane, ++slot.generation};
  if (environment.listener == nullptr) return decline(name, wire::LaneAnswerStatus::kUnreachable, "this node does not listen for TCP");
  wire::LaneTicket ticket;
  environment.random.fill(ticket);
  Result<transport::tcp::LaneKeys> lane_keys = keys(name, transport::tcp::Side::kListens);
  if (!lane_keys) return fail(slot, lane_keys.error().sentence());
  if (auto expected = environment.listener->expect(ticket, *std::move(lane_keys), *this); !expected)
    return fail(slot, expected.error().sentence());
  slot.ticket = ticket;
  slot.offer_ends = environment.loop.now() + kOfferTimeout;
  around_.control.send(
      wire::LaneOffer{.name = name, .port = environment.listener->local_address().port(), .plain = environment.plain, .ticket = ticket}, 0);
}

// A lane of the higher rank's cannot be reached from here. Before the other end is told so: it then knows whether there is still hope.
void Lanes::offer_instead_of(std::uint32_t lane) {
  if (is_higher() || offers(lane) || link_ == nullptr || around_.environment == nullptr || around_.environment->listener == nullptr) return;
  const std::uint32_t counterpart = lane + wire::kLowersFirstLane;
  if (slots_[counterpart].is_used()) return;
  offer(counterpart);
  arm();
}

Result<void> Lanes::on_offer(const wire::LaneOffer& offer) {
  const auto refused = [&](std::string_view what) {
    return Error(ErrorCode::kRefused, fmt::format("rank {} offered TCP lane {} in generation {}, {}", around_.peer, offer.name.lane,
                                                  offer.name.generation, what));
  };
  if (offers(offer.name.lane)) return refused("and this end is the one to offer that");
  if (link_ == nullptr) return {};
  Slot& slot = slots_[offer.name.lane];
  if (offer.name.generation <= slot.generation) return refused("which was used before");
  slot.generation = offer.name.generation;
  if (around_.environment == nullptr) {
    decline(offer.name, wire::LaneAnswerStatus::kRefused, "this rank wants no TCP lanes");
    return {};
  }
  drop(slot);
  if (offer.plain != around_.environment->plain) {
    decline(offer.name, wire::LaneAnswerStatus::kRefused, "the two ends disagree on plain text");
    return {};
  }
  Result<transport::tcp::LaneKeys> lane_keys = keys(offer.name, transport::tcp::Side::kConnects);
  if (!lane_keys) return std::move(lane_keys).error();
  PeerLane& lane = make(offer.name);
  Result<std::unique_ptr<transport::tcp::Lane>> connecting =
      around_.environment->connect(link_->peer_address().with_port(offer.port), offer.ticket, *std::move(lane_keys), lane.handler());
  if (!connecting) {
    slot.lane.reset();
    offer_instead_of(offer.name.lane);
    decline(offer.name, wire::LaneAnswerStatus::kUnreachable, connecting.error().sentence());
    return {};
  }
  lane.use(*std::move(connecting));
  around_.control.send(wire::LaneAnswer{.name = offer.name, .status = wire::LaneAnswerStatus::kConnecting, .text = {}}, 0);
  return {};
}

void Lanes::decline(const wire::LaneName& name, wire::LaneAnswerStatus status, const std::string& why) {
  around_.control.send(wire::LaneAnswer{.name = name, .status = status, .text = shortened(why)}, 0);
  if (around_.environment != nullptr) fail(slots_[name.lane], why);
}

Result<void> Lanes::on_answer(const wire::LaneAnswer& answer) {
  if (answer.status == wire::LaneAnswerStatus::kConnecting) return {};
  Slot& slot = slots_[answer.name.lane];
  if (offers(answer.name.lane)) {
    if (names(slot, answer.name)) fail(slot, fmt::format("rank {} could not connect: {}", around_.peer, answer.text));
    return {};
  }
  // About a lane that it has offered, or would have: it cannot be reached.
  if (answer.name.generation < slot.generation || (slot.is_used() && !names(slot, answer.name))) return {};
  slot.generation = answer.name.generation;
  if (answer.status == wire::LaneAnswerStatus::kUnreachable) offer_instead_of(answer.name.lane);
  if (around_.environment != nullptr) fail(slot, fmt::format("rank {} cannot be reached: {}", around_.peer, answer.text));
  return {};
}

Result<void> Lanes::on_down(const wire::LaneDown& down) {
  Slot& slot = slots_[down.name.lane];
  if (names(slot, down.name)) fail(slot, fmt::format("rank {} gave it up: {}", around_.peer, down.reason));
  return {};
}

PeerLane& Lanes::make(const wire::LaneName& name) {
  Slot& slot = slots_[name.lane];
  slot.lane =
      std::make_unique<PeerLane>(name, next_way_++, around_.epoch, around_.scratch, around_.incoming, static_cast<PeerLane::Owner&>(*this));
  return *slot.lane;
}

void Lanes::on_lane(const wire::LaneTicket& ticket, std::unique_ptr<transport::tcp::Lane> lane) {
  const auto slot = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& one) { return one.ticket == ticket; });
  NEXAR_ASSERT(slot != slots_.end(), "a ticket that is dropped is forgotten");
  slot->ticket.reset();
  PeerLane& arrived = make(lane->name());
  arrived.start(std::move(lane));
}

void Lanes::on_lane_open(PeerLane& lane) {
  lane.fit_congestion_control(link_->shortest_round_trip());
  employ();
  ++ended_.opened;
  ended_.reason.clear();
  move_due_ = true;
  around_.environment->log.debug("mesh", "a TCP lane is open",
                                 {{"peer", around_.peer},
                                  {"lane", lane.name().lane},
                                  {"plain", around_.environment->plain},
                                  {"congestion", lane.congestion_control()}});
  arm();
  settle();
}

// Open lanes carry, as many as are to.
void Lanes::employ() {
  auto carrying = std::count_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.carries; });
  for (Slot& slot : slots_) {
    if (carrying == around_.environment->carrying) break;
    if (slot.carries || slot.lane == nullptr || !slot.lane->is_open()) continue;
    slot.carries = true;
    ++carrying;
    around_.outgoing.add_lane(slot.lane->way());
  }
  around_.incoming.set_lanes(static_cast<std::uint16_t>(carrying));
}

// By itself: the other end may not know.
void Lanes::on_lane_ended(PeerLane& lane, const Error& error) {
  const wire::LaneName name = lane.name();
  if (!lane.is_open()) {
    offer_instead_of(name.lane);
    return decline(name, wire::LaneAnswerStatus::kUnreachable, error.sentence());
  }
  around_.control.send(wire::LaneDown{.name = name, .reason = shortened(error.sentence())}, 0);
  fail(slots_[name.lane], error.sentence());
}

void Lanes::fail(Slot& slot, const std::string& why) {
  ended_.reason = why;
  if (link_ != nullptr) around_.environment->log.info("mesh", "a TCP lane cannot be used", {{"peer", around_.peer}, {"why", why}});
  drop(slot);
  if (link_ != nullptr) {
    // What fails before anything is offered again is the same trouble.
    const base::Time now = around_.environment->loop.now();
    if (now >= offer_again_)
      pause_ = std::clamp(pause_ * 2, around_.environment->pause_min, std::max(around_.environment->pause_min, kPauseMax));
    offer_again_ = now + pause_;
  }
  settle();
}

// Whatever the slot has ends. What went by an open lane goes on by others, or by the link.
void Lanes::drop(Slot& slot) {
  if (slot.ticket) around_.environment->listener->forget(*std::exchange(slot.ticket, std::nullopt));
  const std::unique_ptr<PeerLane> lane = std::move(slot.lane);
  if (lane == nullptr || !lane->is_open()) return;
  const transport::LaneCounters moved = lane->counters();
  ended_.traffic.frames_sent += moved.frames_sent;
  ended_.traffic.bytes_sent += moved.bytes_sent;
  ended_.traffic.frames_received += moved.frames_received;
  ended_.traffic.bytes_received += moved.bytes_received;
  if (std::exchange(slot.carries, false)) around_.outgoing.remove_lane(lane->way());
  employ();
  if (link_ == nullptr) return;
  ++ended_.died;
  around_.incoming.way_ended(lane->number());
}

// Told once, when every lane that there will be is open, or is known not to come.
void Lanes::settle() {
  if (settled_ || !around_.environment->forced) return;
  const auto is_pending = [](const Slot& slot) { return slot.ticket || (slot.lane != nullptr && !slot.lane->is_open()); };
  for (std::uint32_t lane = 0; lane < around_.environment->count(); ++lane) {
    const bool not_offered = slots_[lane].generation == 0;
    if (not_offered || is_pending(slots_[lane]) || is_pending(slots_[lane + wire::kLowersFirstLane])) return;
  }
  settled_ = true;
  around_.settled();
}

}  // namespace nexar::mesh
