// error.h - the one exception type, its codes, and the two check macros.
// Threading: values; thread-safe.
#pragma once
#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>

namespace hidet {

/// What kind of failure. The exit status of the command and the C API use the same numbers.
enum class ErrorCode : int {
  ok = 0,
  mismatch = 1,     ///< results differ
  usage = 2,        ///< wrong arguments, wrong inputs, a script that breaks a rule
  bad_file = 3,     ///< a malformed, damaged or missing model file
  unsupported = 4,  ///< an operator or feature that is not supported
  device = 5,       ///< a device, driver or compiler that is missing or failed
  memory = 6,       ///< out of memory, or over the limit set by the user
  io = 7,           ///< a file or folder that cannot be read or written
  internal = 70,    ///< our bug
  cancelled = 130,  ///< stopped by the user
};

/// The exception that everything throws: one sentence (no trailing dot) that names the object and
/// what would be right; `where` is the user's place (script line, ONNX node, file entry) or empty.
class Error : public std::runtime_error {
 public:
  explicit Error(ErrorCode code, const std::string& message, const std::string& where = "")
      : std::runtime_error(where.empty() ? message : where + ": error: " + message),
        code_(code),
        where_(where) {}
  explicit Error(const std::string& message) : Error(ErrorCode::usage, message) {}
  ErrorCode code() const { return code_; }
  const std::string& where() const { return where_; }

 private:
  ErrorCode code_;
  std::string where_;
};

namespace detail {
/// Streams every argument into one string.
template <class... Args>
std::string concat(const Args&... args) {
  std::ostringstream out;
  static_cast<void>((out << ... << args));  // of no argument: no effect, and no warning
  return out.str();
}
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& message);
}  // namespace detail
}  // namespace hidet

/// Our bug: C++ file:line and the condition, ErrorCode::internal.
#define HIDET_CHECK(cond, ...)                                             \
  do {                                                                     \
    if (!(cond)) [[unlikely]]                                              \
      ::hidet::detail::check_failed(__FILE__, __LINE__, #cond,             \
                                    ::hidet::detail::concat(__VA_ARGS__)); \
  } while (0)

/// The user's mistake: reported with `code` at `where` (a std::string, may be empty).
#define HIDET_REQUIRE(cond, code, where, ...)                                  \
  do {                                                                         \
    if (!(cond)) [[unlikely]]                                                  \
      throw ::hidet::Error(code, ::hidet::detail::concat(__VA_ARGS__), where); \
  } while (0)
