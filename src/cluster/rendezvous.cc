#include "cluster/rendezvous.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/units.h"

namespace nexar::cluster {
namespace {

constexpr std::size_t kNamesMax = 8;  // that a sentence lists; more are counted

// The first line in which the two differ, as each has it.
std::pair<std::string_view, std::string_view> first_difference(std::string_view a, std::string_view b) {
  const auto take_line = [](std::string_view& text) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return line;
  };
  for (;;) {
    const std::string_view ours = take_line(a);
    const std::string_view theirs = take_line(b);
    if (ours != theirs || (a.empty() && b.empty())) return {ours, theirs};
  }
}

}  // namespace

std::string Rendezvous::Member::to_string() const { return asked ? fmt::format("rank {} ({})", *asked, name) : fmt::format("'{}'", name); }

Rendezvous::Actions Rendezvous::proved(base::Time now, ClientId client) {
  NEXAR_ASSERT(!clients_.contains(client), "a client proves itself once");
  if (asking_ >= static_cast<std::size_t>(options_.world) + kSpareClients)
    return {Close{client, "too many nodes are joining at once: come again"}};
  set_due(client, clients_[client], now + kRequestTimeout);
  ++asking_;
  return {};
}

Rendezvous::Actions Rendezvous::requested(base::Time now, ClientId id, const Request& request, const Birth& birth) {
  Actions actions;
  const auto found = clients_.find(id);
  if (found == clients_.end()) return actions;
  NEXAR_ASSERT(found->second.member == nullptr, "a client asks once");
  if (deadline_ == base::Time::max()) deadline_ = now + options_.formation;
  const auto answer = [&](Error error) {
    refuse(actions, id, std::move(error));
    return std::move(actions);
  };
  const auto known = members_.find(request.key);
  if (failure_) return answer(*failure_);
  if (view_ != nullptr && known == members_.end())
    return answer(Error(ErrorCode::kRefused, fmt::format("the world of {} is complete", options_.world)));
  if (known != members_.end() && known->second->client) {  // on a link that it has given up, or an older one
    const ClientId old = *known->second->client;
    forget(old);
    actions.push_back(Close{old, "the node has come again on another link"});
  }
  if (std::optional<Error> difference = compare(request)) return answer(*std::move(difference));
  Result<Member*> place = known != members_.end() ? known->second.get() : place_for(request, birth);
  if (!place) return answer(std::move(place).error());

  Member& member = **place;
  if (const auto was_away = left_.find(&member); was_away != left_.end()) {
    away_.erase(was_away->second);
    left_.erase(was_away);
  }
  member.client = id;
  present_[member.arrival] = &member;
  found->second.member = &member;
  --asking_;
  set_due(id, found->second, now + kReadyTimeout);
  actions.push_back(Accept{id, rank_of(member), member.node, member.issued});
  return actions;
}

Rendezvous::Actions Rendezvous::ready(base::Time, ClientId id, std::vector<io::Address> addresses) {
  Actions actions;
  const auto found = clients_.find(id);
  if (found == clients_.end()) return actions;
  NEXAR_ASSERT(found->second.member != nullptr, "who is ready has asked");
  set_due(id, found->second, base::Time::max());
  Member& member = *found->second.member;
  if (view_ != nullptr) {
    actions.push_back(SendView{id, view_});
    return actions;
  }
  member.addresses = std::move(addresses);
  if (!std::exchange(member.ready, true)) ++ready_count_;
  if (ready_count_ == static_cast<std::size_t>(options_.world)) form(actions);
  return actions;
}

void Rendezvous::gone(ClientId client) { forget(client); }

Rendezvous::Actions Rendezvous::expire(base::Time now) {
  Actions actions;
  while (!due_.empty() && due_.begin()->first <= now) {
    const ClientId client = due_.begin()->second;
    forget(client);
    actions.push_back(Close{client, "nothing was heard for too long"});
  }
  if (view_ != nullptr || failure_ || now < deadline_) return actions;
  failure_ = missing(" within " + base::format_duration(options_.formation));
  std::vector<ClientId> waiting;
  for (const auto& [arrival, member] : present_) waiting.push_back(*member->client);
  for (const ClientId client : waiting) refuse(actions, client, *failure_);
  return actions;
}

base::Time Rendezvous::next_time() const {
  const base::Time client = due_.empty() ? base::Time::max() : due_.begin()->first;
  return view_ != nullptr || failure_ ? client : std::min(client, deadline_);
}

void Rendezvous::set_due(ClientId id, Client& client, base::Time due) {
  due_.erase({client.due, id});
  client.due = due;
  if (due != base::Time::max()) due_.insert({due, id});
}

void Rendezvous::forget(ClientId id) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  set_due(id, found->second, base::Time::max());
  if (found->second.member != nullptr)
    leave(*found->second.member);
  else
    --asking_;
  clients_.erase(found);
}

// Its link is gone: it is away. After formation that is nobody's concern here.
void Rendezvous::leave(Member& member) {
  member.client.reset();
  present_.erase(member.arrival);
  if (view_ != nullptr) return;
  if (std::exchange(member.ready, false)) --ready_count_;
  const std::uint64_t order = counter_++;
  away_[order] = &member;
  left_[&member] = order;
}

void Rendezvous::refuse(Actions& actions, ClientId client, Error error) {
  forget(client);
  actions.push_back(Refuse{client, std::move(error)});
}

