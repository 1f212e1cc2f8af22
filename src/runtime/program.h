// Operations that go on step by step on the engine, and make several calls.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "nexar/group.h"
#include "nexar/message.h"
#include "nexar/operation.h"
#include "nexar/result.h"

namespace nexar::runtime {

// What such an operation does. It has a place in the order of calls of its group: the collectives that it calls stand there, and what the
// application calls later begins when all of them have begun. One that calls none, but sends or receives, has no place in that order.
//
// Thread: engine, but for making it; it may go on any.
class Program {
 public:
  virtual ~Program() = default;

  // As it stands in errors.
  virtual std::string_view name() const = 0;

  // Goes on as far as it can without waiting; whether anything has happened. It begins calls only when `first` in the order of calls.
  virtual bool step(bool first) = 0;

  // Whether it has to be asked again though nothing becomes ready: a device is polled.
  virtual bool is_polled() const = 0;

  // Whether it will begin no more collectives; of one that never does, always.
  virtual bool has_begun() const = 0;

  // How it ended, once nothing of it is under way. Calls that it still has to decline come later.
  virtual const std::optional<Result<Status>>& result() const = 0;

  // Ends it with this error, unless it has ended: steps that are under way go on until they end, and calls that are left are declined.
  virtual void cancel(const Error& reason) = 0;
};

// Begins a program, in its place in the order of calls of `group` if it has one. Thread: any.
Operation start_program(const Group& group, std::shared_ptr<Program> program);

// Lets a program's step make the next call, which begins before its start_ form returns. On the stack, around one call.
class CallOfProgram {
 public:
  CallOfProgram() { expected() = true; }
  ~CallOfProgram() { expected() = false; }
  CallOfProgram(const CallOfProgram&) = delete;
  CallOfProgram& operator=(const CallOfProgram&) = delete;

  // Whether the call that is being made is a program's. Once: what the call itself may run is none.
  static bool take() {
    const bool was = expected();
    expected() = false;
    return was;
  }

 private:
  static bool& expected() {
    thread_local bool value = false;
    return value;
  }
};

// Ends a call of a program for a reason that the other ranks are told. Thread: engine.
void stop_call(Operation& call, const Error& reason);

}  // namespace nexar::runtime
