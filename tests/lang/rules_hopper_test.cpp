// The rules of tensor maps, bulk copies, clusters and wgmma, and of parameter spaces, each with its whole message.
#include "rules.h"

namespace hidet::lang {
namespace {

TEST(HopperRules, TensorMaps) {
  const auto map = [](auto body) {
    return in_function([&](auto&, auto x, auto n) { body(x, n); });
  };
  EXPECT_EQ(map([](auto, auto n) { tensor_map("t", n, {n}, {4}); }),
            "tensor_map() takes a pointer to numbers, not i32");
  EXPECT_EQ(map([](auto x, auto n) { tensor_map("t", x, {n, n}, {4}); }),
            "tensor_map() takes 1 to 5 extents and as many of the box, not 2 and 1");
  EXPECT_EQ(map([](auto x, auto n) { tensor_map("t", x, {n, n}, {4, 4}, {.strides = {n, n}}); }),
            "tensor_map() of rank 2 takes 1 strides, not 2");
  EXPECT_EQ(map([](auto x, auto n) { tensor_map("t", x, {n}, {4}, {.swizzle = 16}); }),
            "a tensor map's swizzle is 0, 32, 64 or 128, not 16");
  EXPECT_EQ(map([](auto x, auto n) { tensor_map("t", x, {n}, {257}); }),
            "an extent of a tensor map's box is 257; it must be from 1 to 256");
  EXPECT_EQ(map([](auto x, auto n) { tensor_map("t", x, {n}, {5}); }),
            "a row of a tensor map's box has 20 bytes; it must be a multiple of 16");
  EXPECT_EQ(
      map([](auto x, auto n) { tensor_map("t", x, {n}, {32}, {.swizzle = 64}); }),
      "a row of a tensor map's box has 128 bytes; it must be a multiple of 16 and no more than "
      "the swizzle's 64");
  try {
    (void)swizzled_rows(f16, 96);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()), "rows of 32, 64 or 128 bytes are swizzled, not of 96");
  }
}

TEST(HopperRules, BulkCopies) {
  const auto copy = [](auto body) {
    return in_kernel([&](auto& f, auto x, auto) {
      auto map = f.arg("map", tensor_map_type);
      auto barrier = shared("barrier", u64, {1});
      auto tile = shared("tile", f32, {32});
      body(map, tile, barrier, x);
    });
  };
  EXPECT_EQ(copy([](auto, auto tile, auto barrier, auto x) {
              tma_load(tile.ptr(0), x, {0}, barrier.ptr(0));
            }),
            "tma_load() takes an argument of the function of type tensor_map_type, not ptr(f32)");
  EXPECT_EQ(copy([](auto map, auto tile, auto barrier, auto) {
              tma_load(tile.ptr(0), map, {0, 0, 0, 0, 0, 0}, barrier.ptr(0));
            }),
            "tma_load() takes 1 to 5 coordinates, not 6");
  EXPECT_EQ(
      copy([](auto map, auto tile, auto, auto) { tma_load(tile.ptr(0), map, {0}, tile.ptr(0)); }),
      "tma_load() takes a ptr(u64) to an mbarrier, not ptr(f32)");
  EXPECT_EQ(copy([](auto map, auto tile, auto barrier, auto x) {
              tma_load(tile.ptr(0), map, {0}, barrier.ptr(0), {.policy = x});
            }),
            "the policy of a copy is what cache_policy() gives, a u64, not ptr(f32)");
  EXPECT_EQ(copy([](auto map, auto tile, auto, auto) {
              tma_store(map, {0}, tile.ptr(0), {.blocks = 1});
            }),
            "tma_store() goes to no blocks of the cluster; loads do");
  EXPECT_EQ(
      copy([](auto, auto tile, auto, auto x) { bulk_reduce(Combine::bit_or, x, tile.ptr(0), 16); }),
      "there is no bulk reduction 'or' of f32 in global memory");
  EXPECT_EQ(copy([](auto, auto tile, auto barrier, auto) {
              bulk_send(Combine::add, tile.ptr(0), tile.ptr(4), 16, barrier.ptr(0));
            }),
            "there is no bulk reduction 'add' of f32 in shared memory");
  EXPECT_EQ(copy([](auto, auto tile, auto barrier, auto) {
              async_store(tile.ptr(0), cast(Value(1.f), hidet::f16), barrier.ptr(0));
            }),
            "async_store() sends 4, 8 or 16 bytes, not f16");
  EXPECT_EQ(copy([](auto, auto tile, auto barrier, auto) {
              async_reduce(Combine::add, tile.ptr(0), 1.f, barrier.ptr(0));
            }),
            "there is no bulk reduction 'add' of f32 in shared memory");
  EXPECT_EQ(copy([](auto, auto, auto, auto) { cache_policy(Evict::last, 1.f, Evict::normal); }),
            "the rest of a cache policy is Evict::first or Evict::unchanged");
  EXPECT_EQ(copy([](auto map, auto, auto, auto) { tma_store(map, {0}, 1); }),
            "tma_store() takes a pointer to shared memory, not i32");
  EXPECT_EQ(in_kernel([](auto&, auto, auto) { setmaxnreg_inc(20); }),
            "setmaxnreg_inc of 20 registers; from 24 to 256 in steps of 8");
}

