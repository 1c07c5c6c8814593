// main.cpp - the `hidet` command: parses, dispatches, turns errors into one sentence and an exit status.
#include "command.h"
#include "help.h"

#include <cstdio>
#include <new>

namespace {

constexpr const char kFooter[] =
    "Environment: HIDET_NUM_THREADS, HIDET_CACHE=off, HIDET_CACHE_DIR, HIDET_CACHE_SIZE, "
    "HIDET_CLANG_PLUGIN, HIDET_CC,\n"
    "HIDET_NVRTC, HIDET_CUDA_ROOT, HIDET_DUMP=after:<pass>, HIDET_TIME=1, HIDET_VERIFY=1|text, "
    "HIDET_KEEP=<folder>,\n"
    "HIDET_TEST_BREAK_KERNEL=<operator> (makes its kernels wrong, to see `verify` find them).\n"
    "Exit status: 0 ok, 1 results differ, 2 usage, 3 bad input file, 4 unsupported, 5 device, "
    "driver or compiler missing,\n"
    "6 out of memory, 7 cannot read or write, 70 internal, 130 cancelled.";

int run(int argc, char** argv) {
  using namespace hidet::tools;
  CLI::App root("compiles deep-learning models to .hidet files, runs, measures and checks them",
                "hidet");
  root.footer(kFooter);
  root.require_subcommand(1);
  root.set_version_flag("--version", HIDET_VERSION);
  const Command commands[] = {
      add_compile(root), add_run(root),     add_bench(root), add_verify(root),  add_inspect(root),
      add_cache(root),   add_devices(root), add_opt(root),   add_explain(root), add_tune(root)};
  CLI::App* help = root.add_subcommand("help", "help of one subcommand, man page, completion");
  std::string topic, shell;
  bool man = false;
  help->add_option("subcommand", topic, "the subcommand");
  help->add_flag("--man", man, "print the man page");
  help->add_option("--completion", shell, "print the completion script of bash, zsh or fish");
  help->group("Machine");
  const auto known = root.get_subcommands(
      [&](const CLI::App* sub) { return argc > 1 && sub->get_name() == argv[1]; });
  if (argc > 1 && argv[1][0] != '-' && known.empty()) {
    std::fprintf(stderr, "hidet: there is no subcommand '%s'; hidet help lists them\n", argv[1]);
    return 2;
  }
  try {
    root.parse(argc, argv);
  } catch (const CLI::CallForHelp& e) {
    return root.exit(e);
  } catch (const CLI::CallForVersion& e) {
    return root.exit(e);
  } catch (const CLI::ParseError& e) {
    std::fprintf(stderr, "hidet: %s\n", e.what());
    return 2;
  }
  if (help->parsed()) {
    if (man) return std::printf("%s", man_page(root, kFooter).c_str()), 0;
    if (!shell.empty()) return std::printf("%s", completion(root, shell).c_str()), 0;
    for (const Command& c : commands)
      if (c.app->get_name() == topic) return std::printf("%s", c.app->help("hidet").c_str()), 0;
    HIDET_REQUIRE(topic.empty(), hidet::ErrorCode::usage, "", "there is no subcommand '", topic,
                  "'; hidet help lists them");
    return std::printf("%s", root.help().c_str()), 0;
  }
  watch_for_cancel();
  for (const Command& c : commands)
    if (c.app->parsed()) return c.run();
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const hidet::Error& e) {
    std::fprintf(stderr, "hidet: %s\n", e.what());
    return static_cast<int>(e.code());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "hidet: out of memory\n");
    return 6;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "hidet: internal error: %s\n", e.what());
    return 70;
  }
}
