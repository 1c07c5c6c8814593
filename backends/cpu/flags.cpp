// flags.cpp - compiler options, chosen for meaning first:
// - no contraction, and neither NaN nor infinity is assumed away, so that a chain of operators gives the
//   same bits fused or not; fast_math adds re-association, reciprocals and contraction only;
// - signed integers wrap; memory may be read as another type than it was written (workspace is shared);
// - no errno from libm, so that sqrt is an instruction.
// -fbracket-depth covers deep generated expressions; the compiling threads have the stack for it.
// Threading: pure functions.
#include "cpu/flags.h"

namespace hidet::backends::cpu {
namespace {

void append(Arguments& to, std::initializer_list<std::string> what) { to.insert(to.end(), what); }

std::string level_name(const CpuTarget& target) {
  return CpuTarget{.level = target.level, .features = 0}.name();
}

/// Clang and gcc spell these alike, inside and outside.
void append_arithmetic(Arguments& to, bool fast_math) {
  if (fast_math) append(to, {"-fno-signed-zeros", "-freciprocal-math", "-ffp-contract=fast"});
  else append(to, {"-ffp-contract=off"});
}

}  // namespace

Arguments cc1_arguments(const CpuTarget& target, bool fast_math, Output output) {
  Arguments all = {output == Output::object ? "-emit-obj" : "-S"};
  append(all, {"-triple",
               "x86_64-pc-linux-gnu",
               "-O3",
               "-std=gnu17",
               "-x",
               "c",
               "-w",
               "-main-file-name",
               "kernel.c",
               "-mrelocation-model",
               "pic",
               "-pic-level",
               "2",
               "-fhalf-no-semantic-interposition",
               "-mframe-pointer=none",
               "-funwind-tables=2",
               "-relaxed-aliasing",
               "-fwrapv",
               "-fno-rounding-math",
               "-disable-llvm-verifier",
               "-discard-value-names",
               "-nostdsysteminc",
               "-nobuiltininc",
               "-fgnuc-version=4.2.1",
               "-vectorize-loops",
               "-vectorize-slp",
               "-fbracket-depth",
               "4096",
               "-ferror-limit",
               "5",
               "-target-cpu",
               level_name(target)});
  for (const CpuFeature& feature : cpu_features())
    if (target.has(feature.name)) append(all, {"-target-feature", std::string("+") + feature.flag});
  // Else Clang splits 64-byte vectors in two.
  if (target.level >= 4) append(all, {"-mprefer-vector-width=512"});
  append_arithmetic(all, fast_math);
  if (fast_math) append(all, {"-mreassociate", "-ffp-exception-behavior=ignore"});
  return all;
}

Arguments driver_arguments(const CpuTarget& target, bool fast_math, Output output, bool is_clang) {
  Arguments all = {output == Output::object ? "-c" : "-S"};
  append(all, {"-O3", "-std=gnu17", "-x", "c", "-w", "-fPIC", "-fno-semantic-interposition",
               "-fomit-frame-pointer", "-fno-strict-aliasing", "-fwrapv", "-fno-math-errno",
               "-fno-stack-protector", "-nostdinc", "-march=" + level_name(target)});
  for (const CpuFeature& feature : cpu_features())
    if (target.has(feature.name)) append(all, {std::string("-m") + feature.flag});
  if (target.level >= 4) append(all, {"-mprefer-vector-width=512"});
  if (is_clang) append(all, {"-fbracket-depth=4096"});
  append_arithmetic(all, fast_math);
  if (fast_math) append(all, {"-fassociative-math", "-fno-trapping-math"});
  return all;
}

Arguments lld_arguments() {
  return {"-shared",          "--threads=1",     "-m",           "elf_x86_64", "-Bsymbolic",
          "--hash-style=gnu", "--build-id=none", "--gc-sections"};
}

Arguments driver_link_arguments() {
  return {"-shared",
          "-nostartfiles",
          "-nodefaultlibs",
          "-Wl,-Bsymbolic",
          "-Wl,--hash-style=gnu",
          "-Wl,--build-id=none",
          "-Wl,--version-script=exports",
          "-lm",
          "-lgcc"};
}

std::string joined(const Arguments& arguments) {
  std::string text;
  for (const std::string& argument : arguments) text += text.empty() ? argument : " " + argument;
  return text;
}

}  // namespace hidet::backends::cpu
