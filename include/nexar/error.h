// What went wrong, in a form that a program can act on and a person can read.
//
// An Error is a value: one pointer to an immutable, shared description, cheap to copy and to hand to every operation that one event
// ends. It carries the code, a sentence, the ranks it concerns, the operation and its sequence number, the epoch, and the error
// that caused it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "nexar/export.h"
#include "nexar/ids.h"

namespace nexar {

// Named by what the caller can do about it.
enum class ErrorCode : std::uint8_t {
  kInvalidArgument,  // this call can never succeed: correct it
  kMismatch,         // ranks called different things: correct the program
  kPeerLost,         // a member is gone: go on with a new view, or stop
  kTimeout,          // somebody did not come or nothing moved: the sentence says who
  kOverloaded,       // a limit is reached now: try again later, or raise it
  kRefused,          // the other side said no: identity, version, configuration
  kUnsupported,      // not to be had here: choose another way
  kCancelled,        // ended on request, here or on another rank
  kDevice,           // an accelerator or its driver failed
  kIo,               // the operating system failed
  kInternal,         // a defect in nexar: report it
};

// The name as it is written everywhere, e.g. "peer_lost".
NEXAR_API std::string_view to_string(ErrorCode code);

class NEXAR_API Error {
 public:
  // `sentence` says what and who, and needs no context to be understood.
  Error(ErrorCode code, std::string sentence);

  Error(const Error& other) noexcept : detail_(other.detail_) {
    if (detail_ != nullptr) retain();
  }
  Error(Error&& other) noexcept : detail_(other.detail_) { other.detail_ = nullptr; }
  Error& operator=(const Error& other) noexcept {
    Error copy(other);
    std::swap(detail_, copy.detail_);
    return *this;
  }
  Error& operator=(Error&& other) noexcept {
    std::swap(detail_, other.detail_);
    return *this;
  }
  ~Error() {
    if (detail_ != nullptr) release();
  }

  // Each returns the error with one more fact; other copies are not changed.
  Error with_ranks(std::span<const Rank> ranks) &&;
  Error with_rank(Rank rank) &&;
  Error with_operation(std::string name, Sequence sequence) &&;
  Error with_epoch(Epoch epoch) &&;
  Error with_cause(Error cause) &&;

  ErrorCode code() const;
  const std::string& sentence() const;
  std::span<const Rank> ranks() const;
  const std::string& operation() const;  // empty when no operation is concerned
  std::optional<Sequence> sequence() const;
  std::optional<Epoch> epoch() const;
  const Error* cause() const;  // null when this is the first error

  // Everything, on one line: `peer_lost: rank 3 stopped answering (all_reduce #17, ranks 3, epoch 2); cause: io: ...`
  std::string to_string() const;

 private:
  template <typename T>
  friend class Result;
  struct Detail;

  Error() noexcept = default;  // no error: only inside Result<void>
  void retain() const noexcept;
  void release() const noexcept;
  const Detail& detail() const;
  Detail& own();

  Detail* detail_ = nullptr;
};

// What Result::value() throws for those who like exceptions.
class NEXAR_API Exception : public std::runtime_error {
 public:
  explicit Exception(Error error);
  const Error& error() const noexcept { return error_; }

 private:
  Error error_;
};

}  // namespace nexar
