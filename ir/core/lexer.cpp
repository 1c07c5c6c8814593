// lexer.cpp - from text to tokens.
// Needs: any bytes. Leaves: tokens with places, or an error. Threading: pure.
#include "core/lexer.h"

#include <hidet/runtime/error.h>

#include <algorithm>
#include <cctype>

namespace hidet::ir {
namespace {

constexpr std::string_view kLongMarks[] = {"->", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||"};
constexpr std::string_view kMarks = "()[]{}<>,:;.=+-*/%&|^~!@$";

bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }

class Lexer {
 public:
  Lexer(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  std::vector<Token> run() {
    bool spaced = false;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') new_line();
      else if (c == ' ' || c == '\t' || c == '\r') at_++;
      else if (text_.substr(at_, 2) == "//") at_ = std::min(text_.find('\n', at_), text_.size());
      else {
        token(c, spaced);
        spaced = false;
        continue;
      }
      spaced = true;
    }
    close_line();
    add(Token::Kind::end, "", false);
    return std::move(tokens_);
  }

 private:
  void add(Token::Kind kind, std::string text, bool spaced) {
    tokens_.push_back(
        {kind, std::move(text), line_, static_cast<int>(at_ - line_start_) + 1, spaced});
  }
  void close_line() {
    if (depth_ == 0 && !tokens_.empty() && tokens_.back().kind != Token::Kind::newline)
      add(Token::Kind::newline, "", true);
  }
  void new_line() {
    close_line();
    at_++;
    line_++;
    line_start_ = at_;
  }
  void token(char c, bool spaced) {
    size_t end = at_;
    if (letter(c)) {
      while (end < text_.size() && (letter(text_[end]) || digit(text_[end]))) end++;
      add(Token::Kind::name, std::string(text_.substr(at_, end - at_)), spaced);
    } else if (digit(c)) {
      end = number(spaced);
    } else if (c == '"') {
      end = string(spaced);
    } else {
      end += mark(spaced);
    }
    at_ = end;
  }
  size_t number(bool spaced) {
    size_t end = at_;
    bool real = false;
    if (text_.substr(at_, 2) == "0x") {
      for (end += 2; end < text_.size() && std::isxdigit(static_cast<unsigned char>(text_[end]));)
        end++;
    } else {
      const auto digits = [&] {
        while (end < text_.size() && digit(text_[end])) end++;
      };
      digits();
      if (end + 1 < text_.size() && text_[end] == '.' && digit(text_[end + 1])) {
        real = true;
        end++;
        digits();
      }
      if (size_t e = end; e < text_.size() && text_[e] == 'e') {
        e++;
        if (e < text_.size() && (text_[e] == '+' || text_[e] == '-')) e++;
        if (e < text_.size() && digit(text_[e])) {
          real = true;
          end = e;
          digits();
        }
      }
    }
    add(real ? Token::Kind::real : Token::Kind::integer, std::string(text_.substr(at_, end - at_)),
        spaced);
    return end;
  }
  size_t string(bool spaced) {
    std::string value;
    size_t end = at_ + 1;
    for (; end < text_.size() && text_[end] != '"' && text_[end] != '\n'; end++) {
      if (text_[end] != '\\') {
        value += text_[end];
        continue;
      }
      const std::string_view code = text_.substr(end + 1, 3);
      if (!code.empty() && (code[0] == '"' || code[0] == '\\')) {
        value += code[0];
        end++;
      } else if (code.size() == 3 && code[0] == 'x' &&
                 std::isxdigit(static_cast<unsigned char>(code[1])) &&
                 std::isxdigit(static_cast<unsigned char>(code[2]))) {
        value += static_cast<char>(std::stoi(std::string(code.substr(1)), nullptr, 16));
        end += 3;
      } else {
        fail("in a string, \\ is followed by \\, \" or x and two hexadecimal digits");
      }
    }
    if (end >= text_.size() || text_[end] != '"') fail("a string is not closed on its line");
    add(Token::Kind::string, std::move(value), spaced);
    return end + 1;
  }
  size_t mark(bool spaced) {
    const std::string_view two = text_.substr(at_, 2);
    const bool is_long =
        std::find(std::begin(kLongMarks), std::end(kLongMarks), two) != std::end(kLongMarks);
    const std::string_view mark = text_.substr(at_, is_long ? 2 : 1);
    if (!is_long && kMarks.find(mark) == std::string_view::npos) {
      const auto code = static_cast<unsigned char>(mark[0]);
      fail(code > 32 && code < 127 ? "the character '" + std::string(mark) + "' has no meaning"
                                   : "the byte " + std::to_string(code) + " has no meaning");
    }
    if (mark == "(" || mark == "[") depth_++;
    if ((mark == ")" || mark == "]") && depth_ > 0) depth_--;
    add(Token::Kind::mark, std::string(mark), spaced);
    return mark.size();
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::bad_file, what,
                name_ + ":" + std::to_string(line_) + ":" + std::to_string(at_ - line_start_ + 1));
  }

  std::string_view text_;
  const std::string& name_;
  size_t at_ = 0, line_start_ = 0;
  int line_ = 1, depth_ = 0;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view text, const std::string& name) {
  return Lexer(text, name).run();
}

}  // namespace hidet::ir
