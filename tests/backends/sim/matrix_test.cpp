// matrix_test.cpp - matrix instructions, asynchronous copies, votes and barriers with counts, in the simulator against loops that
// know PTX's layouts of fragments from its manual; and each of them compiled for the least architecture that has it.
#include <gmock/gmock.h>
#include <hidet/backends/cuda.h>
#include <hidet/hidet.h>
#include <hidet/ir/mma.h>

#include <algorithm>
#include <cstring>
#include <set>

using namespace hidet::lang;
using hidet::DType;
using hidet::Tensor;
using hidet::ir::MmaShape;

namespace {

/// Compiles for `arch` and for nothing else.
void expect_compiles(const ScriptModule& m, const char* arch) {
  EXPECT_FALSE(m.build({.cuda_arch = arch}).data().images.empty()) << m.name();
}

/// A kernel of one warp that multiplies fragments as they lie in memory, one after the other by lane.
ScriptModule one_mma(const MmaShape& s) {
  ScriptModule m(s.name);
  const DType word = s.a == hidet::f64 ? hidet::f64 : hidet::u32,
              sum = s.sum == hidet::f16 ? hidet::u32 : s.sum;
  m.cuda_kernel("k", [&](Function& f) {
    auto a = f.arg("a", ptr(word));
    auto b = f.arg("b", ptr(word));
    auto c = f.arg("c", ptr(sum));
    f.grid_dim(1);
    f.block_dim(32);
    auto lane = let("lane", cast(threadIdx.x, hidet::i64));
    const int na = s.registers_a(), nb = s.registers_b(), nc = s.registers_sum();
    store(c + lane * nc, Mma{s.name.c_str()}(load(a + lane * na, na), load(b + lane * nb, nb),
                                             load(c + lane * nc, nc)));
  });
  return m;
}

/// Where PTX puts element (row, column) of an m x k matrix a, a k x 8 matrix b and an m x 8 matrix c: the index among all
/// elements in the order lane, register, position in the register. A register holds `each` columns, four lanes' are side by side.
size_t place_a(const MmaShape& s, int row, int column) {
  const int each = s.a == hidet::f64 ? 1 : 4 / static_cast<int>(s.a.bytes()), width = 4 * each,
            tall = s.m / 8;
  const int lane = row % 8 * 4 + column % width / each, reg = row / 8 + tall * (column / width);
  return static_cast<size_t>((lane * (tall * s.k / width) + reg) * each + column % each);
}
size_t place_b(const MmaShape& s, int row, int column) {
  const int each = s.b == hidet::f64 ? 1 : 4 / static_cast<int>(s.b.bytes()), width = 4 * each;
  const int lane = column * 4 + row % width / each;
  return static_cast<size_t>((lane * (s.k / width) + row / width) * each + row % each);
}
size_t place_c(const MmaShape& s, int row, int column) {
  const int each = s.m / 8 * 2;
  return static_cast<size_t>((row % 8 * 4 + column / 2) * each + row / 8 * 2 + column % 2);
}

class MatrixProduct : public testing::TestWithParam<MmaShape> {};

TEST_P(MatrixProduct, EqualsALoop) {
  const MmaShape& s = GetParam();
  std::vector<double> a(static_cast<size_t>(s.m * s.k)), b(static_cast<size_t>(s.k * 8)),
      c(static_cast<size_t>(s.m * 8)), wanted(c.size());
  // All values are exact in the accumulator; f8 hold 4 significant bits or 3.
  const auto value = [&](DType t, int i) {
    if (t.bits() == 8 && t.is_float()) return (i * 37 + i / 5) % 8 - 3.0;
    return (t == hidet::u8 ? 0 : -9) + (i * 37 + i / 5) % 17 + (t.is_float() ? 0.25 : 0);
  };
  for (int i = 0; i < s.m; i++)
    for (int p = 0; p < s.k; p++) a[place_a(s, i, p)] = value(s.a, i * s.k + p);
  for (int p = 0; p < s.k; p++)
    for (int j = 0; j < 8; j++) b[place_b(s, p, j)] = value(s.b, p * 8 + j + 3);
  for (int i = 0; i < s.m; i++)
    for (int j = 0; j < 8; j++) {
      const double first =
          s.saturate && (i + j) % 2 ? (i % 2 ? 2147483647.0 : -2147483648.0) : i - j;
      double sum = c[place_c(s, i, j)] = first;
      for (int p = 0; p < s.k; p++) sum += a[place_a(s, i, p)] * b[place_b(s, p, j)];
      wanted[place_c(s, i, j)] = s.saturate ? std::clamp(sum, -2147483648.0, 2147483647.0) : sum;
    }
  const auto tensor = [](const std::vector<double>& v, DType t) {
    const DType kept = t == hidet::tf32 ? hidet::f32 : t;
    return hidet::from_doubles(v, {static_cast<int64_t>(v.size())}, kept);
  };
  const auto words = [](const Tensor& t) {
    return t.dtype() == hidet::f64 ? t : t.view_at(0, {t.bytes() / 4}, hidet::u32);
  };
  const Tensor tc = tensor(c, s.sum);
  const ScriptModule m = one_mma(s);
  m.simulate("k", words(tensor(a, s.a)), words(tensor(b, s.b)),
             s.sum == hidet::f16 ? words(tc) : tc);
  EXPECT_EQ(tc.to_doubles(), wanted);
}

INSTANTIATE_TEST_SUITE_P(Rows, MatrixProduct, testing::ValuesIn(hidet::ir::mma_shapes()),
                         [](const auto& info) { return info.param.name; });

TEST(WarpReductions, NeedAllLanesThatHaveNotEnded) {
  const auto run = [](int ended, bool waits) {
    ScriptModule m("part");
    m.cuda_kernel("k", [&](Function& f) {
      auto y = f.arg("y", ptr(hidet::i32));
      f.grid_dim(1);
      f.block_dim(32);
      if (auto _ = when(threadIdx.x >= ended)) y[threadIdx.x] = redux_add(threadIdx.x);
      if (waits) syncwarp();
    });
    const Tensor y = hidet::zeros({32}, hidet::i32);
    m.simulate("k", y);
    return y.to_doubles();
  };
  EXPECT_EQ(run(0, true)[31], 496);
  EXPECT_EQ(run(16, false)[31], 376);  // of those that are there
  try {
    (void)run(16, true);
    ADD_FAILURE() << "lanes that wait elsewhere are not noticed";
  } catch (const hidet::Error& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("waits for its warp"));
  }
}

