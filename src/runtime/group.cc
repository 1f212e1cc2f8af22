#include "nexar/group.h"

#include <utility>

#include <fmt/format.h>

#include "mesh/regions.h"
#include "runtime/node_core.h"
#include "runtime/program.h"

namespace nexar {
namespace {

using runtime::CallOfProgram;
using runtime::GroupRecord;
using runtime::NodeCore;
using runtime::OperationState;

Error invalid(std::string sentence) { return Error(ErrorCode::kInvalidArgument, std::move(sentence)); }

Result<void> check_rank(const GroupRecord& group, std::string_view call, Rank rank, bool any_allowed) {
  if ((any_allowed && rank == kAnySource) || group.has(rank)) return {};
  return invalid(fmt::format("{}: there is no rank {} in a group of {}", call, rank, group.size()));
}

template <typename R>
Result<void> check_regions(std::string_view call, std::span<const R> regions) {
  std::uint64_t total = 0;
  for (const R& region : regions) {
    if (region.data == nullptr && region.bytes > 0)
      return invalid(fmt::format("{}: the buffer is null and {} bytes long", call, region.bytes));
    if (__builtin_add_overflow(total, region.bytes, &total))
      return invalid(fmt::format("{}: the regions are together longer than 2^64 bytes", call));
  }
  return {};
}

// Fills in a send or a receive; an error in the arguments leaves it as it was.
Result<void> prepare_send(const NodeCore& core, const GroupRecord& group, OperationState& operation, std::span<const ConstRegion> regions,
                          Rank to, Tag tag, bool of_program = false) {
  if (auto checked = of_program ? Result<void>() : core.check_call("send"); !checked) return checked;
  if (auto checked = check_rank(group, "send", to, false); !checked) return checked;
  if (auto checked = check_regions("send", regions); !checked) return checked;
  operation.kind = OperationState::Kind::kSend;
  operation.group = &group;
  operation.send.group = group.id;
  operation.send.peer = group.world_rank(to);
  operation.send.tag = tag;
  operation.send.regions.assign(regions.begin(), regions.end());
  operation.send.bytes = mesh::total_bytes(regions);
  return {};
}

Result<void> prepare_receive(const NodeCore& core, const GroupRecord& group, OperationState& operation, std::span<const Region> regions,
                             Rank from, const TagFilter& tag, bool of_program = false) {
  if (auto checked = of_program ? Result<void>() : core.check_call("recv"); !checked) return checked;
  if (auto checked = check_rank(group, "recv", from, true); !checked) return checked;
  if (auto checked = check_regions("recv", regions); !checked) return checked;
  operation.kind = OperationState::Kind::kReceive;
  operation.group = &group;
  operation.receive.group = group.id;
  operation.receive.source = from == kAnySource ? from : group.world_rank(from);
  operation.receive.tag = tag.tag();
  operation.receive.regions.assign(regions.begin(), regions.end());
  operation.receive.capacity = mesh::total_bytes(regions);
  return {};
}

// Memory of the message's size, when that is known. A peer's number decides it only up to what the node may hold.
void make_owned(const NodeCore& core, OperationState& operation) {
  operation.receive.allocate = [&operation, budget = core.config().memory_budget](mesh::Receive& receive,
                                                                                  std::uint64_t bytes) -> Result<void> {
    if (bytes > budget)
      return Error(
          ErrorCode::kOverloaded,
          fmt::format("an owned receive of {} bytes is over the node's memory_budget of {}; receive it into a buffer", bytes, budget));
    operation.owned.resize(static_cast<std::size_t>(bytes));
    receive.regions = {{operation.owned.data(), operation.owned.size()}};
    receive.capacity = bytes;
    return {};
  };
}

Operation failed(Error error) {
  auto state = std::make_shared<OperationState>();
  state->result.emplace(std::move(error));
  state->completion.complete();
  return Operation(std::move(state));
}

Operation started(const std::shared_ptr<NodeCore>& core, std::shared_ptr<OperationState> state, bool of_program = false) {
  state->core = core;
  if (of_program)
    core->begin_for_program(*state);
  else
    core->start(*state);
  return Operation(std::move(state));
}

}  // namespace

Rank Group::rank() const { return record_->rank; }
int Group::size() const { return record_->size(); }
std::uint64_t Group::id() const { return record_->id; }
bool Group::shares_memory() const { return record_->direct != nullptr; }
const Config& Group::config() const { return core_->config(); }
const std::shared_ptr<BufferPool>& Group::pool() const { return core_->pool(); }
const std::shared_ptr<DeviceAdapter>& Group::adapter() const { return core_->adapter(); }

std::optional<Rank> Group::world_rank(Rank rank) const {
  if (!record_->has(rank)) return std::nullopt;
  return record_->world_rank(rank);
}

std::optional<Rank> Group::rank_of(Rank world_rank) const { return record_->rank_of(world_rank); }

Result<void> Group::send(const void* data, std::size_t bytes, Rank to, Tag tag) const {
  const ConstRegion region{data, bytes};
  return send(std::span(&region, 1), to, tag);
}

Result<void> Group::send(std::span<const ConstRegion> regions, Rank to, Tag tag) const {
  OperationState operation;
  if (auto prepared = prepare_send(*core_, *record_, operation, regions, to, tag); !prepared) return prepared;
  Result<Status> result = core_->run(operation, core_->config().p2p_timeout);
  if (!result) return std::move(result).error();
  return {};
}

Result<Status> Group::recv(void* data, std::size_t bytes, Rank from, TagFilter tag) const {
  const Region region{data, bytes};
  return recv(std::span(&region, 1), from, tag);
}

Result<Status> Group::recv(std::span<const Region> regions, Rank from, TagFilter tag) const {
  OperationState operation;
  if (auto prepared = prepare_receive(*core_, *record_, operation, regions, from, tag); !prepared) return std::move(prepared).error();
  return core_->run(operation, core_->config().p2p_timeout);
}

Result<OwnedMessage> Group::recv_owned(Rank from, TagFilter tag) const {
  OperationState operation;
  if (auto prepared = prepare_receive(*core_, *record_, operation, {}, from, tag); !prepared) return std::move(prepared).error();
  make_owned(*core_, operation);
  Result<Status> result = core_->run(operation, core_->config().p2p_timeout);
  if (!result) return std::move(result).error();
  return OwnedMessage{std::move(operation.owned), *result};
}

Result<Status> Group::exchange(const void* send_data, std::size_t send_bytes, Rank to, Tag send_tag, void* recv_data,
                               std::size_t recv_bytes, Rank from, TagFilter recv_tag) const {
  const ConstRegion outgoing{send_data, send_bytes};
  const Region incoming{recv_data, recv_bytes};
  OperationState send_operation;
  OperationState receive_operation;
  if (auto prepared = prepare_send(*core_, *record_, send_operation, std::span(&outgoing, 1), to, send_tag); !prepared)
    return std::move(prepared).error();
  if (auto prepared = prepare_receive(*core_, *record_, receive_operation, std::span(&incoming, 1), from, recv_tag); !prepared)
    return std::move(prepared).error();
  return core_->run_both(receive_operation, send_operation, core_->config().p2p_timeout);
}

Operation Group::start_send(const void* data, std::size_t bytes, Rank to, Tag tag) const {
  const ConstRegion region{data, bytes};
  return start_send(std::span(&region, 1), to, tag);
}

Operation Group::start_send(std::span<const ConstRegion> regions, Rank to, Tag tag) const {
  const bool of_program = CallOfProgram::take();
  auto state = std::make_shared<OperationState>();
  if (auto prepared = prepare_send(*core_, *record_, *state, regions, to, tag, of_program); !prepared)
    return failed(std::move(prepared).error());
  return started(core_, std::move(state), of_program);
}

Operation Group::start_recv(void* data, std::size_t bytes, Rank from, TagFilter tag) const {
  const Region region{data, bytes};
  return start_recv(std::span(&region, 1), from, tag);
}

Operation Group::start_recv(std::span<const Region> regions, Rank from, TagFilter tag) const {
  const bool of_program = CallOfProgram::take();
  auto state = std::make_shared<OperationState>();
  if (auto prepared = prepare_receive(*core_, *record_, *state, regions, from, tag, of_program); !prepared)
    return failed(std::move(prepared).error());
  return started(core_, std::move(state), of_program);
}

Operation Group::start_recv_owned(Rank from, TagFilter tag) const {
  auto state = std::make_shared<OperationState>();
  if (auto prepared = prepare_receive(*core_, *record_, *state, {}, from, tag); !prepared) return failed(std::move(prepared).error());
  make_owned(*core_, *state);
  return started(core_, std::move(state));
}

Result<std::optional<Status>> Group::probe(Rank from, TagFilter tag) const {
  if (auto checked = core_->check_call("probe"); !checked) return std::move(checked).error();
  if (auto checked = check_rank(*record_, "probe", from, true); !checked) return std::move(checked).error();
  Result<std::optional<Status>> found = core_->probe(record_->id, from == kAnySource ? from : record_->world_rank(from), tag.tag());
  if (found && *found) (*found)->source = record_->rank_of((*found)->source).value_or((*found)->source);
  return found;
}

}  // namespace nexar
