// How each type of a Config field is read from text and written as text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/units.h"
#include "nexar/config.h"

namespace nexar::types {

// Text<T>::kAccepted says what parse() takes, for error messages; format() writes what parse() reads.
template <typename T>
struct Text;

// An enum written as one of a few words.
template <typename E, std::size_t n>
struct Words {
  std::array<std::pair<E, std::string_view>, n> words;

  std::optional<E> parse(std::string_view text) const {
    for (const auto& [value, word] : words)
      if (word == text) return value;
    return std::nullopt;
  }
  std::string format(E value) const {
    for (const auto& [known, word] : words)
      if (known == value) return std::string(word);
    return "unknown";
  }
};

template <>
struct Text<bool> {
  static constexpr std::string_view kAccepted = "true or false";
  static std::optional<bool> parse(std::string_view text) {
    if (text == "true" || text == "1") return true;
    if (text == "false" || text == "0") return false;
    return std::nullopt;
  }
  static std::string format(bool value) { return value ? "true" : "false"; }
};

template <>
struct Text<Config::Duration> {
  static constexpr std::string_view kAccepted = "a duration such as 500ms, 30s or 10min";
  static std::optional<Config::Duration> parse(std::string_view text) { return base::parse_duration(text); }
  static std::string format(Config::Duration value) { return base::format_duration(value); }
};

template <>
struct Text<std::uint64_t> {
  static constexpr std::string_view kAccepted = "a size such as 65536, 64KiB or 2MiB";
  static std::optional<std::uint64_t> parse(std::string_view text) { return base::parse_size(text); }
  static std::string format(std::uint64_t value) { return base::format_size(value); }
};

template <>
struct Text<std::uint32_t> {
  static constexpr std::string_view kAccepted = "a whole number";
  static std::optional<std::uint32_t> parse(std::string_view text) {
    const auto number = base::parse_number(text);
    if (!number || *number > UINT32_MAX) return std::nullopt;
    return static_cast<std::uint32_t>(*number);
  }
  static std::string format(std::uint32_t value) { return std::to_string(value); }
};

// An optional is written `none` when it is not set.
template <typename T>
struct Text<std::optional<T>> {
  static inline const std::string kAccepted = "none, or " + std::string(Text<T>::kAccepted);
  static std::optional<std::optional<T>> parse(std::string_view text) {
    if (text == "none") return std::optional<T>();
    const std::optional<T> value = Text<T>::parse(text);
    if (!value) return std::nullopt;
    return value;
  }
  static std::string format(const std::optional<T>& value) { return value ? Text<T>::format(*value) : "none"; }
};

template <>
struct Text<std::string> {
  static constexpr std::string_view kAccepted = "text";
  static std::optional<std::string> parse(std::string_view text) { return std::string(text); }
  static std::string format(const std::string& value) { return value.empty() ? "none" : value; }
};

template <>
struct Text<Topology> {
  static constexpr std::string_view kAccepted = "full_mesh, hypercube or k_regular:K";
  static std::optional<Topology> parse(std::string_view text) {
    constexpr std::string_view kPrefix = "k_regular:";
    if (text == "full_mesh") return Topology{};
    if (text == "hypercube") return Topology{Topology::Kind::kHypercube, 0};
    if (!text.starts_with(kPrefix)) return std::nullopt;
    const auto degree = base::parse_number(text.substr(kPrefix.size()));
    if (!degree || *degree > INT32_MAX) return std::nullopt;
    return Topology{Topology::Kind::kKRegular, static_cast<int>(*degree)};
  }
  static std::string format(const Topology& value) {
    switch (value.kind) {
      case Topology::Kind::kFullMesh: return "full_mesh";
      case Topology::Kind::kHypercube: return "hypercube";
      case Topology::Kind::kKRegular: return "k_regular:" + std::to_string(value.degree);
    }
    return "unknown";
  }
};

template <>
struct Text<Transport> {
  static constexpr std::string_view kAccepted = "auto, shm, net, quic or tcp";
  static constexpr Words<Transport, 5> kWords = {{{{Transport::kAuto, "auto"},
                                                   {Transport::kShm, "shm"},
                                                   {Transport::kNet, "net"},
                                                   {Transport::kQuic, "quic"},
                                                   {Transport::kTcp, "tcp"}}}};
  static std::optional<Transport> parse(std::string_view text) { return kWords.parse(text); }
  static std::string format(Transport value) { return kWords.format(value); }
};

template <>
struct Text<RecoveryPolicy> {
  static constexpr std::string_view kAccepted = "automatic, manual or abort";
  static constexpr Words<RecoveryPolicy, 3> kWords = {
      {{{RecoveryPolicy::kAutomatic, "automatic"}, {RecoveryPolicy::kManual, "manual"}, {RecoveryPolicy::kAbort, "abort"}}}};
  static std::optional<RecoveryPolicy> parse(std::string_view text) { return kWords.parse(text); }
  static std::string format(RecoveryPolicy value) { return kWords.format(value); }
};

template <>
struct Text<LogLevel> {
  static constexpr std::string_view kAccepted = "off, error, warning, info, debug or trace";
  static std::optional<LogLevel> parse(std::string_view text) { return log_level_from(text); }
  static std::string format(LogLevel value) { return std::string(to_string(value)); }
};

}  // namespace nexar::types
