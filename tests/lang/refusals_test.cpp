// What the script language refuses, each with its C++ line and message.
#include "refusal.h"

#include <cstdio>

// `printf("text")` without `lang::` is ambiguous, so that it cannot reach the C library's silently.
namespace unqualified {
using namespace hidet::lang;
template <class T>
concept PrintsText = requires(T text) { printf(text); };
template <class T>
concept PrintsTextQualified = requires(T text) { hidet::lang::printf(text); };
static_assert(!PrintsText<const char*> && PrintsTextQualified<const char*>);
}  // namespace unqualified

namespace hidet::lang {
namespace {
using testing::HasSubstr;
using testing::StartsWith;

std::string here(int line, const std::string& message) {
  return at("refusals_test.cpp", line, message);
}

/// A function, because inside a macro every line is the macro's. `line` is read after the refusal.
void expect(const std::string& message, const int& line, const std::string& expected) {
  EXPECT_EQ(message, here(line, expected));
}

/// A body that is refused with these words at this line: inside a macro every line is the macro's.
#define EXPECT_REFUSED(text, ...)        \
  EXPECT_THAT(body_refusal(__VA_ARGS__), \
              testing::AllOf(StartsWith(at("refusals_test.cpp", __LINE__, "")), HasSubstr(text)))

// --- what must not compile

template <class T>
concept SteersCpp = requires(T t) { t ? 1 : 0; };
static_assert(!std::is_constructible_v<bool, Value>);
static_assert(!SteersCpp<Value> && !SteersCpp<Handle> && !SteersCpp<Var&> &&
              !SteersCpp<ElementProxy&> && !SteersCpp<CallResult&>);

template <class T>
concept BoolAsTemporary = requires(T (*make)()) { make() ? 1 : 0; };
template <class T>
concept BoolAsName = requires(T& t) { t ? 1 : 0; };
static_assert(BoolAsName<detail::Branch> && !BoolAsTemporary<detail::Branch>,
              "if (when(c)) needs a name");
static_assert(!std::is_copy_constructible_v<detail::Branch> &&
              !std::is_move_constructible_v<detail::Branch>);

template <class T, class V>
concept AssignsAsName = requires(T& t, V v) { t = v; };
template <class T, class V>
concept AssignsAsTemporary = requires(T (*make)(), V v) { make() = v; };
static_assert(!AssignsAsName<ElementProxy, Value> && AssignsAsTemporary<ElementProxy, Value>);
static_assert(!AssignsAsName<ElementProxy, int> && AssignsAsTemporary<ElementProxy, float>);
static_assert(!std::is_copy_constructible_v<ElementProxy> &&
              !std::is_move_constructible_v<ElementProxy>);
static_assert(!std::is_copy_constructible_v<Var> && !std::is_move_constructible_v<Var> &&
              AssignsAsName<Var, Value>);
static_assert(std::is_copy_constructible_v<Handle> && !AssignsAsName<Handle, Value> &&
              !AssignsAsName<Handle, Handle>);
static_assert(!std::is_copy_constructible_v<CallResult> && !AssignsAsName<CallResult, Value>);

// --- scopes

TEST(Refusals, HandleAfterItsScope) {
  int line = 0, loop = 0;
  const std::string message = body_refusal([&](Function&, Handle x, Handle n) {
    std::vector<Handle> kept;
    loop = __LINE__ + 1;
    for (auto i : range(n)) {
      kept.push_back(i);
      x[i] = 0.f;
    }
    line = __LINE__ + 1;
    x[0] = cast(kept[0], f32);
  });
  EXPECT_EQ(message, here(line, "'i' (refusals_test.cpp:" + std::to_string(loop) +
                                    ") is used after its scope closed"));
}

TEST(Refusals, HandleOfAnotherFunction) {
  int line = 0, argument = 0;
  const std::string message = refusal([&](ScriptModule& m) {
    std::vector<Handle> kept;
    argument = __LINE__ + 1;
    m.cpu_internal("first", [&](Function& f) { kept.push_back(f.arg("a", f32)); });
    m.cpu_internal("second", [&](Function& f) {
      auto y = f.arg("y", ptr(f32));
      line = __LINE__ + 1;
      y[0] = kept[0];
    });
  });
  EXPECT_EQ(message, here(line, "'a' (refusals_test.cpp:" + std::to_string(argument) +
                                    ") belongs to another function than 'second'"));
}

TEST(Refusals, VariableOfAClosedBranch) {
  const std::string message = body_refusal([&](Function&, Handle x, Handle n) {
    std::vector<Value> kept;
    if (auto _ = when(n > 0)) kept.push_back(let("t", x[0]));
    x[1] = kept[0];
  });
  EXPECT_THAT(message, HasSubstr("is used after its scope closed"));
}

TEST(Refusals, RecordingOutsideAFunction) {
  int line = 0;
  try {
    line = __LINE__ + 1;
    (void)let("t", Value(1));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()), here(line, "let outside a script function"));
  }
}

