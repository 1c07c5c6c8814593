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

TEST(Edges, ValuesThatWereNeverGiven) {
  const char* const missing = " has an operand without a value";
#define EXPECT_MISSING(what, ...)                     \
  EXPECT_REFUSED(std::string("'" what "'") + missing, \
                 [](Function&, Handle x, Handle n) { x[0] = __VA_ARGS__ + cast(n, f32); })
  EXPECT_MISSING("add", (x[0] + Value()));
  EXPECT_MISSING("cast", cast(Value(), f32));
  EXPECT_MISSING("select", select(n > 1, Value(), 1.f));
  EXPECT_MISSING("[]", x[Value()]);
  EXPECT_MISSING("()", view(x, tensor(f32, {4}))(Value()));
  EXPECT_MISSING("lane", lane(Value(), 0));
  EXPECT_MISSING("broadcast", broadcast(Value(), 4));
  EXPECT_MISSING("vector", make_vec({Value(), Value()}));
#undef EXPECT_MISSING
  EXPECT_REFUSED("an argument of 'exp' has no value",
                 [](Function&, Handle x, Handle) { x[0] = exp(Value()); });
  EXPECT_REFUSED("'v' is bound to no value", [](Function&, Handle, Handle) { let("v", Value()); });
}

TEST(Edges, PlacesOfLayouts) {
  EXPECT_THAT(body_refusal([](Function&, Handle x, Handle) {
                view(x, tensor(f32, {2, 3}, permute({0, 0})));
              }),
              testing::AllOf(HasSubstr("permute"), HasSubstr("error: "), HasSubstr("(in 'f')")));
}

// --- indices

/// out(i, j) = 100 i + j over 20 x 20 elements, where the loops count in the type of in[0][0] = 20.
std::vector<double> squares() {
  std::vector<double> out;
  for (int i = 0; i < 20; i++)
    for (int j = 0; j < 20; j++) out.push_back(i * 100 + j);
  return out;
}

TEST(Edges, IndicesOfEveryIntegerType) {
  const auto number = [](const Handle& i, const Handle& j) {
    return cast(i, i32) * 100 + cast(j, i32);
  };
  for (const DType t : {u8, i8, i16, u16, i32, u32, i64, u64}) {
    SCOPED_TRACE(t.name());
    const Tensor n = from_doubles({20}, {1}, t), sizes = from_doubles({20}, {1}, i32);
    const auto both = [&](const char* what, auto body) {
      SCOPED_TRACE(what);
      expect_both({n, sizes}, zeros({400}, i32), squares(),
                  [&](Function&, const std::vector<Handle>& in, const Handle& out) {
                    body(let("n", in[0][0]), let("size", in[1][0]), out);
                  });
    };
    for (const Layout& layout : {row_major(), strided({20, 1}), reshape({400}),
                                 composition(row_major(), row_major(), {1, 20})})
      both(layout.text().c_str(), [&](Handle count, Handle, Handle out) {
        auto g = global("g", out, {20, 20}, layout);
        for (auto [i, j] : grid(count, count)) g(i, j) = number(i, j);
      });
    both("registers", [&](Handle count, Handle, Handle out) {
      auto r = registers("r", i32, {20, 20}, col_major());
      for (auto [i, j] : grid(count, count)) r(i, j) = number(i, j);
      for (auto [i, j] : grid(20, 20)) out[i * 20 + j] = r(i, j);
    });
    both("extents of that type", [&](Handle count, Handle, Handle out) {
      auto g = global("g", out, {count, count});
      for (auto [i, j] : grid(22, 22)) g.write({i, j}, number(i, j));
    });
    both("extents of another type", [&](Handle count, Handle size, Handle out) {
      auto g = global("g", out, {size, size});
      for (auto [i, j] : grid(count, count)) g.write({i, j}, number(i, j) + g.read({j, i}) * 0);
    });
    both("slices", [&](Handle count, Handle, Handle out) {
      auto g = global("g", out, {count, count});
      for (auto i : range(count)) {
        auto row = g.slice({i, 0}, {1, 20});
        for (auto j : range(count)) row(0, j) = number(i, j);
      }
    });
    both("guarded, of a larger extent", [&](Handle count, Handle, Handle out) {
      auto g = global("g", out, {300, 20});
      for (auto [i, j] : grid(count, count)) g.write({i, j}, number(i, j));
    });
    both("workers", [&](Handle count, Handle, Handle out) {
      for (auto w : range(count))
        for (auto [i, j] : repeat(20, 1).spatial(1, 20).on(w)) out[i * 20 + j] = number(i, j);
    });
  }
}

