// A second cable between two namespaces, with a round trip of 20 ms.
#pragma once

#include <cstdio>
#include <optional>
#include <string>

#include "io/address.h"
#include "namespaces.h"

namespace nexar::test {

// It is a relay in a process of its own, and ends with it: the destructor waits for that. Owned by the test.
class LongCable {
 public:
  // Why there can be none here, for GTEST_SKIP; nothing when there can.
  static std::optional<std::string> missing();

  explicit LongCable(const Namespaces& net);
  ~LongCable();
  LongCable(const LongCable&) = delete;
  LongCable& operator=(const LongCable&) = delete;

  // Of namespace i at this cable.
  static io::Address address(int i);

 private:
  FILE* const relay_;  // ends when its standard input does
};

}  // namespace nexar::test
