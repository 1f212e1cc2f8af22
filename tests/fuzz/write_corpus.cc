// Writes the inputs that fuzzing starts from: one or more of every message, in the form that each fuzzer reads.
//
//   fuzz_corpus DIR     makes DIR/header, DIR/messages and DIR/frame_parser
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "wire/any_message.h"

namespace nexar::wire {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, base::ByteView bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

std::vector<std::byte> as_message_input(const Sample& sample) {
  std::vector<std::byte> input = {static_cast<std::byte>(sample.message.index())};
  input.insert(input.end(), sample.frame.begin() + 8, sample.frame.end());
  return input;
}

void write_corpus(const fs::path& folder) {
  std::vector<std::vector<std::byte>> streams(4);
  for (std::size_t lane = 0; lane < streams.size(); ++lane) streams[lane] = {static_cast<std::byte>(lane), std::byte{1}};
  for (const Sample& sample : samples()) {
    write(folder / "header" / sample.name, base::ByteView(sample.frame).first(kHeaderBytes));
    write(folder / "messages" / sample.name, as_message_input(sample));
    std::vector<std::byte>& stream = streams[static_cast<std::size_t>(rules_of(sample.type).lane)];
    if (sample.frame.size() < 1024) stream.insert(stream.end(), sample.frame.begin(), sample.frame.end());
  }
  for (std::size_t lane = 0; lane < streams.size(); ++lane)
    write(folder / "frame_parser" / std::string(to_string(static_cast<Lane>(lane))), streams[lane]);
}

}  // namespace
}  // namespace nexar::wire

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s DIR\n", argv[0]);
    return 2;
  }
  nexar::wire::write_corpus(argv[1]);
  return 0;
}
