// primitives_access.cpp - rows of the table of primitives for loads and stores with a cache hint, clocks and waiting.
// The columns are those of primitives.cpp.
#include "primitive_tables.h"

namespace hidet::ir {
namespace {
using T = PrimTarget;
using R = PrimResult;

// Values of 1, 2, 4, 8 or 16 bytes as the type that the intrinsics take.
constexpr const char kHinted[] =
    R"(template <int bytes> struct hidet_hinted { typedef unsigned char type; };
template <> struct hidet_hinted<2> { typedef unsigned short type; };
template <> struct hidet_hinted<4> { typedef unsigned type; };
template <> struct hidet_hinted<8> { typedef uint2 type; };
template <> struct hidet_hinted<16> { typedef uint4 type; };
#define HIDET_HINTED_LOAD(name, call) \
template <class V> __device__ __forceinline__ V hidet_load_##name(const void* p) { \
  return hidet_bits<V>(call((const typename hidet_hinted<sizeof(V)>::type*)p)); \
}
#define HIDET_HINTED_STORE(name, call) \
template <class V> __device__ __forceinline__ void hidet_store_##name(void* p, V v) { \
  typedef typename hidet_hinted<sizeof(V)>::type W; \
  call((W*)p, hidet_bits<W>(v)); \
}
HIDET_HINTED_LOAD(nc, __ldg)
HIDET_HINTED_LOAD(ca, __ldca)
HIDET_HINTED_LOAD(cg, __ldcg)
HIDET_HINTED_LOAD(cs, __ldcs)
HIDET_HINTED_LOAD(lu, __ldlu)
HIDET_HINTED_LOAD(cv, __ldcv)
HIDET_HINTED_STORE(wb, __stwb)
HIDET_HINTED_STORE(cg, __stcg)
HIDET_HINTED_STORE(cs, __stcs)
HIDET_HINTED_STORE(wt, __stwt)
)";

constexpr const char kMasked[] =
    R"(template <class V, class T, class M> __device__ __forceinline__ V hidet_masked_load(const T* p, M m) {
  V r;
  for (int i = 0; i < (int)(sizeof(V) / sizeof(T)); ++i) r.v[i] = m.v[i] ? p[i] : T(0);
  return r;
}
template <class V, class T, class M> __device__ __forceinline__ void hidet_masked_store(T* p, V x, M m) {
  for (int i = 0; i < (int)(sizeof(V) / sizeof(T)); ++i)
    if (m.v[i]) p[i] = x.v[i];
}
)";

const std::vector<Primitive> kTable = {
    // --- global memory with a cache hint; 1, 2, 4, 8 or 16 bytes, as far aligned
    {"load_nc", 1, T::cuda, R::custom, nullptr, "hidet_load_nc<$t>($0)", 0, false, false, false,
     "ld.global.nc: data that nothing writes while the kernel runs", "ptr -> *", kHinted},
    {"load_ca", 1, T::cuda, R::custom, nullptr, "hidet_load_ca<$t>($0)", 0, false, false, false,
     "ld.global.ca: cached at all levels", "ptr -> *", kHinted},
    {"load_cg", 1, T::cuda, R::custom, nullptr, "hidet_load_cg<$t>($0)", 0, false, false, false,
     "ld.global.cg: cached at L2 only", "ptr -> *", kHinted},
    {"load_cs", 1, T::cuda, R::custom, nullptr, "hidet_load_cs<$t>($0)", 0, false, false, false,
     "ld.global.cs: likely read once", "ptr -> *", kHinted},
    {"load_lu", 1, T::cuda, R::custom, nullptr, "hidet_load_lu<$t>($0)", 0, false, false, false,
     "ld.global.lu: last use", "ptr -> *", kHinted},
    {"load_cv", 1, T::cuda, R::custom, nullptr, "hidet_load_cv<$t>($0)", 0, false, false, false,
     "ld.global.cv: fetched again", "ptr -> *", kHinted},
    {"store_wb", 2, T::cuda, R::none, nullptr, "hidet_store_wb($0, $1)", 0, false, false, false,
     "st.global.wb: cached at all levels", "ptr, * -> void", kHinted},
    {"store_cg", 2, T::cuda, R::none, nullptr, "hidet_store_cg($0, $1)", 0, false, false, false,
     "st.global.cg: cached at L2 only", "ptr, * -> void", kHinted},
    {"store_cs", 2, T::any, R::none, "@", "hidet_store_cs($0, $1)", 0, false, false, false,
     "st.global.cs: likely not read soon; on CPUs past the caches, seen by others when the loop or "
     "function ends",
     "ptr, * -> void", kHinted},
    {"store_wt", 2, T::cuda, R::none, nullptr, "hidet_store_wt($0, $1)", 0, false, false, false,
     "st.global.wt: through L2 to memory", "ptr, * -> void", kHinted},
    // --- vectors of which only some lanes are in memory
    {"masked_load", 2, T::any, R::custom, "@", "hidet_masked_load<$t>($0, $1)", 0, false, false,
     false, "lanes of the mask $1, 0 elsewhere", "ptr, * -> *", kMasked},
    {"masked_store", 3, T::any, R::none, "@", "hidet_masked_store($0, $1, $2)", 0, false, false,
     false, "stores the lanes of the mask $2", "ptr, *, * -> void", kMasked},
    // --- prefetches of global memory
    {"prefetch_l1", 1, T::cuda, R::none, nullptr,
     "asm volatile(\"prefetch.global.L1 [%0];\" ::\"l\"($0))", 0, false, false, false,
     "loads the cache line into L1", "ptr -> void"},
    {"prefetch_l2", 1, T::cuda, R::none, nullptr,
     "asm volatile(\"prefetch.global.L2 [%0];\" ::\"l\"($0))", 0, false, false, false,
     "loads the cache line into L2", "ptr -> void"},
    // --- time
    {"clock", 0, T::cuda, R::custom, nullptr, "((int64_t)clock64())", 0, false, false, false,
     "cycles of the multiprocessor; never falls", "-> i64"},
    {"nanosleep", 1, T::cuda, R::none, nullptr, "__nanosleep($0)", 70, false, false, false,
     "lets the thread sleep for about $0 ns", "u32 -> void"},
};
}  // namespace

const std::vector<Primitive>& access_primitives() { return kTable; }

}  // namespace hidet::ir
