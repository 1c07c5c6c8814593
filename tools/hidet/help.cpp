// help.cpp - walks the declarations of the command line (see help.h).
#include "help.h"

#include <hidet/runtime/error.h>

namespace hidet::tools {
namespace {

std::vector<const CLI::App*> subcommands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}
std::vector<const CLI::Option*> options(const CLI::App& app) {
  return app.get_options([](const CLI::Option*) { return true; });
}
/// "--json", "-q" ...
std::vector<std::string> flags(const CLI::Option& option) {
  std::vector<std::string> out;
  for (const std::string& name : option.get_lnames()) out.push_back("--" + name);
  for (const std::string& name : option.get_snames()) out.push_back("-" + name);
  return out;
}

/// Text in which troff sees no markup.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '-') out += '\\';
    out += c == '\\' ? 'e' : c;
  }
  return !out.empty() && (out[0] == '.' || out[0] == '\'') ? "\\&" + out : out;
}

void man_options(const CLI::App& app, std::string* out) {
  for (const CLI::Option* o : options(app)) {
    std::string names;
    for (const std::string& f : flags(*o)) names += (names.empty() ? "" : ", ") + f;
    if (names.empty()) names = o->get_name(true);
    const bool takes_value = !o->get_lnames().empty() && o->get_items_expected_max() > 0;
    *out += ".TP\n.B " + plain(names) + "\n";
    if (takes_value) *out += ".RI < " + plain(o->get_type_name()) + " >\n.br\n";
    *out += plain(o->get_description()) + "\n";
  }
}

void man_command(const CLI::App& app, const std::string& name, std::string* out) {
  *out += ".SS " + plain(name) + "\n" + plain(app.get_description()) + "\n";
  man_options(app, out);
  for (const CLI::App* sub : subcommands(app)) man_command(*sub, name + " " + sub->get_name(), out);
}

/// All words that may follow a command: its subcommands and options.
std::string words(const CLI::App& app) {
  std::string out;
  for (const CLI::App* sub : subcommands(app)) out += sub->get_name() + " ";
  for (const CLI::Option* o : options(app))
    for (const std::string& f : flags(*o)) out += f + " ";
  return out;
}

std::string bash(const CLI::App& root) {
  std::string cases;
  for (const CLI::App* sub : subcommands(root))
    cases += "    " + sub->get_name() + ") words=\"" + words(*sub) + "\" ;;\n";
  return "_hidet() {\n"
         "  local words word=${COMP_WORDS[COMP_CWORD]}\n"
         "  case ${COMP_CWORD}:${COMP_WORDS[1]} in 1:*) words=\"" +
         words(root) + "\" ;;\n  *) case ${COMP_WORDS[1]} in\n" + cases +
         "    esac ;;\n  esac\n"
         "  if [[ $word == -* || $COMP_CWORD == 1 ]]; then COMPREPLY=($(compgen -W \"$words\" -- "
         "\"$word\"))\n"
         "  else COMPREPLY=($(compgen -W \"$words\" -- \"$word\") $(compgen -f -- \"$word\")); fi\n"
         "}\n"
         "complete -o filenames -F _hidet hidet\n";
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string fish(const CLI::App& root) {
  std::string out;
  for (const CLI::App* sub : subcommands(root)) {
    out += "complete -c hidet -n __fish_use_subcommand -a " + sub->get_name() + " -d " +
           quoted(sub->get_description()) + "\n";
    const std::string here =
        "complete -c hidet -n '__fish_seen_subcommand_from " + sub->get_name() + "'";
    for (const CLI::App* inner : subcommands(*sub))
      out += here + " -a " + inner->get_name() + " -d " + quoted(inner->get_description()) + "\n";
    for (const CLI::Option* o : options(*sub)) {
      if (o->get_lnames().empty()) continue;
      out += here + " -l " + o->get_lnames()[0];
      if (!o->get_snames().empty()) out += " -s " + o->get_snames()[0];
      if (o->get_items_expected_max() > 0) out += " -r";
      out += " -d " + quoted(o->get_description()) + "\n";
    }
  }
  return out;
}

}  // namespace

std::string man_page(const CLI::App& root, const std::string& notes) {
  std::string out = ".TH HIDET 1\n.SH NAME\nhidet \\- " + plain(root.get_description()) +
                    "\n.SH SYNOPSIS\n.B hidet\n.I SUBCOMMAND\n[options]\n.SH SUBCOMMANDS\n";
  for (const CLI::App* sub : subcommands(root)) man_command(*sub, sub->get_name(), &out);
  return out + ".SH NOTES\n" + plain(notes) + "\n";
}

std::string completion(const CLI::App& root, const std::string& shell) {
  if (shell == "bash") return bash(root);
  // zsh reads bash's completions.
  if (shell == "zsh") return "autoload -U +X bashcompinit && bashcompinit\n" + bash(root);
  HIDET_REQUIRE(shell == "fish", ErrorCode::usage, "", "there is no completion for '", shell,
                "'; it is made for bash, zsh and fish");
  return fish(root);
}

}  // namespace hidet::tools
