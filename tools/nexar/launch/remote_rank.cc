#include "launch/remote_rank.h"

#include <cstdint>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "launch/hosts.h"

namespace nexar::launch {
namespace {

using Json = nlohmann::json;

Error invalid(std::string sentence) { return {ErrorCode::kInvalidArgument, std::move(sentence)}; }

// A C string of the kernel cannot hold a zero byte.
bool is_word(const Json& value) { return value.is_string() && value.get_ref<const std::string&>().find('\0') == std::string::npos; }

bool is_variable(const std::string& name) {
  return !name.empty() && name.find('=') == std::string::npos && name.find('\0') == std::string::npos;
}

// [local rank, local size]
std::optional<Binding> read_binding(const Json& value) {
  if (!value.is_array() || value.size() != 2) return std::nullopt;
  if (!value[0].is_number_unsigned() || !value[1].is_number_unsigned()) return std::nullopt;
  const auto rank = value[0].get<std::uint64_t>();
  const auto size = value[1].get<std::uint64_t>();
  if (rank >= size || size > static_cast<std::uint64_t>(kWorldMax)) return std::nullopt;
  return Binding{static_cast<int>(rank), static_cast<int>(size)};
}

}  // namespace

Result<std::string> encode(const RankRequest& request) {
  Json json = {
      {"words", request.words}, {"directory", request.directory}, {"environment", request.environment}, {"input", request.has_input}};
  if (request.binding) json["binding"] = {request.binding->local_rank, request.binding->local_size};
  try {
    std::string line = json.dump() + "\n";
    if (line.size() > kRequestMax) return invalid(fmt::format("arguments and environment take more than {} bytes", kRequestMax));
    return line;
  } catch (const Json::exception&) {
    return invalid("a program on another host can only be given arguments and NEXAR_ variables in UTF-8");
  }
}

Result<RankRequest> decode_request(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  const auto part = [&](const char* name) { return json.is_object() && json.contains(name) ? json[name] : Json(); };
  const Json words = part("words");
  const Json directory = part("directory");
  const Json environment = part("environment");
  const Json input = part("input");
  if (!words.is_array() || words.empty() || !is_word(directory) || !environment.is_object() || !input.is_boolean())
    return invalid("what came on standard input is no request of a launcher");
  RankRequest request;
  for (const Json& word : words) {
    if (!is_word(word)) return invalid("a request of a launcher has an argument that is no text");
    request.words.push_back(word.get<std::string>());
  }
  for (const auto& [name, value] : environment.items()) {
    if (!is_variable(name) || !is_word(value)) return invalid("a request of a launcher has a variable that is no text");
    request.environment[name] = value.get<std::string>();
  }
  if (const Json binding = part("binding"); !binding.is_null()) {
    request.binding = read_binding(binding);
    if (!request.binding) return invalid("a request of a launcher binds a rank that its host does not have");
  }
  request.directory = directory.get<std::string>();
  request.has_input = input.get<bool>();
  return request;
}

std::string input_record(std::string_view bytes) {
  std::string record = {'D', static_cast<char>(bytes.size() & 0xFF), static_cast<char>(bytes.size() >> 8)};
  return record.append(bytes);
}

std::string input_end_record() { return "E"; }

std::string signal_record(int signal) { return {'S', static_cast<char>(signal)}; }

Result<std::vector<RecordReader::Record>> RecordReader::add(std::string_view bytes) {
  rest_.append(bytes);
  std::vector<Record> records;
  std::size_t at = 0;
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(rest_[at + i]); };
  while (at < rest_.size()) {
    const std::size_t left = rest_.size() - at;
    if (rest_[at] == 'E') {
      records.emplace_back(InputEnd{});
      at += 1;
    } else if (rest_[at] == 'S') {
      if (left < 2) break;
      if (byte(1) == 0 || byte(1) > 64) return invalid(fmt::format("a launcher sent signal {}, which there is not", byte(1)));
      records.emplace_back(Signal{byte(1)});
      at += 2;
    } else if (rest_[at] == 'D') {
      if (left < 3) break;
      const std::size_t length = byte(1) + (std::size_t{byte(2)} << 8);
      if (left < 3 + length) break;
      records.emplace_back(Input{rest_.substr(at + 3, length)});
      at += 3 + length;
    } else {
      return invalid(fmt::format("a launcher sent a record of unknown kind {}", byte(0)));
    }
  }
  rest_.erase(0, at);
  return records;
}

}  // namespace nexar::launch