// --- branches and loops left by C++

TEST(Refusals, WhenThatRecordsNothing) {
  int line = 0;
  const std::string message = body_refusal([&](Function&, Handle x, Handle n) {
    line = __LINE__ + 1;
    if (auto _ = when(n > 0)) {
    }
    x[0] = 1.f;
  });
  EXPECT_EQ(message,
            here(line, "a branch that records nothing; remove it, or write a comment() into it"));
}

TEST(Refusals, OtherwiseWithoutWhen) {
  int line = 0;
  const std::string message = body_refusal([&](Function&, Handle x, Handle n) {
    if (auto _ = when(n > 0)) x[0] = 1.f;
    x[1] = 2.f;
    line = __LINE__ + 1;
    if (auto _ = otherwise()) x[2] = 1.f;
  });
  EXPECT_EQ(message, here(line, "otherwise does not follow a when or else_when"));
  EXPECT_REFUSED("else_when follows an otherwise (refusals_test.cpp:",
                 [&](Function&, Handle x, Handle n) {
                   if (auto _ = when(n > 0)) x[0] = 1.f;
                   if (auto _ = otherwise()) x[2] = 1.f;
                   if (auto _ = else_when(n > 1)) x[2] = 1.f;
                 });
}

TEST(Refusals, CppBreakAndReturn) {
  int line = 0;
  const char* const expected =
      "C++ 'break' or 'return' left a recorded loop; use break_loop() or f.returns()";
  expect(body_refusal([&](Function&, Handle x, Handle n) {
           line = __LINE__ + 1;
           for (auto i : range(n)) {
             x[i] = 1.f;
             break;
           }
         }),
         line, expected);
  expect(body_refusal([&](Function&, Handle x, Handle n) {
           for (auto i : range(n)) {
             line = __LINE__ + 1;
             for (auto [j, k] : grid(n, 4)) {
               x[i] = cast(j + k, f32);
               if (line > 0) return;
             }
           }
         }),
         line, expected);
  expect(body_refusal([&](Function&, Handle x, Handle n) {
           line = __LINE__ + 1;
           for (auto _ : loop_while(n > 3)) {
             if (auto w = when(x[0] > 1.f)) {
               x[0] = 2.f;
               break;
             }
           }
         }),
         line, expected);
}

TEST(Refusals, ExceptionsPassThroughOpenScopes) {
  ScriptModule m("m");
  EXPECT_THROW(m.public_func("f",
                             [](Function& f) {
                               auto n = f.arg("n", i32);
                               for (auto i : range(n))
                                 if (auto _ = when(i > 2))
                                   throw std::runtime_error("the user's own");
                             }),
               std::runtime_error);
  EXPECT_EQ(ir::current_recorder(), nullptr);
  // The module is as before.
  m.public_func("f", [](Function& f) { f.returns(f.arg("n", i32)); });
  EXPECT_EQ(m.module().functions.size(), 1u);
}

TEST(Refusals, Jumps) {
  int line = 0;
  expect(body_refusal([&](Function&, Handle, Handle) {
           line = __LINE__ + 1;
           break_loop();
         }),
         line, "break_loop() outside a loop");
  EXPECT_REFUSED("break_loop() cannot be used in a parallel loop",
                 [&](Function&, Handle, Handle n) {
                   for (auto i : parallel(n))
                     if (auto _ = when(i > 1)) break_loop();
                 });
  EXPECT_REFUSED("continue_loop() cannot be used in an unrolled or vectorized loop",
                 [&](Function&, Handle, Handle) {
                   for (auto i : unroll(4))
                     if (auto _ = when(i > 1)) continue_loop();
                 });
  EXPECT_REFUSED("f.returns() inside a parallel loop", [&](Function& f, Handle x, Handle n) {
    for (auto i : parallel(n)) f.returns(x[i]);
  });
}

