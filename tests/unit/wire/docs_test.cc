// docs/wire.md is normative: its numbers are those of the code.
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "wire/any_message.h"
#include "wire/call.h"

namespace nexar::wire {
namespace {

std::string document() {
  std::ifstream file(NEXAR_WIRE_DOC);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void expect_row(const std::string& text, const std::string& row) {
  EXPECT_NE(text.find("\n" + row), std::string::npos) << "docs/wire.md lacks the row: " << row;
}

std::string names(unsigned bits, std::initializer_list<std::pair<unsigned, const char*>> all) {
  std::string text;
  for (const auto& [bit, name] : all)
    if ((bits & bit) != 0) text += (text.empty() ? "" : " ") + std::string(name);
  return text.empty() ? "-" : text;
}

TEST(Docs, ListEveryTypeWithItsNumberLaneFlagsFieldsAndLengths) {
  const std::string text = document();
  for (const FrameType type : all_types()) {
    const FrameRules& rules = rules_of(type);
    const std::string flags =
        names(rules.flags, {{kFlagCollective, "collective"}, {kFlagAnyTag, "any_tag"}, {kFlagFinal, "final"}, {kFlagAhead, "ahead"}});
    const auto fields = [](unsigned bits) {
      return names(bits,
                   {{kFieldGroup, "group"}, {kFieldKey, "key"}, {kFieldId, "id"}, {kFieldPart, "part"}, {kFieldGeneration, "generation"}});
    };
    const std::string length = rules.length_min == rules.length_max
                                   ? std::to_string(rules.length_min)
                                   : std::to_string(rules.length_min) + " to " + std::to_string(rules.length_max);
    expect_row(text, "| " + std::to_string(static_cast<unsigned>(type)) + " | " + std::string(rules.name) + " | " +
                         std::string(to_string(rules.lane)) + " | " + flags + " | " + fields(rules.fields) + " | " +
                         fields(rules.more_fields) + " | " + length + " |");
  }
}

TEST(Docs, ListEveryLimit) {
  const std::string text = document();
  const auto limit = [&](const std::string& name, std::size_t value) {
    expect_row(text, "| " + name + " | " + std::to_string(value) + " |");
  };
  limit("header", kHeaderBytes);
  limit("eager payload", kEagerBytesMax);
  limit("stripe unit", kBulkBytes);
  limit("bulk payload", kBulkBytesMax);
  limit("text", kTextBytesMax);
  limit("operation name", kNameBytesMax);
  limit("ranks of an error", kErrorRanksMax);
  limit("causes of an error", kErrorCausesMax);
  limit("an error with its causes", kErrorBytesMax);
  limit("lost nodes of a revocation", kLostNodesMax);
  limit("groups that are early", kEarlyGroupsMax);
  limit("stripes of a transfer", kStripesMax);
  limit("certificate or request", kDerBytesMax);
  limit("agreed settings", kAgreedBytesMax);
  limit("name of a node", kNodeNameBytesMax);
  limit("addresses of a node", kAddressesMax);
  limit("an address as text", kAddressTextBytesMax);
  limit("nodes of a world", kWorldMax);
  limit("a set of cores", kCoresBytesMax);
  limit("members of a part of a view", kViewPartMembersMax);
  limit("TCP lanes of a link", kTcpLanesMax);
  limit("sealed payload of a record", kRecordBytesMax);
  limit("records of one key", kRecordsPerKey);
}

TEST(Docs, ListEveryOperation) {
  const std::string text = document();
  for (std::uint8_t id = 1; id <= kOperationIdMax; ++id)
    expect_row(text, "| " + std::to_string(id) + " | " + std::string(to_string(static_cast<OperationId>(id))) + " |");
}

TEST(Docs, NameTheVersion) { EXPECT_NE(document().find("Wire version **" + std::to_string(kWireVersion) + "**"), std::string::npos); }

}  // namespace
}  // namespace nexar::wire