// Everybody who is here has the same settings; a newcomer is compared with them.
std::optional<Error> Rendezvous::compare(const Request& request) {
  if (present_.empty() && view_ == nullptr) settings_.reset();
  if (!settings_) {
    settings_ = Settings{request.plan_version, request.agreed};
    return std::nullopt;
  }
  const std::string other = present_.empty() ? "the world" : present_.begin()->second->to_string();
  if (request.plan_version != settings_->plan_version)
    return Error(ErrorCode::kRefused, fmt::format("'{}' has plan version {}, and {} has {}", request.name, request.plan_version, other,
                                                  settings_->plan_version));
  if (request.agreed == settings_->agreed) return std::nullopt;
  const auto [theirs, ours] = first_difference(request.agreed, settings_->agreed);
  return Error(ErrorCode::kRefused, fmt::format("'{}' is configured with {}, and {} with {}", request.name,
                                                theirs.empty() ? "nothing" : theirs, other, ours.empty() ? "nothing" : ours));
}

Result<Rendezvous::Member*> Rendezvous::place_for(const Request& request, const Birth& birth) {
  if (request.rank && (*request.rank < 0 || *request.rank >= options_.world))
    return Error(ErrorCode::kRefused,
                 fmt::format("'{}' asks for rank {}, and the world has ranks 0 to {}", request.name, *request.rank, options_.world - 1));
  if (const auto holder = request.rank ? asked_.find(*request.rank) : asked_.end(); holder != asked_.end()) {
    if (holder->second->client)
      return Error(ErrorCode::kRefused,
                   fmt::format("'{}' asks for rank {}, which '{}' has", request.name, *request.rank, holder->second->name))
          .with_rank(*request.rank);
    remove(*holder->second);
  }
  if (members_.size() == static_cast<std::size_t>(options_.world)) {
    Member* gone = longest_away();
    if (gone == nullptr)
      return Error(ErrorCode::kRefused,
                   fmt::format("'{}' is one too many: the world of {} has all its nodes", request.name, options_.world));
    remove(*gone);
  }
  auto member = std::make_unique<Member>(
      Member{request.key, birth.node, request.host, request.cores, birth.now, request.rank, request.name, counter_++});
  Member* made = member.get();
  members_[request.key] = std::move(member);
  if (request.rank) asked_[*request.rank] = made;
  return made;
}

// For good: a member that is away makes way.
void Rendezvous::remove(Member& member) {
  NEXAR_ASSERT(!member.client, "only who is away makes way");
  if (const auto order = left_.find(&member); order != left_.end()) {
    away_.erase(order->second);
    left_.erase(order);
  }
  if (member.asked) asked_.erase(*member.asked);
  const crypto::Sha256 key = member.key;
  members_.erase(key);
}

Rendezvous::Member* Rendezvous::longest_away() const { return away_.empty() ? nullptr : away_.begin()->second; }

// Everybody is here and ready: those who asked for a rank have it, the others fill the gaps in the order of arrival.
void Rendezvous::form(Actions& actions) {
  std::vector<const Member*> ranks(members_.size());
  for (const auto& [rank, member] : asked_) ranks[static_cast<std::size_t>(rank)] = member;
  auto gap = ranks.begin();
  for (const auto& [arrival, member] : present_) {
    if (member->asked) continue;
    gap = std::find(gap, ranks.end(), nullptr);
    NEXAR_ASSERT(gap != ranks.end(), "there are as many ranks as members");
    *gap = member;
  }
  auto view = std::make_shared<View>();
  for (const Member* member : ranks) view->members.push_back({member->node, member->host, member->cores, member->addresses});
  view_ = std::move(view);
  for (const auto& [arrival, member] : present_) actions.push_back(SendView{*member->client, view_});
}

Rank Rendezvous::rank_of(const Member& member) const {
  if (view_ != nullptr) return view_->rank_of(member.node).value_or(-1);
  return member.asked.value_or(-1);
}

// Who is missing, as far as that is known: ranks when all that came have asked for theirs, else how many.
Error Rendezvous::missing(const std::string& within) const {
  std::string came;
  std::size_t listed = 0;
  bool all_asked = true;
  for (const auto& [arrival, member] : present_) {
    all_asked &= member->asked.has_value();
    if (listed++ < kNamesMax)
      came += fmt::format("{}{}{}", listed == 1 ? ": " : ", ", member->to_string(), member->ready ? "" : " without an address");
  }
  if (listed > kNamesMax) came += fmt::format(" and {} more", listed - kNamesMax);
  std::string lost;
  listed = 0;
  for (const auto& [order, member] : away_)
    if (listed++ < kNamesMax) lost += fmt::format("{}{}", listed == 1 ? "; gone again: " : ", ", member->to_string());
  std::vector<Rank> ranks;
  std::string missing;
  if (all_asked)
    for (Rank rank = 0; rank < options_.world; ++rank) {
      const auto holder = asked_.find(rank);
      if (holder != asked_.end() && holder->second->client) continue;
      ranks.push_back(rank);
      if (ranks.size() <= kNamesMax) missing += fmt::format("{}{}", ranks.size() == 1 ? "; missing: rank " : ", ", rank);
    }
  if (ranks.size() > kNamesMax) missing += fmt::format(" and {} more", ranks.size() - kNamesMax);
  Error error(ErrorCode::kTimeout,
              fmt::format("{} of {} nodes have come{}{}{}{}", present_.size(), options_.world, within, came, lost, missing));
  return ranks.empty() ? error : std::move(error).with_ranks(ranks);
}

}  // namespace nexar::cluster
