#include "wire/call.h"

#include <array>
#include <string_view>

#include <fmt/format.h>

#include "base/hash.h"

namespace nexar::wire {
namespace {

constexpr std::uint8_t kAbsent = 0xff;  // no dtype, no op
constexpr std::uint8_t kFlagUserOp = 1;

enum class Counts : std::uint8_t { kNone, kEqual, kOwn };  // no count, one that all ranks agree on, or each rank its own

struct Row {
  Counts counts;
  bool typed;
  bool reduces;
  bool rooted;
};

// By number, as in types/operation_id.h; number 0 is nothing.
constexpr std::array<Row, kOperationIdMax + 1> kRows = {{
    {Counts::kNone, false, false, false},  // nothing
    {Counts::kEqual, true, true, false},   // all_reduce
    {Counts::kEqual, true, true, false},   // all_reduce_bucketed
    {Counts::kEqual, true, true, false},   // all_reduce_compressed
    {Counts::kEqual, true, true, false},   // reduce_scatter
    {Counts::kEqual, true, false, false},  // all_gather
    {Counts::kEqual, true, false, true},   // broadcast
    {Counts::kEqual, true, true, true},    // reduce
    {Counts::kEqual, true, false, true},   // gather
    {Counts::kEqual, true, false, true},   // scatter
    {Counts::kEqual, true, false, false},  // all_to_all
    {Counts::kOwn, true, false, false},    // all_gather_v
    {Counts::kOwn, true, true, false},     // reduce_scatter_v
    {Counts::kOwn, true, false, false},    // all_to_all_v
    {Counts::kOwn, true, false, true},     // gather_v
    {Counts::kOwn, true, false, true},     // scatter_v
    {Counts::kEqual, true, true, false},   // scan
    {Counts::kEqual, true, true, false},   // exclusive_scan
    {Counts::kNone, false, false, false},  // barrier
    {Counts::kEqual, true, true, false},   // all_reduce_rs_ag
    {Counts::kOwn, false, false, true},    // broadcast_bytes
    {Counts::kOwn, false, false, false},   // all_gather_bytes
    {Counts::kOwn, false, false, true},    // gather_bytes
}};

const Row& row(OperationId operation) {
  const auto index = static_cast<std::size_t>(operation);
  return kRows[index < kRows.size() ? index : 0];
}

bool exists(DataType type) { return static_cast<std::size_t>(type) < kDataTypes.size(); }
bool exists(ReduceOp op) { return static_cast<std::size_t>(op) < kReduceOps.size(); }

}  // namespace

std::uint64_t CallDescriptor::fingerprint() const {
  CallDescriptor agreed = *this;
  if (row(operation).counts == Counts::kOwn) agreed.count = 0;
  std::array<std::byte, kBytes> bytes{};
  Writer writer(bytes);
  agreed.put(writer);
  const std::uint64_t hash = base::hash64({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return hash != 0 ? hash : 1;
}

std::string CallDescriptor::to_text() const {
  std::string inside;
  const auto add = [&](std::string_view fact) { inside += (inside.empty() ? "" : ", ") + std::string(fact); };
  if (row(operation).counts != Counts::kNone) add(fmt::format("count={}", count));
  if (dtype) add(nexar::to_string(*dtype));
  if (op) add(nexar::to_string(*op));
  if (user_op) add("user op");
  if (root >= 0) add(fmt::format("root={}", root));
  return fmt::format("{}({})", nexar::to_string(operation), inside);
}

const char* CallDescriptor::fault() const {
  if (operation == OperationId{} || static_cast<std::uint8_t>(operation) > kOperationIdMax) return "names an operation that does not exist";
  const Row& has = row(operation);
  if (has.counts == Counts::kNone && count != 0) return "has a count for an operation without one";
  if (has.typed != dtype.has_value() || (dtype && !exists(*dtype))) return "has a data type that does not belong to its operation";
  if (op && (user_op || !exists(*op))) return "has a reduce op that does not exist, or two";
  if (has.reduces != (op.has_value() || user_op)) return "has a reduce op that does not belong to its operation, or none";
  if (has.rooted ? root < 0 : root != -1) return "has a root that does not belong to its operation, or none";
  return nullptr;
}

void CallDescriptor::put(Writer& writer) const {
  writer.number(static_cast<std::uint8_t>(operation));
  writer.number(dtype ? static_cast<std::uint8_t>(*dtype) : kAbsent);
  writer.number(op ? static_cast<std::uint8_t>(*op) : kAbsent);
  writer.number(user_op ? kFlagUserOp : std::uint8_t{0});
  writer.number(root);
  writer.number(count);
  writer.number(digest);
}

CallDescriptor CallDescriptor::get(Reader& reader) {
  CallDescriptor call;
  call.operation = static_cast<OperationId>(reader.number<std::uint8_t>());
  if (const auto dtype = reader.number<std::uint8_t>(); dtype != kAbsent) call.dtype = static_cast<DataType>(dtype);
  if (const auto op = reader.number<std::uint8_t>(); op != kAbsent) call.op = static_cast<ReduceOp>(op);
  const auto flags = reader.number<std::uint8_t>();
  if ((flags & ~kFlagUserOp) != 0) reader.fail("describes a call with unknown flags");
  call.user_op = (flags & kFlagUserOp) != 0;
  call.root = reader.number<Rank>();
  call.count = reader.number<std::uint64_t>();
  call.digest = reader.number<std::uint64_t>();
  return call;
}

}  // namespace nexar::wire
