// `nexar _manual DIRECTORY`: a manual page of each command, and the completion of bash, from what --help shows. Run when nexar is built.
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "commands.h"
#include "nexar/version.h"
#include "words.h"

namespace nexar::tool {
namespace {

// As roff takes it: a backslash, a minus that is one, and no dot or apostrophe at the start of a line.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n'))
      out += std::string("\\&") + c;
    else
      out += c;
  }
  return out;
}

std::string page_name(const CLI::App& command) {
  std::string name = full_name(command);
  for (char& c : name)
    if (c == ' ') c = '-';
  return name;
}

std::string page(const CLI::App& command) {
  std::string text = fmt::format(".TH \"{}\" 1 \"\" \"nexar {}\" \"User Commands\"\n", page_name(command), NEXAR_VERSION);
  text += fmt::format(".SH NAME\n{} \\- {}\n", escaped(page_name(command)), escaped(command.get_description()));
  const bool has_commands = !subcommands_of(command).empty();
  text += fmt::format(".SH SYNOPSIS\n.B {}\n{}\n", escaped(full_name(command)), has_commands ? "COMMAND [OPTIONS]" : "[OPTIONS]");
  if (has_commands) text += ".SH COMMANDS\n";
  for (const CLI::App* one : subcommands_of(command))
    text += fmt::format(".TP\n.BR {} (1)\n{}\n", escaped(page_name(*one)), escaped(one->get_description()));
  text += ".SH OPTIONS\n";
  for (const CLI::Option* option : options_of(command))
    text += fmt::format(".TP\n.B {}\n{}\n", escaped(left_side(*option)), escaped(option->get_description()));
  if (const std::string examples = command.get_footer(); !examples.empty())
    text += fmt::format(".SH EXAMPLES\n.nf\n{}\n.fi\n", escaped(examples.substr(examples.find('\n') + 1)));
  text += ".SH EXIT STATUS\n0 success, 1 the work failed or something is wrong, 2 the command line was not understood.\n";
  if (command.get_parent() != nullptr) text += fmt::format(".SH SEE ALSO\n.BR {} (1)\n", escaped(page_name(*command.get_parent())));
  return text;
}

constexpr const char* kCompletionHead = R"bash(# Completion of nexar for bash: commands and options, and file names elsewhere.
_nexar() {
  local path=nexar word i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    case $word in
      -*) ;;
      *) case " $(_nexar_words "$path") " in *" $word "*) path="$path $word" ;; esac ;;
    esac
  done
  COMPREPLY=($(compgen -W "$(_nexar_words "$path")" -- "${COMP_WORDS[COMP_CWORD]}"))
}
_nexar_words() {
  local words=
  case $1 in
)bash";

constexpr const char* kCompletionTail = R"bash(  esac
  echo "$words"
}
complete -o bashdefault -o default -F _nexar nexar
)bash";

// A case for each command: the words that may follow it.
std::string completion(const CLI::App& app) {
  std::string cases;
  const auto add = [&](const CLI::App& command) {
    std::vector<std::string> words;
    for (const CLI::App* one : subcommands_of(command)) words.push_back(one->get_name());
    for (const CLI::Option* option : options_of(command)) {
      for (const std::string& name : option->get_snames()) words.push_back("-" + name);
      for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
    }
    cases += fmt::format("    \"{}\") words=\"{}\" ;;\n", full_name(command), fmt::join(words, " "));
  };
  add(app);
  for (const CLI::App* command : all_commands_of(app)) add(*command);
  return kCompletionHead + cases + kCompletionTail;
}

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text << std::flush;
  if (!out) throw std::runtime_error("cannot write " + file.string());
}

int write_all(const CLI::App& app, const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory / "man1");
  write(directory / "man1" / "nexar.1", page(app));
  for (const CLI::App* command : all_commands_of(app)) write(directory / "man1" / (page_name(*command) + ".1"), page(*command));
  write(directory / "nexar.bash", completion(app));
  return 0;
}

}  // namespace

void add_manual(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("_manual")->group("");
  auto directory = std::make_shared<std::string>();
  command->add_option("directory", *directory)->required();
  command->callback([&app, directory, &action] { action = [&app, directory] { return write_all(app, *directory); }; });
}

}  // namespace nexar::tool
