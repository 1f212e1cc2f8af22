// What two processes of one host tell each other about memory that one of them lends: the other reads it in place, and can never write it.
//
//   owner                                     reader
//     kLent, with the memory's descriptor ----->  maps it
//     <---------------------------- kMapped
//     kTakenBack  ------------------------------>  unmaps it when nothing reads it any more
//
// They travel on the unix socket, which passes descriptors. Nobody waits for them: memory that is not mapped yet is copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "io/file_descriptor.h"
#include "io/lent_memory.h"
#include "nexar/result.h"

namespace nexar::transport::shm {

enum class LoanWord : std::uint8_t { kLent = 16, kMapped = 17, kTakenBack = 18 };

// A word, three zeros, the buffer's number u32, its bytes u64.
inline constexpr std::size_t kLoanBytes = 1 + 3 + 4 + 8;

// Loans to one peer that wait because its socket is full. It holds some hundred, so that a peer for which so many wait has not read for
// long.
inline constexpr std::size_t kLoansWaitingMax = 1024;

struct Loan {
  LoanWord word = LoanWord::kLent;
  std::uint32_t buffer = 0;  // its owner's number for it, never used again
  std::uint64_t bytes = 0;   // of kLent
};

// As it comes.
struct ReceivedLoan {
  Loan loan{};
  io::FileDescriptor memory{};  // of kLent; none when this process may not open one more
};

// As it is sent.
struct SentLoan {
  Loan loan{};
  std::shared_ptr<const io::LentMemory> memory{};  // of kLent
};

// Who keeps track of them. Thread: engine.
class LoanHandler {
 public:
  virtual ~LoanHandler() = default;

  // From a local rank. An error ends the link: the peer did what no peer does.
  virtual Result<void> on_loan(int from, ReceivedLoan received) = 0;

  // There is a link to a local rank, or there is none any more.
  virtual void on_linked(int local) = 0;
  virtual void on_unlinked(int local) = 0;
};

}  // namespace nexar::transport::shm
