// Loops whose last step passes their type or whose step is 0, constant indices outside, and constants of the wrong kind.
#include "both.h"
#include "refusal.h"

namespace hidet::lang {
namespace {
using testing::HasSubstr;

#define EXPECT_REFUSED(text, ...) \
  EXPECT_THAT(                    \
      body_refusal(__VA_ARGS__),  \
      testing::AllOf(testing::StartsWith(at("edges_test.cpp", __LINE__, "")), HasSubstr(text)))

/// How often a loop runs, the sum of its variable less its begin, and the last one less the end.
Body counting(const Type& type, int64_t begin, int64_t end, int64_t step, bool known) {
  return [=](Function&, const std::vector<Handle>& in, const Handle& out) {
    // What is not known when recording comes from memory.
    const auto bound = [&](const char* name, int64_t value, int i) {
      return let(name, known ? cast(Value(value), type) : cast(Value(in[0][i]), type));
    };
    auto b = bound("b", begin, 0), e = bound("e", end, 1), s = bound("s", step, 2);
    for (auto i : range(b, e, s)) {
      out[0] += 1;
      out[1] += cast(i, i64) - cast(b, i64);
      out[2] = cast(e, i64) - cast(i, i64);
    }
  };
}

TEST(Edges, LastStepPassesTheType) {
  struct Case {
    DType type;
    int64_t begin, end, step;
  };
  constexpr int64_t most = INT64_MAX, least = INT64_MIN;
  for (const Case& c : {Case{i32, 2147483640, 2147483647, 5},
                        {u8, 0, 255, 2},
                        {u8, 250, 255, 255},
                        {i8, -128, 127, 100},
                        {u16, 65000, 65535, 300},
                        {i32, -7, 2147483647, 1 << 30},
                        {u32, 4294967290, 4294967295, 4},
                        {i64, most - 7, most, 5},
                        {i64, least, most, most},
                        {i64, most - 3, most, 3},
                        {i64, 5, -5, 7}}) {
    uint64_t turns = 0, sum = 0, left = 0;
    for (__int128 i = c.begin; i < c.end; i += c.step) {
      turns++;
      sum += static_cast<uint64_t>(i) - static_cast<uint64_t>(c.begin);
      left = static_cast<uint64_t>(c.end) - static_cast<uint64_t>(i);
    }
    const auto number = [](uint64_t v) { return static_cast<double>(static_cast<int64_t>(v)); };
    const std::vector<double> expected{number(turns), number(sum), number(left)};
    const Tensor bounds = from_vector<int64_t>({c.begin, c.end, c.step}, {3}),
                 out = zeros({3}, i64);
    for (const bool known : {true, false}) {
      SCOPED_TRACE(testing::Message() << c.type.name() << " from " << c.begin << " to " << c.end
                                      << " by " << c.step << (known ? "" : ", read from memory"));
      expect_both({bounds}, out, expected, counting(Type(c.type), c.begin, c.end, c.step, known));
    }
  }
}

TEST(Edges, UnsignedLoopsPastTheSignedOnes) {
  const Body body = [](Function&, const std::vector<Handle>& in, const Handle& out) {
    auto end = let("end", cast(Value(in[0][0]), Type(u64)));  // 2^64 - 1
    for (auto i : range(end - 10, end, let("s", cast(Value(in[0][1]), Type(u64))))) {
      out[0] += 1;
      out[1] = cast(end - i, i64);
    }
  };
  expect_both({from_vector<int64_t>({-1, 4}, {2})}, zeros({2}, i64), {3, 2}, body);
}

TEST(Edges, StepsThatAreNotPositive) {
  const auto record = [](Function& f) {
    auto x = f.arg("x", ptr(f32));
    auto s = f.arg("s", i32);
    f.arg("end", i64);
    for (auto i : range(0, 8, s)) x[i] = 1.f;
  };
  ScriptModule host("host"), device("device");
  host.public_func("launch", record);
  device.cuda_kernel("k", [&](Function& f) {
    record(f);
    f.grid_dim(1);
    f.block_dim(1);
  });
  const auto built = host.build();
  for (const int step : {0, -1, -2147483647 - 1}) {
    const Tensor x = zeros({8}, f32);
    try {
      built(x, step, int64_t{8});
      ADD_FAILURE() << step;
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), HasSubstr("the step of the loop over 'i' is less than 1"));
      EXPECT_EQ(e.code(), ErrorCode::usage);
    }
    try {
      device.simulate("launch", x, step, int64_t{8});
      ADD_FAILURE() << step;
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), testing::StartsWith("edges_test.cpp:"));
      EXPECT_THAT(e.what(), HasSubstr("the step of the loop over 'i' is less than 1"));
    }
    EXPECT_EQ(x.to_doubles(), std::vector<double>(8));
  }
  const Tensor x = zeros({8}, f32);
  built(x, 3, int64_t{8});
  EXPECT_EQ(x.to_doubles(), (std::vector<double>{1, 0, 0, 1, 0, 0, 1, 0}));
}

