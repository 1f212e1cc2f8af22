// How an operation ends and how far it is, and how an epoch ends. All on the control lane.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nexar/error.h"
#include "wire/call.h"
#include "wire/error_text.h"
#include "wire/frame.h"
#include "wire/link_messages.h"

namespace nexar::wire {

// An operation ended without success, and the others must learn why. An error beyond the bounds of limits.h is cut (error_text.h).
struct Verdict {
  static constexpr FrameType kType = FrameType::kVerdict;
  static constexpr bool kCarriesBytes = false;

  Sequence sequence = 0;
  Error error{ErrorCode::kInternal, ""};

  const char* fault() const { return nullptr; }
  void put(Header& header, Writer& writer) const;
  static Verdict get(const Header& header, Reader& reader);
  bool operator==(const Verdict& other) const { return sequence == other.sequence && same(error, other.error); }
};

// How far a rank is in an operation.
struct Progress {
  static constexpr std::size_t kBytes = 20;

  std::uint32_t steps_done = 0;
  std::uint32_t steps_total = 0;
  std::uint64_t bytes_done = 0;
  Rank waits_for = -1;  // the rank that it is stalled on, or -1

  const char* fault() const;
  void put(Writer& writer) const;
  static Progress get(Reader& reader);
  bool operator==(const Progress&) const = default;
};

// A receiver with nothing after a while asks its sources, saying what it called and how far it is itself.
struct Probe {
  static constexpr FrameType kType = FrameType::kProbe;
  static constexpr bool kCarriesBytes = false;

  Sequence sequence = 0;
  CallDescriptor call{};
  Progress progress{};

  const char* fault() const;
  void put(Header& header, Writer& writer) const;
  static Probe get(const Header& header, Reader& reader);
  bool operator==(const Probe&) const = default;
};

enum class OperationState : std::uint8_t {
  kNotEntered = 0,  // not called yet: there is no descriptor
  kRunning = 1,
  kDone = 2,   // with success; the descriptor may be forgotten
  kEnded = 3,  // without; the verdict follows in a frame of its own
};

// The answer to a probe, whatever the state.
struct ProbeReply {
  static constexpr FrameType kType = FrameType::kProbeReply;
  static constexpr bool kCarriesBytes = false;

  Sequence sequence = 0;
  OperationState state = OperationState::kNotEntered;
  std::optional<CallDescriptor> call{};
  Progress progress{};

  const char* fault() const;
  void put(Header& header, Writer& writer) const;
  static ProbeReply get(const Header& header, Reader& reader);
  bool operator==(const ProbeReply&) const = default;
};

// The epoch in the header is over, because these nodes are lost: every operation in flight ends. 1 to kLostNodesMax nodes.
struct Revoke {
  static constexpr FrameType kType = FrameType::kRevoke;
  static constexpr bool kCarriesBytes = false;

  std::vector<NodeId> lost;

  const char* fault() const;
  void put(Header& header, Writer& writer) const;
  static Revoke get(const Header& header, Reader& reader);
  bool operator==(const Revoke&) const = default;
};

}  // namespace nexar::wire
