#include "runtime/completion.h"

#include <memory>

#include <gtest/gtest.h>

namespace nexar::runtime {
namespace {

TEST(Completion, IsPendingUntilItIsCompletedAndAgainAfterAReset) {
  Completion completion;
  EXPECT_FALSE(completion.is_done());
  completion.complete();
  EXPECT_TRUE(completion.is_done());
  completion.reset();
  EXPECT_FALSE(completion.is_done());
}

TEST(CompletionDeathTest, ToCompleteTwiceIsADefect) {
  Completion completion;
  completion.complete();
  EXPECT_DEATH(completion.complete(), "an operation ends once");
}

}  // namespace
}  // namespace nexar::runtime
