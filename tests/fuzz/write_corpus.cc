// Writes the inputs that fuzzing starts from: one or more of everything that is parsed, in the form that each fuzzer reads.
//
//   fuzz_corpus DIR     makes DIR/header, DIR/messages, DIR/frame_parser, DIR/record_parser and DIR/certificate
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "crypto/identity.h"
#include "wire/any_message.h"

namespace nexar {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, base::ByteView bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

std::vector<std::byte> as_message_input(const wire::Sample& sample) {
  std::vector<std::byte> input = {static_cast<std::byte>(sample.message.index())};
  input.insert(input.end(), sample.frame.begin() + 8, sample.frame.end());
  return input;
}

void write_frames(const fs::path& folder) {
  std::vector<std::vector<std::byte>> streams(4);
  for (std::size_t lane = 0; lane < streams.size(); ++lane) streams[lane] = {static_cast<std::byte>(lane), std::byte{1}};
  for (const wire::Sample& sample : wire::samples()) {
    write(folder / "header" / sample.name, base::ByteView(sample.frame).first(wire::kHeaderBytes));
    write(folder / "messages" / sample.name, as_message_input(sample));
    std::vector<std::byte>& stream = streams[static_cast<std::size_t>(wire::rules_of(sample.type).lane)];
    if (sample.frame.size() < 1024) stream.insert(stream.end(), sample.frame.begin(), sample.frame.end());
  }
  for (std::size_t lane = 0; lane < streams.size(); ++lane)
    write(folder / "frame_parser" / std::string(wire::to_string(static_cast<wire::Lane>(lane))), streams[lane]);
}

// Two bulk frames and the end, for each combination of flags; and frames that belong elsewhere.
void write_records(const fs::path& folder) {
  for (unsigned flags = 0; flags < 8; ++flags) {
    std::vector<std::byte> stream = {static_cast<std::byte>(flags), std::byte{3}, std::byte{77}, std::byte{0}};
    std::vector<std::byte> elsewhere = stream;
    for (const wire::Sample& sample : wire::samples()) {
      if (sample.frame.size() > 1024) continue;
      std::vector<std::byte>& to = wire::rules_of(sample.type).lane == wire::Lane::kBulk ? stream : elsewhere;
      to.insert(to.end(), sample.frame.begin(), sample.frame.end());
    }
    write(folder / ("bulk_" + std::to_string(flags)), stream);
    write(folder / ("elsewhere_" + std::to_string(flags)), elsewhere);
  }
}

// Of an authority that nobody knows.
void write_certificates(const fs::path& folder) {
  constexpr std::chrono::sys_seconds kNow = std::chrono::sys_days(std::chrono::year(2026) / 11 / 15);
  const crypto::LocalAuthority authority = crypto::LocalAuthority::make(ClusterId{}).value();
  const crypto::Identity node = authority.make_node(NodeId{}, kNow).value();
  write(folder / "node", node.certificate.der());
  write(folder / "authority", node.authority.der());
  write(folder / "request", crypto::CertificateRequest::make(node.key).value().der());
  write(folder / "key", node.key.der().view());
}

}  // namespace
}  // namespace nexar

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s DIR\n", argv[0]);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  nexar::write_frames(folder);
  nexar::write_records(folder / "record_parser");
  nexar::write_certificates(folder / "certificate");
  return 0;
}
