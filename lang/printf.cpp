// printf.cpp - checks formats against the types of the arguments, and records.
// The recorded form is the primitive "printf" with the format as its first argument; arguments are widened
// as C's variable arguments are: booleans and small integers to i32, floats to f64.
#include <hidet/lang/statements.h>
#include <hidet/runtime/error.h>

#include <cstring>

#include "recorder.h"

namespace hidet::lang::detail {
namespace {

/// What a conversion takes.
struct Conversion {
  char letter;
  const char* length;
  bool is_float, is_pointer;
  int bits;           ///< integers: the widest that fits
  const char* takes;  ///< for messages
};
constexpr Conversion kConversions[] = {
    {'d', "", false, false, 32, "an integer of at most 32 bits"},
    {'i', "", false, false, 32, "an integer of at most 32 bits"},
    {'u', "", false, false, 32, "an integer of at most 32 bits"},
    {'x', "", false, false, 32, "an integer of at most 32 bits"},
    {'X', "", false, false, 32, "an integer of at most 32 bits"},
    {'c', "", false, false, 32, "an integer of at most 32 bits"},
    {'d', "ll", false, false, 64, "an integer"},
    {'i', "ll", false, false, 64, "an integer"},
    {'u', "ll", false, false, 64, "an integer"},
    {'x', "ll", false, false, 64, "an integer"},
    {'d', "l", false, false, 64, "an integer"},
    {'u', "l", false, false, 64, "an integer"},
    {'f', "", true, false, 64, "a floating-point number"},
    {'e', "", true, false, 64, "a floating-point number"},
    {'g', "", true, false, 64, "a floating-point number"},
    {'a', "", true, false, 64, "a floating-point number"},
    {'p', "", false, true, 64, "a pointer"},
};

/// The conversion at `text` (behind '%'), and how many characters it takes.
const Conversion* parse(const char* text, size_t* length) {
  const char* p = text + std::strspn(text, "-+ #0");
  p += std::strspn(p, "0123456789");
  if (*p == '.') p += 1 + std::strspn(p + 1, "0123456789");
  const size_t modifier = std::strspn(p, "hlLzjt");
  for (const Conversion& c : kConversions)
    if (std::strlen(c.length) == modifier && std::strncmp(p, c.length, modifier) == 0 &&
        p[modifier] == c.letter) {
      *length = static_cast<size_t>(p + modifier + 1 - text);
      return &c;
    }
  return nullptr;
}

/// The argument as C passes it, or Error where the conversion does not take it.
Expr promoted(const Conversion& c, const Value& v, size_t number, const std::string& spelled,
              SourceLoc at) {
  HIDET_REQUIRE(v.expr(), ErrorCode::usage, at.text(), "printf argument ", number, " has no value");
  const ir::Type& t = v.type();
  const bool integer = t.is_scalar() && !t.dtype().is_float() && t.dtype().bits() <= c.bits;
  const bool fine = c.is_pointer ? t.is_pointer()
                    : c.is_float ? t.is_scalar() && t.dtype().is_float()
                                 : integer;
  HIDET_REQUIRE(
      fine, ErrorCode::usage, at.text(), "printf argument ", number, " is of type ", t.text(),
      "; '%", spelled, "' takes ", c.takes,
      t.is_scalar() && t.dtype().bits() == 64 && t.dtype().is_integer() ? " (use %lld)" : "");
  if (c.is_pointer) return v.expr();
  if (c.is_float) return ir::make_cast(v.expr(), ir::Type(f64), at);
  if (c.bits == 64) return ir::make_cast(v.expr(), ir::Type(t.dtype() == u64 ? u64 : i64), at);
  return ir::make_cast(v.expr(), ir::Type(t.dtype() == u32 ? u32 : i32), at);
}

}  // namespace

void record_printf(const char* format, const std::vector<Located>& args, SourceLoc at) {
  FunctionRecorder& r = recording(at, "printf");
  HIDET_REQUIRE(format, ErrorCode::usage, at.text(), "printf without a format");
  std::vector<Expr> exprs{ir::Expr(new ir::StringImm(format))};
  std::vector<const Value*> uses;
  size_t next = 0;
  for (const char* p = std::strchr(format, '%'); p; p = std::strchr(p, '%')) {
    if (p[1] == '%') {
      p += 2;
      continue;
    }
    size_t length = 0;
    const Conversion* c = parse(p + 1, &length);
    HIDET_REQUIRE(c, ErrorCode::usage, at.text(), "printf cannot print with '",
                  std::string(p, std::min<size_t>(4, std::strlen(p))),
                  "'; use d i u x c, with l or ll for 64 bits, f e g a, or p");
    HIDET_REQUIRE(next < args.size(), ErrorCode::usage, at.text(), "printf has ", args.size(),
                  " arguments, and the format asks for more");
    exprs.push_back(promoted(*c, args[next].value, next + 1, std::string(p + 1, length), at));
    uses.push_back(&args[next].value);
    next++;
    p += 1 + length;
  }
  HIDET_REQUIRE(next == args.size(), ErrorCode::usage, at.text(), "printf has ", args.size(),
                " arguments, and the format asks for ", next);
  r.emit(ir::make_stmt<ir::Evaluate>(at,
                                     ir::make_prim("printf", std::move(exprs), ir::Type(), {}, at)),
         uses, nullptr);
}

}  // namespace hidet::lang::detail
