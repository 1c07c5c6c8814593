// What the primitives of arith.h refuse, with the message.
#include "refusal.h"

namespace hidet::lang {
namespace {
using testing::HasSubstr;

/// The refusal of the body of a kernel with pointers to f32, u32, f16 and i64.
template <class Body>
std::string kernel_refusal(Body body) {
  return refusal([&](ScriptModule& m) {
    m.cuda_kernel("k", [&](Function& f) {
      auto x = f.arg("x", ptr(f32));
      auto u = f.arg("u", ptr(u32));
      auto h = f.arg("h", ptr(f16));
      f.grid_dim(1);
      f.block_dim(32);
      body(x, u, h);
    });
  });
}

TEST(ArithRefusals, Operands) {
  EXPECT_THAT(kernel_refusal([](Handle x, Handle, Handle) { x[0] = cast(popc(x[0]), f32); }),
              HasSubstr("'popc' takes an integer of 32 or 64 bits, not f32"));
  EXPECT_THAT(kernel_refusal([](Handle x, Handle, Handle) { x[0] = cast(clz(load(x, 2)), f32); }),
              HasSubstr("'clz' takes a number, not f32x2"));
  EXPECT_THAT(kernel_refusal(
                  [](Handle x, Handle, Handle) { store(x, packed_add(load(x, 2), load(x, 2))); }),
              HasSubstr("'packed_add' takes f16x2 or bf16x2, not f32x2"));
  EXPECT_THAT(kernel_refusal([](Handle, Handle, Handle h) { h[0] = fast_exp(h[0]); }),
              HasSubstr("an argument of 'fast_exp'"));
}

TEST(ArithRefusals, Hints) {
  EXPECT_THAT(kernel_refusal([](Handle x, Handle, Handle) { store(x, load(x, 4, Cache::wt)); }),
              HasSubstr("there is no 'load_wt' of ptr(f32)"));
  EXPECT_THAT(kernel_refusal([](Handle x, Handle, Handle) { store(x, load(x, 4), Cache::nc); }),
              HasSubstr("there is no 'store_nc' of ptr(f32)"));
  EXPECT_THAT(kernel_refusal([](Handle x, Handle, Handle) { store(x, load(x, 8, Cache::cg)); }),
              HasSubstr("'load_cg' moves 1, 2, 4, 8 or 16 bytes, not 8 of f32"));
}

TEST(ArithRefusals, MasksAndShuffles) {
  EXPECT_THAT(body_refusal([](Function&, Handle x, Handle n) { store(x, masked_load(x, n)); }),
              HasSubstr("'masked_load' takes a vector of booleans, not i32"));
  EXPECT_THAT(body_refusal([](Function&, Handle x, Handle n) {
                store(x, masked_load(n, lanes_below(n, 4)));
              }),
              HasSubstr("'masked_load' takes a pointer to scalars"));
  EXPECT_THAT(body_refusal([](Function&, Handle x, Handle n) {
                store(x, masked_load(x, lanes_below(n, 1)));
              }),
              HasSubstr("a mask of 1 lanes; from 2 to 64"));
  EXPECT_THAT(body_refusal([](Function&, Handle x, Handle) {
                store(x, shuffle_lanes(load(x, 2), load(x, 4), {0, 1}));
              }),
              HasSubstr("shuffle_lanes() takes two vectors of one type"));
  EXPECT_THAT(body_refusal([](Function&, Handle x, Handle) {
                store(x, shuffle_lanes(load(x, 2), load(x, 2), {0}));
              }),
              HasSubstr("shuffle_lanes() gives a vector of 1 lanes"));
  EXPECT_THAT(body_refusal([](Function&, Handle x, Handle) {
                store(x, shuffle_lanes(load(x, 2), load(x, 2), {0, 4}));
              }),
              HasSubstr("shuffle_lanes() of f32x2 has lanes 0 to 3, not 4"));
}

TEST(ArithRefusals, Atomics) {
  EXPECT_THAT(
      kernel_refusal([](Handle x, Handle, Handle) { atomic_add_vector(x, load(x, 8)); }),
      HasSubstr("'atomic_add_vector' of f32x8 to ptr(f32); it takes 8 or 16 bytes of f32, f16 or "
                "bf16 to a pointer to that type"));
  EXPECT_THAT(kernel_refusal([](Handle x, Handle, Handle) { redux_add(x[0]); }),
              HasSubstr("redux_add takes i32 or u32, not f32"));
  EXPECT_THAT(kernel_refusal([](Handle, Handle, Handle) { redux_xor(threadIdx.x); }),
              HasSubstr("redux_xor takes u32, not i32"));
  EXPECT_THAT(kernel_refusal([](Handle x, Handle, Handle) { atomic_add_pair(x, load(x, 2)); }),
              HasSubstr("'atomic_add_pair' does not work on f32; it takes f16 or bf16"));
  EXPECT_THAT(kernel_refusal([](Handle x, Handle, Handle) { atomic_inc(x, 1); }),
              HasSubstr("'atomic_inc' does not work on f32; it takes u32"));
  EXPECT_THAT(
      refusal([](ScriptModule& m) {
        m.public_func("f", [](Function& f) { atomic_add(f.arg("h", ptr(f16)), 1); });
      }),
      HasSubstr(
          "'atomic_add' does not work on f16 on the CPU; it takes i32, u32, i64, u64, f32, f64"));
}

}  // namespace
}  // namespace hidet::lang