TEST(WideAtomics, NeedTheirAlignment) {
  const auto report = [](bool vector, int at) -> std::string {
    ScriptModule m("atomics");
    m.cuda_kernel("k", [&](Function& f) {
      auto x = f.arg("x", ptr(hidet::f32));
      f.grid_dim(1);
      f.block_dim(1);
      if (vector) {
        atomic_add_vector(x + at, load(x, 4));
      } else {
        auto words = let("words", reinterpret(x + at, ptr(hidet::u64)));
        atomic_exch_128(words, make_vec({cast(Value(1), hidet::u64), cast(Value(2), hidet::u64)}));
      }
    });
    try {
      m.simulate("k", hidet::zeros({16}));
      return "";
    } catch (const hidet::Error& e) {
      return e.what();
    }
  };
  for (const bool vector : {false, true}) {
    EXPECT_EQ(report(vector, 4), "");
    EXPECT_THAT(report(vector, 2), testing::AllOf(testing::HasSubstr("matrix_test.cpp"),
                                                  testing::HasSubstr("atomic access of 'x'"),
                                                  testing::HasSubstr("is not a multiple of 16")));
  }
}

TEST(MatrixProduct, EveryShapeHasAName) {
  std::set<std::string> named;
#define HIDET_NAME(shape) named.insert(mma_##shape.row);
  HIDET_MMA(HIDET_NAME)
#undef HIDET_NAME
  std::set<std::string> shapes;
  for (const MmaShape& s : hidet::ir::mma_shapes()) shapes.insert(s.name);
  EXPECT_EQ(named, shapes);
  EXPECT_EQ(shapes.size(), 52u);
}

/// x[8 count, 8] -> shared memory -> fragments -> y[lane][register]; or back from fragments, where `stores`.
ScriptModule matrices(int count, bool transposed, bool stores) {
  ScriptModule m("matrices");
  m.cuda_kernel("k", [&](Function& f) {
    auto x = f.arg("x", ptr(hidet::u16));
    auto y = f.arg("y", ptr(hidet::u32));
    f.grid_dim(1);
    f.block_dim(32);
    auto tile = shared("tile", hidet::u16, {8 * count, 8});
    auto lane = let("lane", cast(threadIdx.x, hidet::i64));
    auto row = let("row", tile.ptr(lane % (8 * count), 0));
    if (!stores) {
      for (auto i : range(0, 64 * count, 32)) tile((i + lane) / 8, (i + lane) % 8) = x[i + lane];
      syncthreads();
      store(y + lane * count, ldmatrix(row, count, transposed));
    } else {
      stmatrix(row, load(y + lane * count, count), transposed);
      syncthreads();
      for (auto i : range(0, 64 * count, 32)) x[i + lane] = tile((i + lane) / 8, (i + lane) % 8);
    }
  });
  return m;
}

TEST(Matrices, LoadAndStoreEveryForm) {
  for (const int count : {1, 2, 4})
    for (const bool transposed : {false, true}) {
      std::vector<uint16_t> in(static_cast<size_t>(64 * count));
      for (size_t i = 0; i < in.size(); i++) in[i] = static_cast<uint16_t>(i * 259 + 1);
      const Tensor x = hidet::from_vector<uint16_t>(in, {64 * count});
      const Tensor y = hidet::zeros({32 * count}, hidet::u32);
      const ScriptModule loads = matrices(count, transposed, false),
                         stores = matrices(count, transposed, true);
      loads.simulate("k", x, y);
      std::vector<uint32_t> wanted;
      for (int lane = 0; lane < 32; lane++)
        for (int j = 0; j < count; j++) {
          const auto at = [&](int row, int column) -> uint32_t {
            return in[static_cast<size_t>(64 * j +
                                          (transposed ? column * 8 + row : row * 8 + column))];
          };
          wanted.push_back(at(lane / 4, lane % 4 * 2) | at(lane / 4, lane % 4 * 2 + 1) << 16);
        }
      EXPECT_EQ(y.to_vector<uint32_t>(), wanted) << count << transposed;
      const Tensor back = hidet::zeros({64 * count}, hidet::u16);
      stores.simulate("k", back, y);
      EXPECT_EQ(back.to_vector<uint16_t>(), in) << count << transposed;
      expect_compiles(loads, "sm_80");
      expect_compiles(stores, "sm_90");
    }
}

