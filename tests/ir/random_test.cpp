// 2,000 random expressions of integers and floats a run: interpreted as recorded, interpreted after simplify, and as compiled
// C, all three to the bit. The interpreter here is its own.
#include "codegen/harness.h"
#include "ir/generator.h"

namespace hidet::testing {
namespace {

struct Batch {
  std::vector<VarRef> variables;
  std::vector<Expr> exprs;
};

/// launch(ints, floats, out): out[k] = the k-th expression as 64 bits; two variables of each type.
Module module_of(const Batch& batch) {
  const VarRef in = make_var("in", Type::pointer(Type(i64))),
               real = make_var("real", Type::pointer(Type(f64))),
               out = make_var("out", Type::pointer(Type(i64))),
               real_out = make_var("real_out", Type::pointer(Type(f64)));
  const auto at = [](size_t k) { return make_int(static_cast<int64_t>(k), Type(i64)); };
  std::vector<Stmt> body;
  for (size_t k = 0; k < batch.variables.size(); k++) {
    const VarRef& v = batch.variables[k];
    const Expr cell = v->type.dtype().is_float() ? make_load(real, at(k)) : make_load(in, at(k));
    body.push_back(make_stmt<DeclVar>({}, v, make_cast(cell, v->type)));
  }
  for (size_t k = 0; k < batch.exprs.size(); k++) {
    const bool is_float = batch.exprs[k]->type.dtype().is_float();
    body.push_back(make_stmt<Store>({}, is_float ? real_out : out, at(k),
                                    make_cast(batch.exprs[k], Type(is_float ? f64 : i64))));
  }
  Module m;
  m.name = "random";
  Function f;
  f.name = "launch";
  f.kind = FuncKind::public_;
  f.params = {in, real, out, real_out};
  f.body = make_seq(std::move(body));
  m.functions = {f};
  return m;
}

void check(const Batch& batch, Generator& generator) {
  const Module module = module_of(batch);
  verify(module);
  ASSERT_TRUE(equal(parse(print(module)), module));
  Loaded code(module, "x86-64-v3");
  const size_t n = batch.exprs.size();
  for (int round = 0; round < 12; round++) {
    Cells cells;
    std::vector<int64_t> in(batch.variables.size()), out(n);
    std::vector<double> real(batch.variables.size()), real_out(n);
    for (size_t k = 0; k < batch.variables.size(); k++) {
      const Cell c = generator.cell(batch.variables[k]->type.dtype());
      cells[batch.variables[k].get()] = c;
      in[k] = static_cast<int64_t>(c.i);
      real[k] = c.f;
    }
    ASSERT_EQ(code.call("launch", {value(in.data()), value(real.data()), value(out.data()),
                                   value(real_out.data())}),
              0);
    const Interpreter interpreted(cells);
    for (size_t k = 0; k < n; k++) {
      const Expr& e = batch.exprs[k];
      const DType t = e->type.dtype();
      const uint64_t expected = bits_of(interpreted(e), t);
      const Expr simple = simplify(e);
      EXPECT_EQ(bits_of(interpreted(simple), t), expected)
          << print(e) << "\nsimplified: " << print(simple);
      EXPECT_EQ(bits_of({out[k], real_out[k]}, t), expected) << "compiled: " << print(e);
      if (::testing::Test::HasFailure()) {
        for (const auto& [v, c] : cells)
          std::printf("%s: %s = %lld %.17g\n", static_cast<const Var*>(v)->name.c_str(),
                      static_cast<const Var*>(v)->type.text().c_str(), static_cast<long long>(c.i),
                      c.f);
        return;
      }
    }
  }
}

TEST(Random, ExpressionsInterpretedSimplifiedAndCompiled) {
  const unsigned seed = test_seed();
  constexpr int kBatches = 10, kExprs = 200;
  for (int b = 0; b < kBatches && !HasFailure(); b++) {
    Batch batch;
    for (const DType t : kTypes)
      for (const char* name : {"a", "b"})
        batch.variables.push_back(make_var(name + std::string(t.name()), Type(t)));
    Generator generator(seed + static_cast<unsigned>(b), batch.variables);
    for (int k = 0; k < kExprs; k++)
      batch.exprs.push_back(generator.expr(kTypes[generator.pick(std::size(kTypes))], 4));
    check(batch, generator);
  }
}

}  // namespace
}  // namespace hidet::testing
