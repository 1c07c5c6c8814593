// Numbers of C++ as constants, compound assignments, variables of modules, functions of the host: the same on the CPU and in the
// simulator, against values computed here.
#include <hidet/ir/passes.h>

#include <cstring>

#include "both.h"
#include "refusal.h"

namespace hidet::lang {
namespace {
using testing::HasSubstr;
using testing::StartsWith;

constexpr uint64_t kTop = uint64_t{1} << 63;

template <class T>
Tensor tensor_of(const std::vector<T>& values, DType dtype) {
  const Tensor t = zeros({static_cast<int64_t>(values.size())}, dtype);
  std::memcpy(t.data(), values.data(), values.size() * sizeof(T));
  return t;
}
template <class T>
std::vector<T> values_of(const Tensor& t) {
  std::vector<T> out(static_cast<size_t>(t.bytes()) / sizeof(T));
  std::memcpy(out.data(), t.data(), out.size() * sizeof(T));
  return out;
}

/// out after the body, with in: ptr(T), on the CPU and in the simulator.
template <class T>
void expect_exactly(const std::vector<T>& in, const std::vector<T>& expected, DType dtype,
                    const std::function<void(const Handle& in, const Handle& out)>& body) {
  for (const bool cuda : {false, true}) {
    ScriptModule m("exact");
    const auto define = [&](Function& f) {
      const Handle x = f.arg("in", ptr(dtype)), out = f.arg("out", ptr(dtype));
      if (cuda) f.grid_dim(1), f.block_dim(1);
      body(x, out);
    };
    cuda ? m.cuda_kernel("k", define) : m.public_func("launch", define);
    const Tensor x = tensor_of(in, dtype),
                 out = zeros({static_cast<int64_t>(expected.size())}, dtype);
    if (cuda) m.simulate("launch", x, out);
    else m.build()(x, out);
    EXPECT_EQ(values_of<T>(out), expected) << (cuda ? "in the simulator" : "on the CPU");
    // The text form keeps all of it.
    const ir::Module module = m.module();
    EXPECT_TRUE(equal(ir::parse(ir::print(module)), module)) << ir::print(module);
  }
}

// --- numbers of 2^63 and above

TEST(Constants, Types) {
  EXPECT_EQ(Value(uint64_t{5}).dtype(), i32);
  EXPECT_EQ(Value(size_t{1} << 40).dtype(), i64);
  EXPECT_EQ(Value(kTop - 1).dtype(), i64);
  EXPECT_EQ(Value(kTop).dtype(), u64);
  EXPECT_EQ(ir::print(Value(~uint64_t{0}).expr()), "18446744073709551615:u64");
  EXPECT_EQ(ir::print((Value(kTop) + Value(int64_t{1} << 40)).expr()), "9223373136366403584:u64");
  EXPECT_EQ(ir::print((Value(int64_t{1} << 40) + Value(kTop)).expr()), "9223373136366403584:u64");
  EXPECT_EQ(ir::print((Value(kTop) > Value(3)).expr()), "true");
  EXPECT_EQ(ir::print(cast(Value(kTop), f32).expr()), ir::print(Value(0x1p63f).expr()));
}

TEST(Constants, Arithmetic) {
  expect_exactly<uint64_t>({kTop + 7, 12},
                           {~uint64_t{0}, 7, 1, 0, kTop | 12, kTop, 2, kTop + 7, 3, kTop - 12}, u64,
                           [](const Handle& x, const Handle& out) {
                             out[0] = ~uint64_t{0};
                             out[1] = x[0] ^ kTop;
                             out[2] = select(x[0] >= kTop, 1, 0);
                             out[3] = select(kTop <= x[1], 1, 0);
                             out[4] = kTop | x[1];
                             out[5] = let("typed", u64, kTop);
                             auto v = var("v", u64, kTop);
                             v /= kTop / 2;
                             out[6] = v;
                             out[7] = min(x[0], ~uint64_t{0});
                             out[8] = x[1] / 4 + (x[1] >> 63);
                             out[9] = kTop - x[1];
                           });
  expect_exactly<uint64_t>({kTop + 3}, {kTop, 2}, u64, [](const Handle& x, const Handle& out) {
    for (auto i : range(Value(0), x[0], kTop)) {
      out[0] += i;
      out[1] += 1;
    }
  });
  expect_both({full({1}, 2, f32)}, zeros({2}), {0x1p64, 0x1.8p64},
              [](Function&, const std::vector<Handle>& in, const Handle& out) {
                out[0] = in[0][0] * kTop;
                out[1] = kTop + in[0][0] * kTop;
              });
}

TEST(Constants, Arguments) {
  ScriptModule m("arguments");
  auto twice = m.cpu_internal("twice", [](Function& f) {
    auto x = f.arg("x", u64);
    f.returns(x + x / 2);
  });
  m.public_func("launch", [&](Function& f) {
    auto out = f.arg("out", ptr(u64));
    auto x = f.arg("x", u64);
    out[0] = x;
    out[1] = twice(kTop);
    out[2] = twice(x);
  });
  const std::vector<uint64_t> expected = {kTop + 2, kTop + kTop / 2, kTop + 2 + kTop / 2 + 1};
  const Tensor built = zeros({3}, u64), simulated = zeros({3}, u64);
  m.build()(built, kTop + 2);
  m.simulate("launch", simulated, kTop + 2);
  EXPECT_EQ(values_of<uint64_t>(built), expected);
  EXPECT_EQ(values_of<uint64_t>(simulated), expected);

  ScriptModule narrow("narrow");
  narrow.public_func("launch", [](Function& f) { f.returns(f.arg("x", i64)); });
  const auto problem = [](auto call) -> std::string {
    try {
      call();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(problem([&] { narrow.build()(kTop); }),
              HasSubstr("9223372036854775808 does not fit in i64"));
  EXPECT_THAT(problem([&] { narrow.simulate("launch", kTop); }),
              HasSubstr("takes i64 for 'x', not 9223372036854775808"));
}

TEST(Constants, Refusals) {
#define EXPECT_REFUSED(text, ...)        \
  EXPECT_THAT(body_refusal(__VA_ARGS__), \
              testing::AllOf(StartsWith(at("values_test.cpp", __LINE__, "")), HasSubstr(text)))
  EXPECT_REFUSED("the constant 9223372036854775808 does not fit i32 of the other operand",
                 [](Function&, Handle x, Handle n) { x[n + kTop] = 0.f; });
  EXPECT_REFUSED("the constant 18446744073709551615 does not fit i32 of the other operand",
                 [](Function&, Handle x, Handle n) { x[0] = select(n == ~uint64_t{0}, 1.f, 0.f); });
  EXPECT_REFUSED("of type i64 is given the constant 9223372036854775808, which does not fit",
                 [](Function&, Handle, Handle) { let("v", i64, kTop); });
  EXPECT_REFUSED("the constant 9223372036854775808 does not fit i64 of the other operand",
                 [](Function&, Handle x, Handle n) { x[0] = cast(cast(n, i64) * kTop, f32); });
  EXPECT_REFUSED("a loop over i32 has a step 9223372036854775808, which may not fit",
                 [](Function&, Handle x, Handle n) {
                   for (auto i : range(Value(0), n, kTop)) x[i] = 0.f;
                 });
  EXPECT_REFUSED("lane 9223372036854775808 of f32x4",
                 [](Function&, Handle x, Handle) { x[0] = lane(load(x, 4), kTop); });
  EXPECT_REFUSED(
      "slice() of 1 from 9223372036854775808 in dimension 0 reaches outside",
      [](Function&, Handle x, Handle) { (void)view(x, tensor(f32, {4})).slice({kTop}, {1}); });
  EXPECT_THAT(body_refusal([](Function&, Handle, Handle) { (void)tensor(f32, {kTop}); }),
              HasSubstr("an extent of a tensor is 9223372036854775808"));
  EXPECT_REFUSED("the constant -1 does not fit u64",
                 [](Function&, Handle x, Handle) { x[0] = cast(Value(-1) + kTop, f32); });
}

TEST(Constants, InTheTextForm) {
  const auto reads = [](const std::string& value) -> std::string {
    try {
      const ir::Module m =
          ir::parse("module m\npublic f() {\n  let x: u64 = " + value + "\n}\n", "t");
      return ir::print(m);
    } catch (const Error& e) {
      return e.what();
    }
  };
  EXPECT_THAT(reads("18446744073709551615:u64"), HasSubstr("= 18446744073709551615:u64"));
  EXPECT_THAT(reads("0xffffffffffffffff:u64"), HasSubstr("= 18446744073709551615:u64"));
  EXPECT_THAT(reads("-1:u64"), HasSubstr("-1 is no value of u64"));
  EXPECT_THAT(reads("9223372036854775808:i64"),
              HasSubstr("9223372036854775808 is no value of i64"));
  EXPECT_THAT(reads("18446744073709551616:u64"),
              HasSubstr("the number 18446744073709551616 does not fit 64 bits"));
  EXPECT_THAT(reads("-9223372036854775809:i64"), HasSubstr("does not fit 64 bits"));
}

// --- compound assignments

TEST(Compound, OfElementsAndVariables) {
#define CHANGE(op, i) set([](auto&& v, const Value& by) { std::forward<decltype(v)>(v) op by; }, i)
  const auto change = [](auto&& set) {
    CHANGE(+=, 0);
    CHANGE(-=, 1);
    CHANGE(*=, 2);
    CHANGE(/=, 3);
    CHANGE(%=, 4);
    CHANGE(&=, 5);
    CHANGE(|=, 6);
    CHANGE(^=, 7);
    CHANGE(<<=, 8);
    CHANGE(>>=, 9);
  };
  const std::vector<int32_t> x = {-77, 5};
  const std::vector<int32_t> expected = {-72,     -82,     -385,    -15,      -2,
                                         -77 & 5, -77 | 5, -77 ^ 5, -77 * 32, -3};
  const auto check = [&](const char* what, auto body) {
    SCOPED_TRACE(what);
    expect_exactly<int32_t>(x, expected, i32, body);
  };
  check("elements behind a pointer", [&](const Handle& in, const Handle& out) {
    change([&](auto op, int i) {
      out[i] = in[0];
      op(out[i], in[1]);
    });
  });
  check("elements of a tensor", [&](const Handle& in, const Handle& out) {
    auto t = view(out, tensor(i32, {2, 5}));
    change([&](auto op, int i) {
      t(i / 5, i % 5) = in[0];
      op(t(i / 5, i % 5), in[1]);
    });
  });
  check("registers", [&](const Handle& in, const Handle& out) {
    auto t = registers("t", i32, {10});
    change([&](auto op, int i) {
      t(i) = in[0];
      op(t(i), in[1]);
      out[i] = t(i);
    });
  });
  check("variables", [&](const Handle& in, const Handle& out) {
    change([&](auto op, int i) {
      auto v = var("v", i32, in[0]);
      op(v, in[1]);
      out[i] = v;
    });
  });
  check("lanes of vectors", [&](const Handle& in, const Handle& out) {
    change([&](auto op, int i) {
      auto v = var("v", i32x4, broadcast(in[0], 4));
      op(v, broadcast(in[1], 4));
      out[i] = lane(v, i % 4);
    });
  });
  check("vectors behind a pointer", [&](const Handle& in, const Handle& out) {
    auto pairs = let("pairs", reinterpret(out, ptr(i32x2)));
    change([&](auto op, int i) {
      pairs[4] = broadcast(in[0], 2);
      op(pairs[4], make_vec({in[1], in[1]}));
      auto pair = let("pair", pairs[4]);
      if (i != 8) out[i] = lane(pair, 1);  // the pair is where 8 and 9 are
    });
    out[8] = in[0] << in[1];
  });
}

TEST(Compound, VectorsBehindAPointerCompileForCuda) {
  ScriptModule m("pairs");
  m.cuda_kernel("k", [](Function& f) {
    auto p = f.arg("p", ptr(f32x2));
    f.grid_dim(1);
    f.block_dim(32);
    p[threadIdx.x] *= broadcast(2.f, 2);
  });
  EXPECT_THAT(m.build({.cuda_arch = "sm_80"}).source(), HasSubstr("(float*)(p + "));
}

TEST(Compound, OfFloats) {
  expect_both({full({1}, 7.5, f32)}, zeros({2}), {1.5, 1.5},
              [](Function&, const std::vector<Handle>& in, const Handle& out) {
                out[0] = in[0][0];
                out[0] %= 2;
                auto v = var("v", f32, in[0][0]);
                v %= 3.0;
                out[1] = v;
              });
  EXPECT_REFUSED("'bit_and' takes integers, not f32",
                 [](Function&, Handle x, Handle) { x[0] &= x[1]; });
  EXPECT_REFUSED("'bit_or' takes integers, not f32",
                 [](Function&, Handle x, Handle) { view(x, tensor(f32, {4}))(1) |= 1; });
  EXPECT_REFUSED("'bit_xor' takes integers, not f32", [](Function&, Handle x, Handle) {
    auto v = var("v", f32, x[0]);
    v ^= 2;
  });
  EXPECT_REFUSED("'shl' takes integers, not f32", [](Function&, Handle x, Handle) { x[0] <<= 1; });
  EXPECT_REFUSED("'shr' takes integers, not f32", [](Function&, Handle x, Handle) { x[0] >>= 1; });
}

// --- variables of modules

TEST(Globals, ScalarsThatCudaFunctionsWrite) {
  ScriptModule m("counting");
  auto calls = m.global_var("calls", i32, {40});
  auto last = m.global_var("last", f64);
  auto limit = m.global_var("limit", u8, {200});
  auto bump = m.cuda_internal("bump", [&](Function& f) {
    auto by = f.arg("by", i32);
    calls += by;
  });
  auto kernel = m.cuda_kernel("k", [&](Function& f) {
    auto out = f.arg("out", ptr(f64));
    f.grid_dim(1);
    f.block_dim(1);
    bump(2);
    calls ^= 1;
    atomic_add(calls.ptr(), 100);
    last = cast(calls, f64) / 2.0;
    limit = 7;
    limit <<= 3;
    auto before = let("before", last);
    last = before + 1;
    out[0] = cast(calls, f64);
    out[1] = last + before;
    out[2] = cast(limit, f64);
  });
  m.public_func("launch", [&](Function& f) {
    auto out = f.arg("out", ptr(f64));
    kernel(out);
    kernel(out + 3);
  });
  const Tensor out = zeros({6}, f64);
  m.simulate("launch", out);
  const double first = (42 ^ 1) + 100, second = ((43 + 100 + 2) ^ 1) + 100;
  EXPECT_EQ(out.to_doubles(), (std::vector<double>{first, first + 1, 56, second, second + 1, 56}));
  const std::string text = m.build({.cuda_arch = "sm_80"}).source();
  EXPECT_THAT(text, HasSubstr("__device__ int32_t calls[1] = {40};"));
}

TEST(Globals, OfEveryType) {
  for (const DType t : {boolean, i8, u16, i32, u64, f16, bf16, f32, f64}) {
    ScriptModule m("typed");
    auto one = m.global_var("one", t, {1});
    auto two = m.global_var("two", tensor(t, {2}), {0, 1});
    m.cuda_kernel("k", [&](Function& f) {
      auto out = f.arg("out", ptr(f64));
      f.grid_dim(1);
      f.block_dim(1);
      out[0] = cast(one, f64);
      one = two(0);
      out[1] = cast(one, f64);
      two(0) = two(1);
      out[2] = cast(two(0), f64);
    });
    const Tensor out = zeros({3}, f64);
    m.simulate("launch", out);
    EXPECT_EQ(out.to_doubles(), (std::vector<double>{1, 0, 1})) << t.name();
    EXPECT_THAT(m.build({.cuda_arch = "sm_80"}).source(), HasSubstr("one[1]")) << t.name();
  }
}

TEST(Globals, RacesOnScalarsAreFound) {
  ScriptModule m("racing");
  auto sum = m.global_var("sum", i32);
  m.cuda_kernel("k", [&](Function& f) {
    auto out = f.arg("out", ptr(i32));
    f.grid_dim(1);
    f.block_dim(64);
    sum += threadIdx.x;
    out[threadIdx.x] = 0;
  });
  const Tensor out = zeros({64}, i32);
  try {
    m.simulate("launch", out);
    FAIL() << "no race";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("race on 'sum'"));
  }
}

TEST(Globals, OnTheCpu) {
  ScriptModule m("reading");
  auto scale = m.global_var("scale", f32, {2.5});
  auto table = m.global_var("table", tensor(i64, {2, 2}), {1, 2, 3, 4});
  m.public_func("launch", [&](Function& f) {
    auto out = f.arg("out", ptr(f32));
    for (auto i : parallel(2)) out[i] = scale * cast(table(1, i), f32);
  });
  const Tensor out = zeros({2}), simulated = zeros({2});
  m.build()(out);
  m.simulate("launch", simulated);
  EXPECT_EQ(out.to_doubles(), (std::vector<double>{7.5, 10}));
  EXPECT_EQ(simulated.to_doubles(), out.to_doubles());
}

TEST(Globals, Refusals) {
  const char* const constant =
      "the public function 'f' stores to the global variable 'g', which is constant on the CPU; "
      "pass memory as an argument";
  const auto on_the_cpu = [](const Type& type, auto body) {
    return refusal([&](ScriptModule& m) {
      auto g = m.global_var("g", type);
      m.public_func("f", [&](Function&) { body(g); });
    });
  };
  int line = __LINE__ + 1;
  EXPECT_EQ(on_the_cpu(i32, [](const Global& g) { g = 1; }), at("values_test.cpp", line, constant));
  EXPECT_THAT(on_the_cpu(i32, [](const Global& g) { g += 1; }), HasSubstr(constant));
  EXPECT_THAT(on_the_cpu(i32, [](const Global& g) { deref(g.ptr()) = 1; }), HasSubstr(constant));
  EXPECT_THAT(on_the_cpu(i32, [](const Global& g) { atomic_add(g.ptr(), 1); }),
              HasSubstr(constant));
  EXPECT_THAT(on_the_cpu(tensor(i32, {4}), [](const Global& g) { g(2) = 1; }), HasSubstr(constant));
  line = __LINE__ + 1;
  const auto one = [](const Global& g) { g = 1; };
  EXPECT_EQ(
      on_the_cpu(tensor(i32, {4}), one),
      at("values_test.cpp", line, "the global variable 'g' is a tensor; assign its elements"));
  EXPECT_THAT(on_the_cpu(i32, [](const Global& g) { (void)g(0); }),
              HasSubstr("the global variable 'g' is no tensor, but of type i32"));
  const auto on_cuda = [](const Type& type, auto body) {
    return refusal([&](ScriptModule& m) {
      auto g = m.global_var("g", type);
      m.cuda_internal("f", [&](Function&) { body(g); });
    });
  };
  line = __LINE__ + 1;
  const auto half = [](const Global& g) { g = 1.5f; };
  EXPECT_EQ(on_cuda(i32, half),
            at("values_test.cpp", line,
               "the global variable 'g' of type i32 is given a floating-point constant; cast it"));
  EXPECT_THAT(on_cuda(i32,
                      [](const Global& g) {
                        const Value old = g + 1;
                        g = 5;
                        let("late", old);
                      }),
              HasSubstr("before the store to it"));
}

// --- functions of the host

double mixed(int32_t a, float b, int64_t c, double d, uint8_t e, bool f, int16_t* p, uint64_t g) {
  p[1] = static_cast<int16_t>(p[0] + a);
  return a + static_cast<double>(b) + static_cast<double>(c) + d + e + f +
         static_cast<double>(g >> 60);
}
float half_of(float x) { return x / 2; }
int8_t least(int8_t a, int8_t b) { return a < b ? a : b; }
bool odd(int64_t v) { return v % 2 != 0; }
uint64_t top() { return kTop + 1; }
int32_t first_of(const int32_t* p, const void* q) { return q ? p[1] : p[0]; }

TEST(Extern, RunInTheSimulatorAsInCompiledCode) {
  ScriptModule m("host");
  const auto address = [](auto* f) { return reinterpret_cast<void*>(f); };
  auto mix = m.extern_func("mix", {i32, f32, i64, f64, u8, boolean, ptr(i16)}, f64,
                           address(+[](int32_t a, float b, int64_t c, double d, uint8_t e, bool f,
                                       int16_t* p) { return mixed(a, b, c, d, e, f, p, kTop); }));
  auto half = m.extern_func("half", {f32}, f32, address(half_of));
  auto smaller = m.extern_func("smaller", {i8, i8}, i8, address(least));
  auto is_odd = m.extern_func("is_odd", {i64}, boolean, address(odd));
  auto high = m.extern_func("high", {}, u64, address(top));
  auto first = m.extern_func("first", {ptr(i32), void_ptr()}, i32, address(first_of));
  auto kernel = m.cpu_kernel("kernel", [&](Function& f) {
    auto out = f.arg("out", ptr(f64));
    auto p = f.arg("p", ptr(i16));
    auto n = f.arg("n", i32);
    out[0] = mix(-3, 0.25f, int64_t{1} << 40, 0.5, 200, n > 2, p + 1);
    out[1] = cast(half(cast(n, f32)), f64);
    out[2] = cast(smaller(-100, 100), f64);
    out[3] = select(is_odd(cast(n, i64)), 1.0, 0.0);
    out[4] = select(high() > kTop, 1.0, 0.0);
    auto numbers = let("numbers", reinterpret(out + 5, ptr(i32)));
    for (auto i : range(2)) numbers[i] = i * 10 + n;
    auto two = let("two", first(numbers, numbers));
    out[5] = cast(two, f64);
  });
  m.public_func("launch", [&](Function& f) {
    auto out = f.arg("out", ptr(f64));
    auto p = f.arg("p", ptr(i16));
    kernel(out, p, 5);
  });
  const std::vector<double> expected = {
      -3 + 0.25 + static_cast<double>(int64_t{1} << 40) + 0.5 + 200 + 1 + 8, 2.5, -100, 1, 1, 15};
  for (const bool simulated : {false, true}) {
    const Tensor out = zeros({6}, f64), p = full({3}, 7, i16);
    if (simulated) m.simulate("launch", out, p);
    else m.build()(out, p);
    EXPECT_EQ(out.to_doubles(), expected) << simulated;
    EXPECT_EQ(p.to_doubles(), (std::vector<double>{7, 7, 4})) << simulated;
  }
}

TEST(Extern, Refusals) {
  const auto address = reinterpret_cast<void*>(half_of);
  // Of CUDA functions, at the call.
  int line = 0;
  const std::string of_cuda = refusal([&](ScriptModule& m) {
    auto half = m.extern_func("half", {f32}, f32, address);
    m.cuda_kernel("k", [&](Function& f) {
      auto x = f.arg("x", ptr(f32));
      f.grid_dim(1);
      f.block_dim(1);
      line = __LINE__ + 1;
      x[0] = half(x[1]);
    });
  });
  EXPECT_EQ(of_cuda,
            at("values_test.cpp", line,
               "the cuda_kernel function 'k' calls the extern function 'half', which only public, "
               "cpu_kernel and cpu_internal functions may call"));
  // In the simulator, of what has no place in registers.
  const auto simulated = [&](const std::vector<Type>& types, const Type& returns) -> std::string {
    ScriptModule m("host");
    auto odd_one = m.extern_func("odd_one", types, returns, address);
    m.public_func("launch", [&](Function& f) {
      std::vector<Located> args;
      for (const Type& t : types)
        args.emplace_back(t.is_vector() ? broadcast(Value(1.f), t.lanes()) : Value(1));
      if (returns.is_void()) odd_one.call(args, {});
      else f.returns(odd_one.call(args, {}));
    });
    try {
      m.simulate("launch");
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(simulated({f32x4}, f32),
              HasSubstr("the simulator does not run the extern function 'odd_one', since it takes "
                        "a f32x4, which 'launch' has"));
  EXPECT_THAT(simulated(std::vector<Type>(7, i32), Type()),
              HasSubstr("takes more than 6 integers and pointers or more than 8 floats"));
  EXPECT_THAT(simulated({}, ptr(f32)), HasSubstr("since it returns a ptr(f32)"));
}

}  // namespace
}  // namespace hidet::lang