TEST(Matrices, ArchitectureThatLacksThem) {
  const ScriptModule m = matrices(1, false, true);
  try {
    (void)m.build({.cuda_arch = "sm_80"});
    ADD_FAILURE() << "not refused";
  } catch (const hidet::Error& e) {
    EXPECT_THAT(
        e.what(),
        testing::AllOf(testing::StartsWith("matrix_test.cpp:"),
                       testing::HasSubstr("'stmatrix' is not available on sm_80; it needs sm_90")));
  }
}

// Copies of 4, 8 and 16 bytes, whole and in part, waited for group by group.
TEST(AsyncCopies, PartsAndGroups) {
  for (const int bytes : {4, 8, 16}) {
    ScriptModule m("copies");
    m.cuda_kernel("k", [&](Function& f) {
      auto x = f.arg("x", ptr(hidet::u8));
      auto y = f.arg("y", ptr(hidet::u8));
      f.grid_dim(1);
      f.block_dim(32);
      auto tile = shared("tile", hidet::u8, {2, 32, bytes});
      auto lane = let("lane", cast(threadIdx.x, hidet::i64));
      cp_async(tile.ptr(0, lane, 0), x + lane * bytes, bytes);
      cp_async_commit();
      cp_async(tile.ptr(1, lane, 0), x + lane * bytes, bytes, bytes / 2);
      cp_async_commit();
      cp_async_wait(1);
      for (int i = 0; i < bytes; i++) y[lane * bytes + i] = tile(0, lane, i);
      cp_async_wait(0);
      for (int i = 0; i < bytes; i++) y[(lane + 32) * bytes + i] = tile(1, lane, i);
    });
    std::vector<uint8_t> in(static_cast<size_t>(32 * bytes)), wanted;
    for (size_t i = 0; i < in.size(); i++) in[i] = static_cast<uint8_t>(i + 1);
    wanted = in;
    for (size_t i = 0; i < in.size(); i++)
      wanted.push_back(static_cast<int>(i) % bytes < bytes / 2 ? in[i] : 0);
    const Tensor y = hidet::zeros({64 * bytes}, hidet::u8);
    m.simulate("k", hidet::from_vector<uint8_t>(in, {32 * bytes}), y);
    EXPECT_EQ(y.to_vector<uint8_t>(), wanted) << bytes;
    expect_compiles(m, "sm_80");
  }
}

// A block of 64 threads: what all, any and how many of them say; equal values; atomics on bits; a barrier of one warp.
TEST(Votes, OfABlockAndAWarp) {
  ScriptModule m("votes");
  m.cuda_kernel("k", [](Function& f) {
    auto y = f.arg("y", ptr(hidet::i32));
    auto bits = f.arg("bits", ptr(hidet::i32));
    f.grid_dim(1);
    f.block_dim(64);
    auto t = let("t", cast(threadIdx.x, hidet::i32));
    auto all = let("all", syncthreads_and(t < 60)), any = let("any", syncthreads_or(t == 63));
    auto count = let("count", syncthreads_count(t % 3 == 0));
    auto same = let("same", match_any(t % 4));
    atomic_or(bits, cast(1, hidet::i32) << t % 8);
    atomic_and(bits + 1, ~(cast(1, hidet::i32) << t % 4));
    atomic_xor(bits + 2, t);
    if (auto _ = when(t < 32)) barrier_sync(1, 32);
    y[t * 4] = cast(all, hidet::i32);
    y[t * 4 + 1] = cast(any, hidet::i32);
    y[t * 4 + 2] = cast(count, hidet::i32);
    y[t * 4 + 3] = reinterpret(same, hidet::i32);
  });
  const Tensor y = hidet::zeros({256}, hidet::i32),
               bits = hidet::from_vector<int32_t>({0, 255, 0}, {3});
  m.simulate("k", y, bits);
  const std::vector<int32_t> got = y.to_vector<int32_t>();
  int32_t parity = 0;
  for (int t = 0; t < 64; t++) {
    parity ^= t;
    EXPECT_EQ(got[t * 4] != 0, false) << t;
    EXPECT_EQ(got[t * 4 + 1] != 0, true) << t;
    EXPECT_EQ(got[t * 4 + 2], 22) << t;
    EXPECT_EQ(static_cast<uint32_t>(got[t * 4 + 3]), 0x11111111u << t % 4) << t;
  }
  EXPECT_EQ(bits.to_vector<int32_t>(), (std::vector<int32_t>{255, 240, parity}));
  expect_compiles(m, "sm_80");
}

}  // namespace
