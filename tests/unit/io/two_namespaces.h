// Two network namespaces joined by a cable, for tests that need a real device: 10.77.0.1 in `left`, 10.77.0.2 in `right`.
#pragma once

#include <optional>
#include <string>

namespace nexar::io {

// Made by the `ip` command, and gone with the object. The names contain the process id, so tests may run side by side.
class TwoNamespaces {
 public:
  // Why there can be none here; nothing when all is well.
  static std::optional<std::string> unavailable();

  TwoNamespaces();
  ~TwoNamespaces();
  TwoNamespaces(const TwoNamespaces&) = delete;
  TwoNamespaces& operator=(const TwoNamespaces&) = delete;

  std::string left() const { return "/run/netns/" + left_; }
  std::string right() const { return "/run/netns/" + right_; }

 private:
  std::string left_;
  std::string right_;
};

}  // namespace nexar::io
