// A Value() that was never given a value is refused by everything that takes one: by its name, at its line.
#include <hidet/ir/primitives.h>

#include "refusal.h"

namespace hidet::lang {
namespace {
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

/// The refusal of the body of a kernel, in which handles of every kind are at hand.
struct Given {
  Handle p, words, map, matrix, sums;
  Value one = 1, none;
};
std::string kernel_refusal(const std::function<void(Function&, const Given&)>& body) {
  return refusal([&](ScriptModule& m) {
    m.cuda_kernel("k", [&](Function& f) {
      const Handle p = f.arg("p", ptr(f32)), words = f.arg("words", ptr(u32)),
                   map = f.arg("map", tensor_map_type),
                   matrix = f.arg("matrix", tensor(f32, {8, 8}));
      f.grid_dim(1);
      f.block_dim(128);
      const Handle sums = registers("sums", f32, {4, 1});
      body(f, {p, words, map, matrix, sums});
    });
  });
}

struct Use {
  const char* name;  ///< what the message calls it
  int line;
  std::function<void(Function&, const Given&)> body;
};
#define USE(name, ...)                               \
  {name, __LINE__, [](Function& f, const Given& g) { \
     __VA_ARGS__;                                    \
     (void)f;                                        \
     (void)g;                                        \
   }}

void check(const std::vector<Use>& uses) {
  for (const Use& use : uses) {
    const std::string message = kernel_refusal(use.body);
    EXPECT_THAT(message,
                AllOf(StartsWith(at("empty_values_test.cpp", use.line, "")), HasSubstr(use.name),
                      AnyOf(HasSubstr("no value"), HasSubstr("without a value"),
                            HasSubstr("not nothing"), HasSubstr("not void"))))
        << use.name << " at line " << use.line;
  }
}

// The table of primitives, row by row, each argument in turn.
TEST(EmptyValues, EveryRowOfTheTable) {
  int rows = 0;
  for (const ir::Primitive& row : ir::all_primitives()) {
    const std::string name = row.name;
    const int arity = row.arity < 0 ? 3 : row.arity;
    rows += arity > 0;
    for (int empty = 0; empty < arity; empty++)
      for (const bool acts : {false, true}) {
        const std::string message = kernel_refusal([&](Function&, const Given& g) {
          std::vector<Located> args;
          for (int i = 0; i < arity; i++)
            args.emplace_back(i == empty ? g.none : g.one, SourceLoc(Here::current()));
          if (acts) (void)prim_effect(name, args, f32, 1);
          else let("r", prim(name, args, f32));
        });
        const std::string argument =
            arity == 1 ? "an argument" : "argument " + std::to_string(empty + 1);
        EXPECT_THAT(message,
                    testing::EndsWith(": error: " + argument + " of '" + name + "' has no value"));
        EXPECT_THAT(message, StartsWith("empty_values_test.cpp:"));
      }
  }
  EXPECT_GT(rows, 200);
}

#define EACH_1(name) USE(#name, let("r", name(g.none)))
#define EACH_2(name) \
  USE(#name, let("r", name(g.none, g.one))), USE(#name, let("r", name(g.one, g.none)))
#define EACH_3(name)                                    \
  USE(#name, let("r", name(g.none, g.one, g.one))),     \
      USE(#name, let("r", name(g.one, g.none, g.one))), \
      USE(#name, let("r", name(g.one, g.one, g.none)))

#define EACH_ATOMIC(name) USE(#name, name(g.none, g.one)), USE(#name, name(g.words, g.none))

TEST(EmptyValues, Functions) {
  check({
#define EACH_1_OF(name) EACH_1(name),
      HIDET_FAST_MATH(EACH_1_OF)
#undef EACH_1_OF
          EACH_1(exp),
      EACH_1(exp2),
      EACH_1(log),
      EACH_1(sqrt),
      EACH_1(rsqrt),
      EACH_1(tanh),
      EACH_1(erf),
      EACH_1(sigmoid),
      EACH_1(sin),
      EACH_1(floor),
      EACH_1(abs),
      EACH_1(isnan),
      EACH_3(fma),
      EACH_2(pow),
      EACH_1(popc),
      EACH_1(clz),
      EACH_1(ffs),
      EACH_1(brev),
      EACH_2(mulhi),
      EACH_3(byte_perm),
      EACH_3(funnel_shift_left),
      EACH_3(funnel_shift_right),
      EACH_3(dp4a),
      EACH_2(packed_add),
      EACH_2(packed_sub),
      EACH_2(packed_mul),
      EACH_2(packed_min),
      EACH_2(packed_max),
      EACH_3(packed_fma),
      EACH_3(packed_fma_relu),
      EACH_1(packed_neg),
      EACH_1(packed_abs),
      EACH_1(packed_fast_exp2),
      EACH_1(packed_fast_tanh),
      EACH_2(fast_div),
      EACH_2(fast_pow),
      EACH_2(shfl),
      EACH_2(shfl_up),
      EACH_2(shfl_down),
      EACH_2(shfl_xor),
      EACH_1(ballot),
      USE("any_sync", let("r", any_lane(g.none))),
      USE("all_sync", let("r", all_lanes(g.none))),
      EACH_1(syncthreads_and),
      EACH_1(syncthreads_or),
      EACH_1(syncthreads_count),
      EACH_2(masked_load),
      EACH_1(movmatrix),
      EACH_1(redux_add),
      EACH_1(redux_min),
      EACH_1(redux_max),
      EACH_1(redux_and),
      EACH_1(redux_or),
      EACH_1(redux_xor),
      EACH_1(match_any),
      EACH_1(match_all),
      EACH_ATOMIC(atomic_add),
      EACH_ATOMIC(atomic_max),
      EACH_ATOMIC(atomic_min),
      EACH_ATOMIC(atomic_exch),
      EACH_ATOMIC(atomic_and),
      EACH_ATOMIC(atomic_or),
      EACH_ATOMIC(atomic_xor),
      USE("atomic_cas", atomic_cas(g.none, g.one, g.one)),
      USE("atomic_cas", atomic_cas(g.words, g.none, g.one)),
      USE("atomic_cas", atomic_cas(g.words, g.one, g.none)),
      EACH_2(atomic_add_pair),
      EACH_2(atomic_add_vector),
      EACH_2(atomic_exch_128),
      EACH_3(atomic_cas_128),
      EACH_2(atomic_inc),
      EACH_2(atomic_dec),
      EACH_2(min),
      EACH_2(max),
      EACH_2(floordiv),
      EACH_2(floormod),
      EACH_3(select),
      EACH_2(lane),
      EACH_1(mbarrier_pending),
      EACH_2(mbarrier_arrive_state),
      EACH_2(mbarrier_arrive_no_complete),
      EACH_2(mbarrier_test_wait),
      EACH_3(mbarrier_try_wait),
      EACH_2(map_shared_rank),
      EACH_1(wgmma_matrix),
  });
}

TEST(EmptyValues, MatrixInstructions) {
  check({
#define EACH_SHAPE(shape) EACH_3(mma_##shape),
      HIDET_MMA(EACH_SHAPE)
#undef EACH_SHAPE
          USE("ldmatrix", let("r", ldmatrix(g.none, 4))),
      USE("stmatrix", stmatrix(g.none, g.one)),
      USE("stmatrix", stmatrix(g.words, g.none)),
      USE("wgmma", wgmma(Handle(Value()), g.one, g.one, {})),
      USE("wgmma", wgmma(g.sums, g.none, g.one, {.n = 8})),
      USE("wgmma", wgmma(g.sums, g.one, g.none, {.n = 8})),
      USE("wgmma", wgmma(g.sums, g.one, g.one, {.n = 8}, g.none)),
      USE("wgmma", wgmma_fence({Handle(Value())})),
      USE("wgmma", wgmma_wait(0, {Handle(Value())})),
  });
}

TEST(EmptyValues, Statements) {
  check({
    USE("barrier_sync", barrier_sync(g.none, g.one)),
        USE("barrier_sync", barrier_sync(g.one, g.none)),
        USE("barrier_arrive", barrier_arrive(g.one, g.none)),
        USE("assume_aligned", assume_aligned(Handle(Value()), 16)),
        USE("cp_async", cp_async(g.none, g.p, 16)), USE("cp_async", cp_async(g.p, g.none, 16)),
        USE("cp_async", cp_async(g.p, g.p, 16, g.none)), USE("prefetch", prefetch(g.none)),
        USE("amx_load", amx_load(0, g.none, 64)), USE("amx_load", amx_load(0, g.p, g.none)),
        USE("amx_store", amx_store(0, g.none, 64)), USE("amx_store", amx_store(0, g.p, g.none)),
        USE("prefetch_l1", prefetch_l1(g.none)), USE("prefetch_l2", prefetch_l2(g.none)),
        USE("scratch", scratch(0, g.none, f32)), USE("nanosleep", nanosleep(g.none)),
        USE("load_cg", (void)load(g.none, 1, Cache::cg)),
        USE("store_cg", store(g.none, g.one, Cache::cg)),
        USE("store_cg", store(g.p, g.none, Cache::cg)),
        USE("masked_store", masked_store(g.none, g.one, g.one)),
        USE("masked_store", masked_store(g.p, g.none, g.one)),
        USE("masked_store", masked_store(g.p, g.one, g.none)),
        USE("lanes_below", (void)lanes_below(g.none, 4)),
        USE("shuffle_lanes", (void)shuffle_lanes(g.none, g.one, {0, 1})),
        USE("shuffle_lanes", (void)shuffle_lanes(g.one, g.none, {0, 1})),
        USE("load", (void)load(g.none, 4)), USE("store", store(g.none, g.one)),
        USE("store", store(g.p, g.none)), USE("global", (void)global("t", g.none, {4})),
        USE("extent", (void)global("t", g.p, {g.none})),
        USE("view", (void)view(g.none, tensor(f32, {4}))), USE("an index", deref(g.none) = g.one),
        USE("an element", deref(g.p) = g.none), USE("[]", g.p[g.none] = g.one),
        USE("reinterpret", (void)reinterpret(g.none, i32)), USE("cast", (void)cast(g.none, i32)),
        USE("broadcast", (void)broadcast(g.none, 4)),
        USE("vector", (void)make_vec({g.one, g.none})),
        USE("extent", (void)shared("s", f32, {g.none})),
        USE("extent", (void)registers("s", f32, {g.none})),
        USE("extent", (void)dynamic_shared("s", f32, {g.none})),
        USE("'()'", g.matrix(g.none, 0) = 1.f), USE("'()'", (void)g.matrix.read({0, g.none})),
        USE("'()'", g.matrix.write({g.none, 0}, 1.f)),
        USE("an element", g.matrix.write({0, 0}, g.none)),
        USE("'()'", (void)g.matrix.load({0, g.none}, 4)),
        USE("store", g.matrix.store({0, 0}, g.none)), USE("'()'", (void)g.matrix.ptr(g.none, 0)),
        USE("'()'", (void)g.matrix.slice({g.none, 0}, {1, 1})),
        USE("extent", (void)g.matrix.slice({0, 0}, {g.none, 1})),
        USE("read()", (void)Handle(Value()).read({g.one})),
        USE("slice()", (void)Handle(Value()).slice({g.one}, {g.one})), USE("'v'", let("v", g.none)),
        USE("'v'", let("v", f32, g.none)), USE("'v'", var("v", f32, g.none)),
        USE("'v'", auto v = var("v", f32, 0.f); v = g.none),
        USE("'add'", auto v = var("v", f32, 0.f); v += g.none),
        USE("condition", if (auto _ = when(g.none)) comment("x")),
        USE("assert_", assert_(g.none, "m")), USE("printf argument 1", printf("%d\n", g.none)),
        USE("asm_", asm_("nop;", {}, {{"r", g.none}})),
        USE("a loop", for (auto i : range(g.none)) comment("x"), (void)i),
        USE("a loop", for (auto i : range(g.none, g.one)) comment("x"), (void)i),
        USE("a loop", for (auto i : range(g.one, g.one, g.none)) comment("x"), (void)i),
        USE("a loop", for (auto [i, j] : grid(g.one, g.none)) comment("x"), (void)i, (void)j),
        USE("unroll", for (auto i : unroll(g.none)) comment("x"), (void)i),
        USE("vectorize", for (auto i : vectorize(g.none)) comment("x"), (void)i),
        USE("on()", for (auto [i, j] : spatial(2, 2).on(g.none)) comment("x"), (void)i, (void)j),
        USE("loop_while", for (auto _ : loop_while(g.none)) comment("x")),
        USE("grid_dim", f.grid_dim(g.none)), USE("block_dim", f.block_dim(1, g.none)),
        USE("cluster_dim", f.cluster_dim(g.none)),
        USE("dynamic_shared_bytes", f.dynamic_shared_bytes(g.none)),
  });
}

TEST(EmptyValues, Hopper) {
  check({
      USE("mbarrier_init", mbarrier_init(g.none, g.one)),
      USE("mbarrier_init", mbarrier_init(g.p, g.none)),
      USE("mbarrier_invalidate", mbarrier_invalidate(g.none)),
      USE("mbarrier_arrive", mbarrier_arrive(g.none)),
      USE("mbarrier_arrive", mbarrier_arrive(g.p, g.none)),
      USE("mbarrier_arrive_expect_tx", mbarrier_arrive_expect_tx(g.none, g.one)),
      USE("mbarrier_arrive_expect_tx", mbarrier_arrive_expect_tx(g.p, g.none)),
      USE("mbarrier_arrive_expect_tx", mbarrier_arrive_expect_tx(g.p, g.one, g.none)),
      USE("mbarrier_expect_tx", mbarrier_expect_tx(g.p, g.none)),
      USE("mbarrier_complete_tx", mbarrier_complete_tx(g.none, g.one)),
      USE("mbarrier_arrive_drop", mbarrier_arrive_drop(g.none)),
      USE("mbarrier_arrive_copies", mbarrier_arrive_copies(g.none)),
      USE("mbarrier_wait", mbarrier_wait(g.none, g.one)),
      USE("mbarrier_wait", mbarrier_wait(g.p, g.none)),
      USE("cache_policy", (void)cache_policy(Evict::last, g.none)),
      USE("tma_load", tma_load(g.none, g.map, {0}, g.p)),
      USE("tma_load", tma_load(g.p, Handle(Value()), {0}, g.p)),
      USE("tma_load", tma_load(g.p, g.map, {0}, g.none)),
      USE("tma_store", tma_store(g.map, {g.none}, g.p)),
      USE("tma_store", tma_store(g.map, {0}, g.none)),
      USE("tma_store", tma_store(Handle(Value()), {0}, g.p)),
      USE("tma_reduce", tma_reduce(Combine::add, g.map, {0}, g.none)),
      USE("tma_prefetch", tma_prefetch(Handle(Value()))),
      USE("tma_prefetch", tma_prefetch(g.map, {g.none})),
      USE("bulk_load", bulk_load(g.none, g.p, 16, g.p)),
      USE("bulk_load", bulk_load(g.p, g.none, 16, g.p)),
      USE("bulk_load", bulk_load(g.p, g.p, 16, g.none)),
      USE("bulk_store", bulk_store(g.none, g.p, 16)),
      USE("bulk_store", bulk_store(g.p, g.none, 16)),
      USE("bulk_store", bulk_store(g.p, g.p, g.none)),
      USE("bulk_reduce", bulk_reduce(Combine::add, g.none, g.p, 16)),
      USE("bulk_reduce", bulk_reduce(Combine::add, g.p, g.p, g.none)),
      USE("bulk_prefetch", bulk_prefetch(g.none, 16)),
      USE("bulk_prefetch", bulk_prefetch(g.p, g.none)),
      USE("bulk_send", bulk_send(g.none, g.p, 16, g.p)),
      USE("bulk_send", bulk_send(g.p, g.p, g.none, g.p)),
      USE("bulk_send", bulk_send(Combine::add, g.none, g.p, 16, g.p)),
      USE("async_store", async_store(g.none, g.one, g.p)),
      USE("async_store", async_store(g.p, g.none, g.p)),
      USE("async_reduce", async_reduce(Combine::add, g.words, g.none, g.p)),
  });
}

TEST(EmptyValues, OnTheHost) {
  const auto check_host = [](const char* name, auto body) {
    EXPECT_THAT(body_refusal(body), AllOf(StartsWith("empty_values_test.cpp:"), HasSubstr(name),
                                          AnyOf(HasSubstr("no value"), HasSubstr("not nothing"))));
  };
  const Value none;
  check_host("parallel", [&](Function&, Handle x, Handle) {
    for (auto i : parallel(none)) x[i] = 0.f;
  });
  check_host("f.returns() in 'f' is given no value",
             [&](Function& f, Handle, Handle) { f.returns(none); });
  check_host("tensor_map",
             [&](Function&, Handle, Handle n) { tensor_map("m", none, {n, n}, {8, 8}); });
  check_host("argument 2 of 'tensor_map'",
             [&](Function&, Handle x, Handle n) { tensor_map("m", x, {none, n}, {8, 8}); });
  check_host("argument 4 of 'tensor_map'", [&](Function&, Handle x, Handle n) {
    tensor_map("m", x, {n, n}, {8, 8}, {.strides = {none}});
  });
}

}  // namespace
}  // namespace hidet::lang
