#include "nexar/data_type.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace nexar {
namespace {

enum class Family : std::uint8_t { kFloat, kInteger, kBool };

struct Row {
  std::string_view name;
  std::size_t size;
  Family family;
};

// By number.
constexpr std::array<Row, kDataTypes.size()> kRows = {{
    {"f32", 4, Family::kFloat},
    {"f64", 8, Family::kFloat},
    {"f16", 2, Family::kFloat},
    {"bf16", 2, Family::kFloat},
    {"i8", 1, Family::kInteger},
    {"i32", 4, Family::kInteger},
    {"i64", 8, Family::kInteger},
    {"u8", 1, Family::kInteger},
    {"u32", 4, Family::kInteger},
    {"u64", 8, Family::kInteger},
    {"i16", 2, Family::kInteger},
    {"u16", 2, Family::kInteger},
    {"f8e4m3", 1, Family::kFloat},
    {"f8e5m2", 1, Family::kFloat},
    {"bool", 1, Family::kBool},
}};

// A value that was cast into the enum and is none of it has size 0 and belongs nowhere.
constexpr Row kUnknown = {"unknown", 0, Family::kBool};

const Row& row(DataType type) {
  const auto index = static_cast<std::size_t>(type);
  return index < kRows.size() ? kRows[index] : kUnknown;
}

}  // namespace

std::size_t size_of(DataType type) { return row(type).size; }
std::string_view to_string(DataType type) { return row(type).name; }
bool is_float(DataType type) { return row(type).family == Family::kFloat; }
bool is_integer(DataType type) { return row(type).family == Family::kInteger; }

Result<DataType> data_type_from(std::string_view name) {
  std::string known;
  for (const DataType type : kDataTypes) {
    if (name == to_string(type)) return type;
    known += fmt::format(" {}", to_string(type));
  }
  return Error(ErrorCode::kInvalidArgument, fmt::format("unknown data type \"{}\"; known are{}", name, known));
}

Result<DataType> data_type_from(std::uint8_t id) {
  if (id < kRows.size()) return static_cast<DataType>(id);
  return Error(ErrorCode::kInvalidArgument, fmt::format("unknown data type number {}; the last known is {}", id, kRows.size() - 1));
}

}  // namespace nexar
