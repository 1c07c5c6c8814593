// statements.h - statements of a script: variables, branches, assertions, output, assembly.
// Threading: one thread at a time, the one that records.
#pragma once
#include <hidet/lang/handle.h>

#include <string>

namespace hidet::lang {

/// An immutable variable; the dtype is the value's (a C++ literal alone: i32, i64, f32 or f64) or `type`.
Handle let(const std::string& name, const Located& value);
Handle let(const std::string& name, const Type& type, const Located& value);
/// A mutable variable; without `init` its value is undefined until assigned.
Var var(const std::string& name, const Type& type, const Located& init);
Var var(const std::string& name, const Type& type, Here at = Here::current());

namespace detail {
/// The scope of a branch: opened by the constructor, closed by the destructor.
class Branch {
 public:
  enum class Form : uint8_t { when, else_when, otherwise };
  Branch(Form form, const Value& cond, SourceLoc loc);
  Branch(const Branch&) = delete;
  Branch& operator=(const Branch&) = delete;
  ~Branch();
  /// A branch needs a name, which keeps its scope open: if (auto _ = when(c)).
  explicit operator bool() & { return true; }
  operator bool() && = delete;

 private:
  ir::Recorder* recorder_;
  int exceptions_;
};
}  // namespace detail

/// if (auto _ = when(c)) { ... }. A C++ `else` behind it never runs: use otherwise().
inline detail::Branch when(const Located& cond) {
  return detail::Branch(detail::Branch::Form::when, cond.value, cond.loc);
}
/// if (auto _ = else_when(c)) { ... }, right behind the block of a when or else_when.
inline detail::Branch else_when(const Located& cond) {
  return detail::Branch(detail::Branch::Form::else_when, cond.value, cond.loc);
}
/// if (auto _ = otherwise()) { ... }, right behind the block of a when or else_when.
inline detail::Branch otherwise(Here at = Here::current()) {
  return detail::Branch(detail::Branch::Form::otherwise, Value(), at);
}

/// Raises Error(usage, message) to the caller where `cond` is false.
void assert_(const Located& cond, const std::string& message);

namespace detail {
void record_printf(const char* format, const std::vector<Located>& args, SourceLoc at);
}
/// C's printf. The format and the types of the arguments are checked when recording. Text alone must be
/// written lang::printf, since printf("text") could also mean ::printf.
inline void printf(const char* format, Here at = Here::current()) {
  detail::record_printf(format, {}, at);
}
template <class... Rest>
void printf(const char* format, const Located& first, const Rest&... rest) {
  detail::record_printf(format, {first, Located(rest)...}, first.loc);
}

/// A comment in the text form.
void comment(const std::string& text, Here at = Here::current());

/// An operand of asm_: GNU C's constraint and a variable or a value.
struct AsmOut {
  std::string constraint;
  const Var& var;
};
struct AsmIn {
  std::string constraint;
  Located value;
};
/// Inline assembly; $0-style operands as GNU C writes them (%0 ...). Volatile.
void asm_(const std::string& text, std::initializer_list<AsmOut> outputs = {},
          std::initializer_list<AsmIn> inputs = {}, std::vector<std::string> clobbers = {},
          Here at = Here::current());

}  // namespace hidet::lang
