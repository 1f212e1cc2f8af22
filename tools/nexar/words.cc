#include "words.h"

#include <algorithm>
#include <exception>

#include <fmt/format.h>

#include "base/units.h"
#include "bench/sizes.h"

namespace nexar::tool {

void add_examples(CLI::App& command, const std::vector<std::string>& examples) {
  std::string text = "Examples:";
  for (const std::string& example : examples) text += "\n  " + example;
  command.footer(text);
}

CLI::Validator is_size() {
  return {[](const std::string& text) {
            return base::parse_size(text).value_or(0) != 0 ? std::string() : fmt::format("\"{}\" is no size such as 8, 64K or 1MiB", text);
          },
          "SIZE"};
}

CLI::Validator is_size_or_range() {
  return {[](const std::string& text) {
            try {
              static_cast<void>(bench::parse_sizes({text}));
            } catch (const std::exception&) {
              return fmt::format("\"{}\" is no size such as 8, 64K or 1MiB, and no range such as 8-64M or 8-64M*4", text);
            }
            return std::string();
          },
          "SIZE"};
}

std::vector<const CLI::App*> subcommands_of(const CLI::App& command) {
  std::vector<const CLI::App*> shown =
      command.get_subcommands([](const CLI::App* one) { return !one->get_name().empty() && !one->get_group().empty(); });
  std::sort(shown.begin(), shown.end(), [](const CLI::App* a, const CLI::App* b) { return a->get_name() < b->get_name(); });
  return shown;
}

std::vector<const CLI::App*> all_commands_of(const CLI::App& command) {
  std::vector<const CLI::App*> all;
  for (const CLI::App* one : subcommands_of(command)) {
    all.push_back(one);
    const std::vector<const CLI::App*> below = all_commands_of(*one);
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

std::vector<const CLI::Option*> options_of(const CLI::App& command) {
  std::vector<const CLI::Option*> shown = command.get_options([](const CLI::Option* one) { return !one->get_group().empty(); });
  for (const CLI::App* group : command.get_subcommands([](const CLI::App* one) { return one->get_name().empty(); })) {
    const std::vector<const CLI::Option*> inner = options_of(*group);
    shown.insert(shown.end(), inner.begin(), inner.end());
  }
  return shown;
}

std::string full_name(const CLI::App& command) {
  return command.get_parent() == nullptr ? command.get_name() : full_name(*command.get_parent()) + " " + command.get_name();
}

std::string left_side(const CLI::Option& option) {
  std::string text = option.get_name(false, true);
  text.resize(std::min(text.find('{'), text.size()));  // a flag that turns something off: --no-pin{false}
  if (option.get_items_expected_max() == 0) return text;
  text += " " + option.get_type_name();
  if (option.get_items_expected_max() > 1) text += " ...";
  return text;
}

}  // namespace nexar::tool
