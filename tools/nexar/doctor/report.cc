#include "doctor/report.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace nexar::tool::doctor {

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk: return "ok";
    case Verdict::kWarning: return "warning";
    case Verdict::kWrong: return "wrong";
  }
  return "";
}

int count(const Findings& findings, Verdict verdict) {
  return static_cast<int>(std::count_if(findings.begin(), findings.end(), [&](const Finding& one) { return one.verdict == verdict; }));
}

std::string as_text(const Findings& findings) {
  std::string text;
  std::size_t width = 0;
  for (const Finding& one : findings) width = std::max(width, one.check.size());
  for (const Finding& one : findings) {
    text += fmt::format("{:<9}{:<{}}{}\n", to_string(one.verdict), one.check, width + 2, one.seen);
    if (!one.remedy.empty()) text += fmt::format("{:<9}{:<{}}-> {}\n", "", "", width + 2, one.remedy);
  }
  const int wrongs = count(findings, Verdict::kWrong);
  const int warnings = count(findings, Verdict::kWarning);
  text += wrongs + warnings == 0 ? "nothing is wrong\n" : fmt::format("{} wrong, {} to be warned of\n", wrongs, warnings);
  return text;
}

std::string as_json(const Findings& findings) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Finding& one : findings)
    list.push_back({{"check", one.check}, {"verdict", to_string(one.verdict)}, {"seen", one.seen}, {"remedy", one.remedy}});
  const nlohmann::ordered_json all = {
      {"wrong", count(findings, Verdict::kWrong)}, {"warnings", count(findings, Verdict::kWarning)}, {"findings", std::move(list)}};
  return all.dump(2) + "\n";
}

}  // namespace nexar::tool::doctor
