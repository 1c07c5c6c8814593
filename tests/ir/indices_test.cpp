// What the passes about index arithmetic claim, by evaluation near 2^31 and 2^63: bounds are never exceeded, narrowed expressions and
// counted quotients keep their values.
#include <hidet/ir/passes.h>
#include <hidet/ir/rewriter.h>

#include "ir/generator.h"
#include "ir/machine.h"

namespace hidet::testing {
namespace {

Expr imm(int64_t v) { return make_int(v, Type(i64)); }
Expr op(BinaryOp o, const Expr& a, const Expr& b) { return make_binary(o, a, b); }

/// Numbers around the ends of i32 and i64.
int64_t edge(Generator& g) {
  static constexpr int64_t bases[] = {0,         INT32_MAX, INT32_MIN, int64_t{1} << 32,
                                      INT64_MAX, INT64_MIN, 1 << 16,   -(1 << 16)};
  const auto step = static_cast<uint64_t>(g.pick(9)) - 4;
  return static_cast<int64_t>(static_cast<uint64_t>(bases[g.pick(8)]) + step);
}

/// An i64 between two numbers that are near an end: clamped, wrapped into a range, masked, widened.
Expr bounded(Generator& g, const Expr& any) {
  const int64_t a = edge(g), b = edge(g);
  switch (g.pick(5)) {
    case 0:
      return op(BinaryOp::min, op(BinaryOp::max, any, imm(std::min(a, b))), imm(std::max(a, b)));
    case 1: return op(BinaryOp::floormod, any, imm(a));
    case 2: return op(BinaryOp::mod, any, imm(b));
    case 3: return op(BinaryOp::bit_and, any, imm(INT32_MAX));
    default: return make_cast(make_cast(any, Type(g.pick(2) ? i32 : u8)), Type(i64));
  }
}
Expr arithmetic(Generator& g, const std::vector<VarRef>& vars, int depth) {
  const Expr leaf = g.pick(3) ? Expr(vars[g.pick(vars.size())]) : imm(edge(g));
  if (depth == 0) return leaf;
  if (g.pick(4) == 0) return bounded(g, arithmetic(g, vars, depth - 1));
  static constexpr BinaryOp ops[] = {BinaryOp::add,      BinaryOp::sub, BinaryOp::mul,
                                     BinaryOp::div,      BinaryOp::mod, BinaryOp::floordiv,
                                     BinaryOp::floormod, BinaryOp::min, BinaryOp::max};
  return op(ops[g.pick(9)], arithmetic(g, vars, depth - 1), arithmetic(g, vars, depth - 1));
}

Function function_of(std::vector<VarRef> params, std::vector<Stmt> body, const Type& returns) {
  Function f;
  f.name = "f";
  f.kind = FuncKind::cpu_internal;
  f.params = std::move(params);
  f.returns = returns;
  f.body = make_seq(std::move(body));
  return f;
}
Module module_of(const Function& f) {
  Module m;
  m.name = "m";
  m.functions = {f};
  return m;
}
int operations_of(DType t, const Module& m) {
  int count = 0;
  visit_all(m.functions[0].body, [&](const Node& n) {
    const Binary* b = as<Binary>(&n);
    count += b && b->type == Type(t);
  });
  return count;
}

// f(a, b): lets of bounded numbers, then arithmetic on them, equal before and after.
TEST(Indices, NarrowedExpressionsKeepTheirValues) {
  Generator g(test_seed(), {});
  int narrowed = 0;
  for (int round = 0; round < 3000; round++) {
    const std::vector<VarRef> params = {make_var("a", Type(i64)), make_var("b", Type(i64))};
    std::vector<VarRef> vars;
    std::vector<Stmt> body;
    for (int i = 0; i < 3; i++) {
      vars.push_back(make_var("v", Type(i64)));
      body.push_back(make_stmt<DeclVar>({}, vars.back(), bounded(g, Expr(params[g.pick(2)]))));
    }
    const bool compares = g.pick(4) == 0;
    const Expr value = arithmetic(g, vars, 3);
    const Expr result = compares ? op(BinaryOp::lt, value, arithmetic(g, vars, 2)) : value;
    body.push_back(make_stmt<Return>({}, result));
    const Module before = module_of(function_of(params, body, result->type));
    const Module after = run_passes(before, {narrow_indices()});
    verify(after);
    narrowed += operations_of(i32, after) > operations_of(i32, before);
    for (int k = 0; k < 20; k++) {
      const std::vector<Cell> args = {{edge(g), 0}, {g.pick(2) ? edge(g) : g.integer(), 0}};
      ASSERT_EQ(static_cast<int64_t>(Machine(after).call(after.functions[0], args, {{}, {}}).i),
                static_cast<int64_t>(Machine(before).call(before.functions[0], args, {{}, {}}).i))
          << print(before) << print(after);
    }
  }
  EXPECT_GT(narrowed, 300) << "nearly nothing was narrowed";
}

/// `e` of a function that has these parameters and statements, for `args`.
int64_t value_of(const Function& f, const Stmt& lets, const Expr& e,
                 const std::vector<Cell>& args) {
  Function g = f;
  g.returns = e->type;
  g.body = make_seq({lets, make_stmt<Return>({}, e)});
  const Module m = module_of(g);
  return static_cast<int64_t>(Machine(m).call(m.functions[0], args, {{}, {}}).i);
}

// f(a, b) on a GPU: equal before and after, and no signed sum, difference, product or negation is left that passes its type.
TEST(Indices, WrappedExpressionsKeepTheirValues) {
  Generator g(test_seed(), {});
  int wrapped = 0, kept = 0;
  for (int round = 0; round < 2000; round++) {
    const DType t = g.pick(2) ? i32 : i64;
    const std::vector<VarRef> params = {make_var("a", Type(i64)), make_var("b", Type(i64))};
    std::vector<VarRef> vars;
    std::vector<Stmt> body;
    for (int i = 0; i < 3; i++) {
      vars.push_back(make_var("v", Type(i64)));
      body.push_back(make_stmt<DeclVar>({}, vars.back(), bounded(g, Expr(params[g.pick(2)]))));
    }
    Expr value = make_cast(arithmetic(g, vars, 3), Type(t));
    value = op(BinaryOp::add, value, make_unary(UnaryOp::neg, make_cast(vars[0], Type(t))));
    Function f = function_of(params, {make_seq(body), make_stmt<Return>({}, value)}, Type(t));
    f.kind = FuncKind::cuda_internal;
    const Module before = module_of(f), after = run_passes(before, {wrap_integers()});
    verify(after);
    const Seq& all = *as<Seq>(after.functions[0].body);
    const Stmt lets = make_seq({all.body.begin(), all.body.end() - 1});
    std::vector<const Binary*> operations;
    visit_all(after.functions[0].body, [&](const Node& n) {
      const Binary* b = as<Binary>(&n);
      if (b && b->op <= BinaryOp::mul && b->type.dtype().is_signed()) operations.push_back(b);
      wrapped += b && (b->type == Type(u32) || b->type == Type(u64));
    });
    kept += static_cast<int>(operations.size());
    for (int k = 0; k < 20; k++) {
      const std::vector<Cell> args = {{edge(g), 0}, {g.pick(2) ? edge(g) : g.integer(), 0}};
      ASSERT_EQ(static_cast<int64_t>(Machine(after).call(after.functions[0], args, {{}, {}}).i),
                static_cast<int64_t>(Machine(before).call(before.functions[0], args, {{}, {}}).i))
          << print(before) << print(after);
      for (const Binary* b : operations) {
        const __int128 x = value_of(after.functions[0], lets, b->a, args),
                       y = value_of(after.functions[0], lets, b->b, args);
        const __int128 exact = b->op == BinaryOp::add   ? x + y
                               : b->op == BinaryOp::sub ? x - y
                                                        : x * y;
        const DType d = b->type.dtype();
        ASSERT_TRUE(exact >= d.min_int() && exact <= static_cast<__int128>(d.max_int()))
            << print(Expr(b)) << "\n"
            << print(after);
      }
    }
  }
  EXPECT_GT(wrapped, 300) << "nearly nothing wraps";
  EXPECT_GT(kept, 300) << "nearly nothing stays";
}

// Loops that begin near 0, 2^31 or 2^63, divisors of every kind: what the body stores is the same.
TEST(Indices, CountedQuotientsKeepTheirValues) {
  Generator g(test_seed(), {});
  for (int round = 0; round < 600; round++) {
    const DType types[] = {i32, i64, u32, u8}, wide[] = {i64, i64, i64, i32};
    const size_t which = g.pick(4);
    const DType t = types[which], d = g.pick(3) ? t : wide[which];
    const int64_t most = static_cast<int64_t>(t.max_int()),
                  count = static_cast<int64_t>(g.pick(40));
    const int64_t begins[] = {
        0, 1, 7, most / 2, most - count, std::min<int64_t>(INT32_MAX, most - count)};
    const int64_t begin = std::max<int64_t>(begins[g.pick(6)], 0);
    const VarRef p = make_var("p", Type::pointer(Type(i64))), m = make_var("m", Type(d)),
                 i = make_var("i", Type(t));
    const Expr dividend = make_cast(i, Type(d));
    const Expr both =
        op(BinaryOp::add, make_cast(op(BinaryOp::div, dividend, m), Type(i64)),
           op(BinaryOp::mul, make_cast(op(BinaryOp::mod, dividend, m), Type(i64)), imm(1000003)));
    const Expr at = op(BinaryOp::sub, make_cast(i, Type(i64)), imm(begin));
    const Stmt loop = make_stmt<For>(
        {}, i, make_int(begin, Type(t)), make_int(begin + count, Type(t)), make_int(1, Type(t)),
        LoopKind::serial, int64_t{1}, make_stmt<Store>({}, p, at, both));
    const Module before = module_of(function_of({p, m}, {loop}, Type()));
    const Module after = run_passes(before, {carry_quotients()});
    verify(after);
    ASSERT_FALSE(equal(before, after)) << print(before);
    const int64_t divisors[] = {0,  1,  2,    3,        7,         31,        -1,
                                -2, -5, most, most - 1, INT32_MIN, INT64_MIN, INT64_MAX};
    for (const int64_t divisor : divisors) {
      Array x{i64, std::vector<Cell>(40)}, y = x;
      const std::vector<Cell> args = {{}, {wrap(divisor, d), 0}};
      Machine(before).call(before.functions[0], args, {{&x, 0}, {}});
      Machine(after).call(after.functions[0], args, {{&y, 0}, {}});
      for (size_t k = 0; k < 40; k++)
        ASSERT_EQ(static_cast<int64_t>(x.cells[k].i), static_cast<int64_t>(y.cells[k].i))
            << "divisor " << divisor << ", turn " << k << "\n"
            << print(after);
    }
  }
}

}  // namespace
}  // namespace hidet::testing