TEST(Refusals, Loops) {
  EXPECT_REFUSED("unroll takes constant bounds", [&](Function&, Handle x, Handle n) {
    for (auto i : unroll(n)) x[i] = 0.f;
  });
  EXPECT_REFUSED("a loop has the step 0; it must be at least 1",
                 [&](Function&, Handle x, Handle n) {
                   for (auto i : range(0, n, 0)) x[i] = 0.f;
                 });
  EXPECT_REFUSED("a loop takes integers, not f32", [&](Function&, Handle x, Handle) {
    for (auto i : range(x[0])) x[i] = 0.f;
  });
  EXPECT_REFUSED("has the extent 0", [&](Function&, Handle x, Handle n) {
    for (auto [i, j] : spatial(4, 8).repeat(0, 2).on(n)) x[i] = cast(j, f32);
  });
}

// --- stale values

TEST(Refusals, ValueAfterAStoreToItsVariable) {
  int read = 0, store = 0, use = 0;
  const std::string message = body_refusal([&](Function&, Handle x, Handle) {
    read = __LINE__ + 1;
    auto v = var("v", f32, 1.f);
    auto t = v * 2;
    store = __LINE__ + 1;
    v = 5;
    use = __LINE__ + 1;
    x[0] = t;
  });
  EXPECT_EQ(message,
            here(use, "this value read 'v' (refusals_test.cpp:" + std::to_string(read) +
                          ") before the store to it (refusals_test.cpp:" + std::to_string(store) +
                          "); bind the value with let before the store"));
}

TEST(Refusals, ElementAfterAStoreToItsPlace) {
  int store = 0, use = 0;
  const std::string message = body_refusal([&](Function&, Handle x, Handle) {
    auto t = x[0] * 2;
    store = __LINE__ + 1;
    x[1] = 5;
    use = __LINE__ + 1;
    x[2] = t;
  });
  EXPECT_THAT(message, StartsWith(here(use, "this value read 'x'")));
  EXPECT_THAT(message,
              HasSubstr("the store to it (refusals_test.cpp:" + std::to_string(store) + ")"));
  // A named proxy is the element as it was where it was written.
  EXPECT_REFUSED("this value read 'x'", [&](Function&, Handle x, Handle) {
    auto e = x[0];
    x[0] = 5;
    x[1] = e;
  });
  // A pointer made from another stands for the same memory.
  EXPECT_REFUSED("this value read 'x'", [&](Function&, Handle x, Handle n) {
    auto row = let("row", x + n);
    auto t = x[0] + 1;
    row[0] = 5;
    x[1] = t;
  });
}

TEST(Refusals, ValueMadeBeforeALoopThatStores) {
  int loop = 0, use = 0, store = 0;
  const std::string message = body_refusal([&](Function&, Handle x, Handle n) {
    auto v = var("v", f32, 1.f);
    auto t = v * 2;
    loop = __LINE__ + 1;
    for (auto i : range(n)) {
      use = __LINE__ + 1;
      x[i] = t;
      store = __LINE__ + 1;
      v += 1;
    }
  });
  const auto place = [](int line) { return " (refusals_test.cpp:" + std::to_string(line) + ")"; };
  EXPECT_EQ(message, here(use, "this value read 'v' before the loop" + place(loop) +
                                   ", which stores to it" + place(store) +
                                   "; bind the value with let before the loop, or read inside it"));
}

TEST(Refusals, FreshValuesAreFine) {
  EXPECT_EQ(body_refusal([&](Function&, Handle x, Handle n) {
              auto v = var("v", f32, x[0]);
              auto t = let("t", v * 2);
              for (auto i : range(n)) {
                auto u = v * 2;
                x[i] = u + t;
                v += x[i];
                v = v;
              }
              auto w = v + 1;
              if (auto _ = when(w > 3)) v = 1;
              if (auto _ = else_when(w > 2)) v = 2;
              if (auto _ = otherwise()) v = 3;
              for (auto _ : loop_while(v < 10)) v += 1;
              x[0] = x[1];
              x[1] += x[0] * v;
            }),
            "");
  EXPECT_REFUSED("this value read 'v'", [&](Function&, Handle x, Handle) {
    auto v = var("v", f32, x[0]);
    auto w = v + 1;
    if (auto _ = when(w > 3)) v = 1;
    x[0] = w;
  });
}

