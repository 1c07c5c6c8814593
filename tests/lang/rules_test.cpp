// The rules that recording and building state, each with its whole message; refusals_test.cpp and calls_test.cpp have those about
// scopes, stale values, calls and launches. tools/lint.py finds a rule whose message no test has.
#include "rules.h"

namespace hidet::lang {
namespace {

TEST(Rules, Variables) {
  EXPECT_EQ(in_function([](auto&, auto, auto) { var("v", tensor(f32, {4})); }),
            "the variable 'v' cannot be of type tensor(f32, [4]); use registers() or shared()");
  EXPECT_EQ(in_function([](auto&, auto, auto) { var("v", Type()); }),
            "the variable 'v' cannot be of type void");
  EXPECT_EQ(in_function([](auto&, auto, auto) { let("v", Value()); }), "'v' is bound to no value");
  EXPECT_EQ(in_function([](auto& f, auto, auto n) {
              for (auto i : range(n)) f.arg("late" + std::to_string(i.type().lanes()), f32);
            }),
            "the argument 'late1' is declared inside a scope; declare arguments first");
  EXPECT_EQ(in_function([](auto& f, auto, auto) { f.arg("v", Type()); }),
            "the argument 'v' cannot be of type void");
  EXPECT_EQ(in_function([](auto&, auto, auto) { comment("two\nlines"); }), "a comment is one line");
  EXPECT_EQ(in_function([](auto&, auto, auto n) { assert_(n, "n"); }),
            "assert_ takes a boolean, not i32");
  EXPECT_EQ(in_function([](auto&, auto, auto n) {
              auto v = var("v", i32, n);
              asm_("mov %1, %0", {{"r", v}}, {{"r", n}});
            }),
            "the constraint 'r' of an output begins with = or +");
  std::unique_ptr<Var> kept;
  EXPECT_EQ(in_function([&](auto&, auto, auto n) {
              kept =
                  std::make_unique<Var>(ir::make_var("v", i32, true, SourceLoc(Here::current())));
              (void)n;
            }),
            "");
  try {
    (void)kept->value();
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(without_place(e.what()), "the variable 'v' is read outside a script function");
  }
}

TEST(Rules, Operands) {
  const auto use = [](auto body) {
    return in_function([&](auto& f, auto x, auto n) {
      body(x, n, f.arg("h", f16), f.arg("w", i64), f.arg("c", boolean), f.arg("u", u32));
    });
  };
  EXPECT_EQ(use([](auto x, auto, auto h, auto, auto, auto) { let("v", x + h); }),
            "'add' of ptr(f32) and f16: a pointer takes + or - of an integer");
  EXPECT_EQ(use([](auto x, auto n, auto, auto, auto, auto) { let("v", x * n); }),
            "'mul' of ptr(f32) and i32: a pointer takes + or - of an integer");
  EXPECT_EQ(use([](auto x, auto, auto, auto, auto, auto) { let("v", -x); }),
            "'neg' takes a number, not ptr(f32)");
  EXPECT_EQ(use([](auto, auto, auto h, auto, auto, auto) { let("v", ~h); }),
            "'bit_not' does not take f16");
  EXPECT_EQ(use([](auto, auto n, auto, auto, auto, auto) { let("v", n + Value()); }),
            "'add' has an operand without a value");
  EXPECT_EQ(use([](auto, auto n, auto, auto, auto, auto) { let("v", n && n); }),
            "'&&' takes booleans, not i32");
  EXPECT_EQ(use([](auto, auto, auto, auto, auto c, auto) { let("v", c + c); }),
            "'add' does not take booleans; cast them");
  EXPECT_EQ(use([](auto, auto, auto h, auto, auto, auto) { let("v", h & h); }),
            "'bit_and' takes integers, not f16");
  EXPECT_EQ(use([](auto, auto n, auto, auto, auto, auto) { let("v", select(n, n, n)); }),
            "select takes a boolean condition, not i32");
  EXPECT_EQ(use([](auto x, auto n, auto, auto, auto, auto) { let("v", select(n > 0, x, n)); }),
            "'select' takes numbers, not ptr(f32) and i32");
  EXPECT_EQ(use([](auto, auto n, auto, auto, auto, auto u) { let("v", n + u); }),
            "'add' of i32 and u32 has no common type; cast one of them");
  EXPECT_EQ(use([](auto, auto n, auto, auto, auto, auto) { let("v", n + (int64_t{1} << 40)); }),
            "the constant 1099511627776 does not fit i32 of the other operand; cast one of them");
  EXPECT_EQ(use([](auto, auto n, auto, auto, auto, auto) { let("v", n * 0.5); }),
            "the constant 0.5 meets an operand of type i32; cast one of them");
  EXPECT_EQ(use([](auto x, auto, auto, auto, auto, auto) { let("v", cast(x, i64)); }),
            "cannot cast ptr(f32) to i64");
  EXPECT_EQ(use([](auto, auto n, auto, auto, auto, auto) { let("v", n[0]); }),
            "an index needs a pointer or a tensor, not i32");
}

TEST(Rules, Vectors) {
  EXPECT_EQ(in_function([](auto&, auto x, auto) { let("v", load(x, 4) + load(x, 8)); }),
            "'add' of f32x4 and f32x8: the lane counts differ");
  EXPECT_EQ(
      in_function([](auto&, auto x, auto) { let("v", cast(load(x, 4), Type::vector(f16, 8))); }),
      "cannot cast f32x4 to f16x8: the lane counts differ");
  EXPECT_EQ(in_function([](auto&, auto x, auto) { let("v", reinterpret(load(x, 4), Type(f64))); }),
            "cannot reinterpret f32x4 as f64: the sizes differ");
  EXPECT_EQ(in_function([](auto&, auto, auto n) { let("v", reinterpret(n, ptr(f32))); }),
            "a pointer cast takes pointers, not i32 and ptr(f32)");
  EXPECT_EQ(in_function([](auto&, auto, auto) { let("v", reinterpret(Value(), ptr(f32))); }),
            "reinterpret() without a value");
  EXPECT_EQ(in_function([](auto&, auto x, auto n) { let("v", make_vec({x[0], n})); }),
            "a vector of f32 has a lane of type i32");
  EXPECT_EQ(in_function([](auto&, auto x, auto) { let("v", make_vec({x, x})); }),
            "a vector is made of scalars");
  EXPECT_EQ(in_function([](auto&, auto x, auto) { let("v", broadcast(load(x, 4), 8)); }),
            "only a scalar broadcasts, not f32x4");
  EXPECT_EQ(in_function([](auto&, auto, auto n) { let("v", lane(n, 1)); }), "a lane of i32");
  EXPECT_EQ(in_function([](auto&, auto x, auto) { let("v", lane(load(x, 4), 4)); }),
            "lane 4 of f32x4");
  EXPECT_EQ(in_function([](auto&, auto x, auto) { let("v", load(x, 65)); }),
            "load() of 65 elements; from 1 to 64");
  EXPECT_EQ(in_function([](auto&, auto, auto n) { store(n, 1); }),
            "store() takes a pointer, not i32");
}

TEST(Rules, Tensors) {
  EXPECT_EQ(in_function([](auto&, auto, auto) { registers("t", f32, {2.5}); }),
            "an extent of a tensor is an integer, not f64");
  EXPECT_EQ(in_function([](auto&, auto x, auto) { global("t", x, {cast(x[0], i32)}); }),
            "an extent of a tensor reads a variable or memory; bind it with let");
  EXPECT_EQ(in_function([](auto&, auto, auto n) { registers("t", f32, {n}); }),
            "the registers tensor 't' needs constant extents");
  EXPECT_EQ(
      in_function([](auto&, auto, auto) { shared("t", f32, {4}); }),
      "the shared tensor 't' in the public function 'f'; shared memory is for CUDA functions");
  EXPECT_EQ(
      in_kernel([](auto&, auto, auto n) { shared("t", f32, {4}, Layout::strided({n.expr()})); }),
      "the shape of 't' is not constant");
  EXPECT_EQ(in_kernel([](auto&, auto, auto) { shared("t", f32, {16384}); }),
            "'k' declares 65536 bytes of shared memory with 't'; the limit is 49152, use "
            "dynamic_shared for more");
  EXPECT_EQ(in_function([](auto&, auto x, auto) { view("t", x, tensor(f16, {4})); }),
            "a view of f16 elements needs a ptr(f16), not ptr(f32); use reinterpret");
  EXPECT_EQ(in_function([](auto&, auto x, auto) { view("t", x, Type(f32)); }),
            "view() makes a tensor, not f32");
  EXPECT_EQ(in_function([](auto&, auto, auto n) { global("t", n, {4}); }),
            "global() takes a pointer, not i32");
  EXPECT_EQ(in_function([](auto&, auto, auto) { registers("t", f32, {4}).ptr(0); }),
            "a tensor in registers has no address");
  EXPECT_EQ(in_function([](auto&, auto x, auto) { global("t", x, {4, 4}).slice({0}, {2}); }),
            "slice() of a tensor of rank 2 takes 2 offsets and as many extents");
  EXPECT_EQ(
      in_function([](auto&, auto x, auto) {
        global("t", x, {4}, Layout::swizzled({}, 1, 0, 1)).slice({0}, {2});
      }),
      "slice() takes a row major, column major or strided tensor, not swizzle(row_major, 1, 0, "
      "1)");
  EXPECT_EQ(in_function([](auto&, auto x, auto) { (void)x.read({0}); }),
            "read() takes a tensor, not ptr(f32)");
  EXPECT_EQ(in_function([](auto&, auto x, auto) { global("t", x, {4}).store({0}, x); }),
            "store() takes a number or a vector, not ptr(f32)");
  EXPECT_EQ(in_function([](auto&, auto x, auto) { let("v", global("t", x, {4, 4})(0)); }),
            "tensor 't' of rank 2 takes 2 indices, not 1");
}

TEST(Rules, Loops) {
  EXPECT_EQ(in_function([](auto&, auto x, auto) {
              for (auto i : range(x)) x[i] = 0;
            }),
            "a loop takes integers, not ptr(f32)");
  EXPECT_EQ(in_function([](auto&, auto x, auto n) {
              for (auto i : parallel(n, 0)) x[i] = 0;
            }),
            "the grain is 0; it must be at least 1");
  EXPECT_EQ(in_function([](auto&, auto x, auto) {
              for (auto i : grid(std::vector<Value>{})) x[0] = static_cast<float>(i.size());
            }),
            "grid() of no extents");
  EXPECT_EQ(in_function([](auto&, auto x, auto n) {
              for (auto _ : loop_while(n)) x[0] = 0;
            }),
            "loop_while takes a boolean, not i32");
  EXPECT_EQ(in_function([](auto&, auto x, auto n) {
              for (auto i : spatial(0).on(n)) x[i] = 0;
            }),
            "the task mapping spatial(0) has the extent 0");
  EXPECT_EQ(in_function([](auto&, auto x, auto n) {
              const ir::TaskMapping odd{{{true, {4}, {}}, {false, {2, 2}, {}}}};
              for (auto i : Mapping<1>(odd).on(n)) x[i] = 0;
            }),
            "the task mapping spatial(4).repeat(2, 2) has factors of different ranks");
  EXPECT_EQ(in_function([](auto&, auto x, auto n) {
              auto again = range(n);
              for (auto i : again) {
                x[i] = 0;
                for (auto j : again) x[j] = 1;
              }
            }),
            "a loop is already open");
}

TEST(Rules, Results) {
  EXPECT_EQ(in_kernel([](auto& f, auto, auto n) { f.returns(n); }),
            "the cuda_kernel 'k' cannot return a value");
  EXPECT_EQ(in_function([](auto& f, auto x, auto) { f.returns(global("t", x, {4})); }),
            "'f' cannot return a value of type tensor(f32, [4])");
  EXPECT_EQ(in_function([](auto& f, auto, auto n) {
              if (auto _ = when(n > 0)) f.returns(n);
              f.returns();
            }),
            "'f' returns a value in one place and none in another");
  EXPECT_EQ(without_place(in_build([](ScriptModule& m) {
              m.public_func("f", [](Function& f) { f.returns(f.arg("x", ptr(f32))); });
            })),
            "the public function 'f' returns ptr(f32); it may return a scalar");
}

TEST(Rules, Launches) {
  EXPECT_EQ(in_kernel([](auto& f, auto, auto) { f.min_blocks(33); }),
            "min_blocks of 'k' is 33; it must be from 1 to 32");
  EXPECT_EQ(in_kernel([](auto& f, auto, auto) { f.cluster_dim(8, 4); }),
            "the clusters of 'k' have 32 blocks; the limit is 16");
  EXPECT_EQ(in_kernel([](auto& f, auto, auto) { f.block_dim(64, 32); }),
            "the blocks of 'k' have 2048 threads; the limit is 1024");
  EXPECT_EQ(in_kernel([](auto& f, auto, auto) { f.grid_dim(0.5); }),
            "grid_dim x of 'k' is an integer, not f64");
  EXPECT_EQ(in_kernel([](auto& f, auto, auto) { f.dynamic_shared_bytes(232449); }),
            "dynamic_shared_bytes x of 'k' is 232449; it must be from 1 to 232448");
  EXPECT_EQ(in_kernel([](auto&, auto, auto) { dynamic_shared("t", f32, {60000}); }),
            "'k' asks for 240000 bytes of dynamic shared memory; the limit is 232448");
  EXPECT_EQ(in_kernel([](auto& f, auto, auto) {
              dynamic_shared("t", f32, {64});
              f.dynamic_shared_bytes(128);
            }),
            "'k' sets dynamic_shared_bytes to 128; its dynamic_shared tensors take 256");
  EXPECT_EQ(without_place(refusal(
                [](ScriptModule& m) { m.cuda_kernel("k", [](Function& f) { f.grid_dim(1); }); })),
            "the cuda_kernel 'k' has no block_dim; set f.grid_dim(...) and f.block_dim(...)");
}

TEST(Rules, Modules) {
  EXPECT_EQ(without_place(refusal([](ScriptModule& m) { m.global_var("g", ptr(f32)); })),
            "the global variable 'g' is a scalar or a tensor, not ptr(f32)");
  EXPECT_EQ(
      without_place(refusal([](ScriptModule& m) { m.global_var("g", tensor(f32, {3}), {1, 2}); })),
      "the global variable 'g' has 3 elements and 2 initial values");
  EXPECT_EQ(without_place(refusal(
                [](ScriptModule& m) { m.global_var("g", tensor(f32, {hidet::DimExpr("n")})); })),
            "the global variable 'g' needs constant extents");
  EXPECT_EQ(
      without_place(refusal([](ScriptModule& m) { m.extern_func("e", {i32}, i32, nullptr); })),
      "the extern function 'e' has no address");
  EXPECT_EQ(
      without_place(refusal([](ScriptModule& m) {
        auto g = m.global_var("g", tensor(f32, {3}));
        m.cpu_internal("one", [&](Function& f) { f.returns(g(0)); });
        m.cuda_internal("two", [&](Function& f) { f.returns(g(1)); });
      })),
      "the global variable 'g' is used by a CUDA function and by a CPU function; make one for "
      "each");
  EXPECT_THAT(refusal([](ScriptModule&) {}),
              testing::EndsWith("error: the module 'bad' has no function"));
  EXPECT_EQ(without_place(in_build([](ScriptModule& m) {
              m.cpu_internal("f", [](Function& f) { f.returns(f.arg("x", f32)); });
            })),
            "the module 'bad' has no public function to call");
  EXPECT_EQ(without_place(refusal([](ScriptModule& m) {
              m.cuda_kernel("k", [](Function& f) {
                f.arg("t", tensor_map_type);
                f.grid_dim(1);
                f.block_dim(32);
              });
            })),
            "the kernel 'k' takes the tensor map 't': write a public function that makes it with "
            "tensor_map() and launches it");
  ScriptModule m("m");
  m.public_func("f", [](Function&) {});
  try {
    (void)m.lowered("gpu");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()), "there is no target 'gpu'; use cpu, cuda or sim");
  }
}

