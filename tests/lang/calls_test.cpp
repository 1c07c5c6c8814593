// Calls: who may call whom, arguments, calls across modules, effects; launch bounds.
#include <hidet/ir/call_rules.h>
#include <hidet/ir/rewriter.h>

#include "refusal.h"

namespace hidet::lang {
namespace {
using ir::FuncKind;
using testing::HasSubstr;
using testing::StartsWith;

std::string here(int line, const std::string& message) {
  return at("calls_test.cpp", line, message);
}

/// A function, because inside a macro every line is the macro's. `line` is read after the refusal.
void expect(const std::string& message, const int& line, const std::string& expected) {
  EXPECT_EQ(message, here(line, expected));
}

constexpr FuncKind kKinds[] = {FuncKind::public_, FuncKind::cuda_kernel, FuncKind::cuda_internal,
                               FuncKind::cpu_kernel, FuncKind::cpu_internal};

// Every pair of kinds against the table of docs/script.md.
TEST(Calls, EveryPairOfKinds) {
  const bool may[5][5] = {// public, cuda_kernel, cuda_internal, cpu_kernel, cpu_internal
                          {true, true, false, true, true},
                          {false, false, true, false, false},
                          {false, false, true, false, false},
                          {false, false, false, true, true},
                          {false, false, false, false, true}};
  for (int i = 0; i < 5; i++)
    for (int j = 0; j < 5; j++) {
      int line = 0;
      const std::string message = refusal([&](ScriptModule& m) {
        auto dims = [](Function& f) {
          if (f.kind() != FuncKind::cuda_kernel) return;
          f.grid_dim(1);
          f.block_dim(32);
        };
        auto callee = m.func(kKinds[j], "callee", [&](Function& f) { dims(f); });
        m.func(kKinds[i], "caller", [&](Function& f) {
          dims(f);
          line = __LINE__ + 1;
          callee();
        });
      });
      if (may[i][j]) {
        EXPECT_EQ(message, "") << i << " " << j;
      } else {
        EXPECT_EQ(message, here(line, std::string("the ") + ir::name(kKinds[i]) +
                                          " function 'caller' calls the " + ir::name(kKinds[j]) +
                                          " function 'callee', which only " +
                                          ir::callers_of(kKinds[j]) + " functions may call"));
      }
    }
}

TEST(Calls, ParallelByKind) {
  for (FuncKind kind : kKinds) {
    const std::string message = refusal([&](ScriptModule& m) {
      m.func(kind, "f", [&](Function& f) {
        auto x = f.arg("x", ptr(f32));
        if (kind == FuncKind::cuda_kernel) {
          f.grid_dim(1);
          f.block_dim(32);
        }
        for (auto i : parallel(8)) x[i] = 0.f;
      });
    });
    if (kind == FuncKind::public_ || kind == FuncKind::cpu_kernel) EXPECT_EQ(message, "");
    else
      EXPECT_THAT(message, HasSubstr(std::string("a parallel loop in the ") + ir::name(kind) +
                                     " function 'f'"));
  }
}

TEST(Calls, PrimitivesOfTheOtherSide) {
  EXPECT_THAT(body_refusal([](Function&, Handle x, Handle) { x[threadIdx.x] = 1.f; }),
              HasSubstr("'thread_idx_x' is for CUDA functions; 'f' is a public function"));
  EXPECT_THAT(body_refusal([](Function&, Handle, Handle) { syncthreads(); }),
              HasSubstr("'syncthreads' is for CUDA functions"));
  EXPECT_THAT(body_refusal([](Function&, Handle, Handle) { (void)shared("s", f32, {4}); }),
              HasSubstr("shared memory is for CUDA functions"));
}

TEST(Calls, Arguments) {
  int line = 0;
  auto call = [&](auto body) {
    return refusal([&](ScriptModule& m) {
      auto g = m.cpu_internal("g", [](Function& f) {
        auto p = f.arg("p", ptr(f32));
        auto n = f.arg("n", i32);
        p[n] = 1.f;
      });
      m.public_func("f", [&](Function& f) {
        body(g, f.arg("x", ptr(f32)), f.arg("h", ptr(f16)), f.arg("n", i64));
      });
    });
  };
  EXPECT_EQ(call([&](auto& g, Handle x, Handle, Handle n) {
              g(x, 3);
              g(x, n);
              g(x + 1, x.type().is_pointer() ? 1 : 0);
            }),
            "");
  expect(call([&](auto& g, Handle x, Handle, Handle) {
           line = __LINE__ + 1;
           g(x);
         }),
         line, "g(ptr(f32) p, i32 n) takes 2 arguments, not 1");
  expect(call([&](auto& g, Handle, Handle h, Handle) {
           line = __LINE__ + 1;
           g(h, 1);
         }),
         line, "the argument 'p' of g(ptr(f32) p, i32 n) is given ptr(f16)");
  EXPECT_THAT(call([&](auto& g, Handle x, Handle, Handle) { g(x, 1.5f); }),
              HasSubstr("the argument 'n' of g(ptr(f32) p, i32 n) of type i32 is given a "
                        "floating-point constant"));
  EXPECT_THAT(call([&](auto& g, Handle x, Handle, Handle) { g(x, int64_t(1) << 40); }),
              HasSubstr("does not fit"));
  EXPECT_THAT(call([&](auto& g, Handle x, Handle, Handle) { x[0] = g(x, 1); }),
              HasSubstr("the value of a call that returns nothing is used"));
}

TEST(Calls, TensorsPassAsPointers) {
  ScriptModule m("m");
  auto g = m.cpu_internal("g", [](Function& f) {
    auto t = f.arg("t", tensor(f32, {4, 8}));
    auto p = f.arg("p", ptr(f32));
    t(1, 2) = p[3];
  });
  m.public_func("f", [&](Function& f) {
    auto p = f.arg("p", ptr(f32));
    auto t = f.arg("t", tensor(f32, {4, 8}));
    g(p, t);
    g(t, p);
  });
  EXPECT_EQ(m.module().functions.size(), 2u);
}

// --- effects

TEST(Calls, ResultsOfEffectfulCalls) {
  auto with = [&](auto body) {
    return refusal([&](ScriptModule& m) {
      auto bump = m.cpu_internal("bump", [](Function& f) {
        auto p = f.arg("p", ptr(f32));
        p[0] += 1;
        f.returns(p[0]);
      });
      auto peek = m.cpu_internal("peek", [](Function& f) { f.returns(f.arg("p", ptr(f32))[0]); });
      m.public_func(
          "f", [&](Function& f) { body(bump, peek, f.arg("x", ptr(f32)), f.arg("y", ptr(f32))); });
    });
  };
  EXPECT_EQ(with([](auto& bump, auto& peek, Handle x, Handle y) {
              bump(x);
              y[0] = bump(x);
              y[1] = peek(x) + peek(x);
              auto r = let("r", bump(x));
              y[2] = r * r;
            }),
            "");
  EXPECT_THAT(
      with([](auto& bump, auto&, Handle x, Handle y) { y[0] = bump(x) + x[0]; }),
      HasSubstr("one expression touches 'x' twice and stores to it; bind one part with let"));
  EXPECT_THAT(with([](auto& bump, auto&, Handle x, Handle y) {
                auto r = bump(x);
                y[0] = r;
                y[1] = r;
              }),
              HasSubstr("this value read 'x'"));
  EXPECT_THAT(with([](auto& bump, auto&, Handle x, Handle) {
                auto r = bump(x);
                x[0] = 1;
              }),
              HasSubstr("this value read 'x'"));
  EXPECT_THAT(with([](auto& bump, auto&, Handle x, Handle) { (void)(bump(x) + 1); }),
              HasSubstr("the result of 'bump' is kept but never used"));
  EXPECT_THAT(with([](auto& bump, auto&, Handle x, Handle y) {
                auto t = x[0] + 1;
                bump(x);
                y[0] = t;
              }),
              HasSubstr("this value read 'x'"));
}

// --- modules

TEST(Calls, AcrossModules) {
  ScriptModule lib("lib");
  auto twice = lib.cpu_internal("twice", [](Function& f) {
    auto x = f.arg("x", f32);
    f.returns(x * 2);
  });
  auto four = lib.cpu_internal("helper", [&](Function& f) {
    auto x = f.arg("x", f32);
    f.returns(twice(twice(x)));
  });
  ScriptModule m("m");
  auto helper = m.cpu_internal("helper", [](Function& f) { f.returns(f.arg("x", f32)); });
  m.public_func("launch", [&](Function& f) {
    auto x = f.arg("x", ptr(f32));
    x[0] = four(x[1]) + helper(x[2]);
  });
  const ir::Module module = m.module();
  ASSERT_EQ(module.functions.size(), 4u);
  ASSERT_TRUE(module.find("helper") && module.find("helper_1") && module.find("twice") &&
              module.find("launch"));
  std::vector<std::string> called;
  ir::visit_all(module.find("launch")->body, [&](const ir::Node& n) {
    if (const ir::Call* c = ir::as<ir::Call>(&n)) called.push_back(c->callee);
  });
  EXPECT_THAT(called, testing::UnorderedElementsAre("helper", "helper_1"));
}

TEST(Calls, OneKernelGetsALaunch) {
  ScriptModule m("m");
  m.cuda_kernel("k", [](Function& f) {
    auto t = f.arg("t", tensor(f32, {8}));
    auto n = f.arg("n", i32);
    f.grid_dim(n);
    f.block_dim(32);
    t(0) = 1.f;
  });
  const ir::Module module = m.module();
  const ir::Function* launch = module.find("launch");
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->kind, FuncKind::public_);
  ASSERT_EQ(launch->params.size(), 2u);
  EXPECT_EQ(launch->params[0]->type.text(), "ptr(f32)");
  EXPECT_EQ(launch->params[1]->name, "n");
}

TEST(Calls, NamesAreChecked) {
  int line = 0;
  expect(
      refusal([&](ScriptModule& m) {
        line = __LINE__ + 1;
        m.public_func("two words", [](Function&) {});
      }),
      line,
      "the name 'two words' of a function is no identifier: letters, digits and _, no digit first");
  int first = 0;
  const std::string twice = refusal([&](ScriptModule& m) {
    first = __LINE__ + 1;
    m.public_func("f", [](Function&) {});
    m.public_func("f", [](Function&) {});
  });
  EXPECT_EQ(twice, here(first + 1, "the module 'bad' already has a function 'f' (calls_test.cpp:" +
                                       std::to_string(first) + ")"));
  EXPECT_THAT(body_refusal([](Function& f, Handle, Handle) { (void)f.arg("n", f32); }),
              HasSubstr("the function 'f' has two arguments called 'n'"));
}

TEST(Calls, Results) {
  EXPECT_THAT(body_refusal([](Function& f, Handle x, Handle n) {
                if (auto _ = when(n > 0)) f.returns(x[0]);
              }),
              HasSubstr("'f' returns f32 on some paths only"));
  EXPECT_THAT(body_refusal([](Function& f, Handle x, Handle n) {
                if (auto _ = when(n > 0)) f.returns(x[0]);
                f.returns(n);
              }),
              HasSubstr("the result of 'f' of type f32 is given i32; cast it"));
  EXPECT_EQ(body_refusal([](Function& f, Handle x, Handle n) {
              if (auto _ = when(n > 0)) f.returns(x[0]);
              if (auto _ = otherwise()) f.returns(0);
            }),
            "");
}

// --- launch bounds (bug 65)

template <class Set>
std::string bounds(Set set) {
  return refusal([&](ScriptModule& m) {
    m.cuda_kernel("k", [&](Function& f) {
      auto n = f.arg("n", i32);
      auto y = f.arg("y", ptr(f32));
      f.grid_dim(1);
      f.block_dim(32);
      set(f, n, y);
    });
  });
}

TEST(Launch, SizesThatAreWrong) {
  int line = 0;
  auto block = [&](int64_t n) {
    return bounds([&, n](Function& f, Handle, Handle) {
      line = __LINE__ + 1;
      f.block_dim(n);
    });
  };
  for (int64_t n : {int64_t(-1), int64_t(0), int64_t(1025), int64_t(1) << 31})
    expect(block(n), line,
           "block_dim x of 'k' is " + std::to_string(n) + "; it must be from 1 to 1024");
  for (int n : {0, -1})
    EXPECT_THAT(bounds([n](Function& f, Handle, Handle) { f.grid_dim(n); }),
                HasSubstr("grid_dim x of 'k' is " + std::to_string(n) +
                          "; it must be from 1 to 2147483647"));
  EXPECT_THAT(bounds([](Function& f, Handle, Handle) { f.grid_dim(1, 65536); }),
              HasSubstr("from 1 to 65535"));
  EXPECT_THAT(bounds([](Function& f, Handle, Handle) { f.block_dim(64, 32); }),
              HasSubstr("have 2048 threads; the limit is 1024"));
  EXPECT_THAT(bounds([](Function& f, Handle, Handle y) { f.grid_dim(cast(y[0], i32)); }),
              HasSubstr("grid_dim of 'k' must be an expression of its arguments"));
  EXPECT_THAT(bounds([](Function&, Handle, Handle) { (void)shared("s", f32, {16384}); }),
              HasSubstr("65536 bytes of shared memory with 's'; the limit is 49152"));
  EXPECT_EQ(bounds([](Function& f, Handle n, Handle) { f.grid_dim((n + 255) / 256, n); }), "");
  EXPECT_THAT(refusal([](ScriptModule& m) { m.cuda_kernel("no_dims", [](Function&) {}); }),
              HasSubstr("the cuda_kernel 'no_dims' has no grid_dim"));
  EXPECT_THAT(body_refusal([](Function& f, Handle, Handle) { f.grid_dim(1); }),
              HasSubstr("grid_dim is for a cuda_kernel; 'f' is a public function"));
}

}  // namespace
}  // namespace hidet::lang
