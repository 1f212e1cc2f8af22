// Values as bytes, for arguments and results of typed calls.
//
// What encodes itself: numbers, bool and enums; std::string; std::vector, std::array, std::pair, std::tuple, std::optional, std::map of
// such; and structs that name their members:
//
//   struct Point {
//     double x, y;
//     static constexpr auto kFields = std::tuple(&Point::x, &Point::y);
//   };
//
// Numbers are little-endian and as long as they are here, lengths are 64-bit. Both ends use the same types; decoding checks every length,
// and that nothing is left over.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace nexar {

static_assert(std::endian::native == std::endian::little, "numbers are copied: a big-endian machine needs a swap here");

// Appends values to bytes.
class Encoder {
 public:
  template <typename T>
  void put(const T& value);

  void put_raw(const void* data, std::size_t bytes) {
    const auto* from = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), from, from + bytes);
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// Reads values from bytes. After the first that does not fit nothing is read any more.
class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <typename T>
  void get(T& value);

  void get_raw(void* data, std::size_t bytes) {
    if (bytes > rest_.size()) return fail();
    if (bytes > 0) std::memcpy(data, rest_.data(), bytes);
    rest_ = rest_.subspan(bytes);
  }
  // A length, of things that take at least `each` bytes: one that the rest cannot hold is a failure, and 0.
  std::size_t get_length(std::size_t each) {
    std::uint64_t length = 0;
    get_raw(&length, sizeof length);
    if (each > 0 && length > rest_.size() / each) fail();
    return failed_ ? 0 : static_cast<std::size_t>(length);
  }
  void fail() {
    failed_ = true;
    rest_ = {};
  }
  bool failed() const { return failed_; }

  // Whether everything was read, and nothing was missing.
  bool finish() const { return !failed_ && rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  bool failed_ = false;
};

// How one type is encoded; specialise it for types that cannot name their members.
template <typename T>
struct Codec;

namespace detail {

template <typename T>
concept Number = std::is_arithmetic_v<T> || std::is_enum_v<T>;

template <typename T>
concept Named = requires {
  T::kFields;
};

template <typename... Ts>
struct TupleCodec {
  static constexpr std::size_t kBytesMin = (Codec<std::remove_cv_t<Ts>>::kBytesMin + ... + 0);
  template <typename Tuple>
  static void put(Encoder& out, const Tuple& value) {
    std::apply([&](const auto&... each) { (out.put(each), ...); }, value);
  }
  template <typename Tuple>
  static void get(Decoder& in, Tuple& value) {
    std::apply([&](auto&... each) { (in.get(each), ...); }, value);
  }
};

}  // namespace detail

template <detail::Number T>
struct Codec<T> {
  static constexpr std::size_t kBytesMin = sizeof(T);
  static void put(Encoder& out, T value) { out.put_raw(&value, sizeof value); }
  static void get(Decoder& in, T& value) { in.get_raw(&value, sizeof value); }
};

template <>
struct Codec<bool> {
  static constexpr std::size_t kBytesMin = 1;
  static void put(Encoder& out, bool value) { out.put(static_cast<std::uint8_t>(value)); }
  static void get(Decoder& in, bool& value) {
    std::uint8_t byte = 0;
    in.get(byte);
    if (byte > 1) in.fail();
    value = byte == 1;
  }
};

template <>
struct Codec<std::string> {
  static constexpr std::size_t kBytesMin = 8;
  static void put(Encoder& out, const std::string& value) {
    out.put(static_cast<std::uint64_t>(value.size()));
    out.put_raw(value.data(), value.size());
  }
  static void get(Decoder& in, std::string& value) {
    value.resize(in.get_length(1));
    in.get_raw(value.data(), value.size());
  }
};

template <typename T>
struct Codec<std::vector<T>> {
  static constexpr std::size_t kBytesMin = 8;
  static constexpr bool kFlat = detail::Number<T> && !std::same_as<T, bool>;
  static_assert(Codec<T>::kBytesMin > 0, "a vector of things without bytes has a length that nothing bounds");