TEST(Rules, Primitives) {
  EXPECT_EQ(in_function([](auto&, auto, auto n) { let("v", prim("glow", {n}, i32)); }),
            "there is no primitive 'glow'");
  EXPECT_EQ(in_function([](auto&, auto, auto) { let("v", exp(Value())); }),
            "an argument of 'exp' has no value");
  EXPECT_EQ(in_kernel([](auto&, auto, auto n) { atomic_add(n, 1); }),
            "an atomic takes a pointer to a scalar, not i32");
  EXPECT_EQ(in_kernel([](auto&, auto x, auto) { atomic_or(x, 1); }),
            "'atomic_or' does not work on f32; it takes i32, u32, i64, u64");
  EXPECT_EQ(in_kernel([](auto&, auto x, auto) { atomic_add(reinterpret(x, ptr(i8)), 1); }),
            "'atomic_add' does not work on i8; it takes i32, u32, i64, u64, f16, bf16, f32, f64");
  EXPECT_EQ(in_kernel([](auto&, auto, auto n) { let("v", match_any(n > 0)); }),
            "match_any takes a value of 32 or 64 bits, not boolean");
  EXPECT_EQ(in_kernel([](auto&, auto x, auto) { let("v", ldmatrix(x, 3)); }),
            "ldmatrix moves 1, 2 or 4 matrices, not 3");
  EXPECT_EQ(in_kernel([](auto&, auto x, auto n) { stmatrix(x, n); }),
            "stmatrix takes a vector of u32, not i32");
  EXPECT_EQ(in_kernel([](auto&, auto x, auto) { assume_aligned(x, 24); }),
            "assume_aligned takes a pointer and a power of two");
  EXPECT_EQ(in_kernel([](auto&, auto x, auto) { cp_async(x, x, 2); }),
            "cp_async copies 4, 8 or 16 bytes, not 2");
  EXPECT_EQ(in_function([](auto&, auto, auto) { let("v", scratch(4, 64, f32)); }),
            "scratch block 4; from 0 to 3");
  EXPECT_EQ(in_function([](auto&, auto, auto) { lang::printf("%d\n", Value()); }),
            "printf argument 1 has no value");
  EXPECT_EQ(
      in_function([](auto&, auto, auto n) { lang::printf("%q\n", n); }),
      "printf cannot print with '%q\n'; use d i u x c, with l or ll for 64 bits, f e g a, or p");
  EXPECT_EQ(in_function([](auto&, auto, auto) { lang::printf(nullptr); }),
            "printf without a format");
}

TEST(Rules, Calls) {
  const auto call = [](auto body) {
    return without_place(refusal([&](ScriptModule& m) {
      auto g = m.cpu_internal("g", [](Function& f) { f.arg("p", ptr(f32)); });
      m.public_func("f", [&](Function&) { body(g); });
    }));
  };
  EXPECT_EQ(
      call([](auto& g) { g(registers("t", f32, {4})); }),
      "the argument 'p' of g(ptr(f32) p) is given a tensor in registers, which has no address");
  EXPECT_EQ(call([](auto& g) { g(Value()); }), "the argument 'p' of g(ptr(f32) p) has no value");
}

}  // namespace
}  // namespace hidet::lang
