#include "cases.h"

#include <algorithm>
#include <cstring>
#include <random>

#include <fmt/format.h>

#include "reduce/identity.h"
#include "reduce/oracle.h"

namespace nexar::test {
namespace {

constexpr std::uint8_t kUntouched = 0xA5;

}  // namespace

bool reduces(OperationId operation) {
  switch (operation) {
    case OperationId::kAllReduce:
    case OperationId::kReduceScatter:
    case OperationId::kReduce:
    case OperationId::kScan:
    case OperationId::kExclusiveScan: return true;
    default: return false;
  }
}

bool has_root(OperationId operation) {
  return operation == OperationId::kBroadcast || operation == OperationId::kReduce || operation == OperationId::kGather ||
         operation == OperationId::kScatter;
}

std::string Case::to_text() const {
  return fmt::format("{} of {} {}, {}, {} ranks, root {}{}", to_string(operation), count, to_string(type), to_string(op), ranks, root,
                     in_place ? ", in place" : "");
}

CaseMemory::CaseMemory(const Case& what, std::uint64_t seed) : case_(what) {
  std::mt19937_64 random(seed);
  if (reduces(what.operation)) reducer_ = reduce::Reducer::make(what.type, what.op).value();
  const std::uint64_t element = size_of(what.type);
  given_.resize(static_cast<std::size_t>(what.ranks));
  buffers_.resize(given_.size());
  for (Rank rank = 0; rank < what.ranks; ++rank) {
    auto& given = given_[static_cast<std::size_t>(rank)];
    given.resize(input_count(rank) * element);
    for (std::uint64_t i = 0; i < input_count(rank); ++i) store_element(what.type, given.data(), i, random_element(what.type, random));
    auto& memory = buffers_[static_cast<std::size_t>(rank)].memory;
    memory.resize(bytes_of_rank());
    place(rank, memory.data());
  }
}

void CaseMemory::place(Rank rank, std::uint8_t* at) {
  Buffers& mine = buffers_[static_cast<std::size_t>(rank)];
  const auto& given = given_[static_cast<std::size_t>(rank)];
  const std::uint64_t element = size_of(case_.type);
  std::memset(at, kUntouched, bytes_of_rank());
  mine.input = at + kGuard;
  mine.output = mine.input + buffer_bytes() + 2 * kGuard;
  if (case_.in_place || case_.operation == OperationId::kBroadcast) {
    const std::uint64_t slot = static_cast<std::uint64_t>(rank) * case_.count * element;
    const bool input_inside = case_.operation == OperationId::kAllGather || (case_.operation == OperationId::kGather && rank == case_.root);
    const bool output_inside =
        case_.operation == OperationId::kReduceScatter || (case_.operation == OperationId::kScatter && rank == case_.root);
    if (input_inside)
      mine.input = mine.output + slot;
    else
      mine.output = output_inside ? mine.input + slot : mine.input;
  }
  if (!given.empty()) std::memcpy(mine.input, given.data(), given.size());
}

std::uint64_t CaseMemory::input_count(Rank rank) const {
  switch (case_.operation) {
    case OperationId::kBarrier: return 0;
    case OperationId::kBroadcast: return rank == case_.root ? case_.count : 0;
    case OperationId::kScatter: return rank == case_.root ? case_.count * static_cast<std::uint64_t>(case_.ranks) : 0;
    case OperationId::kReduceScatter:
    case OperationId::kAllToAll: return case_.count * static_cast<std::uint64_t>(case_.ranks);
    default: return case_.count;
  }
}

std::uint64_t CaseMemory::output_count(Rank rank) const {
  switch (case_.operation) {
    case OperationId::kBarrier: return 0;
    case OperationId::kReduce: return rank == case_.root ? case_.count : 0;
    case OperationId::kGather: return rank == case_.root ? case_.count * static_cast<std::uint64_t>(case_.ranks) : 0;
    case OperationId::kAllGather:
    case OperationId::kAllToAll: return case_.count * static_cast<std::uint64_t>(case_.ranks);
    default: return case_.count;
  }
}

std::uint64_t CaseMemory::buffer_bytes() const {
  return std::max<std::uint64_t>(1, case_.count) * static_cast<std::uint64_t>(case_.ranks) * size_of(case_.type);
}

collective::direct::Call CaseMemory::call(Rank rank, Sequence sequence) const {
  const Buffers& mine = buffers_[static_cast<std::size_t>(rank)];
  collective::direct::Call call;
  call.operation = case_.operation;
  call.sequence = sequence;
  call.fingerprint = (static_cast<std::uint64_t>(case_.operation) << 56) + (static_cast<std::uint64_t>(case_.root) << 48) +
                     (static_cast<std::uint64_t>(case_.type) << 40) + (static_cast<std::uint64_t>(case_.op) << 32) + case_.count;
  call.send = mine.input;
  call.recv = mine.output;
  call.count = case_.count;
  call.type = case_.type;
  call.root = case_.root;
  call.reducer = reducer_ ? &*reducer_ : nullptr;
  if (reducer_) call.op = case_.op;
  return call;
}

std::uint64_t CaseMemory::given(Rank rank, std::uint64_t index) const {
  return load_element(case_.type, given_[static_cast<std::size_t>(rank)].data(), index);
}

std::uint64_t CaseMemory::expected(Rank rank, std::uint64_t index) const {
  const auto own = static_cast<std::uint64_t>(rank) * case_.count;
  Rank first = 0;
  Rank end = case_.ranks;
  std::uint64_t at = index;
  switch (case_.operation) {
    case OperationId::kBroadcast: return given(case_.root, index);
    case OperationId::kScatter: return given(case_.root, own + index);
    case OperationId::kGather:
    case OperationId::kAllGather: return given(static_cast<Rank>(index / case_.count), index % case_.count);
    case OperationId::kAllToAll: return given(static_cast<Rank>(index / case_.count), own + index % case_.count);
    case OperationId::kScan: end = rank + 1; break;
    case OperationId::kExclusiveScan: end = rank; break;
    case OperationId::kReduceScatter: at = own + index; break;
    default: break;
  }
  std::vector<std::uint64_t> values;
  for (; first < end; ++first) values.push_back(given(first, at));
  if (!values.empty()) return reduce_elements(case_.type, case_.op, values, values.size());
  std::uint8_t neutral[8] = {};
  reduce::fill_identity(case_.type, case_.op, neutral, 1).value();
  return load_element(case_.type, neutral, 0);
}

std::string CaseMemory::wrong_at(Rank rank) const {
  const Buffers& mine = buffers_[static_cast<std::size_t>(rank)];
  for (std::uint64_t i = 0; i < output_count(rank); ++i) {
    const std::uint64_t wanted = expected(rank, i);
    const std::uint64_t got = load_element(case_.type, mine.output, i);
    if (!same_element(case_.type, got, wanted))
      return fmt::format("{}: element {} of rank {} is {:#x} instead of {:#x}", case_.to_text(), i, rank, got, wanted);
  }
  const auto& input = given_[static_cast<std::size_t>(rank)];
  const bool is_kept = !case_.in_place && case_.operation != OperationId::kBroadcast;
  if (is_kept && !input.empty() && std::memcmp(input.data(), mine.input, input.size()) != 0)
    return fmt::format("{}: the input of rank {} has changed", case_.to_text(), rank);
  const std::uint64_t bytes = output_count(rank) * size_of(case_.type);
  const auto is_touched = [](std::uint8_t byte) { return byte != kUntouched; };
  const bool alone = is_kept && (std::any_of(mine.output - kGuard, mine.output, is_touched) ||
                                 std::any_of(mine.output + bytes, mine.output + bytes + kGuard, is_touched));
  return alone ? fmt::format("{}: rank {} wrote outside its output", case_.to_text(), rank) : std::string();
}

}  // namespace nexar::test
