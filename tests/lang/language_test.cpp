// The language with values: arguments, statements, loops, memory, vectors, functions, on the CPU and in the simulator.
#include <gmock/gmock.h>
#include <hidet/runtime/error.h>
#include <hidet/runtime/thread_pool.h>

#include <cstdint>
#include <limits>
#include <numeric>

#include "both.h"
#include "refusal.h"

namespace hidet::lang {
namespace {
using testing::HasSubstr;

Tensor numbers(DType t, const std::vector<double>& values) {
  return from_doubles(values, {static_cast<int64_t>(values.size())}, t);
}
std::vector<double> counted(int n) {
  std::vector<double> out(static_cast<size_t>(n));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

// --- arguments

TEST(Language, ArgumentsOfEveryType) {
  ScriptModule m("arguments");
  m.public_func("launch", [](Function& f) {
    auto y = f.arg("y", ptr(f64));
    const std::vector<Type> list{boolean, i8,  i16, i32,  i64, u8, u16,
                                 u32,     u64, f16, bf16, f32, f64};
    const auto args = f.args("a", meta::types(list));
    ASSERT_EQ(args.size(), list.size());
    for (size_t i = 0; i < args.size(); i++) y[static_cast<int>(i)] = cast(args[i], f64);
  });
  const CompiledModule built = m.build();
  const Tensor y = zeros({13}, f64);
  built(y, true, -128, 32767, -5, int64_t{1} << 40, 255u, 65535, 4000000000u, uint64_t{1} << 63,
        1.5, -2.5, 0.1, 0.1);
  EXPECT_EQ(y.to_doubles(),
            (std::vector<double>{1, -128, 32767, -5, 1099511627776.0, 255, 65535, 4000000000.0,
                                 9223372036854775808.0, 1.5, -2.5, 0.1f, 0.1}));
  EXPECT_THROW(built(y, true, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), Error);
  EXPECT_THROW(built(y, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), Error);
  EXPECT_THROW(built(y, true, 0, 0, 0.5, 0, 0, 0, 0, 0, 0, 0, 0, 0), Error);
}

TEST(Language, TensorsWhoseSizesAreArguments) {
  ScriptModule m("sizes");
  m.public_func("launch", [](Function& f) {
    auto rows = f.arg("rows", i32);
    auto columns = f.arg("columns", i64);
    auto x = f.arg("x", tensor(f32, {rows, columns}));
    auto y = f.arg("y", tensor(f32, {columns, rows}, col_major()));
    auto z = f.arg("z", void_ptr());
    for (auto [i, j] : grid(rows, columns)) y(j, i) = x(i, j) * 2.f;
    reinterpret(z, ptr(i32))[0] = cast(x.shape()[1], i32) + x.rank();
  });
  const Tensor x = numbers(f32, counted(6)), y = zeros({6}), z = zeros({1}, i32);
  m.build()(2, 3, x, y, z);
  // y is column major: its columns lie behind each other, as the rows of x do.
  EXPECT_EQ(y.to_doubles(), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(z.item<int32_t>(), 5);
}

// --- loops

TEST(Language, LoopForms) {
  // Each loop appends what it sees; a 0 ends it.
  std::vector<double> expected;
  const auto add = [&](std::initializer_list<int> values) {
    for (const int v : values) expected.push_back(v);
    expected.push_back(0);
  };
  add({0, 1, 2});
  add({-2, -1, 0, 1});
  add({1, 4, 7});
  add({});
  add({});
  add({0, 1, 10, 11, 20, 21});
  add({0, 1, 10, 11, 100, 101, 110, 111});
  add({0, 1, 2, 3});
  add({5, 6});
  add({3, 5, 7});
  add({6, 5, 4});
  expect_both({}, zeros({static_cast<int64_t>(expected.size())}, i32), expected,
              [](Function&, const std::vector<Handle>&, const Handle& out) {
                auto at = var("at", i32, 0);
                const auto append = [&](const Value& v) {
                  out[at] = cast(v, i32);
                  at += 1;
                };
                for (auto i : range(3)) append(i);
                append(0);
                for (auto i : range(-2, 2)) append(i);
                append(0);
                for (auto i : range(1, 8, 3)) append(i);
                append(0);
                for (auto i : range(0)) append(i);
                append(0);
                for (auto i : range(5, 3)) append(i);
                append(0);
                for (auto [i, j] : grid(3, 2)) append(i * 10 + j);
                append(0);
                for (const auto& i : grid(std::vector<Value>{2, 2, 2}))
                  append((i[0] * 10 + i[1]) * 10 + i[2]);
                append(0);
                for (auto i : unroll(4)) append(i);
                append(0);
                for (auto i : unroll(5, 7)) append(i);
                append(0);
                for (auto i : range(10)) {
                  if (auto _ = when(i < 3 || i % 2 == 0)) continue_loop();
                  if (auto _ = when(i > 7)) break_loop();
                  append(i);
                }
                append(0);
                auto n = var("n", i32, 6);
                for (auto _ : loop_while(n > 0)) {
                  append(n);
                  n -= 1;
                  if (auto w = when(n == 3)) break_loop();
                }
                append(0);
              });
}

TEST(Language, ParallelAndVectorized) {
  std::vector<double> expected;
  for (int i = 0; i < 1000; i++) expected.push_back(i * 2 + 1);
  expect_cpu({numbers(f32, counted(1000))}, zeros({1000}), expected,
             [](Function&, const std::vector<Handle>& in, const Handle& out) {
               for (auto i : parallel(100, 3)) {
                 for (auto j : vectorize(8)) out[i * 10 + j] = in[0][i * 10 + j] * 2.f + 1.f;
                 for (auto j : range(8, 10)) out[i * 10 + j] = in[0][i * 10 + j] * 2.f + 1.f;
               }
             });
}

TEST(Language, Branches) {
  std::vector<double> expected;
  for (int i = 0; i < 6; i++) expected.push_back(i < 2 ? 1 : i < 4 ? 20 : i == 4 ? 300 : 4000);
  expect_both({}, zeros({6}, i32), expected,
              [](Function&, const std::vector<Handle>&, const Handle& out) {
                for (auto i : range(6)) {
                  if (auto _ = when(i < 2)) out[i] = 1;
                  if (auto _ = else_when(i < 4)) out[i] = 20;
                  if (auto _ = else_when(i == 4)) out[i] = 300;
                  if (auto _ = otherwise()) out[i] = 4000;
                }
              });
}

TEST(Language, AssignmentsOfEveryKind) {
  expect_both({}, zeros({16}, i32), {13, 7, 30, 3, 1, 2, 11, 9, 40, 2, 5, 6, 6, 2, -4, -1},
              [](Function&, const std::vector<Handle>&, const Handle& out) {
                auto v = var("v", i32);
                int at = 0;
                const auto with = [&](auto change) {
                  v = 10;
                  change();
                  out[at++] = v;
                };
                with([&] { v += 3; });
                with([&] { v -= 3; });
                with([&] { v *= 3; });
                with([&] { v /= 3; });
                with([&] { v %= 3; });
                with([&] { v &= 3; });
                with([&] { v |= 3; });
                with([&] { v ^= 3; });
                with([&] { v <<= 2; });
                with([&] { v >>= 2; });
                out[at] = 4, out[at++] += 1;
                out[at] = 7, out[at++] -= 1;
                out[at] = 2, out[at++] *= 3;
                out[at] = 8, out[at++] /= 4;
                v = -7;
                out[at++] = floordiv(Value(v), 2);
                out[at++] = Value(v) % 2;
              });
}

// --- memory

TEST(Language, ProtectedReadsAndWrites) {
  const Tensor x = numbers(f32, {1, 2, 3, 4, 5, 6});
  std::vector<double> expected;
  for (int i = -1; i < 3; i++)
    for (int j = -1; j < 4; j++)
      expected.push_back(i >= 0 && i < 2 && j >= 0 && j < 3 ? i * 3 + j + 1 : 0);
  expect_both({x}, zeros({20}), expected,
              [](Function&, const std::vector<Handle>& in, const Handle& out) {
                auto t = global("t", in[0], {2, 3});
                for (auto [i, j] : grid(4, 5)) out[i * 5 + j] = t.read({i - 1, j - 1});
              });
  expect_both({}, full({6}, 9), {0, 1, 2, 10, 11, 12},
              [](Function&, const std::vector<Handle>&, const Handle& out) {
                auto t = global("t", out, {2, 3});
                for (auto [i, j] : grid(4, 5))
                  t.write({i - 1, j - 1}, cast((i - 1) * 10 + j - 1, f32));
              });
}

TEST(Language, SlicesAndViews) {
  // Rows 1 and 2, columns 2 to 4 of a 4 x 6 matrix; of that the second row, from the second column.
  expect_both({}, zeros({24}, i32), {0, 0, 0, 0,  0,  0, 0, 0, 1, 2, 3, 0,  // row 1
                                     0, 0, 4, 50, 60, 0, 7, 0, 0, 0, 0, 0},
              [](Function&, const std::vector<Handle>&, const Handle& out) {
                auto t = global("t", out, {4, 6});
                auto part = t.slice({1, 2}, {2, 3});
                for (auto [i, j] : grid(2, 3)) part(i, j) = cast(i * 3 + j + 1, i32);
                auto inner = part.slice({1, 1}, {1, 2});
                for (auto j : range(2)) inner(0, j) *= 10;
                auto columns = view(out + 18, tensor(i32, {2, 3}, col_major()));
                columns(0, 0) = 7;
              });
  expect_simulated({}, zeros({4}, i32), {3, 4, 7, 8},
                   [](Function&, const std::vector<Handle>&, const Handle& out) {
                     auto t = shared("t", i32, {3, 4}, col_major());
                     for (auto [i, j] : grid(3, 4)) t(i, j) = cast(i * 4 + j + 1, i32);
                     auto part = t.slice({0, 2}, {2, 2});
                     for (auto [i, j] : grid(2, 2)) out[i * 2 + j] = part(i, j);
                   });
}

TEST(Language, PointersAndAddresses) {
  expect_both({numbers(i32, {10, 20, 30, 40})}, zeros({8}, i32), {10, 30, 40, 20, 21, 6, 30, 7},
              [](Function&, const std::vector<Handle>& in, const Handle& out) {
                auto p = let("p", in[0] + 2);
                out[0] = deref(in[0]);
                out[1] = p[0];
                out[2] = *std::optional<Value>(deref(p + 1));
                out[3] = deref(p - 1);
                auto q = let("q", address(out[4]));
                q[0] = in[0][1] + 1;
                auto t = global("t", out, {2, 4});
                deref(t.ptr(1, 1)) = 6;
                deref(address(t(1, 2))) = deref(address(p[0]));
                // Four bytes that are the i32 7.
                auto bytes = let("bytes", reinterpret(out + 7, ptr(u8)));
                for (auto i : range(4)) bytes[i] = cast(select(i == 0, 7, 0), u8);
              });
}

TEST(Language, TensorsOfEveryScope) {
  std::vector<double> expected;
  for (int i = 0; i < 64; i++) expected.push_back((63 - i) * 3 + i % 4);
  expect_simulated(
      {numbers(f32, counted(64))}, zeros({64}), expected,
      [](Function&, const std::vector<Handle>& in, const Handle& out) {
        auto a = shared("a", f32, {64});
        auto b = dynamic_shared("b", f32, {64});
        auto c = dynamic_shared("c", f16, {64});
        auto r = registers("r", f32, {4});
        auto t = let("t", threadIdx.x + 0);
        a(t) = in[0][t];
        b(t) = in[0][t] * 2.f;
        c(t) = cast(t % 4, f16);
        for (auto i : range(4)) r(i) = cast(i, f32);
        syncthreads();
        out[t] = a(63 - t) + b(63 - t) + cast(c(t), f32) * 0.f + r(t % 4);
      },
      0, 64);
}

TEST(Language, TensorsOfAnyRank) {
  // Written once: the sum of two tensors of one shape.
  const auto add = [](const Handle& a, const Handle& b, const Handle& c) {
    for (const auto& i : grid(a.shape())) {
      c(i) = a(i) + b.read(i);
      deref(c.ptr(i)) += 0.f;
    }
  };
  std::vector<double> expected;
  for (int i = 0; i < 24; i++) expected.push_back(i * 11);
  for (const std::vector<Value>& shape : std::vector<std::vector<Value>>{{24}, {4, 6}, {2, 3, 4}})
    expect_both(
        {numbers(f32, counted(24)), numbers(f32,
                                            [] {
                                              auto v = counted(24);
                                              for (double& x : v) x *= 10;
                                              return v;
                                            }())},
        zeros({24}), expected, [&](Function&, const std::vector<Handle>& in, const Handle& out) {
          add(global("a", in[0], shape), global("b", in[1], shape), global("c", out, shape));
        });
}

// --- values

TEST(Language, VectorsOfEveryWidth) {
  for (const int lanes : {2, 4, 8, 16}) {
    std::vector<double> expected;
    for (int i = 0; i < lanes; i++) expected.push_back(i * 2.0 + 5);
    for (int i = 0; i < lanes; i++) expected.push_back(lanes - 1 - i);
    expected.push_back(lanes - 1);
    expect_both({numbers(f32, counted(16))}, zeros({2 * lanes + 1}), expected,
                [&](Function&, const std::vector<Handle>& in, const Handle& out) {
                  auto v = let("v", load(in[0], lanes));
                  store(out, fma(v, broadcast(2.f, lanes), broadcast(5.f, lanes)));
                  std::vector<int> back;
                  for (int i = lanes; i-- > 0;) back.push_back(i);
                  store(out + lanes, shuffle_lanes(v, v, back));
                  out[2 * lanes] = lane(v, lanes - 1);
                });
  }
  expect_both({numbers(i32, counted(8))}, zeros({4}, i32), {1, 6, 3, 4},
              [](Function&, const std::vector<Handle>& in, const Handle& out) {
                store(out, shuffle_lanes(load(in[0], 4), load(in[0] + 4, 4), {1, 6, 3, 4}));
              });
  expect_both({}, zeros({4}, i32), {1, 2, 3, 4},
              [](Function&, const std::vector<Handle>&, const Handle& out) {
                auto t = global("t", out, {2, 2});
                t.store({0, 0}, make_vec({Value(1), Value(2)}));
                t.store({1, 0}, t.load({0, 0}, 2) + 2);
              });
}

TEST(Language, CastsBetweenAllTypes) {
  const std::vector<double> in{0,    1,     -1,    1.5,      -2.5,      127.9, 128,
                               -129, 255,   256,   65504,    70000,     3e9,   -3e9,
                               1e19, -1e19, 1e300, HUGE_VAL, -HUGE_VAL, NAN};
  const auto wanted = [](double v, DType t) {
    if (t.is_float()) return numbers(t, {v}).to_doubles()[0];
    if (std::isnan(v)) return 0.0;
    const double low = t.is_signed() ? static_cast<double>(t.min_int()) : 0,
                 high = static_cast<double>(t.max_int());
    return v <= low ? low : v >= high ? high : std::trunc(v);
  };
  for (const DType t : {i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64}) {
    SCOPED_TRACE(t.name());
    std::vector<double> expected;
    for (const double v : in) expected.push_back(wanted(v, t));
    expect_both({numbers(f64, in)}, zeros({20}, t), expected,
                [&](Function&, const std::vector<Handle>& p, const Handle& out) {
                  for (auto i : range(20)) out[i] = cast(p[0][i], t);
                });
  }
  // Between integers: the low bits.
  expect_both({numbers(i64, {-1, 300, 70000, -70000})}, zeros({16}, i64),
              {-1, 255, 65535, 4294967295.0, 44, 44, 300, 300, 112, 112, 4464, 70000, -112, 144,
               61072, 4294897296.0},
              [](Function&, const std::vector<Handle>& p, const Handle& out) {
                for (auto i : range(4)) {
                  int at = 0;
                  for (const DType t : {i8, u8, u16, u32})
                    out[i * 4 + at++] = cast(cast(p[0][i], t), i64);
                }
              });
}

TEST(Language, LazyOperators) {
  // Only the side taken reads memory: the other would be outside.
  expect_both({numbers(i32, {5, 6})}, zeros({4}, i32), {5, 6, 0, 0},
              [](Function&, const std::vector<Handle>& in, const Handle& out) {
                auto t = global("t", in[0], {2});
                for (auto i : range(4)) {
                  out[i] = select(i < 2, t(i), 0);
                  if (auto _ = when(i < 2 && t(i) == 100)) out[i] = 1;
                  if (auto _ = when(!(i >= 2 || t(i) > 0))) out[i] = 2;
                }
              });
}

// --- functions

TEST(Language, SeveralResultsThroughPointers) {
  const auto divide = [](Function& f) {
    auto a = f.arg("a", i32);
    auto b = f.arg("b", i32);
    auto quotient = f.arg("quotient", ptr(i32));
    auto rest = f.arg("rest", ptr(i32));
    quotient[0] = a / b;
    rest[0] = a % b;
    f.returns(b != 0);
  };
  for (const bool cuda : {false, true}) {
    ScriptModule m("results");
    auto callee = cuda ? m.cuda_internal("divide", divide) : m.cpu_internal("divide", divide);
    const auto body = [&](Function& f) {
      auto out = f.arg("out", ptr(i32));
      if (f.kind() == ir::FuncKind::cuda_kernel) f.grid_dim(1), f.block_dim(1);
      for (auto i : range(1, 4)) {
        auto fine = let("fine", callee(17, i, out + i * 3, out + (i * 3 + 1)));
        out[i * 3 + 2] = cast(fine, i32);
      }
    };
    cuda ? m.cuda_kernel("launch", body) : m.public_func("launch", body);
    const Tensor out = zeros({12}, i32);
    if (cuda) m.simulate("launch", out);
    else m.build()(out);
    EXPECT_EQ(out.to_doubles(), (std::vector<double>{0, 0, 0, 17, 0, 1, 8, 1, 1, 5, 2, 1}));
  }
}

TEST(Language, FunctionsOfOtherModules) {
  for (const bool cuda : {false, true}) {
    ScriptModule library("library"), m("caller");
    auto table = library.global_var("table", tensor(f32, {3}), {1, 10, 100});
    const auto func = [&](ScriptModule& in, const char* name, auto define) {
      return cuda ? in.cuda_internal(name, define) : in.cpu_internal(name, define);
    };
    auto scale = func(library, "scale", [&](Function& f) {
      auto x = f.arg("x", f32);
      f.returns(x * table(f.arg("i", i32)));
    });
    auto own = func(m, "scale", [&](Function& f) { f.returns(f.arg("x", f32) + 0.5f); });
    const auto body = [&](Function& f) {
      auto out = f.arg("out", ptr(f32));
      if (cuda) f.grid_dim(1), f.block_dim(1);
      for (auto i : range(3)) out[i] = scale(3.f, i) + own(cast(i, f32));
    };
    cuda ? m.cuda_kernel("launch", body) : m.public_func("launch", body);
    const Tensor out = zeros({3});
    if (cuda) m.simulate("launch", out);
    else m.build()(out);
    EXPECT_EQ(out.to_doubles(), (std::vector<double>{3.5, 31.5, 302.5}));
  }
}

TEST(Language, GlobalVariables) {
  ScriptModule m("counting");
  auto count = m.global_var("count", i32, {40});
  auto sums = m.global_var("sums", tensor(f32, {2}));
  auto kernel = m.cuda_kernel("k", [&](Function& f) {
    auto out = f.arg("out", ptr(f32));
    f.grid_dim(1);
    f.block_dim(1);
    deref(sums.ptr(1)) += 2.5f;
    atomic_add(count.type().is_scalar() ? reinterpret(sums.ptr(0), ptr(i32)) : out, 1);
    out[0] = cast(Value(count), f32) + sums(1);
    out[1] = cast(reinterpret(sums(0), i32), f32);
  });
  m.public_func("launch", [&](Function& f) {
    auto out = f.arg("out", ptr(f32));
    kernel(out);
    kernel(out + 2);
  });
  const Tensor out = zeros({4});
  m.simulate("launch", out);
  EXPECT_EQ(out.to_doubles(), (std::vector<double>{42.5, 1, 45, 2})) << "one variable a module";
}

TEST(Language, ExternFunctions) {
  ScriptModule m("host");
  static std::vector<int> seen;
  auto note = m.extern_func("note", {ptr(i32), f64}, Type(),
                            reinterpret_cast<void*>(+[](int32_t* p, double v) {
                              seen.push_back(p[0] + static_cast<int>(v));
                              p[0] = 100;
                            }));
  m.public_func("launch", [&](Function& f) {
    auto p = f.arg("p", ptr(i32));
    note(p, 0.5);
    note(p, 2.0);
  });
  const Tensor p = full({1}, 7, i32);
  seen.clear();
  m.build()(p);
  EXPECT_EQ(seen, (std::vector<int>{7, 102}));
}

// --- output, assertions, assembly

TEST(Language, Printf) {
  const Body body = [](Function&, const std::vector<Handle>&, const Handle& out) {
    lang::printf("values %d %lld %.2f %g %c%%\n", out[0], cast(out[0], i64) + (int64_t{1} << 40),
                 cast(out[0], f32) / 2.f, cast(cast(out[0], f16), f16) * 0.25,
                 cast(out[0] + 65, i8));
  };
  testing::internal::CaptureStdout();
  expect_both({}, full({1}, 3, i32), {3}, body);
  std::fflush(stdout);
  const std::string once = "values 3 1099511627779 1.50 0.75 D%\n";
  EXPECT_EQ(testing::internal::GetCapturedStdout(), once + once);
}

TEST(Language, AssertionsReachTheCaller) {
  ScriptModule m("asserting");
  auto inner = m.cpu_internal("inner", [](Function& f) {
    auto n = f.arg("n", i32);
    assert_(n < 3, "n is below 3");
    f.returns(n * 2);
  });
  auto kernel = m.cpu_kernel("kernel", [&](Function& f) {
    auto y = f.arg("y", ptr(i32));
    auto n = f.arg("n", i32);
    for (auto i : parallel(n)) y[i] = inner(i);
  });
  m.public_func("launch", [&](Function& f) {
    auto y = f.arg("y", ptr(i32));
    kernel(y, f.arg("n", i32));
  });
  const CompiledModule built = m.build();
  const Tensor y = zeros({8}, i32);
  built(y, 3);
  EXPECT_EQ(y.to_doubles(), (std::vector<double>{0, 2, 4, 0, 0, 0, 0, 0}));
  try {
    built(y, 8);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::usage);
    EXPECT_THAT(e.what(), HasSubstr("n is below 3"));
  }
  built(y, 2);  // and the next call is fine
}

TEST(Language, AssertionsInKernels) {
  ScriptModule m("asserting");
  int line = 0;
  auto checked = m.cuda_internal("checked", [&](Function& f) {
    auto n = f.arg("n", i32);
    line = __LINE__ + 1;
    assert_(n < 3, "threads below 3");
    f.returns(n);
  });
  m.cuda_kernel("k", [&](Function& f) {
    auto y = f.arg("y", ptr(i32));
    f.grid_dim(1);
    f.block_dim(8);
    y[threadIdx.x] = checked(threadIdx.x);
  });
  const Tensor y = zeros({8}, i32);
  try {
    m.simulate("launch", y);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("language_test.cpp:" + std::to_string(line)));
    EXPECT_THAT(e.what(), HasSubstr("threads below 3"));
  }
  // A GPU reports the number of the message.
  const CompiledModule built = m.build({.cuda_arch = "sm_80"});
  EXPECT_THAT(built.data().cuda_asserts,
              testing::ElementsAre(HasSubstr("language_test.cpp:" + std::to_string(line) +
                                             ": error: threads below 3")));
  EXPECT_THAT(built.source(),
              HasSubstr("hidet_error_word = 1; asm volatile(\"exit;\"); return int32_t(); }"));
}

TEST(Language, InlineAssembly) {
#if defined(__x86_64__)
  expect_cpu({}, zeros({2}, i32), {42, 7},
             [](Function&, const std::vector<Handle>&, const Handle& out) {
               auto sum = var("sum", i32, 0);
               asm_("leal (%1, %2), %0", {{"=r", sum}}, {{"r", Value(40)}, {"r", Value(2)}});
               out[0] = sum;
               asm_("movl $7, (%0)", {}, {{"r", out + 1}}, {"memory"});
             });
#endif
  ScriptModule m("ptx");
  m.cuda_kernel("k", [](Function& f) {
    auto out = f.arg("out", ptr(i32));
    f.grid_dim(1);
    f.block_dim(32);
    auto lane = var("lane", i32, 0);
    asm_("mov.u32 %0, %laneid;", {{"=r", lane}});
    out[threadIdx.x] = lane;
  });
  EXPECT_FALSE(m.build({.cuda_arch = "sm_80"}).data().images.empty());
  const Tensor out = zeros({32}, i32);
  try {
    m.simulate("launch", out);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("the simulator does not run inline assembly"));
  }
}

// --- the CPU's own primitives

TEST(Language, ScratchAndPrefetch) {
  std::vector<double> expected;
  for (int i = 0; i < 64; i++) expected.push_back(i * 3);
  expect_cpu({numbers(f32, counted(64))}, zeros({64}), expected,
             [](Function&, const std::vector<Handle>& in, const Handle& out) {
               for (auto b : parallel(8)) {
                 auto block = let("block", scratch(0, 32, f32));
                 prefetch(in[0] + b * 8 + 64);  // past the end: a hint reads nothing
                 for (auto i : range(8)) block[i] = in[0][b * 8 + i] * 3.f;
                 for (auto i : range(8)) out[b * 8 + i] = block[i];
               }
             });
}

TEST(Language, StoresPastTheCaches) {
  // 4 values behind a place that no vector begins at, in parallel; 16 bytes at their multiples by this thread, then read by all.
  std::vector<double> expected{0};
  for (int i = 0; i < 64; i++) expected.push_back(i * 2);
  for (int i = 65; i < 68; i++) expected.push_back(0);
  for (int i = 0; i < 64; i++) expected.push_back(i * 3);
  for (int i = 0; i < 64; i++) expected.push_back(i * 3 + 1);
  expect_cpu({numbers(f32, counted(64))}, zeros({196}), expected,
             [](Function&, const std::vector<Handle>& in, const Handle& out) {
               for (auto b : parallel(16))
                 store(out + 1 + b * 4, load(in[0] + b * 4, 4) * 2.f, Cache::cs);
               for (auto b : range(16))
                 store(out + 68 + b * 4, load(in[0] + b * 4, 4) * 3.f, Cache::cs);
               for (auto i : parallel(64)) out[132 + i] = out[68 + i] + 1.f;
             });
}

TEST(Language, WorkForAsManyThreadsAsThereAre) {
  const int before = num_threads();
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    expect_cpu({zeros({1})}, zeros({2}), {double(threads), 100.0},
               [](Function&, const std::vector<Handle>&, const Handle& out) {
                 const Value n = parallel_threads();
                 out[0] = cast(n, f32);
                 for (auto t : parallel(n)) atomic_add(out + 1, cast((100 + t) / n, f32));
               });
  }
  set_num_threads(before);
}

TEST(Language, AtomicsBetweenCpuThreads) {
  static constexpr int n = 40000;
  std::vector<double> expected(5, n / 5);
  expected.push_back(n * 0.5);
  expect_cpu({zeros({8}, i64)}, zeros({6}, f64), expected,
             [](Function&, const std::vector<Handle>& in, const Handle& out) {
               for (auto i : parallel(n, 16)) {
                 atomic_add(in[0] + i % 5, 1);
                 atomic_add(out + 5, 0.5);
               }
               for (auto i : range(5)) out[i] = cast(in[0][i], f64);
             });
}

}  // namespace
}  // namespace hidet::lang
