// Messages between two ranks: blocking, without waiting, and of a length that the receiver does not know.
//
//   nexar run -n 2 ./send_recv
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "nexar/node.h"

int main() {
  nexar::Node node = nexar::Node::from_env().value();
  if (node.size() != 2) {
    std::fprintf(stderr, "this example is for 2 ranks: nexar run -n 2\n");
    return 1;
  }
  const nexar::Group world = node.world();
  const nexar::Rank other = 1 - node.rank();

  // A message has a tag, a number of your choice. A receive takes the first message of that rank with that tag.
  constexpr nexar::Tag kGreeting = 1;
  if (node.rank() == 0) {
    const std::string text = "greetings from rank 0";
    world.send(text.data(), text.size(), other, kGreeting).value();
  } else {
    // recv_owned() brings memory of the right size; recv() writes into yours.
    const nexar::OwnedMessage message = world.recv_owned(other, kGreeting).value();
    std::printf("rank 1 got \"%.*s\"\n", static_cast<int>(message.bytes.size()), reinterpret_cast<const char*>(message.bytes.data()));
  }

  // Both directions at once. Two ranks that first send and then receive would wait for each other when messages are large.
  constexpr nexar::Tag kNumbers = 2;
  std::vector<double> mine(1'000'000, node.rank() + 1.0);
  std::vector<double> theirs(mine.size());
  const std::size_t bytes = mine.size() * sizeof(double);
  world.exchange(mine.data(), bytes, other, kNumbers, theirs.data(), bytes, other, kNumbers).value();
  std::printf("rank %d got a million times %g\n", node.rank(), theirs.back());

  // Without waiting: the operations run while this thread does something else. The buffers are theirs until wait() has returned.
  constexpr nexar::Tag kLater = 3;
  nexar::Operation receive = world.start_recv(theirs.data(), bytes, other, kLater);
  nexar::Operation send = world.start_send(mine.data(), bytes, other, kLater);
  double sum = 0;
  for (int i = 0; i < 1000; ++i) sum += i;
  send.wait().value();
  receive.wait().value();
  std::printf("rank %d has added up to %g meanwhile\n", node.rank(), sum);
  node.close().value();
}
