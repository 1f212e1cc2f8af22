// Pairs arriving messages with the receives that wait for them.
//
// A message may come before its receive is posted. Small ones are kept under the sender's credit; of large ones only the announcement is
// here: the sender slows down, we do not allocate. Messages of equal (group, source, tag) match in the order of sending, whether they are
// here whole or only announced; receives that fit the same message match in the order of posting.
//
// Thread: engine. Owned by Mesh; holds receives until they are matched or cancelled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mesh/message.h"

namespace nexar::mesh {

// A message that came before its receive.
struct Arrival {
  Rank source = 0;
  Tag tag = 0;
  std::uint64_t bytes = 0;
  enum class Form : std::uint8_t {
    kEager,      // its bytes are in `content`, as far as they have come
    kAnnounced,  // its bytes are with the sender, under `transfer`
    kLocal,      // sent by this node to itself: `send` still holds them
  };
  Form form = Form::kEager;
  std::vector<std::byte> content{};
  bool complete = false;  // of kEager: all bytes are here; of kLocal always
  std::uint64_t transfer = 0;
  Send* send = nullptr;
  Receive* taker = nullptr;  // a receive that matched before the bytes were complete
};

class Matcher {
 public:
  // A message from `source` begins: the receive it belongs to, which is then no longer posted, or null.
  Receive* match(GroupId group, Rank source, Tag tag);

  // Keeps a message that matched nothing. The pointer stays valid until the arrival is taken or withdrawn.
  Arrival* keep(GroupId group, Arrival arrival);

  // The arrival that `receive` gets, taken out; or null, and the receive is posted.
  std::unique_ptr<Arrival> post(Receive& receive);

  // The arrival that such a receive would get; null when there is none.
  const Arrival* find(GroupId group, Rank source, std::optional<Tag> tag) const;

  // Every posted receive that a message of `source` could match.
  template <typename F>
  void for_each_posted(GroupId group, Rank source, F&& visit) const {
    const auto found = groups_.find(group);
    if (found == groups_.end()) return;
    for (const auto& [key, receives] : found->second.exact)
      if (key.first == source)
        for (const Receive* receive : receives) visit(*receive);
    for (const Receive* receive : found->second.wild)
      if (receive->source == kAnySource || receive->source == source) visit(*receive);
  }

  // Forgets a posted receive. False when it is not posted (any more).
  bool cancel(Receive& receive);

  // Takes out an announcement that the sender takes back; null when it is matched already.
  std::unique_ptr<Arrival> withdraw(GroupId group, Rank source, std::uint64_t transfer);

  // Takes out a message that this node sent itself.
  void withdraw_local(const Send& send);

  // Takes out what can no longer come from a peer that is lost: receives that only it could have matched, announcements, half a message.
  // Whole messages stay.
  std::vector<Receive*> drop_source(Rank source);

  // Takes out every posted receive.
  std::vector<Receive*> drop_all();

  // Takes out every message that is not here whole, and what this node sent itself, which is still with its sends: those are returned.
  std::vector<Send*> drop_unfinished();

  std::size_t arrivals() const;
  std::size_t posted() const;

 private:
  using Key = std::pair<Rank, Tag>;
  struct GroupState {
    std::map<std::uint64_t, std::unique_ptr<Arrival>> arrivals;  // in the order of arrival
    std::map<Key, std::deque<std::uint64_t>> by_key;             // the same, for receives that name both
    std::map<Key, std::deque<Receive*>> exact;                   // posted, in the order of posting
    std::list<Receive*> wild;                                    // posted with any source or any tag
  };

  static bool fits(const Receive& receive, Rank source, Tag tag);
  std::unique_ptr<Arrival> take(GroupId group, GroupState& state, std::uint64_t order);
  static std::unique_ptr<Arrival> remove(GroupState& state, std::uint64_t order);
  const std::pair<const std::uint64_t, std::unique_ptr<Arrival>>* first(const GroupState& state, Rank source, std::optional<Tag> tag) const;
  void forget_if_empty(GroupId group);

  std::unordered_map<GroupId, GroupState> groups_;
  std::uint64_t next_order_ = 0;
};

}  // namespace nexar::mesh
