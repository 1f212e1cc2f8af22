#include "mesh/matcher.h"

#include <algorithm>

#include "base/assert.h"

namespace nexar::mesh {

bool Matcher::fits(const Receive& receive, Rank source, Tag tag) {
  return (receive.source == kAnySource || receive.source == source) && (!receive.tag || *receive.tag == tag);
}

Receive* Matcher::match(GroupId group, Rank source, Tag tag) {
  const auto found = groups_.find(group);
  if (found == groups_.end()) return nullptr;
  GroupState& state = found->second;
  const auto exact = state.exact.find({source, tag});
  const auto wild = std::find_if(state.wild.begin(), state.wild.end(), [&](const Receive* receive) { return fits(*receive, source, tag); });
  Receive* chosen = nullptr;
  if (exact != state.exact.end() && (wild == state.wild.end() || exact->second.front()->order < (*wild)->order)) {
    chosen = exact->second.front();
    exact->second.pop_front();
    if (exact->second.empty()) state.exact.erase(exact);
  } else if (wild != state.wild.end()) {
    chosen = *wild;
    state.wild.erase(wild);
  }
  if (chosen != nullptr) chosen->state = Receive::State::kArriving;
  forget_if_empty(group);
  return chosen;
}

Arrival* Matcher::keep(GroupId group, Arrival arrival) {
  GroupState& state = groups_[group];
  const std::uint64_t order = next_order_++;
  state.by_key[{arrival.source, arrival.tag}].push_back(order);
  return state.arrivals.emplace(order, std::make_unique<Arrival>(std::move(arrival))).first->second.get();
}

std::unique_ptr<Arrival> Matcher::post(Receive& receive) {
  NEXAR_ASSERT(receive.state == Receive::State::kIdle, "a receive is posted once");
  GroupState& state = groups_[receive.group];
  if (const auto* entry = first(state, receive.source, receive.tag); entry != nullptr) {
    receive.state = Receive::State::kArriving;
    return take(receive.group, state, entry->first);
  }
  receive.order = next_order_++;
  receive.state = Receive::State::kPosted;
  if (receive.source == kAnySource || !receive.tag)
    state.wild.push_back(&receive);
  else
    state.exact[{receive.source, *receive.tag}].push_back(&receive);
  return nullptr;
}

const Arrival* Matcher::find(GroupId group, Rank source, std::optional<Tag> tag) const {
  const auto found = groups_.find(group);
  if (found == groups_.end()) return nullptr;
  const auto* entry = first(found->second, source, tag);
  return entry == nullptr ? nullptr : entry->second.get();
}

const std::pair<const std::uint64_t, std::unique_ptr<Arrival>>* Matcher::first(const GroupState& state, Rank source,
                                                                               std::optional<Tag> tag) const {
  if (source != kAnySource && tag) {
    const auto key = state.by_key.find({source, *tag});
    return key == state.by_key.end() ? nullptr : &*state.arrivals.find(key->second.front());
  }
  for (const auto& entry : state.arrivals)
    if ((source == kAnySource || entry.second->source == source) && (!tag || entry.second->tag == *tag)) return &entry;
  return nullptr;
}

std::unique_ptr<Arrival> Matcher::take(GroupId group, GroupState& state, std::uint64_t order) {
  std::unique_ptr<Arrival> arrival = remove(state, order);
  forget_if_empty(group);
  return arrival;
}

std::unique_ptr<Arrival> Matcher::remove(GroupState& state, std::uint64_t order) {
  const auto entry = state.arrivals.find(order);
  std::unique_ptr<Arrival> arrival = std::move(entry->second);
  state.arrivals.erase(entry);
  const auto key = state.by_key.find({arrival->source, arrival->tag});
  std::erase(key->second, order);
  if (key->second.empty()) state.by_key.erase(key);
  return arrival;
}

bool Matcher::cancel(Receive& receive) {
  if (receive.state != Receive::State::kPosted) return false;
  GroupState& state = groups_.at(receive.group);
  if (receive.source == kAnySource || !receive.tag) {
    state.wild.remove(&receive);
  } else {
    const auto exact = state.exact.find({receive.source, *receive.tag});
    std::erase(exact->second, &receive);
    if (exact->second.empty()) state.exact.erase(exact);
  }
  receive.state = Receive::State::kIdle;
  forget_if_empty(receive.group);
  return true;
}

std::unique_ptr<Arrival> Matcher::withdraw(GroupId group, Rank source, std::uint64_t transfer) {
  const auto found = groups_.find(group);
  if (found == groups_.end()) return nullptr;
  for (const auto& [order, arrival] : found->second.arrivals)
    if (arrival->form == Arrival::Form::kAnnounced && arrival->source == source && arrival->transfer == transfer)
      return take(group, found->second, order);
  return nullptr;
}

void Matcher::withdraw_local(const Send& send) {
  const auto found = groups_.find(send.group);
  if (found == groups_.end()) return;
  for (const auto& [order, arrival] : found->second.arrivals)
    if (arrival->send == &send) {
      take(send.group, found->second, order);
      return;
    }
}

std::vector<Receive*> Matcher::drop_source(Rank source) {
  std::vector<Receive*> dropped;
  for (auto& [group, state] : groups_) {
    for (auto exact = state.exact.begin(); exact != state.exact.end();) {
      if (exact->first.first == source) {
        dropped.insert(dropped.end(), exact->second.begin(), exact->second.end());
        exact = state.exact.erase(exact);
      } else {
        ++exact;
      }
    }
    state.wild.remove_if([&](Receive* receive) {
      if (receive->source == source) dropped.push_back(receive);
      return receive->source == source;
    });
    std::vector<std::uint64_t> gone;
    for (const auto& [order, arrival] : state.arrivals)
      if (arrival->source == source && !arrival->complete) gone.push_back(order);
    for (const std::uint64_t order : gone) remove(state, order);
  }
  for (Receive* receive : dropped) receive->state = Receive::State::kIdle;
  return dropped;
}

std::vector<Receive*> Matcher::drop_all() {
  std::vector<Receive*> dropped;
  for (auto& [group, state] : groups_) {
    for (const auto& [key, receives] : state.exact) dropped.insert(dropped.end(), receives.begin(), receives.end());
    dropped.insert(dropped.end(), state.wild.begin(), state.wild.end());
    state.exact.clear();
    state.wild.clear();
  }
  for (Receive* receive : dropped) receive->state = Receive::State::kIdle;
  return dropped;
}

std::vector<Send*> Matcher::drop_unfinished() {
  std::vector<Send*> sends;
  for (auto& [group, state] : groups_) {
    std::vector<std::uint64_t> gone;
    for (const auto& [order, arrival] : state.arrivals) {
      if (arrival->send != nullptr) sends.push_back(arrival->send);
      if (arrival->send != nullptr || !arrival->complete) gone.push_back(order);
    }
    for (const std::uint64_t order : gone) remove(state, order);
  }
  return sends;
}

void Matcher::forget_if_empty(GroupId group) {
  const auto found = groups_.find(group);
  const GroupState& state = found->second;
  if (state.arrivals.empty() && state.exact.empty() && state.wild.empty()) groups_.erase(found);
}

std::size_t Matcher::arrivals() const {
  std::size_t count = 0;
  for (const auto& [group, state] : groups_) count += state.arrivals.size();
  return count;
}

std::size_t Matcher::posted() const {
  std::size_t count = 0;
  for (const auto& [group, state] : groups_) {
    count += state.wild.size();
    for (const auto& [key, receives] : state.exact) count += receives.size();
  }
  return count;
}

}  // namespace nexar::mesh
