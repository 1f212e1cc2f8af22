// What a rank calls, in a form that ranks can compare: a collective's descriptor and its fingerprint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "nexar/data_type.h"
#include "nexar/ids.h"
#include "nexar/reduce_op.h"
#include "types/operation_id.h"
#include "wire/reader.h"
#include "wire/writer.h"

namespace nexar::wire {

// One call of a collective. Which members an operation has is fixed: barrier has none, broadcast a count, a type and a root.
struct CallDescriptor {
  static constexpr std::size_t kBytes = 24;

  OperationId operation = OperationId::kBarrier;
  std::uint64_t count = 0;          // elements, or bytes in the forms for byte strings; in v-forms this rank's own
  std::optional<DataType> dtype{};  // none where no elements are
  std::optional<ReduceOp> op{};     // none where nothing is reduced, and with a user op
  bool user_op = false;             // reduced by an op of the application's; its name is part of the digest
  Rank root = -1;                   // -1 where there is none
  std::uint64_t digest = 0;         // of everything else that must agree: a user op's name, a compressor, the measured costs

  // 64 bits that are equal on ranks that call the same, and never 0. The count of v-forms and byte strings is left out: they differ
  // from rank to rank and are compared pairwise. The same in every build.
  std::uint64_t fingerprint() const;

  // `all_reduce(count=1024, f32, sum)`
  std::string to_text() const;

  // Null, or which member is missing or does not belong; completes "the frame ...".
  const char* fault() const;

  void put(Writer& writer) const;
  static CallDescriptor get(Reader& reader);
  bool operator==(const CallDescriptor&) const = default;
};

}  // namespace nexar::wire
