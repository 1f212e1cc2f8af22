// The smallest program: become a rank of a world, and say which.
//
//   nexar run -n 3 ./hello
//
// `nexar run` starts three copies of it. Each finds in its environment where the others are; Node::from_env() meets them and returns when
// everybody is there.
#include <cstdio>

#include "nexar/node.h"

int main() {
  // Every call returns a Result. value() gives what it holds, or throws an exception that says what went wrong.
  nexar::Node node = nexar::Node::from_env().value();
  std::printf("hello from rank %d of %d, on host %d of %d\n", node.rank(), node.size(), node.host_index(), node.hosts());
  // The destructor says goodbye to the others. close() does the same and tells whether they have heard it.
  node.close().value();
}
