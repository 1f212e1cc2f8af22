// Writes the inputs that fuzzing starts from: one or more of everything that is parsed, in the form that each fuzzer reads.
//
//   fuzz_corpus DIR     makes DIR/header, DIR/messages, DIR/frame_parser, DIR/certificate, DIR/compressed_tensor and DIR/compressor
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "compress/random_k.h"
#include "compress/top_k.h"
#include "crypto/identity.h"
#include "nexar/compressor.h"
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

std::vector<std::byte> with_front(std::vector<std::byte> front, std::uint16_t count, base::ByteView form) {
  front.resize(front.size() + sizeof count);
  base::store_le(front.data() + front.size() - sizeof count, count);
  front.insert(front.end(), form.begin(), form.end());
  return front;
}

// What each compressor makes of small numbers, and sparse tensors by themselves. The compressors stand as in compressor_fuzz.cc.
void write_compressed(const fs::path& folder) {
  const std::vector<std::shared_ptr<const Compressor>> compressors = {
      Compressor::none(),
      Compressor::int8(),
      Compressor::fp8(),
      Compressor::sign(),
      Compressor::top_k(0.1).value(),
      Compressor::random_k(0.1).value(),
      std::make_shared<compress::TopK>(0.3, 10),
      std::make_shared<compress::RandomK>(0.7, 10),
  };
  for (const DataType type : {DataType::kF32, DataType::kF64, DataType::kF16, DataType::kBf16}) {
    for (const std::uint16_t count : std::initializer_list<std::uint16_t>{0, 1, 23, 300}) {
      std::vector<std::byte> tensor(count * size_of(type));
      for (std::size_t i = 0; i < tensor.size(); ++i)
        tensor[i] = static_cast<std::byte>(i % size_of(type) + 1 == size_of(type) ? 0x3C : i * 37);
      for (std::size_t i = 0; i < compressors.size(); ++i) {
        std::vector<std::byte> out(compressors[i]->bytes_max(count, type));
        out.resize(compressors[i]->compress(tensor, type, {.group = 1, .sequence = 2, .seed = 3}, out).value());
        const std::string name = std::to_string(i) + "_" + std::string(to_string(type)) + "_" + std::to_string(count);
        write(folder / "compressor" / name, with_front({static_cast<std::byte>(i), static_cast<std::byte>(type)}, count, out));
        if (compressors[i]->name() == "top_k(0.1)")
          write(folder / "compressed_tensor" / name, with_front({static_cast<std::byte>(type)}, count, out));
      }
    }
  }
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
  nexar::write_certificates(folder / "certificate");
  nexar::write_compressed(folder);
  return 0;
}
