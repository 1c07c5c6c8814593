// compiler.h - what the CPU backend asks of a compiler, and the two that there are.
// Threading: a Compiler is shared by all threads and thread-safe.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "cpu/flags.h"
#include "hidet/backends/cpu.h"

namespace hidet::backends::cpu {

using Bytes = std::vector<uint8_t>;

/// LLVM crashed in this process: it is in an unknown state and is not used again.
class CompilerCrashed : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Compiler {
 public:
  virtual ~Compiler() = default;
  virtual CpuCompiler kind() const = 0;
  /// Name, version and files in one line; cheap.
  virtual std::string identity() const = 0;
  virtual int max_level() const = 0;
  /// Everything that decides what compile() and link() make, beside the text: part of cache keys.
  virtual std::string options_text(const CpuTarget& target, bool fast_math) const = 0;
  /// Error(internal) with the compiler's words when it refuses.
  virtual Bytes compile(const Unit& unit, const CpuTarget& target, bool fast_math,
                        Output output) = 0;
  virtual Bytes link(std::span<const Bytes> objects) = 0;
};

/// Clang and LLD in process; nullptr when the plugin is not there, `why` then says why.
/// Error(device) when HIDET_CLANG_PLUGIN names a file that cannot be used.
std::unique_ptr<Compiler> make_plugin_compiler(std::string& why);
/// A C compiler in PATH (or HIDET_CC); nullptr when there is none.
std::unique_ptr<Compiler> make_driver_compiler();

/// The compiler to use now: chosen once, and again after a crash. nullptr when there is none.
std::shared_ptr<Compiler> current_compiler();
/// As current_compiler, but Error(device) that says what was looked for when there is none.
std::shared_ptr<Compiler> require_compiler();
/// Takes the in-process compiler out of use after a crash.
void retire_plugin(const std::string& reason);

}  // namespace hidet::backends::cpu
