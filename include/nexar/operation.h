// What the caller of a non-blocking call waits for.
//
//   Operation receive = group.start_recv(buffer, bytes, 0, kTag);
//   compute();
//   Result<Status> got = receive.wait();
//
// When wait() has returned, with success or error, nothing reads or writes the operation's buffers any more. Dropping an Operation cancels
// it and waits until that is true.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nexar/export.h"
#include "nexar/message.h"
#include "nexar/result.h"

namespace nexar {

namespace runtime {
class NodeCore;
struct OperationState;
}  // namespace runtime

// Move-only. Thread: one at a time, not always the same.
class NEXAR_API Operation {
 public:
  using Duration = std::chrono::nanoseconds;

  Operation() noexcept;  // of nothing: done, with an empty Status
  explicit Operation(std::shared_ptr<runtime::OperationState> state) noexcept;
  Operation(Operation&& other) noexcept;
  Operation& operator=(Operation&& other) noexcept;
  ~Operation();

  // Whether wait() would return at once.
  bool done() const;

  // The result: of a receive what came, of a send what went. After `limit` the operation ends with kTimeout. May be called again, and says
  // the same.
  Result<Status> wait(std::optional<Duration> limit = std::nullopt);

  // Ends it now, with kCancelled if it has not ended. Returns when the buffers are the caller's again.
  void cancel();

  // The same for a reason, which the other ranks of a collective are told.
  void cancel(const Error& reason);

  // Calls `callback` once when it is done, inside the runtime: it may not block or call nexar.
  void on_done(std::function<void(const Result<Status>&)> callback);

  // A descriptor for poll() that becomes readable when the operation is done. It belongs to the operation.
  Result<int> descriptor();

  // What an owned receive got; empty before it is done and for every other operation. Can be taken once.
  std::vector<std::byte> take_bytes();

  // The same of all_gather_bytes and gather_bytes: a string of each rank.
  std::vector<std::vector<std::byte>> take_strings();

  // By which algorithm of docs/collectives.md a collective ran: "ring"; "ring+bruck" where it has two plans, one after the other;
  // "shared_memory" where it passed no messages. Empty before it is done, and for every other operation.
  std::string algorithm() const;

 private:
  friend class OperationGroup;
  friend class runtime::NodeCore;
  std::shared_ptr<runtime::OperationState> state_;
};

// Several operations, waited for together.
class NEXAR_API OperationGroup {
 public:
  void add(Operation operation);
  std::size_t size() const { return operations_.size(); }
  Operation& operator[](std::size_t index) { return operations_[index]; }

  // Waits for all. Success, or the first error in the order of adding.
  Result<void> wait_all(std::optional<Operation::Duration> limit = std::nullopt);

  // The index of one that is done and has not been returned before; kTimeout after `limit`, kInvalidArgument when all have been returned.
  Result<std::size_t> wait_any(std::optional<Operation::Duration> limit = std::nullopt);

 private:
  std::vector<Operation> operations_;
  std::vector<bool> returned_;
};

}  // namespace nexar
