// Compiled quotients and remainders by constants and by run-time divisors, of every width, near 2^31, 2^63 and the other ends, against
// 128-bit arithmetic. Constant divisors are the C compiler's to turn into products; those of loops are counted (carry-quotients).
#include <gtest/gtest.h>
#include <hidet/ir/primitives.h>

#include <algorithm>
#include <random>

#include "codegen/harness.h"

namespace hidet::testing {
namespace {
using namespace ir;

constexpr BinaryOp kOps[] = {BinaryOp::div, BinaryOp::mod, BinaryOp::floordiv, BinaryOp::floormod};
constexpr int64_t kOpCount = 4;
constexpr size_t kConstants = 12;

/// What the IR says, wrapped to T: C's quotient and remainder, their floored kin; 0 for a divisor of 0.
template <class T>
T exact(BinaryOp op, T a, T b) {
  if (b == 0) return 0;
  const auto x = static_cast<__int128>(a), y = static_cast<__int128>(b);
  __int128 quotient = x / y, rest = x % y;
  if ((op == BinaryOp::floordiv || op == BinaryOp::floormod) && rest != 0 && (rest < 0) != (y < 0))
    quotient -= 1, rest += y;
  return static_cast<T>(op == BinaryOp::div || op == BinaryOp::floordiv ? quotient : rest);
}

template <class T>
std::vector<T> edges() {
  std::vector<T> out;
  for (const uint64_t base : {uint64_t{0}, uint64_t{1} << 16, uint64_t{1} << 31, uint64_t{1} << 32,
                              uint64_t{1} << 63, uint64_t{1000000007}})
    for (uint64_t step = 0; step < 9; step++)
      for (const uint64_t sign : {uint64_t{1}, ~uint64_t{0}})
        out.push_back(static_cast<T>((base + step - 4) * sign));
  return out;
}

Expr whole(int64_t v) { return make_int(v, Type(i64)); }

/// name(x, y, d, n): y[k n + j] = kOps[k](x[j], divisor), by the argument d or a constant.
Function quotients(const std::string& name, const Type& t, const Expr* constant) {
  Function fn;
  fn.name = name;
  fn.kind = FuncKind::public_;
  const VarRef x = make_var("x", Type::pointer(t)), y = make_var("y", Type::pointer(t)),
               d = make_var("d", t), n = make_var("n", Type(i64)), j = make_var("j", Type(i64));
  fn.params = {x, y, d, n};
  std::vector<Stmt> body;
  for (int64_t k = 0; k < kOpCount; k++) {
    const Expr at = make_binary(BinaryOp::add, make_binary(BinaryOp::mul, whole(k), n), j);
    const Expr by = constant ? *constant : Expr(d);
    body.push_back(make_stmt<Store>({}, y, at, make_binary(kOps[k], make_load(x, j), by)));
  }
  fn.body = make_stmt<For>({}, j, whole(0), n, whole(1), LoopKind::serial, int64_t{1},
                           make_seq(std::move(body)));
  return fn;
}

template <class T>
void check(const Type& t, std::mt19937_64& random) {
  std::vector<T> divisors = edges<T>(), numbers = edges<T>();
  for (int i = 0; i < 200; i++) {
    numbers.push_back(static_cast<T>(random() >> (random() % 64)));
    if (i < 20) divisors.push_back(static_cast<T>(random() >> (random() % 64)));
  }
  Module m;
  m.name = "quotients";
  m.functions = {quotients("by_argument", t, nullptr)};
  // As constants only some: each is a function to compile.
  std::shuffle(divisors.begin(), divisors.end(), random);
  for (size_t i = 0; i < kConstants; i++) {
    const Expr constant = make_int(static_cast<int64_t>(divisors[i]), t);
    m.functions.push_back(quotients("by_" + std::to_string(i), t, &constant));
  }
  Loaded code(m);
  const auto n = static_cast<int64_t>(numbers.size());
  std::vector<T> out(numbers.size() * kOpCount);
  for (size_t i = 0; i < divisors.size(); i++)
    for (const std::string& name : {std::string("by_argument"), "by_" + std::to_string(i)}) {
      if (name != "by_argument" && i >= kConstants) continue;
      ASSERT_EQ(code.call(name, {value(numbers.data()), value(out.data()),
                                 value(static_cast<int64_t>(divisors[i])), value(n)}),
                0);
      for (int64_t k = 0; k < kOpCount * n; k++)
        ASSERT_EQ(out[static_cast<size_t>(k)],
                  exact(kOps[k / n], numbers[static_cast<size_t>(k % n)], divisors[i]))
            << t.text() << " " << info(kOps[k / n]).name << " of "
            << numbers[static_cast<size_t>(k % n)] << " by " << divisors[i] << ", " << name;
    }
}

TEST(Division, ByConstantsAndByArguments) {
  const char* given = std::getenv("HIDET_TEST_SEED");
  const uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  SCOPED_TRACE("HIDET_TEST_SEED " + std::to_string(seed));
  std::mt19937_64 random(seed);
  check<int32_t>(Type(i32), random);
  check<uint32_t>(Type(u32), random);
  check<int64_t>(Type(i64), random);
  check<uint64_t>(Type(u64), random);
}

}  // namespace
}  // namespace hidet::testing
