// cases_memory.cpp - atomics of every type, loads and stores with hints and masks, copies to shared memory, fences.
#include "primitives/cases.h"

#include <hidet/ir/primitives.h>

#include <algorithm>
#include <map>

namespace hidet::primitives {
using namespace lang;

namespace {

constexpr int kThreads = 64, kCells = 8;

double value_of(int i) { return static_cast<double>(i * 37 % 23); }

struct Atomic {
  const char* row;
  lang::CallResult (*record)(const Located&, const Located&);
  double (*f)(double, double);
  bool bits;
};
const Atomic kAtomics[] = {
    {"atomic_add", atomic_add, [](double old, double v) { return old + v; }, false},
    {"atomic_max", atomic_max, [](double old, double v) { return std::max(old, v); }, false},
    {"atomic_min", atomic_min, [](double old, double v) { return std::min(old, v); }, false},
    {"atomic_and", atomic_and,
     [](double old, double v) {
       return static_cast<double>(static_cast<int64_t>(old) & static_cast<int64_t>(v));
     },
     true},
    {"atomic_or", atomic_or,
     [](double old, double v) {
       return static_cast<double>(static_cast<int64_t>(old) | static_cast<int64_t>(v));
     },
     true},
    {"atomic_xor", atomic_xor,
     [](double old, double v) {
       return static_cast<double>(static_cast<int64_t>(old) ^ static_cast<int64_t>(v));
     },
     true},
};

/// The same body for the CPU: the threads one after the other.
void add_cpu(
    Case& c, const Kernel& k, DType t,
    const std::function<void(const Value&, const std::vector<Handle>&, const Handle&)>& one) {
  if (t == f16 || t == bf16) return;
  c.cpu.emplace("primitive");
  c.cpu->public_func("launch", [&](Function& f) {
    std::vector<Handle> in;
    for (size_t i = 0; i < k.inputs.size(); i++)
      in.push_back(f.arg("in" + std::to_string(i), ptr(k.inputs[i].dtype())));
    const Handle out = f.arg("out", ptr(k.output.dtype()));
    for (auto i : parallel(k.blocks * k.threads)) one(i, in, out);
  });
}

/// All threads of two blocks on 8 cells; every order gives the same.
void add_shared_atomics(Cases& cases) {
  for (const DType t : {i32, u32, i64, u64, f16, bf16, f32, f64})
    for (const Atomic& a : kAtomics) {
      if (a.bits && t.is_float()) continue;
      const std::vector<double> before = sequence(kCells, [](int i) { return i + 10; });
      const auto one = [&](const Value& i, const std::vector<Handle>& in, const Handle& out) {
        a.record(out + i % kCells, in[0][i]);
      };
      Kernel k{.row = a.row,
               .name = t.name(),
               .blocks = 2,
               .threads = kThreads / 2,
               .inputs = {numbers(t, sequence(kThreads, value_of))},
               .output = numbers(t, before),
               .body =
                   [&](Function&, const std::vector<Handle>& in, const Handle& out) {
                     one(let("i", blockIdx.x * (kThreads / 2) + threadIdx.x), in, out);
                   },
               .expected = before};
      for (int i = 0; i < kThreads; i++)
        k.expected[static_cast<size_t>(i % kCells)] =
            a.f(k.expected[static_cast<size_t>(i % kCells)], value_of(i));
      cases.push_back(kernel(k));
      add_cpu(cases.back(), k, t, one);
    }
}

/// One thread a cell: the old value is stored behind the cells.
void add_own_atomics(Cases& cases) {
  for (const DType t : {i32, u32, i64, u64, f16, bf16, f32, f64})
    for (const bool cas : {false, true}) {
      std::vector<double> before =
          sequence(2 * kThreads, [](int i) { return i < kThreads ? i : 0; });
      const auto one = [&](const Value& i, const std::vector<Handle>& in, const Handle& out) {
        // Even cells hold what is expected.
        const Value wanted = cast(i / 2 * 2, t);
        if (cas) out[i + kThreads] = atomic_cas(out + i, wanted, in[0][i]);
        else out[i + kThreads] = atomic_exch(out + i, in[0][i]);
      };
      Kernel k{.row = cas ? "atomic_cas" : "atomic_exch",
               .name = t.name(),
               .threads = kThreads,
               .inputs = {numbers(t, sequence(kThreads, value_of))},
               .output = numbers(t, before),
               .body = [&](Function&, const std::vector<Handle>& in,
                           const Handle& out) { one(let("i", threadIdx.x + 0), in, out); },
               .expected = before};
      for (int i = 0; i < kThreads; i++) {
        k.expected[static_cast<size_t>(i + kThreads)] = i;
        if (!cas || i % 2 == 0) k.expected[static_cast<size_t>(i)] = value_of(i);
      }
      cases.push_back(kernel(k));
      add_cpu(cases.back(), k, t, one);
    }
}

void add_counters(Cases& cases) {
  for (const bool up : {true, false}) {
    const auto one = [&](const Value&, const std::vector<Handle>&, const Handle& out) {
      up ? atomic_inc(out, 9) : atomic_dec(out, 9);
    };
    Kernel k{.row = up ? "atomic_inc" : "atomic_dec",
             .threads = kThreads,
             .output = numbers(u32, {3}),
             .body = [&](Function&, const std::vector<Handle>& in,
                         const Handle& out) { one(0, in, out); },
             .expected = {3}};
    for (int i = 0; i < kThreads; i++) {
      double& v = k.expected[0];
      v = up ? (v >= 9 ? 0 : v + 1) : (v == 0 ? 9 : v - 1);
    }
    cases.push_back(kernel(k));
    add_cpu(cases.back(), k, u32, one);
  }
  for (const DType t : {f16, bf16})
    cases.push_back(kernel({.row = "atomic_add_pair",
                            .name = t.name(),
                            .threads = kThreads,
                            .output = numbers(t, {0, 0, 1, 2}),
                            .body =
                                [&](Function&, const std::vector<Handle>&, const Handle& out) {
                                  atomic_add_pair(
                                      out + threadIdx.x % 2 * 2,
                                      make_vec({cast(Value(0.5), t), cast(Value(2.0), t)}));
                                },
                            .expected = {16, 64, 17, 66}}));
}

/// Atomics of 8 and 16 bytes (sm_90): sums of f32 that meet, and pairs of u64 of which each thread has its own.
void add_wide_atomics(Cases& cases) {
  // 32 threads add (i + 1) / 2 to lane i, half of them behind the first vector.
  for (const DType t : {f32, f16, bf16})
    for (const int bytes : {8, 16}) {
      const int lanes = bytes / static_cast<int>(t.bytes());
      const std::vector<double> old = sequence(2 * lanes, [](int i) { return i % 7; });
      cases.push_back(kernel({.row = "atomic_add_vector",
                              .name = std::string(t.name()) + " x " + std::to_string(lanes),
                              .output = numbers(t, old),
                              .body =
                                  [&](Function&, const std::vector<Handle>&, const Handle& out) {
                                    std::vector<Located> v;
                                    for (int i = 0; i < lanes; i++)
                                      v.emplace_back(
                                          cast(Value(0.5f * static_cast<float>(i + 1)), t));
                                    atomic_add_vector(out + threadIdx.x % 2 * lanes, make_vec(v));
                                  },
                              .expected = sequence(2 * lanes, [&](int i) {
                                return old[static_cast<size_t>(i)] + 8 * (i % lanes + 1);
                              })}));
    }
  const std::vector<double> before = sequence(128, [](int i) { return i < 64 ? i * 5 : 0; });
  for (const bool compares : {false, true})
    cases.push_back(kernel(
        {.row = compares ? "atomic_cas_128" : "atomic_exch_128",
         .output = numbers(u64, before),
         .body =
             [&](Function&, const std::vector<Handle>&, const Handle& out) {
               auto at = let("at", threadIdx.x * 2);
               auto n = let("n", cast(threadIdx.x, u64));
               // The second word of every third is another.
               auto low = let("low", n * 10),
                    high = let("high", n * 10 + 5 +
                                           select(threadIdx.x % 3 == 0, cast(Value(1), u64),
                                                  cast(Value(0), u64)));
               auto v = let("v", make_vec({n + 1000, n + 2000}));
               auto old = let("old", compares ? atomic_cas_128(out + at, make_vec({low, high}), v)
                                              : atomic_exch_128(out + at, v));
               store(out + at + 64, old);
             },
         .expected = sequence(128, [&](int i) {
           const int thread = i % 64 / 2;
           if (i >= 64 || (compares && thread % 3 == 0)) return i % 64 * 5;
           return thread + 1000 * (i % 2 + 1);
         })}));
}

void add_prefetches(Cases& cases) {
  for (const bool far : {false, true})
    cases.push_back(kernel({.row = far ? "prefetch_l2" : "prefetch_l1",
                            .inputs = {numbers(f32, sequence(32, [](int i) { return i; }))},
                            .output = zeros({32}),
                            .body =
                                [&](Function&, const std::vector<Handle>& in, const Handle& out) {
                                  if (far) prefetch_l2(in[0] + threadIdx.x);
                                  else prefetch_l1(in[0] + threadIdx.x);
                                  out[threadIdx.x] = in[0][threadIdx.x] * 2.f;
                                },
                            .expected = sequence(32, [](int i) { return 2 * i; })}));
}

void add_hints(Cases& cases) {
  const std::map<Cache, const char*> loads{{Cache::nc, "load_nc"}, {Cache::ca, "load_ca"},
                                           {Cache::cg, "load_cg"}, {Cache::cs, "load_cs"},
                                           {Cache::lu, "load_lu"}, {Cache::cv, "load_cv"}},
      stores{{Cache::wb, "store_wb"},
             {Cache::cg, "store_cg"},
             {Cache::cs, "store_cs"},
             {Cache::wt, "store_wt"}};
  struct Width {
    DType t;
    int lanes;
  };
  for (const Width& w :
       {Width{i8, 1}, {f16, 1}, {f32, 1}, {f64, 1}, {f32, 2}, {f32, 4}, {f16, 8}}) {
    const std::vector<double> values = sequence(32 * w.lanes, [](int i) { return i % 100 - 50; });
    const auto add = [&](const char* row, auto one) {
      const Kernel k{.row = row,
                     .name = std::string(w.t.name()) + " x " + std::to_string(w.lanes),
                     .inputs = {numbers(w.t, values)},
                     .output = zeros({32 * w.lanes}, w.t),
                     .body = [&](Function&, const std::vector<Handle>& in,
                                 const Handle& out) { one(let("i", threadIdx.x + 0), in, out); },
                     .expected = values};
      cases.push_back(kernel(k));
      if (ir::find_primitive(row)->c) add_cpu(cases.back(), k, w.t, one);
    };
    for (const auto& [hint, row] : loads)
      add(row, [&](const Value& i, const std::vector<Handle>& in, const Handle& out) {
        auto at = let("at", i * w.lanes);
        store(out + at, load(in[0] + at, w.lanes, hint));
      });
    for (const auto& [hint, row] : stores)
      add(row, [&](const Value& i, const std::vector<Handle>& in, const Handle& out) {
        auto at = let("at", i * w.lanes);
        store(out + at, load(in[0] + at, w.lanes), hint);
      });
  }
}

/// Lanes beyond the end of the input are 0 and beyond the end of the output are not written.
void add_masks(Cases& cases) {
  for (const DType t : {f32, i32, f64, i8}) {
    const int lanes = t == f64 ? 8 : 16, n = 5 * lanes + 3;
    const std::vector<double> values = sequence(n, [](int i) { return i % 100 + 1; });
    for (const bool loads : {true, false}) {
      const auto one = [&](const Value& i, const std::vector<Handle>& in, const Handle& out) {
        auto at = let("at", i * lanes);
        auto mask = let("mask", lanes_below(n - at, lanes));
        auto v = let("v", masked_load(in[0] + at, mask));
        if (loads) store(out + at, v);
        else masked_store(out + at, v + v, mask);
      };
      Kernel k{.row = loads ? "masked_load" : "masked_store",
               .name = t.name(),
               .threads = 6,
               .inputs = {numbers(t, values)},
               .output = loads ? full({6 * lanes}, 7, t) : full({n}, 7, t),
               .body = [&](Function&, const std::vector<Handle>& in,
                           const Handle& out) { one(let("i", threadIdx.x + 0), in, out); },
               .expected = {}};
      for (int i = 0; i < (loads ? 6 * lanes : n); i++)
        k.expected.push_back(
            loads     ? (i < n ? values[static_cast<size_t>(i)] : 0)
            : t == i8 ? static_cast<int8_t>(static_cast<int>(2 * values[static_cast<size_t>(i)]))
                      : 2 * values[static_cast<size_t>(i)]);
      cases.push_back(kernel(k));
      add_cpu(cases.back(), k, t, one);
    }
  }
}

/// Each thread copies a row of its own in pieces, in two groups, and reads the first before the second is there.
void add_copies(Cases& cases) {
  const std::vector<double> v = sequence(384, [](int i) { return i * 37 % 23 - 5; });
  std::vector<double> expected(512, -1);
  for (int t = 0; t < 32; t++) {
    const auto from = [&](int i) { return v[static_cast<size_t>(t * 12 + i)]; };
    const auto put = [&](int i, double w) { expected[static_cast<size_t>(t * 16 + i)] = w; };
    put(0, from(3) + from(5));
    for (int i = 1; i < 7; i++) put(i, from(i));
    for (int i = 8; i < 12; i++) put(i, i - 8 < t % 5 ? from(i) : 0);
  }
  cases.push_back(kernel({.row = "cp_async",
                          .inputs = {numbers(i32, v)},
                          .output = zeros({512}, i32),
                          .body =
                              [](Function&, const std::vector<Handle>& in, const Handle& out) {
                                auto tid = let("tid", threadIdx.x);
                                auto s = shared("s", i32, {32, 16});
                                for (int i = 0; i < 16; i++) s(tid, i) = -1;
                                syncthreads();
                                auto from = let("from", in[0] + tid * 12);
                                cp_async(s.ptr(tid, 0), from, 16);
                                cp_async(s.ptr(tid, 4), from + 4, 8);
                                cp_async_commit();
                                cp_async(s.ptr(tid, 6), from + 6, 4);
                                cp_async(s.ptr(tid, 8), from + 8, 16, tid % 5 * 4 % 17);
                                cp_async_commit();
                                cp_async_wait(1);
                                out[tid * 16] = s(tid, 3) + s(tid, 5);
                                cp_async_wait(0);
                                for (int i = 1; i < 16; i++) out[tid * 16 + i] = s(tid, i);
                              },
                          .expected = expected}));
}

/// Every block leaves a number; the last to arrive, which an atomic tells it, adds them up.
void add_fences(Cases& cases) {
  for (const auto& [row, fence] : std::map<const char*, void (*)(Here)>{
           {"threadfence", threadfence}, {"threadfence_system", threadfence_system}})
    cases.push_back(
        kernel({.row = row,
                .blocks = 8,
                .threads = 1,
                .inputs = {zeros({1}, u32)},
                .output = zeros({9}),
                .body =
                    [fence = fence](Function&, const std::vector<Handle>& in, const Handle& out) {
                      out[blockIdx.x] = cast(blockIdx.x, f32) + 1.f;
                      fence(Here::current());
                      auto ticket = let("ticket", atomic_inc(in[0], 7));
                      fence(Here::current());
                      if (auto _ = when(ticket == 7)) {
                        auto sum = var("sum", f32, 0.f);
                        for (auto i : range(8)) sum += out[i];
                        out[8] = sum;
                      }
                    },
                .expected = {1, 2, 3, 4, 5, 6, 7, 8, 36}}));
  cases.push_back(kernel({.row = "threadfence_block",
                          .threads = 64,
                          .output = zeros({64}),
                          .body =
                              [](Function&, const std::vector<Handle>&, const Handle& out) {
                                auto box = shared("box", f32, {64});
                                box(threadIdx.x) = cast(threadIdx.x, f32);
                                threadfence_block();
                                syncthreads();
                                out[threadIdx.x] = box((threadIdx.x + 33) % 64);
                              },
                          .expected = sequence(64, [](int i) { return (i + 33) % 64; })}));
}

}  // namespace

void add_memory(Cases& cases) {
  add_shared_atomics(cases);
  add_own_atomics(cases);
  add_counters(cases);
  add_wide_atomics(cases);
  add_prefetches(cases);
  add_hints(cases);
  add_masks(cases);
  add_copies(cases);
  add_fences(cases);
}

}  // namespace hidet::primitives
