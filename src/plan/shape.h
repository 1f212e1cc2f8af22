// What a plan is made for: one call of a collective as one rank sees it, without pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nexar/ids.h"
#include "nexar/result.h"
#include "plan/cut.h"
#include "plan/hosts.h"
#include "types/operation_id.h"

namespace nexar::plan {

// The most bytes that all ranks' parts of a call may have together: 128 PiB, which no cluster holds, and which leaves room for scratch of
// 64 times that in 63 bits. Whatever is larger is an error, so that no sum or product of a plan can wrap.
inline constexpr std::uint64_t kShapeBytesMax = std::uint64_t{1} << 57;

// The most ranks in a group: a plan holds counters for each.
inline constexpr Rank kShapeSizeMax = 1 << 20;

// Plans of one operation, and the number that the messages of the first of them begin with, of the second, and so on: far more than a plan
// has.
inline constexpr std::uint8_t kPhasesMax = 4;
constexpr std::uint32_t first_part(std::uint8_t phase) { return std::uint32_t{phase} << 30; }

// How the two buffers of a call lie in memory. Plans name each byte once: the buffer that lies inside the other is not used.
enum class Alias : std::uint8_t {
  kNone,           // they do not overlap
  kSame,           // they are the same: plans use output only
  kInputInOutput,  // the input is this rank's slot of the output: plans use output only
  kOutputInInput,  // the output is this rank's slot of the input, which is overwritten: plans use input only
};

struct Shape {
  OperationId operation = OperationId::kBarrier;
  Rank rank = 0;
  Rank size = 1;
  Rank root = 0;

  // Elements as in the call: of the buffer, or of one slot where a buffer has one for each rank. In gather_v and scatter_v what this
  // rank gives or gets, unless it is the root; not used in the other v-forms.
  std::uint64_t count = 0;

  // v-forms, one number for each rank, slots lying one after the other: reduce_scatter_v (the same on all ranks), all_to_all_v and the root
  // of scatter_v have send_counts; all_gather_v (the same on all ranks), all_to_all_v and the root of gather_v have receive_counts.
  std::vector<std::uint64_t> send_counts{};
  std::vector<std::uint64_t> receive_counts{};

  Hosts hosts{};  // where the ranks are; nothing when all are alike to each other

  std::uint64_t segment = 0;  // elements of a message at most; 0: messages are not cut
  std::uint32_t element_bytes = 4;

  // Input and output overlap as MPI users know it: all_reduce, reduce at the root, scan: the same buffer. all_gather, gather at the root:
  // the input is the own slot of the output. reduce_scatter and scatter at the root: the output is the own slot of the input, and
  // reduce_scatter then overwrites all of it. broadcast has one buffer always. all_to_all cannot be in place.
  bool in_place = false;

  // Which of several plans that an operation runs one after the other (phases.h): their messages are numbered apart.
  std::uint8_t phase = 0;

  bool ordered = false;       // the op does not commute: operands in rank order
  bool reproducible = false;  // accumulated in rank order at one place, whatever the algorithm
  bool average = false;       // divided at the end by the number of ranks that contributed: all, in scans those of the prefix

  // kInvalidArgument or kUnsupported with a sentence, before anything is multiplied.
  Result<void> check() const;

  // What follows holds for shapes that passed check().
  bool is_root() const { return rank == root; }
  Alias alias() const;
  std::uint64_t input_count() const;   // of the buffer that the user sends from; 0 where there is none
  std::uint64_t output_count() const;  // of the buffer that the user receives in; 0 where there is none
  Cut input_slots() const;             // of inputs that have a slot for each rank
  Cut output_slots() const;            // of outputs that have one
  std::uint64_t divisor() const;       // of an average

  std::uint64_t hash() const;
  std::string to_text() const;  // `all_reduce, rank 1 of 4, count 1000, in place`
  friend bool operator==(const Shape&, const Shape&) = default;
};

bool has_root(OperationId operation);
bool reduces(OperationId operation);

}  // namespace nexar::plan
