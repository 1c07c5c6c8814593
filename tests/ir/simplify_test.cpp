// Each rule of simplification by name: the form that it leaves, and equal values before and after, among them the ends of
// every integer type, negative divisors and NaN.
#include <hidet/ir/passes.h>

#include <limits>

#include "ir/generator.h"

namespace hidet::testing {
namespace {

struct Rule {
  const char* name;
  const char* before;  ///< of x, y: the integer type under test; p: boolean
  const char* after;
};
// The makers fold some of these at once; the parser folds nothing, so that the pass meets them all.
constexpr Rule kIntegerRules[] = {
    {"0 + x", "0:T + x", "x"},
    {"x + 0", "x + 0:T", "x"},
    {"x - 0", "x - 0:T", "x"},
    {"1 * x", "1:T * x", "x"},
    {"x * 1", "x * 1:T", "x"},
    {"x * 0", "x * 0:T", "0:T"},
    {"0 * x", "0:T * x", "0:T"},
    {"x / 1", "x / 1:T", "x"},
    {"floordiv(x, 1)", "floordiv(x, 1:T)", "x"},
    {"x % 1", "x % 1:T", "0:T"},
    {"floormod(x, 1)", "floormod(x, 1:T)", "0:T"},
    {"(x + c) + d", "x + 3:T + 4:T", "x + 7:T"},
    {"(x * c) * d", "x * 3:T * 5:T", "x * 15:T"},
    {"c + x", "3:T + x", "x + 3:T"},
    {"c * x", "3:T * x", "x * 3:T"},
    {"(c + x) + d", "3:T + x + 4:T", "x + 7:T"},
    {"select of a constant", "select(true, x, y)", "x"},
    {"select of false", "select(false, x, y)", "y"},
    {"true && p", "select(true && p, x, y)", "select(p, x, y)"},
    {"p && true", "select(p && true, x, y)", "select(p, x, y)"},
    {"false && p", "select(false && p, x, y)", "y"},
    {"false || p", "select(false || p, x, y)", "select(p, x, y)"},
    {"p || false", "select(p || false, x, y)", "select(p, x, y)"},
    {"true || p", "select(true || p, x, y)", "x"},
    {"cast to its own type", "cast(x, T)", "x"},
    {"constants", "x + (3:T * 4:T - 5:T / 2:T)", "x + 10:T"},
    {"x / 0", "x + 7:T / 0:T", "x"},
    {"x % 0", "x + 7:T % 0:T", "x"},
    // What must stay as it is.
    {"x - x", "x - x", nullptr},
    {"x / y", "x / y * y + x % y", nullptr},
    {"floordiv", "floordiv(x, y) * y + floormod(x, y)", nullptr},
    {"division by a constant", "x / 3:T + x % 3:T + floordiv(x, 3:T) + floormod(x, 3:T)", nullptr},
    {"sum divided", "(x * 4:T + y) / 4:T", nullptr},
    {"sum modulo", "(x * 4:T + y) % 4:T", nullptr},
    {"floored sum", "floordiv(x * 4:T + y, 4:T) + floormod(x * 4:T + y, 4:T)", nullptr},
    {"nested divisions", "x / 3:T / 5:T + floordiv(floordiv(x, 3:T), 5:T)", nullptr},
    {"division, then product", "x / 4:T * 4:T + x % 4:T", nullptr},
    {"comparison of sums", "select(x + 3:T < y + 3:T, x, y)", nullptr},
    {"comparison of products", "select(x * 2:T < y * 2:T, x, y)", nullptr},
    {"min and max", "min(x, max(x, y)) + max(min(x, 3:T), 5:T)", nullptr},
    {"shifts", "(x << 3:T >> 3:T) + (x >> 1:T << 1:T)", nullptr},
    {"masks", "(x & 7:T) + (x | 7:T) + (x ^ 7:T)", nullptr},
    {"not", "select(!(x < y), x, y)", nullptr},
};
constexpr Rule kSignedRules[] = {
    {"negative divisor", "x / -3:T + x % -3:T + floordiv(x, -3:T) + floormod(x, -3:T)", nullptr},
    {"minus one", "x / -1:T + x % -1:T + floordiv(x, -1:T)", nullptr},
    {"negative constants",
     "x + (7:T / -2:T + 7:T % -2:T + floordiv(7:T, -2:T) + floormod(7:T, -2:T))", "x + -7:T"},
    {"double minus", "-(-x)", nullptr},
};
constexpr Rule kFloatRules[] = {
    {"x + 0", "x + 0.0:T", "x + 0.0:T"},  // -0 + 0 is 0
    {"x * 0", "x * 0.0:T", "x * 0.0:T"},  // NaN and infinity
    {"x - x", "x - x", "x - x"},
    {"x / x", "x / x", "x / x"},
    {"x + c + d", "x + 1.0:T + 2.0:T", "x + 1.0:T + 2.0:T"},  // rounds twice
    {"comparison", "select(!(x < y), x, y)", nullptr},        // !(x < y) is not x >= y for NaN
    {"constants", "x + (0.0:T / 0.0:T)", nullptr},
    {"min of NaN", "x + min(1.0:T, nan:T)", nullptr},
    {"integers", "x + cast(cast(x, i32), T)", nullptr},
};

std::string replaced(std::string text, const std::string& type) {
  for (size_t at; (at = text.find(":T")) != std::string::npos;) text.replace(at + 1, 1, type);
  for (size_t at; (at = text.find(", T)")) != std::string::npos;) text.replace(at + 2, 1, type);
  return text;
}

struct Parsed {
  Expr expr;
  std::vector<VarRef> variables;
};
Parsed parsed(const std::string& text, DType t) {
  const std::string type = t.name();
  const Module m =
      parse("module m\ncpu_internal f(x: " + type + ", y: " + type + ", p: boolean) -> " + type +
            " {\nreturn " + replaced(text, type) + "\n}\n");
  verify(m);
  return {as<Return>(m.functions[0].body)->value, m.functions[0].params};
}
/// Canonical text of an expression of x, y, p.
std::string form(const Expr& e) { return print(e); }

void check_values(const Parsed& p, const Expr& after, const std::function<Cell(DType)>& value) {
  for (int round = 0; round < 400; round++) {
    Cells cells;
    for (const VarRef& v : p.variables) cells[v.get()] = value(v->type.dtype());
    const Interpreter run(cells);
    const DType t = p.expr->type.dtype();
    ASSERT_EQ(bits_of(run(p.expr), t), bits_of(run(after), t))
        << form(p.expr) << " became " << form(after);
  }
}

void check(const Rule& rule, DType t, const std::function<Cell(DType)>& value) {
  SCOPED_TRACE(std::string(rule.name) + " of " + t.name());
  const Parsed p = parsed(rule.before, t);
  const Expr after = simplify(p.expr);
  if (rule.after) {
    EXPECT_EQ(form(after), form(parsed(rule.after, t).expr));
  }
  EXPECT_EQ(form(simplify(after)), form(after)) << "a second round goes on";
  check_values(p, after, value);
}

TEST(Simplify, IntegerRules) {
  std::mt19937_64 random(test_seed());
  for (const DType t : {i8, i16, i32, i64, u8, u16, u32, u64}) {
    const Wide low = t.is_signed() ? Wide{t.min_int()} : 0, high = t.max_int();
    const auto value = [&](DType of) -> Cell {
      if (of.is_boolean()) return {Wide{random() % 2}, 0};
      const Wide near[] = {low, high, 0, high / 2, low / 2, Wide{1} << 31, Wide{1} << 32};
      const Wide base =
          random() % 3 ? near[random() % std::size(near)] : Wide{static_cast<int64_t>(random())};
      return {wrap(base + static_cast<Wide>(random() % 17) - 8, of), 0};
    };
    for (const Rule& rule : kIntegerRules) check(rule, t, value);
    if (t.is_signed())
      for (const Rule& rule : kSignedRules) check(rule, t, value);
  }
}

TEST(Simplify, FloatRules) {
  std::mt19937_64 random(test_seed());
  for (const DType t : {f32, f64}) {
    const auto value = [&](DType of) -> Cell {
      if (of.is_boolean()) return {Wide{random() % 2}, 0};
      const double inf = std::numeric_limits<double>::infinity();
      const double edges[] = {0.0,  -0.0,  NAN,  inf,          -inf,         1.0,
                              -1.0, 1e-40, 3e38, 2147483648.0, -2147483649.0};
      const double v = random() % 2
                           ? edges[random() % std::size(edges)]
                           : std::ldexp(static_cast<double>(static_cast<int64_t>(random())),
                                        -static_cast<int>(random() % 80));
      return {0, of == f32 ? static_cast<double>(static_cast<float>(v)) : v};
    };
    for (const Rule& rule : kFloatRules) check(rule, t, value);
  }
}

}  // namespace
}  // namespace hidet::testing
