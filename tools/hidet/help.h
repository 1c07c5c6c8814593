// help.h - the man page and shell completion, made of the same declarations as --help.
// Threading: pure functions.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

namespace hidet::tools {

/// hidet.1 in troff: every subcommand with its options, then `notes` (the footer of --help).
std::string man_page(const CLI::App& root, const std::string& notes);
/// A completion script for "bash", "zsh" or "fish". Throws Error(usage) for another shell.
std::string completion(const CLI::App& root, const std::string& shell);

}  // namespace hidet::tools
