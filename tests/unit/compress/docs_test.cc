// docs/compression.md is normative: its examples are what compressors write and read.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "compress/model.h"

namespace nexar {
namespace {

struct Example {
  std::string compressor;
  std::string type;
  std::string elements;
  std::string bytes;
  std::string decompressed;
};

// The rows `| compressor | type | elements | bytes | decompressed |` of the table under "Examples".
std::vector<Example> examples() {
  std::ifstream file(NEXAR_COMPRESSION_DOC);
  std::vector<Example> found;
  bool here = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) here = line == "## Examples";
    if (!here || !line.starts_with("| ") || line.starts_with("| compressor")) continue;
    std::vector<std::string> cells;
    std::stringstream row(line.substr(1));
    for (std::string cell; std::getline(row, cell, '|');) cells.push_back(cell.substr(1, cell.size() - 2));
    EXPECT_EQ(cells.size(), 5u) << line;
    if (cells.size() == 5) found.push_back({cells[0], cells[1], cells[2], cells[3], cells[4]});
  }
  return found;
}

std::shared_ptr<const Compressor> compressor_named(const std::string& name) {
  for (const auto& compressor : {Compressor::none(), Compressor::int8(), Compressor::fp8(), Compressor::sign(),
                                 Compressor::top_k(0.5).value(), Compressor::random_k(0.5).value()})
    if (compressor->name() == name) return compressor;
  return nullptr;
}

test::Elements numbers(DataType type, const std::string& text) {
  std::stringstream words(text);
  test::Elements elements;
  for (std::string word; words >> word;) elements.push_back(test::element(type, std::strtod(word.c_str(), nullptr)));
  return elements;
}

std::string hex(const std::vector<std::byte>& bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%s%02x", text.empty() ? "" : " ", std::to_integer<unsigned>(byte));
    text += digits;
  }
  return text;
}

TEST(CompressionDocs, ExamplesAreWhatIsWrittenAndRead) {
  const CompressionContext context = {.group = 1, .sequence = 2, .seed = 3};
  std::size_t seen = 0;
  for (const Example& example : examples()) {
    const auto compressor = compressor_named(example.compressor);
    ASSERT_NE(compressor, nullptr) << example.compressor;
    const DataType type = data_type_from(std::string_view(example.type)).value();
    const test::Elements elements = numbers(type, example.elements);
    const std::vector<std::byte> bytes = test::compressed(*compressor, type, elements, context);
    EXPECT_EQ(hex(bytes), example.bytes) << example.compressor << " " << example.elements;
    const test::Elements back = test::decompressed(*compressor, type, bytes, elements.size(), context).value();
    EXPECT_TRUE(test::same_elements(type, back, numbers(type, example.decompressed))) << example.compressor << " " << example.elements;
    ++seen;
  }
  EXPECT_GE(seen, 8u);
}

}  // namespace
}  // namespace nexar
