// What a group whose members share memory has for its calls, beside messages: the area, and whose turn it is there.
//
// A call runs in the area either on the thread that makes it, until nothing has happened for a while, or on the engine, in the order of
// sequence numbers (direct/owner.h). What did not end well in the area is settled by messages, as the outcome of every operation is: the
// area only says that it is over.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "collective/direct/area.h"
#include "collective/direct/operation.h"
#include "collective/direct/owner.h"
#include "collective/direct/run.h"
#include "collective/recent_calls.h"
#include "io/clock.h"
#include "nexar/ids.h"
#include "nexar/result.h"
#include "reduce/reducer.h"
#include "transport/shm/bells.h"
#include "transport/shm/segment.h"
#include "types/operation_id.h"
#include "wire/call.h"
#include "wire/operation_messages.h"

namespace nexar::collective {

// How a call ended in the area.
struct DirectEnd {
  direct::Outcome outcome;
  Rank rank;           // whom it concerns, of kMismatch, kEnded and kNonsense
  Result<void> error;  // of kOpFailed
  bool lent;           // others may still read memory that this rank has lent
};

// Owned by the group's state, and lives as long as the node.
class DirectGroup {
 public:
  struct Memory {
    std::shared_ptr<const transport::shm::HostSegment> segment;
    std::shared_ptr<const transport::shm::Bells> bells;
    std::vector<int> others;                           // local ranks of the other members, who may sleep
    base::ByteSpan block;                              // of layout().bytes(); one member has initialised it
    std::shared_ptr<const direct::Lending> lending{};  // all members have one, or none
    direct::Tuning tuning{};                           // the same for all
    const io::Clock* clock = &io::real_clock();        // by which large calls learn how to store; null: they do not
  };

  static direct::Layout layout(Rank ranks) { return {ranks, direct::kSlotBytes}; }
  static bool has_room_for(Rank ranks) { return ranks > 1 && ranks <= direct::kRanksMax; }

  // Whether the kernels know the operation.
  static bool supports(OperationId operation);

  // `last_entered` is the number of the group's last call, raised here by callers' threads.
  DirectGroup(Memory memory, Rank rank, Rank ranks, direct::Spin spin, std::atomic<Sequence>& last_entered);

  direct::Owner& owner() { return owner_; }
  direct::Area& area() { return area_; }
  direct::Spin spin() const { return spin_; }
  io::CoreOffers& offers() { return offers_; }  // Thread: whose turn it is to call.
  RecentCalls& recent() { return recent_; }
  bool fits(const direct::Call& call) const;

  // The number of the call that a caller's thread runs; 0: none. The engine takes it over with what the thread has begun.
  std::atomic<Sequence>& caller() { return caller_; }

  // What callers' threads have found out about the call that they made last. Thread: whose turn it is to call.
  struct Known {
    wire::CallDescriptor call{};
    std::optional<reduce::Reducer> reducer{};
    direct::Call there{};                      // what stays the same in the next such call
    std::optional<direct::Pattern> pattern{};  // nothing: nothing is known
  };
  Known& known() { return known_; }

  // The next number, for a caller's thread, which gives it back as done or hands the call to the engine.
  Sequence take_number(const wire::CallDescriptor& call);
  void done() { caller_.store(0, std::memory_order_release); }

  // Engine. Who is in the queue hears `ended`, once, unless it leaves before.
  class Member {
   public:
    virtual ~Member() = default;
    // Nothing can be done before that rank does something. False when it never will, and the member has left.
    virtual bool waits_for(Rank rank) = 0;
    virtual void on_direct_end(DirectEnd end) = 0;
  };

  // `call` stays until the member has left or was told the end. `begun` is null, or what a caller's thread has begun of it.
  void enter(Member& member, const direct::Call& call, direct::Operation* begun);
  // Whether others may still read memory that this rank has lent in the call.
  bool leave(const Member& member, Sequence sequence);
  // A number that has ended before anything was done in the area.
  void skip(Sequence sequence);

  // Does what can be done; whether there was anything. Members may hear of their end.
  bool step();

  // Whether it waits for what others do in the area.
  bool is_waiting() const { return running_ != nullptr; }

  // Counts whatever comes forward in the area. Members have their turn one after the other: as long as one of them moves, all do.
  std::uint64_t moves() const { return moves_; }

  // How far a member is, whose turn it is or not.
  wire::Progress progress(const Member& member) const;
  void waits_for(const Member& member, std::vector<Rank>& ranks) const;

 private:
  struct Entry {
    Sequence sequence;
    Member* member;  // null: it has ended
    const direct::Call* call;
  };

  class OthersBell final : public direct::Bell {
   public:
    explicit OthersBell(const Memory& memory);
    void ring() override;

   private:
    struct Other {
      const std::atomic<std::uint32_t>* awaits;  // its word in the segment
      int local;
    };
    const transport::shm::Bells* bells_;
    std::vector<Other> others_;
  };

  bool is_running(const Member& member) const { return running_ != nullptr && queue_.front().member == &member; }
  void begin_next();

  const Memory memory_;
  OthersBell bell_;
  direct::Area area_;
  const direct::Spin spin_;
  io::CoreOffers offers_;
  direct::Owner owner_;
  RecentCalls recent_;
  std::atomic<Sequence>& last_entered_;
  std::atomic<Sequence> caller_ = 0;
  Known known_;

  // Engine. As many as calls are in flight, and one for those that have ended before their turn.
  std::deque<Entry> queue_;
  direct::Operation* running_ = nullptr;  // of the first: own_, or what a caller began
  std::optional<direct::Operation> own_;
  std::uint64_t moves_ = 0;
};

}  // namespace nexar::collective
