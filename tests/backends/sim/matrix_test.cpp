// matrix_test.cpp - matrix instructions, asynchronous copies, votes and barriers with counts, in the simulator against loops that
// know PTX's layouts of fragments from its manual; and each of them compiled for the least architecture that has it.
#include <gmock/gmock.h>
#include <hidet/backends/cuda.h>
#include <hidet/hidet.h>

#include <cstring>

using namespace hidet::lang;
using hidet::DType;
using hidet::Tensor;

namespace {

/// Compiles for `arch` and for nothing else.
void expect_compiles(const ScriptModule& m, const char* arch) {
  EXPECT_FALSE(m.build({.cuda_arch = arch}).data().images.empty()) << m.name();
}

/// A kernel of one warp that multiplies fragments as they lie in memory, one after the other by lane.
ScriptModule one_mma(const Mma& mma, DType sum, int sum_registers) {
  ScriptModule m(mma.row);
  m.cuda_kernel("k", [&](Function& f) {
    auto a = f.arg("a", ptr(hidet::u32));
    auto b = f.arg("b", ptr(hidet::u32));
    auto c = f.arg("c", ptr(sum));
    f.grid_dim(1);
    f.block_dim(32);
    auto lane = let("lane", cast(threadIdx.x, hidet::i64));
    store(c + lane * sum_registers, mma(load(a + lane * 4, 4), load(b + lane * 2, 2),
                                        load(c + lane * sum_registers, sum_registers)));
  });
  return m;
}

/// Where PTX puts element (row, column) of a 16 x k matrix a, a k x 8 matrix b and a 16 x 8 matrix c: the index among all
/// elements in the order lane, register, position in the register. `each`: elements of a 32-bit register.
size_t place_a(int row, int column, int k, int each) {
  const int lane = row % 8 * 4 + column % (k / 2) / each;
  const int reg = row / 8 + 2 * (column / (k / 2));
  return static_cast<size_t>((lane * 4 + reg) * each + column % each);
}
size_t place_b(int row, int column, int k, int each) {
  const int lane = column * 4 + row % (k / 2) / each;
  return static_cast<size_t>((lane * 2 + row / (k / 2)) * each + row % each);
}
size_t place_c(int row, int column) {
  return static_cast<size_t>((row % 8 * 4 + column / 2) * 4 + row / 8 * 2 + column % 2);
}

struct MmaCase {
  Mma mma;
  DType in, sum;
  int k;
};

void PrintTo(const MmaCase& c, std::ostream* out) { *out << c.mma.row; }

class MatrixProduct : public testing::TestWithParam<MmaCase> {};

TEST_P(MatrixProduct, EqualsALoop) {
  const MmaCase& test = GetParam();
  const int each = 4 / static_cast<int>(test.in.bytes()), k = test.k;
  std::vector<double> a(static_cast<size_t>(16 * k)), b(static_cast<size_t>(k * 8)), c(128),
      wanted(128);
  const int low = test.in == hidet::u8 ? 0 : -9;
  const auto value = [&](int i) {
    return low + (i * 37 + i / 5) % 17 + (test.in.is_float() ? 0.25 : 0);
  };
  for (int i = 0; i < 16; i++)
    for (int p = 0; p < k; p++) a[place_a(i, p, k, each)] = value(i * k + p);
  for (int p = 0; p < k; p++)
    for (int j = 0; j < 8; j++) b[place_b(p, j, k, each)] = value(p * 8 + j + 3);
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 8; j++) {
      double sum = c[place_c(i, j)] = i - j;
      for (int p = 0; p < k; p++) sum += a[place_a(i, p, k, each)] * b[place_b(p, j, k, each)];
      wanted[place_c(i, j)] = sum;
    }
  const auto words = [](const Tensor& t) { return t.view_at(0, {t.bytes() / 4}, hidet::u32); };
  const Tensor ta = words(hidet::from_doubles(a, {16 * k}, test.in)),
               tb = words(hidet::from_doubles(b, {k * 8}, test.in)),
               tc = hidet::from_doubles(c, {128}, test.sum);
  const bool pairs = test.sum == hidet::f16;
  const ScriptModule m = one_mma(test.mma, pairs ? hidet::u32 : test.sum, pairs ? 2 : 4);
  m.simulate("k", ta, tb, pairs ? words(tc) : tc);
  EXPECT_EQ(tc.to_doubles(), wanted);  // all values are exact in the accumulator
  expect_compiles(m, "sm_80");
}

INSTANTIATE_TEST_SUITE_P(Rows, MatrixProduct,
                         testing::Values(MmaCase{mma_m16n8k16_f16_f32, hidet::f16, hidet::f32, 16},
                                         MmaCase{mma_m16n8k16_bf16_f32, hidet::bf16, hidet::f32,
                                                 16},
                                         MmaCase{mma_m16n8k16_f16_f16, hidet::f16, hidet::f16, 16},
                                         MmaCase{mma_m16n8k8_tf32_f32, hidet::f32, hidet::f32, 8},
                                         MmaCase{mma_m16n8k32_i8_i32, hidet::i8, hidet::i32, 32},
                                         MmaCase{mma_m16n8k32_u8_i32, hidet::u8, hidet::i32, 32}),
                         [](const auto& info) { return std::string(info.param.mma.row); });

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
