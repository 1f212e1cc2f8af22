// The element types that collectives and compressors know.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "nexar/export.h"
#include "nexar/result.h"
#include "nexar/small_float.h"

namespace nexar {

// The numbers travel on the wire and never change; new types follow at the end.
enum class DataType : std::uint8_t {
  kF32 = 0,
  kF64 = 1,
  kF16 = 2,
  kBf16 = 3,
  kI8 = 4,
  kI32 = 5,
  kI64 = 6,
  kU8 = 7,
  kU32 = 8,
  kU64 = 9,
  kI16 = 10,
  kU16 = 11,
  kF8e4m3 = 12,
  kF8e5m2 = 13,
  kBool = 14,
};

inline constexpr std::array<DataType, 15> kDataTypes = {
    DataType::kF32, DataType::kF64, DataType::kF16, DataType::kBf16, DataType::kI8,     DataType::kI32,    DataType::kI64, DataType::kU8,
    DataType::kU32, DataType::kU64, DataType::kI16, DataType::kU16,  DataType::kF8e4m3, DataType::kF8e5m2, DataType::kBool};

// Bytes of one element.
NEXAR_API std::size_t size_of(DataType type);

// The name as it is written everywhere: "f32", "bf16", "f8e4m3".
NEXAR_API std::string_view to_string(DataType type);

// The type of that name, or of that number; kInvalidArgument naming what was given when there is none.
NEXAR_API Result<DataType> data_type_from(std::string_view name);
NEXAR_API Result<DataType> data_type_from(std::uint8_t id);

NEXAR_API bool is_float(DataType type);
NEXAR_API bool is_integer(DataType type);  // signed or unsigned; bool is neither

namespace detail {
// kNone marks a C++ type that is no element.
inline constexpr int kNone = -1;
template <typename T>
constexpr int data_type_id() {
  if constexpr (std::is_same_v<T, bool>) return static_cast<int>(DataType::kBool);
  if constexpr (std::is_same_v<T, float>) return static_cast<int>(DataType::kF32);
  if constexpr (std::is_same_v<T, double>) return static_cast<int>(DataType::kF64);
  if constexpr (std::is_same_v<T, f16>) return static_cast<int>(DataType::kF16);
  if constexpr (std::is_same_v<T, bf16>) return static_cast<int>(DataType::kBf16);
  if constexpr (std::is_same_v<T, f8e4m3>) return static_cast<int>(DataType::kF8e4m3);
  if constexpr (std::is_same_v<T, f8e5m2>) return static_cast<int>(DataType::kF8e5m2);
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    constexpr DataType kSigned[] = {DataType::kI8, DataType::kI16, DataType::kI32, DataType::kI64};
    constexpr DataType kUnsigned[] = {DataType::kU8, DataType::kU16, DataType::kU32, DataType::kU64};
    constexpr std::size_t kLog2 = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return static_cast<int>(std::is_signed_v<T> ? kSigned[kLog2] : kUnsigned[kLog2]);
  }
  return kNone;
}
}  // namespace detail

// A C++ type that is an element of a buffer.
template <typename T>
concept Element = detail::data_type_id<std::remove_cv_t<T>>()
!= detail::kNone;

// The DataType of a C++ type: data_type_of<float> is DataType::kF32.
template <Element T>
inline constexpr DataType data_type_of = static_cast<DataType>(detail::data_type_id<std::remove_cv_t<T>>());

}  // namespace nexar