TEST(Edges, ConstantIndicesOutside) {
  const auto refused = [&](const char* text, int line, auto body) {
    const std::string message = [&] {
      try {
        ScriptModule bad("bad");
        bad.cuda_kernel("k", [&](Function& f) {
          auto x = f.arg("x", tensor(f32, {2, 4}));
          f.grid_dim(1);
          f.block_dim(32);
          body(f, x);
        });
        bad.simulate("launch", zeros({2, 4}, f32));
      } catch (const Error& e) {
        return std::string(e.what());
      }
      return std::string();
    }();
    EXPECT_EQ(message, text[0] ? at("edges_test.cpp", line, text) : std::string()) << line;
  };
#define IN_KERNEL(text, ...)                        \
  refused(text, __LINE__, [](Function&, Handle x) { \
    __VA_ARGS__;                                    \
    (void)x;                                        \
  })
  IN_KERNEL("1 from index 2 in dimension 0 of 'x' reaches outside; the extent is 2 (in 'k')",
            x(2, 0) = 1.f);
  IN_KERNEL("1 from index -1 in dimension 1 of 'x' reaches outside; the extent is 4 (in 'k')",
            let("v", x(0, -1)));
  IN_KERNEL("1 from index 4 in dimension 0 of 'r' reaches outside; the extent is 4 (in 'k')",
            auto r = registers("r", f32, {4});
            r(4) = 1.f);
  IN_KERNEL("1 from index 9 in dimension 0 of 's' reaches outside; the extent is 9 (in 'k')",
            auto s = shared("s", f32, {9});
            s[9] = 1.f);
  IN_KERNEL("1 from index 3 in dimension 0 of 'd' reaches outside; the extent is 3 (in 'k')",
            auto d = dynamic_shared("d", f32, {3});
            d[3] = 1.f);
  IN_KERNEL("4 from index 1 in dimension 1 of 'x' reaches outside; the extent is 4 (in 'k')",
            let("v", x.load({1, 1}, 4)));
  IN_KERNEL("1 from index 3 in dimension 0 of 'x' reaches outside; the extent is 2 (in 'k')",
            let("p", x.ptr(3, 0)));
  IN_KERNEL("slice() of 2 from 1 in dimension 0 reaches outside; the extent is 2",
            x.slice({1, 0}, {2, 4}));
  IN_KERNEL("slice() of 5 from 0 in dimension 1 reaches outside; the extent is 4",
            x.slice({0, let("b", select(x(0, 0) > 0.f, 0, 1))}, {2, 5}));
  IN_KERNEL("an extent of a tensor is -1", x.slice({0, 0}, {2, -1}));
  // A guarded access, a place behind the end as an address, and what never runs.
  IN_KERNEL("", x.write({2, 0}, x.read({-1, 0})));
  IN_KERNEL("", let("p", x.ptr(2, 0)));
  IN_KERNEL("", if (auto _ = when(Value(5) < 4)) x(5, 0) = 1.f);
#undef IN_KERNEL
}

TEST(Edges, BooleansAreNoNumbers) {
  EXPECT_REFUSED("an element of type f32 is given boolean; cast it",
                 [](Function&, Handle x, Handle) { x[0] = true; });
  EXPECT_REFUSED("an element of type f32 is given boolean; cast it",
                 [](Function&, Handle x, Handle n) { x[0] = n > 1; });
  EXPECT_REFUSED("a constant of type boolean meets an operand of type f32; cast one of them",
                 [](Function&, Handle x, Handle) { x[0] = x[0] + true; });
  EXPECT_REFUSED("a constant of type i32 meets an operand of type boolean; cast one of them",
                 [](Function&, Handle x, Handle n) { x[0] = select((n > 1) == 1, 1.f, 2.f); });
  EXPECT_EQ(body_refusal([](Function&, Handle x, Handle) { x[0] = cast(true, f32); }), "");
}

TEST(Edges, PlacesOfLayouts) {
  EXPECT_THAT(body_refusal([](Function&, Handle x, Handle) {
                view(x, tensor(f32, {2, 3}, permute({0, 0})));
              }),
              testing::AllOf(HasSubstr("permute"), HasSubstr("error: "), HasSubstr("(in 'f')")));
}

}  // namespace
}  // namespace hidet::lang
