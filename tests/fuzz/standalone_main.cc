// Runs a fuzzer without libFuzzer: on every file of a corpus, on pseudo-random bytes, and on mutations of the files.
//
//   fuzz_X [--seed N] [--runs N] CORPUS
//
// The inputs follow from the seed alone. It is printed first, with the command that repeats the run, because a finding ends the process.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz.h"

namespace {

using Input = std::vector<std::uint8_t>;

struct Options {
  std::uint64_t seed = std::random_device{}();
  std::uint64_t runs = 100000;
  std::string corpus;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--seed" && i + 1 < argc)
      options.seed = std::strtoull(argv[++i], nullptr, 10);
    else if (argument == "--runs" && i + 1 < argc)
      options.runs = std::strtoull(argv[++i], nullptr, 10);
    else
      options.corpus = argument;
  }
  return options;
}

// In the order of names, so that the seed decides everything.
std::vector<Input> read_corpus(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Input> inputs;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

class Mutator {
 public:
  Mutator(std::uint64_t seed, const std::vector<Input>& corpus) : random_(seed), corpus_(corpus) {}

  Input next() {
    if (below(8) == 0) return random_bytes(below(256));
    Input input = corpus_[below(corpus_.size())];
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) change(input);
    return input;
  }

 private:
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(random_() % limit); }

  Input random_bytes(std::size_t size) {
    Input bytes(size);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random_());
    return bytes;
  }

  // Near the front more often than not: that is where lengths and numbers stand.
  std::size_t place(const Input& input) { return below(below(2) == 0 ? std::min<std::size_t>(input.size(), 64) : input.size()); }

  void change(Input& input) {
    if (input.empty()) return;
    const std::size_t at = place(input);
    const auto here = input.begin() + static_cast<std::ptrdiff_t>(at);
    switch (below(7)) {
      case 0: *here = static_cast<std::uint8_t>(*here ^ (1u << below(8))); break;
      case 1: *here = static_cast<std::uint8_t>(random_()); break;
      case 2: *here = std::array<std::uint8_t, 4>{0x00, 0x01, 0x7f, 0xff}[below(4)]; break;
      case 3: input.resize(at); break;
      case 4: input.erase(here); break;
      case 5: input.insert(here, static_cast<std::uint8_t>(random_())); break;
      default: splice(input, at); break;
    }
  }

  // The tail of another input in place of this one's.
  void splice(Input& input, std::size_t at) {
    const Input& other = corpus_[below(corpus_.size())];
    if (other.empty()) return;
    input.resize(at);
    input.insert(input.end(), other.begin() + static_cast<std::ptrdiff_t>(place(other)), other.end());
  }

  std::mt19937_64 random_;
  const std::vector<Input>& corpus_;
};

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (options.corpus.empty() || !std::filesystem::is_directory(options.corpus)) {
    std::fprintf(stderr, "usage: %s [--seed N] [--runs N] CORPUS, a folder that fuzz_corpus wrote\n", argv[0]);
    return 2;
  }
  const std::vector<Input> corpus = read_corpus(options.corpus);
  std::printf("%zu inputs in the corpus; repeat with: %s --seed %llu --runs %llu %s\n", corpus.size(), argv[0],
              static_cast<unsigned long long>(options.seed), static_cast<unsigned long long>(options.runs), options.corpus.c_str());
  std::fflush(stdout);
  if (corpus.empty()) return 2;

  for (const Input& input : corpus) LLVMFuzzerTestOneInput(input.data(), input.size());
  Mutator mutator(options.seed, corpus);
  for (std::uint64_t run = 0; run < options.runs; ++run) {
    const Input input = mutator.next();
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("%llu runs, nothing found\n", static_cast<unsigned long long>(options.runs));
  return 0;
}
