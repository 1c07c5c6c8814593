// cases_hopper.cpp - tensor maps and their copies, mbarriers, clusters, registers of warp groups: kernels, and loops that say what
// they give. Bulk reductions and policies are in cases_bulk.cpp.
#include "primitives/cases.h"

#include <algorithm>
#include <numeric>

namespace hidet::primitives {
using namespace lang;

namespace {

using Sizes = std::vector<int>;

int product_of(const Sizes& s) {
  return std::accumulate(s.begin(), s.end(), 1, std::multiplies<int>());
}
std::vector<Value> values(const Sizes& s) { return {s.begin(), s.end()}; }
Tensor counting(int n, int first) {
  std::vector<int32_t> v(static_cast<size_t>(n));
  std::iota(v.begin(), v.end(), first);
  return from_vector<int32_t>(v, {n});
}
/// The mbarriers of a kernel, made by thread 0.
void make_barriers(const Handle& barriers, const Sizes& arrivals) {
  if (auto _ = when(threadIdx.x == 0)) {
    for (size_t i = 0; i < arrivals.size(); i++)
      mbarrier_init(barriers.ptr(static_cast<int>(i)), arrivals[i]);
    fence_mbarrier_init();
  }
  syncthreads();
}

/// A box of i32 at `at` in a tensor of `shape`, innermost last.
struct Box {
  Sizes shape, box, at;
  int swizzle = 0;
  std::string name() const {
    std::string out = std::to_string(shape.size()) + "d";
    if (swizzle) out += ", swizzle " + std::to_string(swizzle);
    return out;
  }
  int bytes() const { return product_of(box) * 4; }
  /// f(number of the element in the box, its place in shared memory, its number in the tensor or -1).
  template <class F>
  void each(F&& f) const {
    for (int e = 0; e < product_of(box); e++) {
      int rest = e, to = 0, scale = 1;
      bool inside = true;
      for (size_t d = shape.size(); d-- > 0;) {
        const int i = at[d] + rest % box[d];
        rest /= box[d];
        inside = inside && i >= 0 && i < shape[d];
        to += i * scale;
        scale *= shape[d];
      }
      const int mask = swizzle == 128 ? 7 : swizzle == 64 ? 3 : swizzle == 32 ? 1 : 0;
      f(e, (e * 4 ^ (e * 4 >> 7 & mask) << 4) / 4, inside ? to : -1);
    }
  }
  std::vector<Located> coordinates() const { return {at.begin(), at.end()}; }
};

const Box kBoxes[] = {
    {{100}, {32}, {80}},
    {{21, 40}, {8, 16}, {16, 32}},
    {{5, 7, 12}, {3, 2, 8}, {3, -1, 8}},
    {{3, 4, 5, 8}, {2, 2, 3, 4}, {2, 3, 4, 4}},
    {{21, 40}, {8, 16}, {-3, 32}},
    {{5, 7, 12}, {3, 2, 8}, {1, 2, 4}},
    {{5, 7, 12}, {3, 2, 8}, {3, 6, 8}},
    {{2, 3, 2, 3, 8}, {2, 1, 2, 2, 8}, {1, 2, 1, 2, 4}},
    {{40, 64}, {16, 32}, {8, 16}, 128},
    {{40, 64}, {16, 16}, {32, 56}, 64},
    {{40, 64}, {16, 8}, {8, 16}, 32},
};

ScriptModule with_map(const Box& b, bool store) {
  ScriptModule m(store ? "store" : "load");
  const int count = product_of(b.box), whole = (count * 4 + 1023) / 1024 * 256;
  auto kernel = m.cuda_kernel("k", [&](Function& f) {
    auto map = f.arg("map", tensor_map_type);
    auto x = f.arg("x", ptr(i32));
    f.grid_dim(1);
    f.block_dim(64);
    auto tile = shared("tile", i32, {whole});
    auto barrier = shared("barrier", u64, {1});
    auto tid = let("tid", threadIdx.x);
    if (!store) {
      make_barriers(barrier, {1});
      if (auto _ = when(tid == 0)) {
        tma_prefetch(map);
        mbarrier_arrive_expect_tx(barrier.ptr(), b.bytes());
        tma_load(tile.ptr(), map, b.coordinates(), barrier.ptr());
      }
      mbarrier_wait(barrier.ptr(), 0);
      for (auto i : range((count + 63) / 64))
        if (auto _ = when(i * 64 + tid < count)) x[i * 64 + tid] = tile(i * 64 + tid);
      return;
    }
    for (auto i : range((count + 63) / 64))
      if (auto _ = when(i * 64 + tid < count)) tile(i * 64 + tid) = x[i * 64 + tid];
    fence_proxy_async();
    syncthreads();
    if (auto _ = when(tid == 0)) {
      tma_store(map, b.coordinates(), tile.ptr());
      bulk_commit();
      bulk_wait_read();
      bulk_wait();
    }
  });
  m.public_func("launch", [&](Function& f) {
    auto first = f.arg("first", ptr(i32));
    auto second = f.arg("second", ptr(i32));
    auto map =
        tensor_map("map", store ? second : first, values(b.shape), b.box, {.swizzle = b.swizzle});
    kernel(map, store ? first : second);
  });
  return m;
}

void add_boxes(Cases& out) {
  for (const Box& b : kBoxes) {
    const int count = product_of(b.box), all = product_of(b.shape);
    std::vector<double> loaded(static_cast<size_t>(count)), stored(static_cast<size_t>(all), -1);
    b.each([&](int, int place, int element) {
      loaded[static_cast<size_t>(place)] = element < 0 ? 0 : element + 1;
      if (element >= 0) stored[static_cast<size_t>(element)] = place + 1000;
    });
    out.push_back(whole("tma_load", b.name(), with_map(b, false), {counting(all, 1)},
                        zeros({count}, i32), loaded));
    // The hardware's stores do not begin in front of the tensor.
    if (*std::min_element(b.at.begin(), b.at.end()) < 0) continue;
    out.push_back(whole("tma_store", b.name(), with_map(b, true), {counting(count, 1000)},
                        full({all}, -1, i32), stored));
  }
}

/// Each block of two loads half of 256 numbers for both, in two ways.
ScriptModule multicast(bool with_tensor_map) {
  ScriptModule m("multicast");
  auto kernel = m.cuda_kernel("k", [&](Function& f) {
    auto map = f.arg("map", tensor_map_type);
    auto x = f.arg("x", ptr(i32));
    auto y = f.arg("y", ptr(i32));
    f.grid_dim(4);
    f.block_dim(32);
    f.cluster_dim(2);
    auto tile = shared("tile", i32, {256});
    auto barrier = shared("barrier", u64, {1});
    auto rank = let("rank", cluster_rank);
    make_barriers(barrier, {1});
    cluster_sync();  // both barriers are there
    if (auto _ = when(threadIdx.x == 0)) {
      mbarrier_arrive_expect_tx(barrier.ptr(), 1024);
      if (with_tensor_map)
        tma_load(tile.ptr(rank * 128), map, {rank * 128}, barrier.ptr(), {.blocks = 3});
      else bulk_load(tile.ptr(rank * 128), x + rank * 128, 512, barrier.ptr(), {.blocks = 3});
    }
    mbarrier_wait(barrier.ptr(), 0);
    for (int i = 0; i < 256; i += 32)
      y[blockIdx.x * 256 + threadIdx.x + i] = tile(threadIdx.x + i) + blockIdx.x;
    cluster_sync();  // no block ends while the other writes to it
  });
  m.public_func("launch", [&](Function& f) {
    auto x = f.arg("x", ptr(i32));
    auto y = f.arg("y", ptr(i32));
    auto map = tensor_map("map", x, {256}, {128});
    kernel(map, x, y);
  });
  return m;
}

/// 1024 numbers there and back in two groups of stores.
ScriptModule bulk() {
  ScriptModule m("bulk");
  m.cuda_kernel("k", [&](Function& f) {
    auto x = f.arg("x", ptr(i32));
    auto y = f.arg("y", ptr(i32));
    f.grid_dim(1);
    f.block_dim(128);
    auto tile = shared("tile", i32, {1024});
    auto barrier = shared("barrier", u64, {1});
    make_barriers(barrier, {2});
    if (auto _ = when(threadIdx.x == 0)) {
      mbarrier_expect_tx(barrier.ptr(), 4096);
      bulk_load(tile.ptr(), x, 4096, barrier.ptr());
      mbarrier_arrive(barrier.ptr());
    }
    if (auto _ = when(threadIdx.x == 32)) mbarrier_arrive(barrier.ptr());
    mbarrier_wait(barrier.ptr(), 0);
    for (int i = 0; i < 1024; i += 128) tile(threadIdx.x + i) = tile(threadIdx.x + i) * 3;
    fence_proxy_async();
    syncthreads();
    if (auto _ = when(threadIdx.x == 0)) {
      mbarrier_invalidate(barrier.ptr());
      for (int half = 0; half < 2; half++) {
        bulk_store(y + half * 512, tile.ptr(half * 512), 2048);
        bulk_commit();
      }
      bulk_wait_read(1);
      tile(0) = 7;  // the first group has been read
      bulk_wait(0);
      y[1] = y[1] + tile(0);
    }
  });
  return m;
}

/// A warp hands numbers to another through a ring of two stages, ten times.
ScriptModule ring() {
  ScriptModule m("ring");
  m.cuda_kernel("k", [&](Function& f) {
    auto x = f.arg("x", ptr(i32));
    auto y = f.arg("y", ptr(i32));
    f.grid_dim(1);
    f.block_dim(64);
    auto stage = shared("stage", i32, {2, 32});
    auto barriers = shared("barriers", u64, {4});
    auto lane = let("lane", threadIdx.x % 32);
    make_barriers(barriers, {32, 32, 32, 32});
    if (auto _ = when(threadIdx.x < 32)) {
      for (auto i : range(10)) {
        mbarrier_wait(barriers.ptr(i % 2 + 2), (i / 2 + 1) % 2);
        stage(i % 2, lane) = x[i * 32 + lane];
        mbarrier_arrive(barriers.ptr(i % 2));
      }
    }
    if (auto _ = otherwise()) {
      for (auto i : range(10)) {
        mbarrier_wait(barriers.ptr(i % 2), i / 2 % 2);
        y[i * 32 + lane] = stage(i % 2, 31 - lane) + i;
        mbarrier_arrive(barriers.ptr(i % 2 + 2));
      }
    }
  });
  return m;
}

/// Four blocks: each reads its left neighbour, writes to its right one, and tells it.
ScriptModule neighbours() {
  ScriptModule m("neighbours");
  m.cuda_kernel("k", [&](Function& f) {
    auto x = f.arg("x", ptr(i32));
    auto y = f.arg("y", ptr(i32));
    f.grid_dim(2, 4);
    f.block_dim(32);
    f.cluster_dim(1, 4);
    auto own = shared("own", i32, {32});
    auto given = shared("given", i32, {32});
    auto barrier = shared("barrier", u64, {1});
    auto rank = let("rank", cluster_rank);
    auto tid = let("tid", threadIdx.x);
    auto block = let("block", blockIdx.y * 2 + blockIdx.x);
    own(tid) = x[block * 32 + tid];
    make_barriers(barrier, {32});
    cluster_arrive();
    cluster_wait();
    auto left = let("left", map_shared_rank(own.ptr(), (rank + 3) % cluster_size));
    auto right = let("right", map_shared_rank(given.ptr(), (rank + 1) % 4));
    right[tid] = own(31 - tid);
    mbarrier_arrive(barrier.ptr(), (rank + 1) % 4);
    mbarrier_wait(barrier.ptr(), 0);
    y[block * 32 + tid] = left[tid] * 1000 + given(tid);
    cluster_sync();
  });
  return m;
}

ScriptModule elected() {
  ScriptModule m("elected");
  m.cuda_kernel("k", [&](Function& f) {
    auto x = f.arg("x", ptr(i32));
    auto y = f.arg("y", ptr(i32));
    f.grid_dim(1);
    f.block_dim(384);
    f.min_blocks(1);
    griddep_wait();
    auto chosen = let("chosen", elect_one());
    // On which lane is the hardware's choice: whether one of each warp is told.
    auto told = let("told", ballot(chosen));
    auto count = let("count", select(told != 0 && (told & (told - 1)) == 0, 1, 0));
    if (auto _ = when(threadIdx.x < 128)) setmaxnreg_dec(24);
    if (auto _ = otherwise()) setmaxnreg_inc(240);
    y[threadIdx.x] = x[threadIdx.x] + count;
    griddep_launch();
  });
  return m;
}

}  // namespace

void add_hopper(Cases& out) {
  add_boxes(out);
  std::vector<double> both(1024), tripled(1024), handed(320), given(256);
  for (int i = 0; i < 1024; i++) {
    both[static_cast<size_t>(i)] = i % 256 + 5 + i / 256;
    tripled[static_cast<size_t>(i)] = (i + 1) * 3 + (i == 1 ? 7 : 0);
  }
  for (int i = 0; i < 320; i++) handed[static_cast<size_t>(i)] = i / 32 * 32 + 31 - i % 32 + i / 32;
  for (int i = 0; i < 256; i++) {
    const int left = (i + 256 - 64) % 256;
    given[static_cast<size_t>(i)] = left * 1000 + left / 32 * 32 + 31 - left % 32;
  }
  const auto ints = [](int n) { return zeros({n}, i32); };
  for (bool map : {false, true})
    out.push_back(whole(map ? "tma_load" : "bulk_load", "multicast", multicast(map),
                        {counting(256, 5)}, ints(1024), both));
  out.push_back(whole("bulk_load", "bulk_store", bulk(), {counting(1024, 1)}, ints(1024), tripled));
  out.push_back(whole("mbarrier_wait", "ring", ring(), {counting(320, 0)}, ints(320), handed));
  out.push_back(
      whole("map_shared_rank", "neighbours", neighbours(), {counting(256, 0)}, ints(256), given));
  out.push_back(whole("elect_one", "setmaxnreg, griddep", elected(), {counting(384, 0)}, ints(384),
                      sequence(384, [](int i) { return i + 1; })));
}

}  // namespace hidet::primitives
