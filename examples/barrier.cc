// Waiting for everybody: rank 0 writes a file, and nobody reads it before it is there.
//
//   nexar run -n 4 ./barrier /tmp/note
//
// A barrier orders what ranks do; it carries no data. For data, a broadcast is shorter.
#include <cstdio>
#include <fstream>
#include <string>

#include "nexar/node.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: nexar run -n 4 ./barrier FILE\n");
    return 1;
  }
  nexar::Node node = nexar::Node::from_env().value();
  const nexar::Group world = node.world();
  if (node.rank() == 0) std::ofstream(argv[1]) << "written by rank 0\n";

  // Nobody leaves before everybody has entered. A rank that does not come is named when the time is over.
  world.barrier().value();

  std::string line;
  std::ifstream file(argv[1]);
  std::getline(file, line);
  std::printf("rank %d reads \"%s\"\n", node.rank(), line.c_str());

  // The file may go when all have read it.
  world.barrier().value();
  if (node.rank() == 0) std::remove(argv[1]);
  node.close().value();
}
