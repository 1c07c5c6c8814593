// lexer.h - the words of the text form of IR modules. Private to ir/core.
// Threading: pure functions; thread-safe.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hidet::ir {

struct Token {
  enum class Kind : uint8_t { name, integer, real, string, mark, newline, end };
  Kind kind = Kind::end;
  std::string text;  ///< of a string: its value
  int line = 1, column = 1;
  bool spaced = false;  ///< white space before it
};

/// The tokens of `text`, closed by an `end`. Line ends inside ( ) and [ ] and empty lines do not count; `//`
/// opens a comment. Throws Error(bad_file) at name:line:column on what is no token.
std::vector<Token> tokenize(std::string_view text, const std::string& name);

}  // namespace hidet::ir
