#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "wire/error_text.h"
#include "wire/limits.h"
#include "wire/reader.h"
#include "wire/utf8.h"
#include "wire/writer.h"

namespace nexar::wire {
namespace {

std::vector<std::byte> bytes_of(const Error& error) {
  std::vector<std::byte> bytes(kErrorBytesMax);
  Writer writer(bytes);
  put_error(error, writer);
  bytes.resize(writer.size());
  return bytes;
}

Error again(const Error& error) {
  const std::vector<std::byte> bytes = bytes_of(error);
  Reader reader(bytes);
  Error read = get_error(reader);
  EXPECT_EQ(reader.finish(), nullptr);
  return read;
}

const char* fault_of(base::ByteView bytes) {
  Reader reader(bytes);
  const Error error = get_error(reader);
  return reader.finish();
}

Error chain(std::size_t causes) {
  Error error(ErrorCode::kIo, "cause number " + std::to_string(causes));
  for (std::size_t i = causes; i-- > 0;)
    error = Error(ErrorCode::kDevice, "cause number " + std::to_string(i)).with_cause(std::move(error));
  return error;
}

TEST(Utf8, KnowsWhatIsWellFormed) {
  for (const std::string good : {"", "plain", "\x7f", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                                 "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"})
    EXPECT_TRUE(is_utf8(good));
  for (const std::string bad : {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2\x20", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xE1\x80",
                                "\xE1\x80\x20", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xF1\x80\x80"})
    EXPECT_FALSE(is_utf8(bad));
  EXPECT_TRUE(is_utf8(std::string(1, '\0')));
}

TEST(Utf8, ReplacesWhatIsNotWellFormed) {
  EXPECT_EQ(fit_utf8("a\xFF"
                     "b",
                     100),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(fit_utf8("\xE1\x80", 100), "\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(Utf8, CutsBetweenCharactersAndSaysSo) {
  EXPECT_EQ(fit_utf8("12345", 5), "12345");
  EXPECT_EQ(fit_utf8("123456", 5), "12\xE2\x80\xA6");
  EXPECT_EQ(fit_utf8("1\xC3\xA9\xC3\xA9", 4), "1\xE2\x80\xA6");
  EXPECT_EQ(fit_utf8("\xC3\xA9\xC3\xA9", 3), "\xE2\x80\xA6");
  for (std::size_t max = 3; max < 12; ++max) {
    const std::string fitted = fit_utf8("\xFF\xFF\xC3\xA9\xF0\x90\x80\x80", max);
    EXPECT_LE(fitted.size(), max);
    EXPECT_TRUE(is_utf8(fitted));
  }
}

TEST(Reader, GivesZerosOnceItHasFailed) {
  const std::array<std::byte, 3> bytes = {std::byte{1}, std::byte{2}, std::byte{3}};
  Reader reader(bytes);
  EXPECT_EQ(reader.number<std::uint16_t>(), 0x0201);
  EXPECT_EQ(reader.number<std::uint16_t>(), 0);
  EXPECT_TRUE(reader.failed());
  EXPECT_EQ(reader.number<std::uint8_t>(), 0) << "the byte that is left is not given out after a failure";
  EXPECT_STREQ(reader.finish(), "ends too early");
}

TEST(Reader, WantsTheBytesUsedUp) {
  const std::array<std::byte, 3> bytes{};
  Reader reader(bytes);
  EXPECT_EQ(reader.bytes(2).size(), 2u);
  EXPECT_EQ(reader.left(), 1u);
  EXPECT_STREQ(reader.finish(), "has bytes after its end");
}

TEST(Reader, TakesTextUpToItsBoundAndOnlyUtf8) {
  std::vector<std::byte> bytes(2 + 10, std::byte{'t'});
  base::store_le<std::uint16_t>(bytes.data(), 10);
  EXPECT_EQ(Reader(bytes).text(10), "tttttttttt");
  Reader bounded(bytes);
  EXPECT_EQ(bounded.text(9), "");
  EXPECT_STREQ(bounded.finish(), "has a text that is longer than allowed");
  bytes.back() = std::byte{0xff};
  Reader strict(bytes);
  EXPECT_EQ(strict.text(10), "");
  EXPECT_STREQ(strict.finish(), "has a text that is not UTF-8");
}

TEST(WriterDeathTest, DoesNotWritePastItsSpace) {
  std::array<std::byte, 3> space{};
  Writer writer(space);
  writer.number(std::uint16_t{1});
  EXPECT_DEATH(writer.number(std::uint16_t{1}), "holds its longest payload");
}

TEST(ErrorText, CarriesEveryFact) {
  const Error error = Error(ErrorCode::kPeerLost, "rank 3 stopped answering")
                          .with_rank(3)
                          .with_operation("all_reduce", 17)
                          .with_epoch(2)
                          .with_cause(Error(ErrorCode::kIo, "connection refused"));
  EXPECT_EQ(again(error).to_string(), error.to_string());
  EXPECT_TRUE(same(again(error), error));
  EXPECT_FALSE(same(again(error), Error(ErrorCode::kPeerLost, "rank 3 stopped answering")));
}

TEST(ErrorText, CarriesEveryCode) {
  for (int code = 0; code <= static_cast<int>(ErrorCode::kInternal); ++code)
    EXPECT_EQ(again(Error(static_cast<ErrorCode>(code), "text")).code(), static_cast<ErrorCode>(code));
}

TEST(ErrorText, CutsWhatIsTooLong) {
  const std::vector<Rank> ranks(kErrorRanksMax + 1, 5);
  const Error read = again(Error(ErrorCode::kTimeout, std::string(5000, 's')).with_operation(std::string(100, 'o'), 1).with_ranks(ranks));
  EXPECT_EQ(read.sentence(), std::string(kTextBytesMax - 3, 's') + "\xE2\x80\xA6");
  EXPECT_EQ(read.operation(), std::string(kNameBytesMax - 3, 'o') + "\xE2\x80\xA6");
  EXPECT_EQ(read.ranks().size(), kErrorRanksMax);
}

TEST(ErrorText, KeepsTheFirstCausesOfManyAndAllOfFew) {
  EXPECT_TRUE(same(again(chain(kErrorCausesMax)), chain(kErrorCausesMax)));
  const Error cut = again(chain(50));
  std::size_t causes = 0;
  for (const Error* cause = cut.cause(); cause != nullptr; cause = cause->cause())
    EXPECT_EQ(cause->sentence(), "cause number " + std::to_string(++causes));
  EXPECT_EQ(causes, kErrorCausesMax);
}

TEST(ErrorText, MakesAHandlersTextUtf8) { EXPECT_EQ(again(Error(ErrorCode::kInternal, "\xFF!")).sentence(), "\xEF\xBF\xBD!"); }

TEST(ErrorText, WithMoreCausesThanAllowedIsRefused) {
  std::vector<std::byte> one = bytes_of(Error(ErrorCode::kIo, ""));
  one[1] = std::byte{4};  // there is a cause
  std::vector<std::byte> many;
  for (std::uint32_t i = 0; i <= kErrorCausesMax; ++i) many.insert(many.end(), one.begin(), one.end());
  one[1] = std::byte{0};
  many.insert(many.end(), one.begin(), one.end());
  EXPECT_STREQ(fault_of(many), "has an error with more causes than allowed");
  many.erase(many.begin(), many.begin() + static_cast<std::ptrdiff_t>(one.size()));
  EXPECT_EQ(fault_of(many), nullptr);
}

TEST(ErrorText, OutsideItsBoundsIsRefused) {
  const std::vector<std::byte> good = bytes_of(Error(ErrorCode::kIo, ""));
  ASSERT_EQ(good.size(), kErrorBytesMin);
  std::vector<std::byte> bad = good;
  bad[0] = std::byte{11};
  EXPECT_STREQ(fault_of(bad), "has an error code that does not exist");
  bad = good;
  bad[1] = std::byte{8};
  EXPECT_STREQ(fault_of(bad), "has facts of an error that do not exist");
  bad = good;
  base::store_le<std::uint16_t>(bad.data() + 4, kErrorRanksMax + 1);
  EXPECT_STREQ(fault_of(bad), "names more ranks than allowed");
  base::store_le<std::uint16_t>(bad.data() + 4, kErrorRanksMax);
  EXPECT_STREQ(fault_of(bad), "ends too early");
}

}  // namespace
}  // namespace nexar::wire
