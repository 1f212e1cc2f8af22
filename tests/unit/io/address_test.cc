#include "io/address.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_set>

#include <gtest/gtest.h>

namespace nexar::io {
namespace {

Address parsed(const std::string& text) { return Address::parse(text).value(); }

TEST(Address, IsPrintedAsItIsWritten) {
  for (const char* text : {"1.2.3.4:5", "0.0.0.0:0", "255.255.255.255:65535", "[::1]:5", "[::]:0", "[2001:db8::1:2]:443"}) {
    EXPECT_EQ(parsed(text).to_string(), text);
  }
  EXPECT_EQ(Address().to_string(), "none");
}

TEST(Address, RefusesWhatIsNone) {
  for (const char* text : {"",
                           ":",
                           "1.2.3.4",
                           "1.2.3.4:",
                           ":5",
                           "1.2.3.4:65536",
                           "1.2.3.4:-1",
                           "1.2.3:4",
                           "1.2.3.4.5:6",
                           "::1:5",
                           "[::1]",
                           "[::1:5",
                           "[1.2.3.4]:5",
                           "host:5",
                           "1.2.3.4:5x",
                           " 1.2.3.4:5",
                           "[]:5",
                           "[",
                           "[fe80::1%nowhere]:5",
                           "[::1]5"}) {
    const Result<Address> result = Address::parse(text);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(result.error().sentence().find(text), std::string::npos);
  }
}

TEST(Address, KnowsWhatItIs) {
  EXPECT_EQ(parsed("1.2.3.4:5").family(), Address::Family::kV4);
  EXPECT_EQ(parsed("[::1]:5").family(), Address::Family::kV6);
  EXPECT_FALSE(Address());
  EXPECT_EQ(parsed("1.2.3.4:5").port(), 5);
  EXPECT_EQ(parsed("1.2.3.4:5").with_port(77).to_string(), "1.2.3.4:77");
  EXPECT_EQ(parsed("[::1]:5").with_port(77).to_string(), "[::1]:77");
  EXPECT_TRUE(parsed("127.9.9.9:1").is_loopback());
  EXPECT_TRUE(parsed("[::1]:1").is_loopback());
  EXPECT_FALSE(parsed("128.0.0.1:1").is_loopback());
  EXPECT_FALSE(parsed("[::2]:1").is_loopback());
  EXPECT_TRUE(parsed("0.0.0.0:1").is_any());
  EXPECT_TRUE(parsed("[::]:1").is_any());
  EXPECT_FALSE(parsed("0.0.0.1:0").is_any());
  EXPECT_FALSE(Address().is_any());
  EXPECT_EQ(Address::loopback_v4(3), parsed("127.0.0.1:3"));
  EXPECT_EQ(Address::loopback_v6(3), parsed("[::1]:3"));
  EXPECT_EQ(Address::any_v4(3), parsed("0.0.0.0:3"));
  EXPECT_EQ(Address::any_v6(3), parsed("[::]:3"));
}

TEST(Address, TakesOffTheClothesOfIpv6) {
  const Address mapped = parsed("[::ffff:1.2.3.4]:5");
  EXPECT_EQ(mapped, parsed("1.2.3.4:5"));
  EXPECT_EQ(mapped.to_string(), "1.2.3.4:5");
  EXPECT_TRUE(parsed("[::ffff:127.0.0.1]:5").is_loopback());
  const sockaddr_in6 dressed = mapped.as_v6();
  EXPECT_EQ(dressed.sin6_family, AF_INET6);
  EXPECT_EQ(Address::from(reinterpret_cast<const sockaddr*>(&dressed), sizeof dressed), mapped);
}

TEST(Address, SurvivesTheKernelsForm) {
  for (const char* text : {"1.2.3.4:5", "[2001:db8::7]:9"}) {
    const Address address = parsed(text);
    EXPECT_EQ(Address::from(address.data(), address.size()), address);
    EXPECT_FALSE(Address::from(address.data(), address.size() - 1)) << "too short";
  }
  EXPECT_FALSE(Address::from(nullptr, 0));
}

TEST(Address, KeepsTheZoneOfALinkLocalAddress) {
  const Result<Address> address = Address::parse("[fe80::1%lo]:5");
  if (!address) GTEST_SKIP() << "this host has no interface lo";
  EXPECT_EQ(address->to_string(), "[fe80::1%lo]:5");
  EXPECT_NE(*address, parsed("[fe80::1]:5"));
  EXPECT_EQ(parsed("[fe80::1%4294967290]:5").host(), "fe80::1%4294967290");
}

TEST(Address, IsOrderedAndHashed) {
  const std::set<Address> ordered{parsed("[::1]:1"), parsed("2.0.0.0:1"), parsed("1.0.0.0:2"), parsed("1.0.0.0:1"), Address()};
  std::string text;
  for (const Address& address : ordered) text += address.to_string() + " ";
  EXPECT_EQ(text, "none 1.0.0.0:1 1.0.0.0:2 2.0.0.0:1 [::1]:1 ");
  const std::unordered_set<Address> hashed(ordered.begin(), ordered.end());
  EXPECT_EQ(hashed.size(), ordered.size());
  EXPECT_TRUE(hashed.contains(parsed("[::ffff:2.0.0.0]:1")));
}

TEST(Address, IsMadeFromTheBytesOfAnother) {
  for (const char* text : {"10.1.2.3:7", "[fd00::1]:7", "[::1]:7"}) {
    const Address address = parsed(text);
    EXPECT_EQ(Address::from_ip(address.ip(), 7), address) << text;
  }
  EXPECT_EQ(parsed("10.1.2.3:7").ip().size(), 4u);
  EXPECT_EQ(parsed("[fd00::1]:7").ip().size(), 16u);
  EXPECT_TRUE(Address().ip().empty());
  EXPECT_FALSE(Address::from_ip(parsed("[fd00::1]:7").ip().first(5), 7));
}

TEST(Address, KnowsWhetherItIsOfOneLinkOnly) {
  for (const char* text : {"169.254.0.1:1", "[fe80::1]:1", "[febf::1]:1"}) EXPECT_TRUE(parsed(text).is_link_local()) << text;
  for (const char* text : {"169.253.0.1:1", "10.0.0.1:1", "[fd00::1]:1", "[fec0::1]:1"}) EXPECT_FALSE(parsed(text).is_link_local()) << text;
  EXPECT_FALSE(Address().is_link_local());
}

TEST(SourceAddress, IsTheOneThatTheKernelWouldUse) {
  EXPECT_EQ(source_address(parsed("127.0.0.1:7")).value(), parsed("127.0.0.1:0"));
  const auto nowhere = source_address(parsed("255.255.255.255:7"));
  ASSERT_FALSE(nowhere);
  EXPECT_NE(nowhere.error().sentence().find("255.255.255.255:7"), std::string::npos);
}

TEST(Resolve, TakesAddressesAndNames) {
  EXPECT_EQ(resolve("10.1.2.3", 7).value(), std::vector{parsed("10.1.2.3:7")});
  EXPECT_EQ(resolve("::1", 7).value(), std::vector{parsed("[::1]:7")});
  const std::vector<Address> local = resolve("localhost", 7).value();
  for (const Address& address : local) EXPECT_TRUE(address.is_loopback()) << address.to_string();
}

TEST(Resolve, NamesTheHostThatItDoesNotFind) {
  const auto result = resolve("no-such-host.invalid", 7);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kIo);
  EXPECT_NE(result.error().sentence().find("no-such-host.invalid"), std::string::npos);
}

TEST(InterfaceAddresses, ContainTheLoopback) {
  const auto addresses = interface_addresses().value();
  EXPECT_TRUE(std::any_of(addresses.begin(), addresses.end(), [](const InterfaceAddress& a) {
    return a.is_loopback && a.is_up && a.address.is_loopback() && !a.name.empty();
  }));
}

}  // namespace
}  // namespace nexar::io