  static void put(Encoder& out, const std::vector<T>& value) {
    out.put(static_cast<std::uint64_t>(value.size()));
    if constexpr (kFlat)
      out.put_raw(value.data(), value.size() * sizeof(T));
    else
      for (const auto& each : value) out.put(static_cast<const T&>(each));
  }
  static void get(Decoder& in, std::vector<T>& value) {
    value.clear();
    const std::size_t length = in.get_length(Codec<T>::kBytesMin);
    if constexpr (kFlat) {
      value.resize(length);
      in.get_raw(value.data(), length * sizeof(T));
    } else {
      for (std::size_t i = 0; i < length && !in.failed(); ++i) {
        T each{};
        in.get(each);
        value.push_back(std::move(each));
      }
    }
  }
};

template <typename T, std::size_t N>
struct Codec<std::array<T, N>> {
  static constexpr std::size_t kBytesMin = N * Codec<T>::kBytesMin;
  static void put(Encoder& out, const std::array<T, N>& value) {
    for (const T& each : value) out.put(each);
  }
  static void get(Decoder& in, std::array<T, N>& value) {
    for (T& each : value) in.get(each);
  }
};

template <typename A, typename B>
struct Codec<std::pair<A, B>> : detail::TupleCodec<A, B> {};

template <typename... Ts>
struct Codec<std::tuple<Ts...>> : detail::TupleCodec<Ts...> {};

template <typename T>
struct Codec<std::optional<T>> {
  static constexpr std::size_t kBytesMin = 1;
  static void put(Encoder& out, const std::optional<T>& value) {
    out.put(value.has_value());
    if (value) out.put(*value);
  }
  static void get(Decoder& in, std::optional<T>& value) {
    bool there = false;
    in.get(there);
    value.reset();
    if (there) in.get(value.emplace());
  }
};

template <typename K, typename V>
struct Codec<std::map<K, V>> {
  static constexpr std::size_t kBytesMin = 8;
  static void put(Encoder& out, const std::map<K, V>& value) {
    out.put(static_cast<std::uint64_t>(value.size()));
    for (const auto& [key, each] : value) {
      out.put(key);
      out.put(each);
    }
  }
  static void get(Decoder& in, std::map<K, V>& value) {
    value.clear();
    const std::size_t length = in.get_length(Codec<K>::kBytesMin + Codec<V>::kBytesMin);
    for (std::size_t i = 0; i < length && !in.failed(); ++i) {
      std::pair<K, V> each{};
      in.get(each);
      value.insert(std::move(each));
    }
  }
};

template <detail::Named T>
struct Codec<T> {
  static constexpr std::size_t kBytesMin = 1;
  static void put(Encoder& out, const T& value) {
    std::apply([&](auto... members) { (out.put(value.*members), ...); }, T::kFields);
  }
  static void get(Decoder& in, T& value) {
    std::apply([&](auto... members) { (in.get(value.*members), ...); }, T::kFields);
  }
};

template <typename T>
void Encoder::put(const T& value) {
  Codec<T>::put(*this, value);
}

template <typename T>
void Decoder::get(T& value) {
  Codec<T>::get(*this, value);
}

// All values, one after the other.
template <typename... Ts>
std::vector<std::byte> encode_all(const Ts&... values) {
  Encoder out;
  (out.put(values), ...);
  return out.take();
}

// The same back; nothing when the bytes are not exactly such values.
template <typename... Ts>
std::optional<std::tuple<Ts...>> decode_all(std::span<const std::byte> bytes) {
  Decoder in(bytes);
  std::tuple<Ts...> values{};
  std::apply([&](auto&... each) { (in.get(each), ...); }, values);
  if (!in.finish()) return std::nullopt;
  return values;
}

}  // namespace nexar
