#include "launch/remote_rank.h"

#include <gtest/gtest.h>

namespace nexar::launch {
namespace {

TEST(RankRequest, IsOneLineAndComesBack) {
  const RankRequest request{{"./app", "two words", "new\nline", "\"quoted\""}, "/tmp", {{"NEXAR_TOKEN", "secret"}}, true};
  const auto line = encode(request);
  ASSERT_TRUE(line) << line.error().to_string();
  EXPECT_EQ(line->find('\n'), line->size() - 1);
  const auto decoded = decode_request(std::string_view(*line).substr(0, line->size() - 1));
  ASSERT_TRUE(decoded) << decoded.error().to_string();
  EXPECT_EQ(*decoded, request);
}

TEST(RankRequest, SaysOnRequestWhichShareOfTheCoresARankHas) {
  for (const auto& binding : {std::optional<Binding>(), std::optional(Binding{0, 1}), std::optional(Binding{4095, 4096})}) {
    const RankRequest request{{"./app"}, "/tmp", {}, false, binding};
    const auto decoded = decode_request(encode(request).value());
    ASSERT_TRUE(decoded) << decoded.error().to_string();
    EXPECT_EQ(*decoded, request);
  }
}

TEST(RankRequest, RefusesAShareThatThereIsNot) {
  for (const char* binding : {"true", "1", "[]", "[0]", "[0,1,2]", "[1,1]", "[-1,1]", "[0,0]", "[0,4097]", "[0.0,1.0]", "[\"0\",\"1\"]",
                              "[0,18446744073709551616]", "{\"rank\":0,\"size\":1}"}) {
    const std::string line = std::string(R"({"words":["a"],"directory":"/","environment":{},"input":true,"binding":)") + binding + "}";
    EXPECT_FALSE(decode_request(line)) << line;
  }
}

TEST(RankRequest, RefusesWhatCannotTravel) {
  EXPECT_FALSE(encode({{"\xff"}, "/", {}, false}));
  EXPECT_FALSE(encode({{std::string(kRequestMax, 'x')}, "/", {}, false}));
}

TEST(RankRequest, RefusesWhatIsNone) {
  for (const char* line : {"", "{", "[]", "1", "{}", R"({"words":[],"directory":"/","environment":{},"input":true})",
                           R"({"words":[1],"directory":"/","environment":{},"input":true})",
                           R"({"words":["a\u0000b"],"directory":"/","environment":{},"input":true})",
                           R"({"words":["a"],"directory":7,"environment":{},"input":true})",
                           R"({"words":["a"],"directory":"/","environment":{"A=B":"x"},"input":true})",
                           R"({"words":["a"],"directory":"/","environment":{"A":1},"input":true})",
                           R"({"words":["a"],"directory":"/","environment":{},"input":1})"})
    EXPECT_FALSE(decode_request(line)) << line;
}

// Each record as text, for comparison.
std::string told(const std::vector<RecordReader::Record>& records) {
  std::string text;
  for (const auto& record : records) {
    if (const auto* input = std::get_if<RecordReader::Input>(&record))
      text += "input " + std::to_string(input->bytes.size()) + ";";
    else if (const auto* signal = std::get_if<RecordReader::Signal>(&record))
      text += "signal " + std::to_string(signal->number) + ";";
    else
      text += "end;";
  }
  return text;
}

TEST(Records, ComeBackHoweverTheStreamIsCut) {
  const std::string stream = input_record("abc") + signal_record(15) + input_record(std::string(kDataMax, 'x')) + input_end_record() +
                             signal_record(9) + input_record("");
  for (const std::size_t piece : {std::size_t{1}, std::size_t{2}, std::size_t{7}, stream.size()}) {
    RecordReader reader;
    std::string all;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      const auto records = reader.add(std::string_view(stream).substr(at, piece));
      ASSERT_TRUE(records) << records.error().to_string();
      all += told(*records);
    }
    EXPECT_EQ(all, "input 3;signal 15;input 4096;end;signal 9;input 0;");
  }
}

TEST(Records, OfUnknownKindsAreRefused) {
  EXPECT_FALSE(RecordReader().add("X"));
  EXPECT_FALSE(RecordReader().add(std::string("S\0", 2)));
  EXPECT_FALSE(RecordReader().add("S\x41"));
}

}  // namespace
}  // namespace nexar::launch
