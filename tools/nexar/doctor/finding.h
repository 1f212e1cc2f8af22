// What a check of `nexar doctor` has found.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nexar::tool::doctor {

enum class Verdict : std::uint8_t {
  kOk,
  kWarning,  // it works, worse than it could
  kWrong,    // something does not work, or will not under load
};

std::string_view to_string(Verdict verdict);  // "ok", "warning", "wrong"

struct Finding {
  std::string check;  // its name: "udp buffers"
  std::string seen;   // what was looked at, and what was there
  Verdict verdict;
  std::string remedy{};  // one sentence; empty when nothing is to be mended
};

using Findings = std::vector<Finding>;

inline Finding ok(std::string check, std::string seen) { return {std::move(check), std::move(seen), Verdict::kOk}; }
inline Finding warning(std::string check, std::string seen, std::string remedy) {
  return {std::move(check), std::move(seen), Verdict::kWarning, std::move(remedy)};
}
inline Finding wrong(std::string check, std::string seen, std::string remedy) {
  return {std::move(check), std::move(seen), Verdict::kWrong, std::move(remedy)};
}

}  // namespace nexar::tool::doctor
