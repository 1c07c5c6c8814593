// The text form: modules read back as they were, errors name their place, hostile text gives an error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hidet/ir/passes.h>
#include <hidet/ir/primitives.h>
#include <hidet/ir/rewriter.h>
#include <hidet/runtime/error.h>

#include <bit>
#include <cmath>
#include <limits>

#include "ir/generator.h"

namespace hidet::ir {
namespace {
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string refusal(const std::string& text) {
  try {
    (void)parse(text, "t.hir");
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_file);
    return e.what();
  }
  return "";
}
/// The refusal of one statement in a function of x: ptr(f32), n: i32, t: tensor; without "t.hir:3:".
std::string stmt_refusal(const std::string& stmt) {
  std::string message = refusal(
      "module m\npublic f(x: ptr(f32), n: i32, t: tensor(f32, [4, n])) {\n" + stmt + "\n}\n");
  if (message.rfind("t.hir:3:", 0) == 0) message = message.substr(8);
  return message;
}

void expect_same(const Module& m) {
  const std::string text = print(m);
  const Module back = parse(text);
  EXPECT_TRUE(equal(m, back)) << text;
}

/// A module of one function f() with these statements.
Module with_body(std::vector<Stmt> body, std::vector<VarRef> params = {}) {
  Module m;
  m.name = "m";
  Function f;
  f.name = "f";
  f.kind = FuncKind::public_;
  f.params = std::move(params);
  f.body = make_seq(std::move(body));
  m.functions.push_back(f);
  return m;
}
Stmt let(const Expr& e) { return make_stmt<DeclVar>({}, make_var("v", e->type), e); }

TEST(Parser, CanonicalTextStays) {
  const std::string text =
      "module \"m\"\n"
      "global table: tensor(f32, [3]) = [1.0, -0.5, inf]\n"
      "cuda_global counter: tensor(i32, [1])\n"
      "extern \"log it\"(i32, ptr(void)) -> i32\n"
      "public launch(a: ptr(f32), n: i64) {\n"
      "  launch k grid(cast(n, i32), 1, 1) block(32, 4, 1) cluster(2, 1, 1) shared(n * 4:i64) "
      "args(a, n)\n"
      "  if n > 3:i64 {\n"
      "    nothing\n"
      "  } else {\n"
      "    assert \"launch\"(a, n):boolean, \"no \\\"good\\\" \\x0a\"\n"
      "  }\n"
      "}\n"
      "cuda_kernel k(a: tensor(f32, [$rows, 8], swizzle(row_major, 3, 0, 3)), n: i64)"
      " grid(cast(n, i32), 1, 1) block(32, 4, 1) shared(n * 4:i64) min_blocks(2) no_alias {\n"
      "  tensor s: tensor(f16, [32, 8], composed(col_major, strided(1, 4), [4, 8]), shared)\n"
      "  for i: i32, j: i32 in spatial(4, 8; order 1, 0).repeat(2, 1).on(@thread_idx_x()) {\n"
      "    s.write(i, j) = cast((a(cast(i, i64), 0:4)).lane(2), f16)\n"
      "  }\n"
      "  @cp_async<16>(&s(0, 0), pointer_cast(a + 1, ptr(f16)))\n"
      "  var v: f32x4 = broadcast(-(1.0), 4)\n"
      "  unroll for u: i32 in range(0, 4, 1) {\n"
      "    v = v + [1.0, 2.0, -3.0, nan]\n"
      "    continue\n"
      "  }\n"
      "  parallel for p: i64 in range(0:i64, n, 1:i64) grain 64 {\n"
      "    (a + 1)[p] = (v * v).lane(0) - -n\n"
      "    let w: f32x4 = a[p:4]\n"
      "  }\n"
      "  asm volatile \"mov %0, %1;\" (\"=f\" v) (\"r\" n, \"r\" 5) (\"memory\")\n"
      "  while true && !(n < 0:i64) || min(n, 1:i64) == 0:i64 {\n"
      "    {\n"
      "      comment \"inner\"\n"
      "      break\n"
      "    }\n"
      "    return\n"
      "  }\n"
      "}\n"
      "cpu_internal g(x: f64) -> f64 {\n"
      "  return select(isnan(x):boolean, -inf:f64, x)\n"
      "}\n";
  std::string legal = text;
  // A pointer parameter where the text indexes one.
  for (size_t at; (at = legal.find("pointer_cast(a + 1")) != std::string::npos;)
    legal.replace(at, 18, "pointer_cast(&a(0, 0)");
  for (size_t at; (at = legal.find("(a + 1)[p]")) != std::string::npos;)
    legal.replace(at, 10, "(&a(0, 0) + 1)[p]");
  for (size_t at; (at = legal.find("= a[p:4]")) != std::string::npos;)
    legal.replace(at, 8, "= (&a(1, 1))[p:4]");
  EXPECT_EQ(print(parse(legal)), legal);
  expect_same(parse(legal));
}

TEST(Parser, NamesThatCollide) {
  const VarRef a = make_var("f", Type(i32)), b = make_var("for", Type(i32)),
               c = make_var("x y", Type(i32)), d = make_var("f", Type(i32), true);
  const Expr call = make_call("launch", {a, b}, Type(i32));
  Module m = with_body({make_stmt<DeclVar>({}, d, call), make_stmt<Assign>({}, Expr(d), Expr(c))},
                       {a, b, c});
  m.functions[0].name = "launch";
  expect_same(m);
  m.functions[0].name = "odd name";
  expect_same(m);
}

TEST(Parser, FunctionsThatShareAVariable) {
  const VarRef shared = make_var("x", Type(i32)), param = make_var("x", Type(f32));
  const Stmt declare = make_stmt<DeclVar>({}, shared, make_int(1, Type(i32)));
  Module m = with_body({declare});
  m.functions.push_back(m.functions[0]);
  m.functions[1].name = "g";
  m.functions[1].params = {param};
  m.functions[1].body = make_seq({declare, make_stmt<Evaluate>({}, make_cast(param, Type(i32)))});
  expect_same(m);
}

TEST(Parser, SequencesAndMissingBodies) {
  const Stmt brk = make_stmt<Comment>({}, "c");
  const auto seq = [](std::vector<Stmt> s) { return make_stmt<Seq>({}, std::move(s)); };
  const Expr yes = make_bool(true);
  for (const Stmt& body : {Stmt(), Stmt(seq({})), brk, Stmt(seq({brk})), Stmt(seq({brk, brk})),
                           Stmt(seq({seq({}), seq({brk})})), Stmt(seq({seq({seq({brk, brk})})}))}) {
    Module m = with_body({});
    m.functions[0].body = body;
    expect_same(m);
    m.functions[0].body = make_stmt<If>({}, yes, body, Stmt());
    expect_same(m);
    m.functions[0].body = make_stmt<If>({}, yes, brk, body);
    expect_same(m);
    m.functions[0].body = make_stmt<While>({}, yes, body);
    expect_same(m);
  }
}

TEST(Parser, EveryConstant) {
  std::vector<Stmt> body;
  for (int code = 0; code < kNumDTypes; code++) {
    const DType t{static_cast<DTypeCode>(code)};
    if (!t.is_float()) {
      const auto most = static_cast<int64_t>(t.max_int());
      for (const int64_t v : {t.min_int(), most, int64_t{0}, int64_t{1}})
        body.push_back(let(make_int(v, Type(t))));
      continue;
    }
    for (const double v : {0.0, -0.0, 1.0 / 3, -1e30, 5e-324, 1e-45, HUGE_VAL, -HUGE_VAL})
      body.push_back(let(make_float(v, Type(t))));
  }
  for (const uint64_t bits : {0x7ff8000000000000u, 0xfff8000000000000u, 0x7ff8000020000000u})
    for (const DType t : {f32, f64})
      body.push_back(let(make_float(std::bit_cast<double>(uint64_t{bits}), Type(t))));
  expect_same(with_body(body));
}

TEST(Parser, PrecedenceOfEveryPairOfOperators) {
  const VarRef a = make_var("a", Type(i32)), c = make_var("c", Type(boolean));
  const auto node = [&](BinaryOp op, const Expr& x, const Expr& y) {
    const Type t = info(op).comparison || info(op).logical ? Type(boolean) : Type(i32);
    return Expr(new Binary(op, x, y, t));
  };
  std::vector<Stmt> body;
  for (int i = 0; i <= static_cast<int>(BinaryOp::logical_or); i++)
    for (int k = 0; k <= static_cast<int>(BinaryOp::logical_or); k++) {
      const auto p = static_cast<BinaryOp>(i), q = static_cast<BinaryOp>(k);
      const Expr inner = node(q, a, a);
      body.push_back(make_stmt<Evaluate>({}, node(p, inner, a)));
      body.push_back(make_stmt<Evaluate>({}, node(p, a, inner)));
      for (const UnaryOp u : {UnaryOp::neg, UnaryOp::logical_not, UnaryOp::bit_not}) {
        body.push_back(make_stmt<Evaluate>({}, Expr(new Unary(u, inner, inner->type))));
        body.push_back(make_stmt<Evaluate>({}, node(p, Expr(new Unary(u, a, Type(i32))), a)));
      }
    }
  for (const int64_t v : {5, -5})
    for (const UnaryOp u : {UnaryOp::neg, UnaryOp::bit_not}) {
      const Expr once(new Unary(u, make_int(v, Type(i32)), Type(i32)));
      body.push_back(make_stmt<Evaluate>({}, once));
      body.push_back(make_stmt<Evaluate>({}, Expr(new Unary(u, once, Type(i32)))));
    }
  expect_same(with_body(body, {a, c}));
}

TEST(Parser, EveryPrimitive) {
  std::vector<Stmt> body;
  const VarRef x = make_var("x", Type(f32));
  for (const Primitive& p : all_primitives()) {
    const std::vector<Expr> args(static_cast<size_t>(std::max(p.arity, 0)), Expr(x));
    for (const Type& t : {Type(), Type(f32), Type::vector(f32, 4), Type(boolean), Type(i64)})
      for (const std::vector<int64_t>& attrs :
           {std::vector<int64_t>{}, {1}, {-1, std::numeric_limits<int64_t>::min()}})
        body.push_back(make_stmt<Evaluate>({}, make_prim(p.name, args, t, attrs)));
  }
  expect_same(with_body(body, {x}));
}

TEST(Parser, ReductionsAndShapesOfParameters) {
  const VarRef n = make_var("n", Type(i64)), k = make_var("n", Type(i64));
  const VarRef t = make_var(
      "t",
      Type::tensor(
          {f32, {n, make_symbol("a b")}, Layout::strided({make_symbol("s"), n}), Scope::global}));
  const Expr value = make_element(t, {k, k});
  expect_same(with_body({let(make_reduce(ReduceOp::sum, {k}, {n}, value)),
                         let(make_arg_reduce(true, true, k, n, value)),
                         let(make_arg_reduce(false, false, k, n, value))},
                        {n, t}));
}

TEST(Parser, EqualSeesDifferences) {
  const std::string text = "module m\npublic f(n: i32, t: tensor(f32, [n])) {\n  t(n) = 1.0\n}\n";
  const Module m = parse(text);
  EXPECT_TRUE(
      equal(m, parse("module m\npublic f(k: i32, u: tensor(f32, [k])) {\nu(k)=1.0 // c\n}")));
  const std::pair<const char*, const char*> changes[] = {
      {"module m", "module k"}, {"public f", "public g"}, {"public", "cpu_kernel"},
      {"1.0", "2.0"},           {"[n]", "[8]"},           {"t(n)", "t(0)"},
      {"n: i32", "n: i64"},     {") {", ") no_alias {"},  {"t(n) =", "t.write(n) ="}};
  for (const auto& [from, to] : changes) {
    std::string other = text;
    other.replace(other.find(from), std::string(from).size(), to);
    EXPECT_FALSE(equal(m, parse(other))) << other;
  }
}

TEST(Parser, ErrorsNameTheirPlace) {
  EXPECT_EQ(refusal(""), "t.hir:1:1: error: expected 'module', not the end of the text");
  EXPECT_EQ(
      refusal("module m\n  fun f() {}"),
      "t.hir:2:3: error: expected a function, 'global', 'cuda_global' or 'extern', not 'fun'");
  EXPECT_EQ(refusal("module m\npublic f( {"),
            "t.hir:2:11: error: expected the name of a variable, not '{'");
  EXPECT_EQ(refusal("module m\npublic f() {\n"),
            "t.hir:3:1: error: expected an expression, not the end of the text");
  EXPECT_EQ(refusal("module \"m"), "t.hir:1:8: error: a string is not closed on its line");
  EXPECT_EQ(
      refusal("module \"\\n\""),
      "t.hir:1:8: error: in a string, \\ is followed by \\, \" or x and two hexadecimal digits");
  EXPECT_EQ(refusal("module m \xff"), "t.hir:1:10: error: the byte 255 has no meaning");
  EXPECT_EQ(refusal("module m #"), "t.hir:1:10: error: the character '#' has no meaning");
}

TEST(Parser, ErrorsOfStatements) {
  const std::pair<const char*, const char*> rows[] = {
      {"y = 1", "1: error: the variable 'y' is not defined here"},
      {"n", ""},
      {"n + = 1", "5: error: expected an expression, not '='"},
      {"5 = n", "1: error: only variables and elements can be assigned"},
      {"n[0] = 1.0", "2: error: [] takes a pointer, not i32"},
      {"x(0) = 1.0", "2: error: () takes a tensor, not ptr(f32)"},
      {"x[0] = 1.0 n", "12: error: expected the end of the line, not 'n'"},
      {"let v: f33 = 1.0", "8: error: expected a type, not 'f33'"},
      {"let v: f32x1 = 1.0", "8: error: expected a type, not 'f32x1'"},
      {"let v: f32x99999999999 = 1.0", "8: error: expected a type, not 'f32x99999999999'"},
      {"let if: i32", "5: error: 'if' cannot be the name of a variable"},
      {"let v: i32 = 99999999999999999999",
       "14: error: the number 99999999999999999999 does not fit 64 bits"},
      {"let v: i32 = 4294967296", "14: error: 4294967296 is no value of i32"},
      {"let v: i8 = 128:i8", "13: error: 128 is no value of i8"},
      {"let v: f32 = 1:f32", "15: error: an integer is no f32"},
      {"let v: i32 = 1.0:i32", "17: error: a number with a point is no i32"},
      {"let v: i32 = n:i32", "15: error: a type follows a call or an operator only"},
      {"let v: f32 = nan(0x0)", "18: error: expected the bits of a NaN"},
      {"let v: f32x4 = x[n:1]", "20: error: expected a lane count from 2 to 4096, not 1"},
      {"let v: f32 = []", "14: error: a vector has 1 to 4096 lanes"},
      {"let v: ptr(f32) = &n(0)", "20: error: & takes a tensor, not i32"},
      {"for i: i32 in range(0, n) {\n}", "25: error: expected ',', not ')'"},
      {"for i: i32 in spatial(4, 4).on(n) {\n}", "15: error: a mapping of rank 2 has 1 variables"},
      {"for i: i32 in spatial(0).on(n) {\n}",
       "23: error: expected an extent from 1 to 2147483648, not 0"},
      {"for i: i32 in spatial(4).repeat(2, 2).on(n) {\n}",
       "26: error: the parts of a mapping have one rank"},
      {"for i: i32 in spatial(4; order 1).on(n) {\n}",
       "15: error: an order names each dimension once"},
      {"for i: i32, j: i32 in range(0, n, 1) {\n}", "1: error: a range has one variable"},
      {"let v: tensor(f32, [4], swizzle(row_major, 9, 0, 3)) = n",
       "25: error: a swizzle has bits, base and shift with bits <= shift and a sum below 32"},
      {"let v: tensor(f32, [4], diagonal) = n",
       "25: error: expected a layout or a memory scope, not 'diagonal'"},
      {"assert true", "12: error: expected ',', not the end of the line"},
      {"launch k grid(1, 1, 1, 1)", "10: error: grid has up to three extents"},
      {"min(n)", "6: error: expected ',', not ')'"},
      {"(n).row(0)", "5: error: expected 'read', 'write' or 'lane', not 'row'"},
  };
  for (const auto& [text, message] : rows) EXPECT_EQ(stmt_refusal(text), message) << text;
}

TEST(Parser, HostileText) {
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "the thread sanitizer keeps at most 65536 calls, fewer than this text is deep";
#endif
#endif
  const auto repeat = [](const std::string& s, int n) {
    std::string out;
    for (int i = 0; i < n; i++) out += s;
    return out;
  };
  const int deep = 50000;
  const std::string head = "module m\npublic f(n: i32) {\n";
  for (const std::string& text :
       {head + "n = " + repeat("(", deep), head + "n = n" + repeat(" + n", deep),
        head + "n = " + repeat("-", deep) + "n", head + "n = " + repeat("~ ", deep) + "n",
        head + repeat("{\n", deep), head + repeat("if true {\n", deep),
        head + repeat("while true {", deep), head + "let p: " + repeat("ptr(", deep),
        head + "n = (n)" + repeat(".lane(0)", deep), head + "n = " + repeat("select(", deep),
        head + "n = " + repeat("[", deep), head + "n = " + repeat("f(", deep),
        head + "n = " + repeat("@exp(", deep),
        "module m\nglobal t: tensor(f32, [4], " + repeat("swizzle(", deep),
        "module m\nglobal t: tensor(f32, [4], " + repeat("composed(row_major, ", deep)})
    EXPECT_THAT(refusal(text),
                ::testing::AnyOf(HasSubstr("nested deeper than 20000"), HasSubstr("expected")));
  EXPECT_THAT(refusal(head + "n = n" + repeat(" + n", deep)),
              HasSubstr("nested deeper than 20000"));
}

/// Text cut and damaged at random: a module or an error, nothing else. Verified modules also run through passes.
TEST(Parser, DamagedText) {
  const unsigned seed = hidet::testing::test_seed();
  std::mt19937 random(seed);
  const std::string text =
      "module m\nextern e(i32) -> f32\npublic f(x: ptr(f32), n: i32) {\n"
      "  parallel for i: i32 in range(0, n, 1) grain 4 {\n    x[i] = select(i < n / 3, e(i):f32, "
      "@exp(x[i:4]).lane(1))\n  }\n"
      "  tensor t: tensor(f32, [4, 8], swizzle(row_major, 1, 0, 1), registers)\n"
      "  for a: i32, b: i32 in spatial(4, 1).repeat(1, 8).on(n) {\n    t.write(a, b) = t(a, b)\n  "
      "}\n"
      "  vectorize for j: i32 in range(0, 8, 1) {\n    t(0, j) = cast(j, f32) * -1.5\n  }\n}\n";
  ASSERT_EQ(refusal(text), "");
  int parsed = 0;
  for (int round = 0; round < 4000; round++) {
    std::string bad = text;
    const auto pick = [&](size_t n) { return random() % n; };
    for (size_t n = 1 + pick(3); n > 0; n--) {
      const size_t at = pick(bad.size());
      if (pick(8) == 0) bad.resize(at + 1);
      else if (pick(2)) bad[at] = static_cast<char>(pick(256));
      else bad.insert(at, text.substr(pick(text.size()), pick(12)));
    }
    try {
      const Module m = parse(bad);
      parsed++;
      expect_same(m);
      verify(m);
      for (const Target t : {Target::cpu, Target::sim}) (void)run_passes(m, lowering(t));
    } catch (const Error& e) {
      EXPECT_NE(e.code(), ErrorCode::internal) << e.what() << "\n" << bad;
    }
  }
  EXPECT_GT(parsed, 50);
  std::string bytes(200, ' ');
  for (int round = 0; round < 1000; round++) {
    for (char& c : bytes) c = static_cast<char>(random() % 256);
    EXPECT_NE(refusal(bytes), "");
  }
}

}  // namespace
}  // namespace hidet::ir
