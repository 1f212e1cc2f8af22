// An operation of ranks that share memory: it runs in the group's area, and what goes wrong there is settled by messages.
#include <utility>

#include <fmt/format.h>

#include "collective/operation.h"

namespace nexar::collective {

// Whether the call goes there; all members find the same, because all that counts is in the call's descriptor.
bool Operation::goes_by_memory() {
  if (group_->direct == nullptr || !call_->algorithm.empty() || !DirectGroup::supports(work_of(call_->descriptor.operation))) return false;
  direct_call_ = {.operation = work_of(call_->descriptor.operation),
                  .sequence = steps_.sequence,
                  .fingerprint = steps_.fingerprint,
                  .send = call_->input,
                  .recv = call_->output,
                  .pieces = call_->pieces,
                  .count = call_->descriptor.count,
                  .type = call_->descriptor.dtype.value_or(DataType::kU8),
                  .root = call_->shape.root,
                  .reducer = call_->reducer ? &*call_->reducer : nullptr,
                  .op = call_->op};
  return group_->direct->fits(direct_call_);
}

void Operation::on_direct_end(DirectEnd end_there) {
  moved_ = true;
  lent_ = end_there.lent;
  switch (end_there.outcome) {
    case direct::Outcome::kDone: return end({}, false);
    case direct::Outcome::kOpFailed: return fail(end_there.error.error());
    case direct::Outcome::kNonsense:
      return around_.expel(group_->members[static_cast<std::size_t>(end_there.rank)], "what it wrote into shared memory makes no sense");
    default: return settle_by_messages(end_there.rank);
  }
}

// A rank that has left said so after everything that it wrote, and that has been looked at.
bool Operation::waits_for(Rank rank) {
  if (rank == group_->self) return true;
  const Error* left = around_.port.departure(group_->members[static_cast<std::size_t>(rank)]);
  if (left == nullptr) return true;
  fail(*left);
  return false;
}

// That rank called something else, or has ended the call for a reason that it says when it is asked.
void Operation::settle_by_messages(Rank rank) {
  settles_with_ = rank;
  ask(rank);
}

}  // namespace nexar::collective
