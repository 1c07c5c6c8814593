// Formulas of sizes: canonical form, text, evaluation, programs, limits; random ones against plain arithmetic.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hidet/runtime/dim_expr.h>
#include <hidet/runtime/error.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace hidet {
namespace {

using ::testing::HasSubstr;

const DimExpr n = "n", m = "m", k = "k";

template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(DimExpr, Constants) {
  EXPECT_TRUE(DimExpr().is_const(0));
  EXPECT_TRUE(DimExpr{0}.is_const(0));  // no null pointer
  EXPECT_EQ(DimExpr(7u).value(), 7);
  EXPECT_EQ(DimExpr(int8_t{-3}).value(), -3);
  EXPECT_THROW(DimExpr(UINT64_MAX), Error);
  EXPECT_EQ((DimExpr(6) * 7 - 2).value(), 40);
  EXPECT_THROW(n.value(), Error);
  EXPECT_THROW(DimExpr(""), Error);
  EXPECT_THROW((n + 1).name(), Error);
}

TEST(DimExpr, EqualFormulasAreEqual) {
  const std::vector<std::pair<DimExpr, DimExpr>> same = {
      {n + 0, n},
      {n * 1, n},
      {n * 0, 0},
      {n + m, m + n},
      {n * m, m * n},
      {n * 2 - n, n},
      {n - n, 0},
      {n * 64 / 64, n},
      {(n + 1) * (m + 1), n * m + n + m + 1},
      {(n + 1) * 2, 2 * n + 2},
      {floordiv(n * m * 768, n * m), 768},
      {floordiv(n * m * 768, n * 64), m * 12},
      {floordiv(n * m + n, n), m + 1},
      {floordiv(n * 6, 4 * n * m), floordiv(3, m * 2)},
      {floordiv(2 * n + 2, 4), floordiv(n + 1, 2)},
      {floordiv(n + 15, 8), floordiv(n + 7, 8) + 1},
      {floordiv(n - 1, 2) + 1, floordiv(n + 1, 2)},
      {floordiv(floordiv(n, 2), 3), floordiv(n, 6)},
      {ceildiv(n, 8), floordiv(n + 7, 8)},
      {ceildiv(n * 8, 8), n},
      {mod(n * 8 + 3, 8), 3},
      {mod(n * 9, 8), mod(n, 8)},
      {mod(n * 6, 4), mod(n * 3, 2) * 2},
      {mod(mod(n, 4), 4), mod(n, 4)},
      {mod(n * m, n), 0},
      {floordiv(mod(n, 4), 4), 0},
      {min(n, n + 1), n},
      {max(n, n + 1), n + 1},
      {max(n, 0), n},
      {min(n, 0), 0},
      {min(min(n, m), k), min(k, min(m, n))},
      {max(n, max(n, m)), max(m, n)},
      {broadcast(n, 1), n},
      {broadcast(n, n), n},
      {broadcast(broadcast(n, m), n), broadcast(m, n)},
  };
  for (const auto& [a, b] : same) {
    EXPECT_EQ(a, b);
    EXPECT_EQ(a.hash(), b.hash()) << a;
    EXPECT_TRUE(equal(a, b));
  }
  EXPECT_FALSE(n == m);
  EXPECT_FALSE(n == 1);
  EXPECT_FALSE(floordiv(n, 2) == floordiv(n, 3));
  EXPECT_FALSE(min(n, m) == max(n, m));
}

TEST(DimExpr, Text) {
  EXPECT_EQ((n * 64 + 1).text(), "n*64 + 1");
  EXPECT_EQ((1 - n).text(), "-n + 1");
  EXPECT_EQ((n - m * 3).text(), "-m*3 + n");
  EXPECT_EQ(floordiv(n, 4).text(), "floordiv(n, 4)");
  EXPECT_EQ(ceildiv(n, 64).text(), "floordiv(n + 63, 64)");
  EXPECT_EQ(broadcast(m, n).text(), "broadcast(m, n)");
  EXPECT_EQ(max(n, max(m, 4)).text(), "max(4, m, n)");
  EXPECT_EQ(DimExpr("past seq+1").text(), "\"past seq+1\"");
  EXPECT_EQ(DimExpr("min").text(), "\"min\"");
  EXPECT_EQ(DimExpr("a\"\\b").text(), "\"a\\\"\\\\b\"");
  EXPECT_EQ(DimExpr("9x").text(), "\"9x\"");
  EXPECT_EQ(DimExpr(INT64_MIN).text(), "-9223372036854775808");
  EXPECT_EQ(DimExpr::parse("-9223372036854775808"), DimExpr(INT64_MIN));
  EXPECT_EQ(DimExpr::parse(" ( n+ 1 )*2 - -3 "), n * 2 + 5);
  EXPECT_EQ(DimExpr::parse("ceildiv(\"a b\", 2)"), ceildiv("a b", 2));
  EXPECT_EQ(DimExpr::parse("-n*2 - m*k + 1 - 5*m"), 1 - n * 2 - m * k - m * 5);
  for (const char* name : {"past seq+1", "min", "a\"\\b", "9x", "\xC3\xA4", "n\n", "x.y"})
    EXPECT_EQ(DimExpr::parse(DimExpr(name).text()), DimExpr(name));
}

TEST(DimExpr, WrongTextIsRefused) {
  const std::vector<std::pair<std::string, const char*>> wrong = {
      {"", "expected"},
      {"n +", "expected"},
      {"n n", "operator"},
      {"(n", "')'"},
      {"\"n", "quote"},
      {"\"\"", "empty"},
      {"floordiv(n)", "two operands"},
      {"floordiv(n, 2, 3)", "too many"},
      {"max", "'('"},
      {"sin(n)", "no function 'sin'"},
      {"9223372036854775808", "64 bits"},
      {"9223372036854775807 + 1", "64 bits"},
      {"n*9223372036854775807*2", "64 bits"},
      {"n$", "operator"},
      {std::string(500, '('), "nested"},
      {std::string(500, '-') + "$", "expected"},
      {std::string(70000, '1'), "longer"},
      {"broadcast(3, 4)", "broadcast"},
  };
  for (const auto& [text, why] : wrong)
    EXPECT_THAT(message_of([&] { DimExpr::parse(text); }), HasSubstr(why)) << text.substr(0, 40);
}

TEST(DimExpr, LongTextTakesShortTime) {
  std::string sum = "0", most = "max(1";
  for (int i = 0; i < 6000; i++) sum += " + s" + std::to_string(i);
  for (int i = 0; i < 1000; i++) most += ", s" + std::to_string(i);
  EXPECT_EQ(DimExpr::parse(sum).symbol_names().size(), 6000u);
  EXPECT_EQ(DimExpr::parse(most + ")").symbol_names().size(), 1000u);
}

TEST(DimExpr, EvaluationNamesWhatIsMissing) {
  const DimExpr e = n * 64 + m;
  EXPECT_EQ(e.eval({{"n", 2}, {"m", 3}}), 131);
  const std::string message = message_of([&] { e.eval({{"n", 2}, {"batch", 1}}); });
  EXPECT_THAT(message, HasSubstr("'m'"));
  EXPECT_THAT(message, HasSubstr("m + n*64"));
  EXPECT_THAT(message, HasSubstr("batch, n"));
  EXPECT_THAT(message_of([&] { e.compile({"n"}); }), HasSubstr("'m'"));
  EXPECT_THAT(message_of([&] { broadcast(n, m).eval({{"n", 2}, {"m", 3}}); }),
              HasSubstr("broadcast(m, n)"));
  EXPECT_EQ(broadcast(n, m).eval({{"n", 1}, {"m", 3}}), 3);
  EXPECT_EQ(broadcast(n, 4).eval({{"n", 1}}), 4);
  EXPECT_THROW(broadcast(n, 4).eval({{"n", 3}}), Error);
  EXPECT_EQ(floordiv(5, n).eval({{"n", 0}}), 0);
  EXPECT_EQ(mod(5, n).eval({{"n", 0}}), 0);
}

TEST(DimExpr, OverflowIsAnError) {
  EXPECT_THROW(DimExpr(INT64_MAX) + 1, Error);
  EXPECT_THROW(DimExpr(INT64_MIN) - 1, Error);
  EXPECT_THROW(-DimExpr(INT64_MIN), Error);
  EXPECT_THROW(DimExpr(INT64_MAX) * 2, Error);
  EXPECT_THROW(floordiv(DimExpr(INT64_MIN), -1), Error);
  EXPECT_EQ(mod(DimExpr(INT64_MIN), -1), 0);
  EXPECT_EQ(ceildiv(DimExpr(INT64_MAX), 2).value(), int64_t{1} << 62);
  const DimExpr big = n * n * n;
  EXPECT_EQ(big.eval({{"n", 2097151}}), 9223358842721533951);
  EXPECT_THAT(message_of([&] { big.eval({{"n", 2097152}}); }), HasSubstr("n*n*n"));
  const int64_t value = 2097152;
  EXPECT_THAT(message_of([&] { big.compile({"n"}).run(&value); }), HasSubstr("n*n*n"));
}

TEST(DimExpr, Access) {
  const DimExpr e = floordiv(n * m + 3, k);
  ASSERT_EQ(e.kind(), DimKind::floordiv);
  ASSERT_EQ(e.operands().size(), 2u);
  EXPECT_EQ(e.operands()[1].name(), "k");
  EXPECT_EQ(e.operands()[0].kind(), DimKind::add);
  EXPECT_EQ(e.operands()[0].operands().back().value(), 3);
  EXPECT_THAT(e.symbol_names(), ::testing::ElementsAre("k", "m", "n"));
  EXPECT_EQ(e.substitute({{"m", 2}, {"k", n}}), floordiv(n * 2 + 3, n));
  EXPECT_EQ(e.substitute({{"n", 3}, {"m", 4}, {"k", 2}}), 7);
  EXPECT_TRUE((n * 2 + floordiv(m, 3)).never_negative());
  EXPECT_FALSE((n - 1).never_negative());
  EXPECT_TRUE(max(n - 1, 0).never_negative());
}

TEST(DimExpr, Shapes) {
  EXPECT_EQ(shape_text(Shape{2, 3}), "[2, 3]");
  EXPECT_EQ(shape_text(Shape{}), "[]");
  EXPECT_EQ(shape_text(SymbolicShape{n, 64}), "[n, 64]");
  EXPECT_EQ(product(SymbolicShape{n, 64, m}), n * m * 64);
  EXPECT_EQ(product(Shape{}), 1);
  EXPECT_EQ(product(Shape{0, INT64_MAX, INT64_MAX}), 0);
  EXPECT_THROW(product(Shape{INT64_MAX, 2}), Error);
  EXPECT_THROW(product(Shape{2, -1}), Error);
  EXPECT_EQ(to_concrete({2, n - n}), (Shape{2, 0}));
  EXPECT_THROW(to_concrete({2, n}), Error);
}

// A random formula and, computed beside it with plain arithmetic, its value at one assignment.
struct Random {
  std::mt19937 rng;
  int64_t values[3] = {};
  bool divided_by_zero = false;  // such a divisor may have been cancelled
  static int64_t floor_div(int64_t a, int64_t b) {
    if (b == 0) return 0;
    return static_cast<int64_t>(
        std::floor(static_cast<long double>(a) / static_cast<long double>(b)));
  }
  int pick(int count) { return static_cast<int>(rng() % static_cast<unsigned>(count)); }
  std::pair<DimExpr, int64_t> make(int depth) {
    static const char* const kNames[] = {"n", "m", "k"};
    if (depth == 0 || pick(5) == 0) {
      if (pick(2)) {
        const int which = pick(3);
        return {kNames[which], values[which]};
      }
      const int64_t c = pick(13) - 4;
      return {c, c};
    }
    const auto [a, x] = make(depth - 1);
    const auto [b, y] = make(depth - 1);
    const int which = pick(9);
    divided_by_zero = divided_by_zero || (which >= 4 && which <= 6 && y == 0);
    switch (which) {
      case 0:
      case 1: return {a + b, x + y};
      case 2: return {a - b, x - y};
      case 3: return {a * b, x * y};
      case 4: return {floordiv(a, b), floor_div(x, y)};
      case 5: return {ceildiv(a, b), -floor_div(-x, y)};
      case 6: return {mod(a, b), y == 0 ? 0 : x - floor_div(x, y) * y};
      case 7: return {min(a, b), std::min(x, y)};
      default: return {max(a, b), std::max(x, y)};
    }
  }
};

TEST(DimExpr, RandomFormulasKeepTheirMeaning) {
  int compared = 0;
  for (unsigned seed = 0; seed < 20000; seed++) {
    Random r;
    r.rng.seed(seed);
    for (int64_t& v : r.values) v = 1 + r.pick(9);  // a size that divides is not 0
    try {
      const auto [e, expected] = r.make(1 + r.pick(4));
      const int64_t actual = e.eval({{"n", r.values[0]}, {"m", r.values[1]}, {"k", r.values[2]}});
      const DimExpr again = DimExpr::parse(e.text());
      ASSERT_EQ(again, e) << "seed " << seed << "\n" << e << "\n" << again;
      const int64_t in_order[] = {r.values[2], r.values[0], r.values[1]};
      ASSERT_EQ(e.compile({"k", "n", "m"}).run(in_order), actual) << e;
      if (r.divided_by_zero) continue;
      ASSERT_EQ(actual, expected) << "seed " << seed << ": " << e;
      compared++;
    } catch (const Error& error) {
      FAIL() << "seed " << seed << ": " << error.what();
    }
  }
  EXPECT_GE(compared, 15000);
}

}  // namespace
}  // namespace hidet