TEST(Edges, OffsetsThatPass32Bits) {
  // Addresses alone: places as multiples of 2^30 elements of one byte.
  static constexpr int64_t k30 = int64_t{1} << 30;
  const auto distance = [](const Value& p, const Handle& base, const Handle& to, int i) {
    // Steps of 2^30 back to the base, as no number of a pointer is there to print.
    auto at = var("at", ptr(u8), p);
    auto steps = var("steps", i64, 0);
    for (auto _ : loop_while(at.value() > base && Value(steps) < 100)) {
      at -= k30;
      steps += 1;
    }
    to[i] = Value(steps);
  };
  expect_cpu({zeros({1}, u8), from_doubles({3, 1073741824, 2}, {3}, i32)}, zeros({4}, i64),
             {6, 5, 9, 6}, [&](Function&, const std::vector<Handle>& in, const Handle& out) {
               auto three = let("three", in[1][0]);
               auto rows = let("rows", in[1][1]);
               auto two = let("two", in[1][2]);
               auto far = global("far", in[0], {4, 2}, strided({2 * k30, k30}));
               distance(far.ptr(three, 0), in[0], out, 0);
               distance(far.ptr(two, 1), in[0], out, 1);
               auto wide = global("wide", in[0], {three, three, rows});
               distance(wide.slice({three, 0, 0}, {1, 1, 8}).ptr(0, 0, 0), in[0], out, 2);
               distance(wide.slice({0, 0, 0}, {3, 1, 8}).ptr(two, 0, 0), in[0], out, 3);
             });
}

TEST(Edges, StepsOfAWiderType) {
  EXPECT_REFUSED("a loop over i32 has a step 4294967296, which may not fit",
                 [](Function&, Handle, Handle n) {
                   for (auto i : range(0, n, int64_t{1} << 32)) (void)i;
                 });
  EXPECT_REFUSED("a loop over i32 has a step of i64, which may not fit; cast the end or the step",
                 [](Function&, Handle, Handle n) {
                   for (auto i : range(0, n, let("s", cast(n, i64)))) (void)i;
                 });
}

// --- vectors

TEST(Edges, VectorsAlongTheLastIndexOfEveryLayout) {
  using I = const std::vector<int>&;
  struct Case {
    Layout layout;
    int span;
    std::function<int(I)> offset;
  };
  const Case cases[] = {
      {row_major(), 64, [](I i) { return i[0] * 8 + i[1]; }},
      {col_major(), 64, [](I i) { return i[1] * 8 + i[0]; }},
      {strided({17, 2}), 134, [](I i) { return i[0] * 17 + i[1] * 2; }},
      {permute({1, 0}), 64, [](I i) { return i[1] * 8 + i[0]; }},
      {swizzle(2, 1, 2), 64,
       [](I i) {
         const int o = i[0] * 8 + i[1];
         return o ^ ((o >> 3 & 3) << 1);
       }},
      {swizzle(1, 2, 1), 64,
       [](I i) {
         const int o = i[0] * 8 + i[1];
         return o ^ ((o >> 3 & 1) << 2);
       }},
      {composition(row_major(), row_major(), {2, 4}), 64,
       [](I i) { return (i[0] / 2 * 2 + i[1] / 4) * 8 + i[0] % 2 * 4 + i[1] % 4; }},
      {reshape({16, 4}, col_major()), 64,
       [](I i) { return (i[0] * 8 + i[1]) % 4 * 16 + (i[0] * 8 + i[1]) / 4; }},
      {concat(row_major(), 1, row_major()), 64, [](I i) { return i[0] * 8 + i[1]; }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.layout.text());
    std::vector<double> memory(static_cast<size_t>(c.span), 0), expected;
    for (int i = 0; i < 8; i++)
      for (int j = 0; j < 8; j++) memory[static_cast<size_t>(c.offset({i, j}))] = i * 10 + j;
    // Four from (1, 4), from (2, 1), from (3, 2); they go to (5, 3) and (6, 4), which are read one by one.
    for (const auto& [i, j] : {std::pair{1, 4}, {2, 1}, {3, 2}, {1, 4}, {2, 1}})
      for (int k = 0; k < 4; k++) expected.push_back(i * 10 + j + k);
    expect_both({from_doubles(memory, {c.span}, f32), from_doubles({1, 2, 3}, {3}, i32)},
                zeros({20}), expected,
                [&](Function&, const std::vector<Handle>& in, const Handle& out) {
                  auto t = global("t", in[0], {8, 8}, c.layout);
                  auto one = let("one", in[1][0]);
                  store(out, t.load({one, one * 4}, 4));
                  store(out + 4, t.load({one * 2, one}, 4));
                  store(out + 8, t.load({in[1][2], in[1][1]}, 4));
                  auto copy = registers("copy", f32, {8, 8}, c.layout);
                  copy.store({in[1][2] + 2, in[1][2]}, t.load({one, 4}, 4));
                  copy.store({6, 4}, t.load({2, one}, 4));
                  for (auto k : range(4)) out[k + 12] = copy(5, k + 3);
                  for (auto k : range(4)) out[k + 16] = copy(6, k + 4);
                });
  }
}