TEST(Refusals, VariableOutsideAParallelLoop) {
  int line = 0, loop = 0;
  const std::string message = body_refusal([&](Function&, Handle x, Handle n) {
    auto sum = var("sum", f32, 0.f);
    loop = __LINE__ + 1;
    for (auto i : parallel(n)) {
      line = __LINE__ + 1;
      sum += x[i];
    }
  });
  EXPECT_EQ(message, here(line, "'sum' is declared outside the parallel loop (refusals_test.cpp:" +
                                    std::to_string(loop) +
                                    ") and stored to inside it: iterations would race"));
}

// --- types

TEST(Refusals, Types) {
  int line = 0;
  expect(body_refusal([&](Function&, Handle x, Handle n) {
           line = __LINE__ + 1;
           x[0] = n;
         }),
         line, "an element of type f32 is given i32; cast it");
  expect(body_refusal([&](Function&, Handle x, Handle n) {
           line = __LINE__ + 1;
           x[0] = x[1] * n;
         }),
         line, "'mul' of f32 and i32 has no common type; cast one of them");
  EXPECT_REFUSED("a condition is a boolean, not i32", [&](Function&, Handle x, Handle n) {
    if (auto _ = when(n)) x[0] = 1.f;
  });
  EXPECT_REFUSED("an index is a scalar integer",
                 [&](Function&, Handle x, Handle) { x[x[0]] = 1.f; });
  EXPECT_REFUSED("the variable 'v' of type i32 is given a floating-point constant; cast it",
                 [&](Function&, Handle, Handle n) {
                   auto v = var("v", i32, n);
                   v = 1.5;
                 });
  EXPECT_REFUSED("the constant 300, which does not fit", [&](Function&, Handle, Handle n) {
    auto v = var("v", i8, 3);
    v = 300;
    (void)n;
  });
}

TEST(Refusals, Memory) {
  EXPECT_REFUSED("the registers tensor 'r' has more than 1048576 elements",
                 [&](Function&, Handle, Handle) { registers("r", f32, {int64_t{1} << 40}); });
  EXPECT_REFUSED("the registers tensor 'r' has more than 1048576 elements",
                 [&](Function&, Handle, Handle) { registers("r", f32, {2048, 2048}); });
  EXPECT_REFUSED("an extent of a tensor is -1",
                 [&](Function&, Handle, Handle) { registers("r", f32, {-1}); });
}

TEST(Refusals, Printf) {
  int line = 0;
  expect(body_refusal([&](Function&, Handle x, Handle) {
           line = __LINE__ + 1;
           lang::printf("%d\n", x[0]);
         }),
         line, "printf argument 1 is of type f32; '%d' takes an integer of at most 32 bits");
  EXPECT_REFUSED("'%f' takes a floating-point number",
                 [&](Function&, Handle, Handle n) { lang::printf("%f\n", n); });
  EXPECT_REFUSED("use %lld",
                 [&](Function&, Handle, Handle n) { lang::printf("%d\n", cast(n, i64)); });
  EXPECT_REFUSED("printf has 1 arguments, and the format asks for more",
                 [&](Function&, Handle, Handle n) { lang::printf("%d %d\n", n); });
  EXPECT_REFUSED("printf has 1 arguments, and the format asks for 0",
                 [&](Function&, Handle, Handle n) { lang::printf("none\n", n); });
  EXPECT_REFUSED("printf cannot print with '%s",
                 [&](Function&, Handle, Handle n) { lang::printf("%s\n", n); });
  EXPECT_EQ(body_refusal([&](Function&, Handle x, Handle n) {
              lang::printf("100 %%\n");
              lang::printf("%5.2f %-4d %lld %p %c\n", x[0], n, cast(n, i64), x, 65);
            }),
            "");
}

}  // namespace
}  // namespace hidet::lang
