// Programs as a reader of docs/script.md might write them, each odd in some way: compiled for the CPU and in the simulator (compiled
// for CUDA, too), against values computed here.
#include "both.h"

namespace hidet::lang {
namespace {

/// A function of the module that is a CPU helper or a device function.
using Helper = std::function<FuncHandle(const std::string&, const ScriptModule::Define&)>;
using Program = std::function<void(Function&, const Handle& x, const Handle& out)>;

/// `make` defines helpers and gives the body of the entry, whose arguments are x: ptr(in) and out: ptr(out).
void expect_program(const Tensor& x, const Tensor& out, const std::vector<double>& expected,
                    const std::function<Program(ScriptModule&, const Helper&)>& make) {
  for (const bool cuda : {false, true}) {
    ScriptModule m("odd");
    const Helper helper = [&](const std::string& name, const ScriptModule::Define& define) {
      return cuda ? m.cuda_internal(name, define) : m.cpu_internal(name, define);
    };
    const Program body = make(m, helper);
    const auto define = [&](Function& f) {
      auto in = f.arg("x", ptr(x.dtype()));
      auto result = f.arg("out", ptr(out.dtype()));
      if (cuda) f.grid_dim(1), f.block_dim(1);
      body(f, in, result);
    };
    cuda ? m.cuda_kernel("odd_kernel", define) : m.public_func("launch", define);
    const Tensor in = x.clone(), result = out.clone();
    if (cuda) m.simulate("launch", in, result);
    const CompiledModule built = m.build({.cuda_arch = "sm_80"});
    if (!cuda) built(in, result);
    expect_values(result, expected, cuda ? "in the simulator" : "on the CPU", 0);
    if (cuda) continue;
    const Tensor again = x.clone(), simulated = out.clone();
    m.simulate("launch", again, simulated);
    expect_values(simulated, expected, "the CPU's function in the simulator", 0);
  }
}
void expect_body(const Tensor& x, const Tensor& out, const std::vector<double>& expected,
                 const Program& body) {
  expect_program(x, out, expected, [&](ScriptModule&, const Helper&) { return body; });
}
Tensor integers(const std::vector<double>& values, DType t = i32) {
  return from_doubles(values, {static_cast<int64_t>(values.size())}, t);
}

TEST(Odd, WhileWithBreakAndContinueInBranches) {
  expect_body(integers({0}), zeros({3}, i32), {25, 9, 7},
              [](Function&, const Handle&, const Handle& out) {
                auto i = var("i", i32, 0);
                auto sum = var("sum", i32, 0);
                for (auto _ : loop_while(i < 100)) {
                  i += 1;
                  if (auto _ = when(i % 2 == 0)) {
                    if (auto _ = when(i > 8)) break_loop();
                    continue_loop();
                  }
                  if (auto _ = else_when(i == 7)) out[2] = i;
                  sum += i;
                }
                out[0] = sum;
                out[1] = i - 1;
              });
}

TEST(Odd, SeveralResultsThroughPointers) {
  expect_program(integers({-17, 5, 17, -5}), zeros({8}, i32), {-4, 3, -4, -3, -3, -2, -3, 2},
                 [](ScriptModule&, const Helper& helper) -> Program {
                   const FuncHandle divide = helper("divide", [](Function& f) {
                     auto a = f.arg("a", i32), b = f.arg("b", i32);
                     auto q = f.arg("q", ptr(i32)), r = f.arg("r", ptr(i32));
                     q[0] = floordiv(a, b);
                     deref(r) = floormod(a, b);
                     f.returns(a / b);
                   });
                   return [divide](Function&, const Handle& x, const Handle& out) {
                     for (int k = 0; k < 2; k++) {
                       auto plain = let(
                           "plain", divide(x[2 * k], x[2 * k + 1], out + 2 * k, out + 2 * k + 1));
                       out[4 + 2 * k] = plain;
                       out[5 + 2 * k] = x[2 * k] % x[2 * k + 1];
                     }
                   };
                 });
}

TEST(Odd, OneFunctionForAnyRank) {
  for (int rank = 1; rank <= 5; rank++) {
    int64_t count = 1;
    std::vector<Value> shape;
    for (int d = 0; d < rank; d++) shape.emplace_back(d + 2), count *= d + 2;
    std::vector<double> expected;
    for (int64_t i = 0; i < count; i++) expected.push_back(static_cast<double>(i * 3 + rank));
    expect_body(integers({0}), zeros({count}, i32), expected,
                [&](Function&, const Handle&, const Handle& out) {
                  auto t = view("t", out, tensor(i32, shape));
                  auto n = var("n", i32, 0);
                  for (const auto& at : grid(t.shape())) {
                    t(at) = n;
                    n += 3;
                  }
                  for (const auto& at : grid(t.shape())) t(at) += t.rank();
                });
  }
}

TEST(Odd, ModulesThatCallModules) {
  for (const bool cuda : {false, true}) {
    ScriptModule low("low"), middle("middle"), top("top");
    const auto in = [&](ScriptModule& m, auto define) {
      return cuda ? m.cuda_internal("step", define) : m.cpu_internal("step", define);
    };
    auto one = in(low, [](Function& f) { f.returns(f.arg("x", i32) + 1); });
    auto two = in(middle, [&](Function& f) {
      auto x = f.arg("x", i32);
      f.returns(one(one(x)) * 10);
    });
    auto three = in(top, [&](Function& f) {
      auto x = f.arg("x", i32);
      f.returns(two(x) + one(x));
    });
    const auto define = [&](Function& f) {
      auto out = f.arg("out", ptr(i32));
      if (cuda) f.grid_dim(1), f.block_dim(1);
      for (auto i : range(3)) out[i] = three(i);
    };
    cuda ? top.cuda_kernel("k", define) : top.public_func("launch", define);
    const Tensor out = zeros({3}, i32);
    if (cuda) top.simulate("launch", out);
    else top.build()(out);
    EXPECT_EQ(out.to_doubles(), (std::vector<double>{21, 32, 43}));
  }
}

TEST(Odd, MappingsOnVariables) {
  // repeat(2, 1).spatial(2, 3).repeat(1, 2): worker w of 6 has 4 tasks.
  std::vector<double> expected(4 * 6);
  for (int w = 0; w < 6; w++)
    for (int a = 0; a < 2; a++)
      for (int b = 0; b < 2; b++)
        expected[static_cast<size_t>((a * 2 + w / 3) * 6 + w % 3 * 2 + b)] = w * 100 + a * 10 + b;
  expect_body(integers({0}), zeros({24}, i32), expected,
              [](Function&, const Handle&, const Handle& out) {
                auto w = var("w", i32, 0);
                for (auto _ : loop_while(w < 6)) {
                  auto n = var("n", i32, 0);
                  for (auto [i, j] : repeat(2, 1).spatial(2, 3).repeat(1, 2).on(w)) {
                    out[i * 6 + j] = w * 100 + n / 2 * 10 + n % 2;
                    n += 1;
                  }
                  w += 1;
                }
              });
}

TEST(Odd, OnlyTheSideTakenIsEvaluated) {
  expect_body(integers({3, 0}), zeros({4}, i32), {-1, 1, 0, 5},
              [](Function&, const Handle& x, const Handle& out) {
                auto far = let("far", 1 << 28);
                out[0] = select(x[1] > 0, x[far], -1);
                out[1] = select(x[1] == 0 || x[far] > 0, 1, 0);
                out[2] = select(x[1] != 0 && x[far] > 0, 1, 0);
                if (auto _ = when(x[0] == 3)) out[3] = 5;
                if (auto _ = otherwise()) out[3] = x[far];
              });
}

TEST(Odd, SlicesOfSlicesAndOtherLayouts) {
  const auto at = [](int i, int j) { return static_cast<double>(i * 12 + j); };
  std::vector<double> x;
  for (int i = 0; i < 96; i++) x.push_back(i);
  expect_body(integers(x), zeros({9}, i32),
              {at(3, 5), at(4, 7), 0, 0, at(7, 11), at(2, 3), at(2, 3), at(5, 4), 0},
              [](Function&, const Handle& p, const Handle& out) {
                auto t = view("t", p, tensor(i32, {8, 12}));
                auto part = t.slice({1, 2}, {6, 9});
                auto inner = part.slice({1, 1}, {4, 6});
                out[0] = inner(1, 2);
                out[1] = inner.read({2, 4});
                out[2] = inner.read({-1, 0});
                out[3] = inner.read({0, 6});
                out[4] = t.read({7, 11});
                auto turned = view("turned", p, tensor(i32, {12, 8}, col_major()));
                // Column major: (i, j) is at j * 12 + i.
                out[5] = turned(3, 2);
                auto permuted = view("permuted", p, tensor(i32, {12, 8}, permute({1, 0})));
                out[6] = permuted(3, 2);
                auto flat = view("flat", p, tensor(i32, {96}));
                out[7] = flat(5 * 12 + 4);
                inner.write({4, 0}, 99);
                out[8] = inner.read({4, 0});
              });
}

TEST(Odd, SmallIntegers) {
  expect_body(integers({200, 100, 3}, u8), zeros({8}, i32), {44, 100, 32, 1, 0, 0, 156, -100},
              [](Function&, const Handle& x, const Handle& out) {
                auto v = var("v", u8, x[0]);
                v += x[1];
                out[0] = cast(v, i32);                 // 300 - 256
                out[1] = cast(x[0] - x[1], i32);       // 100
                out[2] = cast(x[1] * x[1] + 16, i32);  // 10000 - 39 * 256 + 16
                out[3] = cast(x[2] >> 1, i32);
                out[4] = cast(x[2] << 8, i32);  // the width or more
                out[5] = cast(x[2] >> cast(x[0], u8), i32);
                out[6] = cast(-x[1], i32);  // 256 - 100
                out[7] = cast(reinterpret(-x[1], i8), i32);
              });
}

TEST(Odd, VectorsOfEveryKind) {
  expect_body(
      integers({5, -3, 8, 0, 2, 7, -1, 4}), zeros({12}, i32),
      {5, 0, 8, 0, 2, 4, 5, -11, 1, 3, 15, 1}, [](Function&, const Handle& x, const Handle& out) {
        auto a = let("a", load(x, 4));
        auto b = let("b", load(x + 4, 4));
        auto zero = let("zero", broadcast(Value(0), 4));
        store(out, select(a > zero, a, zero));
        auto picked = let("picked", shuffle_lanes(a, b, {4, 7, 0, 1}));
        store(out + 4, make_vec({lane(picked, 0), lane(picked, 1)}));
        auto i = let("i", x[4]);
        out[6] = lane(picked, i);
        auto v = var("v", i32x4, a);
        v -= b * 2;
        v %= broadcast(Value(6), 4);
        out[7] = lane(v, 1) - lane(v, 2) + lane(v, 3);
        auto mask = let("mask", (a > b) && !(b == zero));
        out[8] = select(lane(mask, 0), 1, 0);
        auto wide = let("wide", cast(cast(a, vec(i64, 4)) + cast(b, vec(i64, 4)), vec(i32, 4)));
        out[9] = lane(wide, 3) - lane(wide, 0) + lane(wide, 1) + 2;
        out[10] = lane(max(a, b), 1) + lane(max(a, b), 2);
        out[11] = lane(a, 0) & lane(min(a, b), 1) & 1;
      });
}

TEST(Odd, PointersThatMove) {
  expect_body(integers({1, 2, 3, 4, 5, 6}), zeros({4}, i32), {21, 4, 6, 35},
              [](Function&, const Handle& x, const Handle& out) {
                auto p = var("p", ptr(i32), x);
                auto sum = var("sum", i32, 0);
                for (auto i : range(6)) {
                  sum += p[0] * (i - i + 1);
                  p += 1;
                }
                out[0] = sum;
                p -= 3;
                out[1] = p[0];
                auto q = let("q", p + 1);
                out[2] = deref(q + 1);
                auto pair = let("pair", reinterpret(x + 4, ptr(i32x2)));
                auto both = let("both", pair[0]);
                out[3] = lane(both, 0) * 10 / 2 + lane(both, 1) * 2 - 2;
              });
}

TEST(Odd, LoopsOfEveryTypeAndBound) {
  expect_body(integers({250, 4}, i64), zeros({8}, i64), {3, 0, 250 + 253, 9, 6, 12, 4, 0},
              [](Function&, const Handle& x, const Handle& out) {
                auto n = var("n", i64, 0);
                for (auto _ : range(cast(x[0], u8), Value(255), 2)) n += 1;
                out[0] = n;
                for (auto i : range(x[0], x[1])) out[1] = i;
                for (auto i : range(cast(x[0], u8), cast(x[0] + 4, u8), 3)) out[2] += cast(i, i64);
                for (auto [i, j, k] : grid(2, x[1], 3)) {
                  if (auto _ = when(i + j + k == 2)) out[3] += j + 1;
                }
                for (auto i : unroll(1, 4)) out[4] += i;
                for (auto i : vectorize(4)) out[5] += i * 2;
                auto m = var("m", i32, 7);
                for (auto i : range(x[1])) {
                  if (auto _ = when(i >= 2)) continue_loop();
                  m += 1;
                  for (auto _ : loop_while(m > 100)) break_loop();
                }
                out[6] = m - 5;
                for (auto i : range(-5)) out[7] = i;
              });
}

TEST(Odd, NamesThatOtherLanguagesKeep) {
  expect_program(integers({4}), zeros({1}, i32), {4 + 1 + 2 + 3 + 5 + 6},
                 [](ScriptModule&, const Helper& helper) -> Program {
                   const FuncHandle kept = helper("int", [](Function& f) {
                     auto x = f.arg("while", i32);
                     f.returns(x + 1);
                   });
                   return [kept](Function&, const Handle& x, const Handle& out) {
                     auto a = let("for", kept(x[0]));
                     auto b = let("hidet_x", a + 2);
                     auto c = var("threadIdx", i32, b);
                     auto d = let("c", 3);
                     auto e = let("c", d + 2);
                     auto g = var("__restrict__", i32, 6);
                     c += d + e + g;
                     out[0] = c;
                   };
                 });
}

TEST(Odd, ReturnsFromDeepInside) {
  expect_program(integers({3, 9, 4, 1}), zeros({4}, i32), {1, 2, -1, 30},
                 [](ScriptModule&, const Helper& helper) -> Program {
                   const FuncHandle find = helper("find", [](Function& f) {
                     auto p = f.arg("p", ptr(i32)), n = f.arg("n", i32),
                          wanted = f.arg("wanted", i32);
                     for (auto i : range(n)) {
                       if (auto _ = when(p[i] == wanted)) {
                         for (auto j : range(2)) {
                           if (auto _ = when(j == 1)) f.returns(i);
                         }
                       }
                     }
                     f.returns(-1);
                   });
                   const FuncHandle classify = helper("classify", [](Function& f) {
                     auto v = f.arg("v", i32);
                     if (auto _ = when(v < 0)) f.returns(10);
                     if (auto _ = else_when(v == 0)) f.returns(20);
                     if (auto _ = otherwise()) f.returns(30);
                   });
                   return [find, classify](Function&, const Handle& x, const Handle& out) {
                     out[0] = find(x, 4, 9);
                     out[1] = find(x, 4, 4);
                     out[2] = find(x, 2, 4);
                     out[3] = classify(find(x, 4, 1));
                   };
                 });
}

TEST(Odd, PointersAsResults) {
  expect_program(integers({3, 9, 4, 1}), zeros({2}, i32), {9, 4},
                 [](ScriptModule&, const Helper& helper) -> Program {
                   const FuncHandle behind = helper("behind", [](Function& f) {
                     auto p = f.arg("p", ptr(i32));
                     auto n = f.arg("n", i32);
                     f.returns(p + n);
                   });
                   return [behind](Function&, const Handle& x, const Handle& out) {
                     auto p = let("p", behind(x, 1));
                     out[0] = p[0];
                     out[1] = deref(behind(p, 1));
                   };
                 });
}

TEST(Odd, Booleans) {
  expect_program(integers({1, 0}, boolean), zeros({8}, i32), {1, 0, 1, 1, 0, 0, 1, 1},
                 [](ScriptModule&, const Helper& helper) -> Program {
                   const FuncHandle flip = helper("flip", [](Function& f) {
                     auto b = f.arg("b", boolean);
                     f.returns(!b);
                   });
                   return [flip](Function&, const Handle& x, const Handle& out) {
                     auto t = let("t", x[0]);
                     auto u = let("u", x[1]);
                     auto v = var("v", boolean, t && u);
                     out[0] = cast(t || u, i32);
                     out[1] = cast(v, i32);
                     v ^= true;
                     out[2] = cast(v, i32);
                     v &= t;
                     v |= u;
                     out[3] = cast(v, i32);
                     out[4] = cast(flip(t), i32);
                     out[5] = cast(t != !u, i32);
                     x[1] = flip(u) == t;
                     out[6] = cast(x[1], i32);
                     out[7] = cast(cast(cast(t, f16), boolean), i32);
                   };
                 });
}

TEST(Odd, ArgumentsOfEveryType) {
  expect_program(integers({7}), zeros({3}, i32), {7 + 1 + 2, 42, 3},
                 [](ScriptModule&, const Helper& helper) -> Program {
                   const FuncHandle all = helper("all", [](Function& f) {
                     auto list = f.args("v", meta::types({i32, boolean, ptr(i32), f64, u8, i32x2}));
                     list[2][1] = cast(list[3], i32) + cast(list[4], i32);
                     list[2][2] = lane(list[5], 0) + lane(list[5], 1);
                     f.returns(list[0] + select(list[1], 1, 0) + 2);
                   });
                   return [all](Function&, const Handle& x, const Handle& out) {
                     out[0] = all(x[0], true, out, 2, 40, make_vec({x[0] - 5, x[0] - 6}));
                   };
                 });
}

TEST(Odd, HalvesRoundAtEachStep) {
  expect_body(integers({2048, 1, 0.5}, f16), zeros({4}), {2048, 2050, 2.5, 1.0 / 1024},
              [](Function&, const Handle& x, const Handle& out) {
                out[0] = cast(x[0] + x[1], f32);
                out[1] = cast(x[0] + x[1] * 2.0, f32);
                auto v = var("v", bf16, cast(x[2], bf16));
                v *= 5.0;
                out[2] = cast(v, f32);
                out[3] = cast(cast(x[2] / 512.0, f16), f32);
              });
}

TEST(Odd, TablesInRegistersWithComputedPlaces) {
  expect_body(integers({2, 0, 1, 3}), zeros({5}, i32), {20, 0, 10, 30, 60},
              [](Function&, const Handle& x, const Handle& out) {
                auto t = registers("t", i32, {2, 2}, col_major());
                for (auto [i, j] : grid(2, 2)) t(i, j) = (i * 2 + j) * 10;
                auto sum = var("sum", i32, 0);
                for (auto k : range(4)) {
                  auto at = let("at", x[k]);
                  out[k] = t(at / 2, at % 2);
                  sum += t(at / 2, at % 2);
                }
                out[4] = sum;
              });
}

TEST(Odd, WhatTheLoopChangesItselfIsReadEachTime) {
  expect_body(integers({10}), zeros({2}, i32), {4, 6},
              [](Function&, const Handle& x, const Handle& out) {
                auto turns = var("turns", i32, 0);
                auto n = var("n", i32, x[0]);
                for (auto i : range(n)) {  // the end is taken once
                  n -= 1;
                  if (auto _ = when(i > 3)) break_loop();
                  turns += 1;
                }
                out[0] = turns;
                out[1] = n + 1;
              });
}

TEST(Odd, KernelsThatWaitForOneAnother) {
  ScriptModule m("phases");
  auto total = m.global_var("total", i32);
  auto first = m.cuda_kernel("first", [&](Function& f) {
    auto x = f.arg("x", ptr(i32));
    auto n = f.arg("n", i32);
    f.grid_dim((n + 31) / 32);
    f.block_dim(32);
    auto s = shared("s", i32, {32});
    auto i = let("i", blockIdx.x * 32 + threadIdx.x);
    s[threadIdx.x] = select(i < n, x[i], 0);
    syncthreads();
    for (int d = 16; d > 0; d /= 2) {
      if (auto _ = when(threadIdx.x < d)) s[threadIdx.x] += s[threadIdx.x + d];
      syncthreads();
    }
    if (auto _ = when(threadIdx.x == 0)) atomic_add(total.ptr(), s[0]);
  });
  auto second = m.cuda_kernel("second", [&](Function& f) {
    auto x = f.arg("x", ptr(i32));
    auto n = f.arg("n", i32);
    f.grid_dim((n + 31) / 32);
    f.block_dim(32);
    auto i = let("i", blockIdx.x * 32 + threadIdx.x);
    if (auto _ = when(i < n)) x[i] = total - x[i];
  });
  m.public_func("launch", [&](Function& f) {
    auto x = f.arg("x", ptr(i32));
    auto n = f.arg("n", i32);
    first(x, n);
    second(x, n);
  });
  std::vector<double> values, expected;
  double sum = 0;
  for (int i = 0; i < 100; i++) values.push_back(i * i % 37), sum += values.back();
  for (const double v : values) expected.push_back(sum - v);
  const Tensor x = integers(values);
  m.simulate("launch", x, 100);
  EXPECT_EQ(x.to_doubles(), expected);
  EXPECT_NE(m.build({.cuda_arch = "sm_80"}).source().find("total"), std::string::npos);
}

}  // namespace
}  // namespace hidet::lang