TEST(Edges, VectorsThatCannotBe) {
  EXPECT_THAT(
      body_refusal([](Function&, Handle x, Handle) { view(x, tensor(f32, {})).load({}, 4); }),
      HasSubstr("a vector of a tensor of rank 0"));
  EXPECT_THAT(body_refusal([](Function&, Handle x, Handle) {
                view(x, tensor(f32, {})).store({}, broadcast(1.f, 4));
              }),
              HasSubstr("a vector of a tensor of rank 0"));
  ScriptModule m("calls");
  auto one = m.cpu_internal("one", [](Function& f) { f.returns(f.arg("i", i32) + 1); });
  int line = 0;
  m.public_func("launch", [&](Function& f) {
    auto x = f.arg("x", ptr(f32));
    line = __LINE__ + 1;
    store(x, view(x, tensor(f32, {4, 4}, col_major())).load({one(0), one(-1)}, 4));
  });
  try {
    (void)m.lowered("cpu");
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_THAT(std::string(e.what()),
                testing::StartsWith(at("edges_test.cpp", line,
                                       "the index of a vector, whose elements lie apart, calls "
                                       "'one'; bind it with let")));
  }
}

TEST(Edges, VectorsOfAnyWidth) {
  for (const DType t : {f16, bf16, f32, f64, u8, i16, i64})
    for (const int lanes : {1, 3, 5, 7, 12, 33, 64}) {
      SCOPED_TRACE(testing::Message() << lanes << " of " << t.name());
      std::vector<double> in, expected;
      for (int i = 0; i < 66; i++) in.push_back(i % 50);
      for (int i = 0; i < lanes; i++) expected.push_back((i + 1) % 50 * 2 + 1);
      expect_both({from_doubles(in, {66}, t)}, zeros({lanes}, t), expected,
                  [&](Function&, const std::vector<Handle>& p, const Handle& out) {
                    store(out, load(p[0] + 1, lanes) * 2 + 1);
                  });
    }
}

// A vectorized loop means what the loop means where turns meet in memory.
TEST(Edges, TurnsThatMeetInMemory) {
  std::vector<double> x;
  for (int i = 0; i < 16; i++) x.push_back(i + 1);
  using In = const std::vector<Handle>&;
  const auto both = [&](int size, auto turn, auto body) {
    std::vector<double> expected(static_cast<size_t>(size), 0);
    turn(expected);
    expect_both({from_doubles(x, {16}, f32), from_doubles({0, 1, 1, 3, 3, 3, 0, 2}, {8}, i32)},
                zeros({size}), expected, body);
  };
  using V = std::vector<double>&;
  both(
      1,
      [&](V e) {
        for (int j = 0; j < 16; j++) e[0] += x[j];
      },
      [](Function&, In in, const Handle& out) {
        auto sum = registers("sum", f32, {1});
        sum(0) = 0.f;
        for (auto j : vectorize(16)) sum(0) += in[0][j];
        out[0] = sum(0);
      });
  both(
      17,
      [&](V e) {
        for (int j = 0; j < 16; j++) e[j + 1] = e[j] + x[j];
      },
      [](Function&, In in, const Handle& out) {
        for (auto j : vectorize(16)) out[j + 1] = out[j] + in[0][j];
      });
  both(
      16,
      [&](V e) {
        for (int j = 0; j < 8; j++) e[j] = x[j], e[8 + j] = e[7 - j];
      },
      [](Function&, In in, const Handle& out) {
        for (auto j : vectorize(8)) {
          out[j] = in[0][j];
          out[j + 8] = out[7 - j];
        }
      });
  both(
      4,
      [&](V e) {
        for (const int k : {0, 1, 1, 3, 3, 3, 0, 2}) e[k] += 1;
      },
      [](Function&, In in, const Handle& out) {
        for (auto j : vectorize(8)) out[in[1][j]] += 1.f;
      });
  both(
      12,
      [&](V e) {
        for (int j = 0; j < 8; j++)
          for (int k = 0; k < 5; k++) e[j + k] = e[j + k] * 2 + x[j];
      },
      [](Function&, In in, const Handle& out) {
        for (auto j : vectorize(8))
          for (auto k : range(5)) out[j + k] = out[j + k] * 2.f + in[0][j];
      });
  both(
      9,
      [&](V e) {
        for (int j = 0; j < 8; j++) e[j + 1] = x[j], e[j] = -x[j];
      },
      [](Function&, In in, const Handle& out) {
        auto next = let("next", out + 1);
        for (auto j : vectorize(8)) {
          next[j] = in[0][j];
          out[j] = -Value(in[0][j]);
        }
      });
}

}  // namespace
}  // namespace hidet::lang