TEST(HopperRules, Matrices) {
  const auto matrix = [](const MatrixOptions& options) {
    return in_kernel([&](auto&, auto, auto) {
      auto tile = shared("tile", f16, {64, 64});
      let("d", wgmma_matrix(tile.ptr(0, 0), options));
    });
  };
  EXPECT_EQ(in_kernel([](auto&, auto, auto n) { let("d", wgmma_matrix(n)); }),
            "wgmma_matrix() takes a pointer to shared memory");
  EXPECT_EQ(matrix({.swizzle = 16}), "a matrix's swizzle is 0, 32, 64 or 128, not 16");
  EXPECT_EQ(matrix({.swizzle = 0}), "a matrix without a swizzle needs `leading` and `stride`");
  EXPECT_EQ(matrix({.leading = 8}),
            "a matrix's `leading` or `stride` is 8 bytes; a multiple of 16 below 262144");
}

TEST(HopperRules, Products) {
  const auto product = [](const Wgmma& shape, int registers_of_sums = 4, DType sums = f32,
                          bool fragment = false) {
    return in_kernel([&](auto& f, auto, auto) {
      auto d = f.arg("d", u64);
      auto part = f.arg("part", Type::vector(u32, 4));
      auto c = registers("c", sums, {registers_of_sums});
      wgmma(c, fragment ? Value(part) : Value(d), d, shape);
    });
  };
  EXPECT_EQ(product({.n = 8}), "");
  EXPECT_EQ(product({.n = 8, .in = i8}), "there is no wgmma of i8 with sums of f32");
  EXPECT_EQ(product({.n = 12}), "wgmma of n = 12; from 8 to 256 in steps of 8");
  EXPECT_EQ(product({.n = 8, .in = f16, .in_b = bf16}),
            "there is no wgmma of f16 and bf16 with sums of f32");
  EXPECT_EQ(product({.n = 8, .in = i8, .sum = i32, .negate_a = true}), "wgmma negates no integers");
  EXPECT_EQ(product({.n = 8, .saturate = true}), "wgmma saturates sums of integers only");
  EXPECT_EQ(product({.n = 40, .in = i8, .sum = i32}),
            "wgmma of n = 40; from 8 to 256 in steps of 8 to 32, then of 16");
  EXPECT_EQ(product({.n = 8, .in = tf32, .a_mn_major = true}),
            "only matrices of 16-bit types may be contiguous along m or n, not tf32");
  EXPECT_EQ(product({.n = 8}, 5), "the sums of this wgmma are 4 registers of f32, not 5 of f32");
  EXPECT_EQ(product({.n = 8, .a_mn_major = true}, 4, f32, true),
            "a fragment has no order of its own: a_mn_major is for matrices in shared memory");
  EXPECT_EQ(in_kernel([](auto&, auto x, auto n) {
              auto c = registers("c", f32, {4});
              wgmma(c, x, n, {.n = 8});
            }),
            "wgmma takes a descriptor (wgmma_matrix) or a fragment u32x4 for a, not ptr(f32)");
  EXPECT_EQ(in_kernel([](auto&, auto x, auto n) { wgmma(x, n, n, {.n = 8}); }),
            "the sums of wgmma are a register tensor, not ptr(f32)");
}

TEST(SpaceRules, Parameters) {
  const auto nothing = [](ScriptModule&, const Params&) {};
  EXPECT_EQ(without_place(in_build([&](ScriptModule& m) { m.space({}, nothing); })),
            "a parameter space takes parameters and a function");
  EXPECT_EQ(
      without_place(in_build([&](ScriptModule& m) { m.space({{"t", {1}}, {"t", {2}}}, nothing); })),
      "there are two parameters called 't'");
  EXPECT_EQ(without_place(in_build([&](ScriptModule& m) { m.space({{"t", {1, 1}}}, nothing); })),
            "the parameter 't' has a value twice");
  int first = 0;
  const std::string twice = in_build([&](ScriptModule& m) {
    first = __LINE__ + 1;
    m.space({{"t", {1}}}, nothing);
    m.space({{"u", {1}}}, nothing);
  });
  EXPECT_EQ(without_place(twice),
            "the module 'bad' already has a parameter space (rules_hopper_test.cpp:" +
                std::to_string(first) + ")");
  const auto candidate = [](auto define) {
    return in_build([&](ScriptModule& m) { m.space({{"t", {1}}}, define); });
  };
  EXPECT_THAT(candidate([](ScriptModule&, const Params& p) { (void)p["tile"]; }),
              testing::HasSubstr("the parameter space has no parameter 'tile'; it has t=1"));
  EXPECT_THAT(candidate([&](ScriptModule& m, const Params&) { m.space({{"u", {1}}}, nothing); }),
              testing::HasSubstr("a parameter space inside another"));
}

}  // namespace
}  // namespace hidet::lang
