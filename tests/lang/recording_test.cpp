// What statements of the script language record, as printed IR.
#include <hidet/ir/passes.h>

#include "refusal.h"

namespace hidet::lang {
namespace {

/// The printed body of the module's last function.
template <class Define>
std::string recorded(Define define) {
  ScriptModule m("m");
  define(m);
  const ir::Module module = m.module();
  return ir::print(module.functions.back().body);
}
template <class Body>
std::string body(Body fill) {
  return recorded([&](ScriptModule& m) {
    m.public_func("f", [&](Function& f) {
      auto x = f.arg("x", ptr(f32));
      auto n = f.arg("n", i32);
      fill(f, x, n);
    });
  });
}

TEST(Recording, VariablesAndStores) {
  EXPECT_EQ(body([](Function&, Handle x, Handle n) {
              auto i = let("i", n * 2 + 1);
              auto v = var("v", f32, x[i] * 0.5);
              auto w = var("w", i64);
              w = n;
              v = v + 1;
              v += x[0];
              v = v;
              x[i] = v;
              x[1] = x[2];
              x[2] -= v;
              deref(x + 3) = 1;
            }),
            "let i: i32 = n * 2 + 1\n"
            "var v: f32 = x[i] * 0.5\n"
            "var w: i64\n"
            "w = cast(n, i64)\n"
            "v = v + 1.0\n"
            "v = v + x[0]\n"
            "v = v\n"
            "x[i] = v\n"
            "x[1] = x[2]\n"
            "x[2] = x[2] - v\n"
            "(x + 3)[0] = 1.0\n");
}

TEST(Recording, LiteralsTakeTheOtherType) {
  EXPECT_EQ(body([](Function& f, Handle x, Handle) {
              auto h = f.arg("h", f16);
              auto l = f.arg("l", i64);
              (void)let("a", h * 2.0);
              (void)let("b", 1 - x[0]);
              (void)let("c", l + 1);
              (void)let("d", 1.5f);
              (void)let("e", 1.5);
              (void)let("f", f16, 1);
              (void)let("g", int64_t(1) << 40);
            }),
            "let a: f16 = h * 2.0:f16\n"
            "let b: f32 = 1.0 - x[0]\n"
            "let c: i64 = l + 1:i64\n"
            "let d: f32 = 1.5\n"
            "let e: f64 = 1.5:f64\n"
            "let f: f16 = 1.0:f16\n"
            "let g: i64 = 1099511627776:i64\n");
}

TEST(Recording, Loops) {
  EXPECT_EQ(body([](Function&, Handle x, Handle n) {
              for (auto i : range(n)) x[i] = cast(i, f32);
              for (auto i : range(1, cast(n, i64), 2)) x[i] += 1;
              for (auto [i, j] : grid(n, 4)) x[i * 4 + j] = select(i < j, x[0], 0);
              for (auto v : grid(std::vector<Value>{n, 2, 3})) x[v[0] + v[1] + v[2]] = 0;
              for (auto i : parallel(n, 16)) x[i] = -x[i];
              for (auto i : unroll(4)) x[i] = 0;
              for (auto i : vectorize(8)) x[i] = 1;
              for (auto [i, j] : spatial(8, 4).repeat(2, 1).on(n)) x[i] = cast(j, f32);
            }),
            "for i: i32 in range(0, n, 1) {\n"
            "  x[i] = cast(i, f32)\n"
            "}\n"
            "for i_1: i64 in range(1:i64, cast(n, i64), 2:i64) {\n"
            "  x[i_1] = x[i_1] + 1.0\n"
            "}\n"
            "for i_2: i32 in range(0, n, 1) {\n"
            "  for j: i32 in range(0, 4, 1) {\n"
            "    x[i_2 * 4 + j] = select(i_2 < j, x[0], 0.0)\n"
            "  }\n"
            "}\n"
            "for i_3: i32 in range(0, n, 1) {\n"
            "  for j_1: i32 in range(0, 2, 1) {\n"
            "    for k: i32 in range(0, 3, 1) {\n"
            "      x[i_3 + j_1 + k] = 0.0\n"
            "    }\n"
            "  }\n"
            "}\n"
            "parallel for i_4: i32 in range(0, n, 1) grain 16 {\n"
            "  x[i_4] = -x[i_4]\n"
            "}\n"
            "unroll for i_5: i32 in range(0, 4, 1) {\n"
            "  x[i_5] = 0.0\n"
            "}\n"
            "vectorize for i_6: i32 in range(0, 8, 1) {\n"
            "  x[i_6] = 1.0\n"
            "}\n"
            "for i_7: i32, j_2: i32 in spatial(8, 4).repeat(2, 1).on(n) {\n"
            "  x[i_7] = cast(j_2, f32)\n"
            "}\n");
}

TEST(Recording, BoundsAreReadOnce) {
  EXPECT_EQ(body([](Function&, Handle x, Handle n) {
              auto v = var("v", i32, n);
              for (auto i : range(v)) {
                v += 1;
                x[i] = 0;
              }
            }),
            "var v: i32 = n\n"
            "let bound: i32 = v\n"
            "for i: i32 in range(0, bound, 1) {\n"
            "  v = v + 1\n"
            "  x[i] = 0.0\n"
            "}\n");
}

TEST(Recording, Branches) {
  EXPECT_EQ(body([](Function& f, Handle x, Handle n) {
              if (auto _ = when(n > 3 && x[0] < 1.f)) x[0] = 1;
              if (auto _ = else_when(n > 2)) x[0] = 2;
              if (auto _ = otherwise()) {
                if (auto w = when(!(n == 1))) x[0] = 3;
              }
              if (auto _ = when(n > 4)) f.returns();
              x[1] = 1;
            }),
            "if n > 3 && x[0] < 1.0 {\n"
            "  x[0] = 1.0\n"
            "} else {\n"
            "  if n > 2 {\n"
            "    x[0] = 2.0\n"
            "  } else {\n"
            "    if !(n == 1) {\n"
            "      x[0] = 3.0\n"
            "    }\n"
            "  }\n"
            "}\n"
            "if n > 4 {\n"
            "  return\n"
            "}\n"
            "x[1] = 1.0\n");
}

TEST(Recording, WhileAndOthers) {
  EXPECT_EQ(body([](Function&, Handle x, Handle n) {
              auto v = var("v", f32, 0);
              for (auto _ : loop_while(v < 10)) {
                v *= 2;
                if (auto w = when(v > 7)) break_loop();
                if (auto w = when(v > 6)) continue_loop();
              }
              assert_(n >= 0, "n is negative");
              lang::printf("%d %f\n", n, x[0]);
              lang::printf("done\n");
              comment("the end");
            }),
            "var v: f32 = 0.0\n"
            "while v < 10.0 {\n"
            "  v = v * 2.0\n"
            "  if v > 7.0 {\n"
            "    break\n"
            "  }\n"
            "  if v > 6.0 {\n"
            "    continue\n"
            "  }\n"
            "}\n"
            "assert n >= 0, \"n is negative\"\n"
            "@printf(\"%d %f\\x0a\", n, cast(x[0], f64))\n"
            "@printf(\"done\\x0a\")\n"
            "comment \"the end\"\n");
}

TEST(Recording, EveryStatementCarriesItsLine) {
  int store = 0, call = 0, loop = 0;
  ScriptModule m("m");
  auto g = m.cpu_internal("g", [](Function&) {});
  m.public_func("f", [&](Function& f) {
    auto x = f.arg("x", ptr(f32));
    store = __LINE__ + 1;
    x[0] = 1;
    call = __LINE__ + 1;
    g();
    loop = __LINE__ + 1;
    for (auto i : range(4)) x[i] = 1;
  });
  const ir::Module module = m.module();
  const ir::Seq* body = ir::as<ir::Seq>(module.find("f")->body);
  ASSERT_TRUE(body && body->body.size() == 3);
  EXPECT_EQ(body->body[0]->loc.line, static_cast<uint32_t>(store));
  EXPECT_EQ(body->body[1]->loc.line, static_cast<uint32_t>(call));
  EXPECT_EQ(body->body[2]->loc.line, static_cast<uint32_t>(loop));
}

}  // namespace
}  // namespace hidet::lang
