#include "doctor/introduction.h"

#include <nlohmann/json.hpp>

namespace nexar::tool::doctor {

std::string to_text(const Introduction& introduction) {
  return nlohmann::json{{"doctor", 1},
                        {"run", introduction.run},
                        {"udp", introduction.udp},
                        {"tcp", introduction.tcp},
                        {"addresses", introduction.addresses},
                        {"rate", introduction.rate},
                        {"clock", introduction.clock}}
      .dump();
}

Result<Introduction> introduction_from(std::span<const std::byte> text) {
  const char* begin = reinterpret_cast<const char*>(text.data());
  try {
    const nlohmann::json json = nlohmann::json::parse(begin, begin + text.size());
    return Introduction{json.at("run").get<std::uint64_t>(), json.at("udp").get<std::uint16_t>(),
                        json.at("tcp").get<std::uint16_t>(), json.at("addresses").get<std::vector<std::string>>(),
                        json.at("rate").get<double>(),       json.at("clock").get<double>()};
  } catch (const nlohmann::json::exception& error) {
    return Error(ErrorCode::kMismatch, std::string("a rank of this world is no doctor of this version: ") + error.what());
  }
}

}  // namespace nexar::tool::doctor
