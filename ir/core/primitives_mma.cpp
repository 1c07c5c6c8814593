// primitives_mma.cpp - rows of the table of primitives for matrix products of a warp, made from the list of shapes.
// The columns are those of primitives.cpp.
#include <hidet/ir/mma.h>
#include <deque>

#include "primitive_tables.h"

namespace hidet::ir {
namespace {

/// Shapes that share their types: m and the ks that there are.
struct Family {
  DType a, b, sum;
  int m;
  std::vector<int> ks;
  int least_arch;
};

const std::vector<Family>& families() {
  static const auto* const list = [] {
    auto* out = new std::vector<Family>{
        {f16, f16, f32, 16, {8, 16}, 80},   {f16, f16, f16, 16, {8, 16}, 80},
        {bf16, bf16, f32, 16, {8, 16}, 80}, {tf32, tf32, f32, 16, {4, 8}, 80},
        {f64, f64, f64, 8, {4}, 80},        {f64, f64, f64, 16, {4, 8, 16}, 90},
    };
    for (DType a : {i8, u8})
      for (DType b : {i8, u8}) {
        out->push_back({a, b, i32, 8, {16}, 80});
        out->push_back({a, b, i32, 16, {16, 32}, 80});
      }
    for (DType a : {f8e4m3, f8e5m2})
      for (DType b : {f8e4m3, f8e5m2})
        for (DType sum : {f32, f16}) out->push_back({a, b, sum, 16, {16, 32}, 89});
    return out;
  }();
  return *list;
}

std::string name_of(const Family& f, int k) {
  return "mma_m" + std::to_string(f.m) + "n8k" + std::to_string(k) + "_" + f.a.name() +
         (f.a == f.b ? "" : std::string("_") + f.b.name()) + "_" + f.sum.name();
}

/// A fragment of `count` registers that hold numbers of type t.
struct Fragment {
  int count;
  DType word;  ///< u32, or f32, i32, f64 with one number a register
  std::string type() const { return word.name() + (count == 1 ? "" : "x" + std::to_string(count)); }
  std::string c_type() const {
    const std::string scalar = word == f32   ? "float"
                               : word == f64 ? "double"
                               : word == i32 ? "int32_t"
                                             : "uint32_t";
    return count == 1 ? scalar : "hidet_vec<" + scalar + ", " + std::to_string(count) + ">";
  }
  /// "+f"(c.v[0]), "+f"(c.v[1])
  std::string operands(const char* name, const char* how) const {
    const char letter = word == f32 ? 'f' : word == f64 ? 'd' : 'r';
    std::string out;
    for (int i = 0; i < count; i++)
      out += std::string(i ? ", " : "") + "\"" + how + letter + "\"(" + name +
             (count == 1 ? "" : ".v[" + std::to_string(i) + "]") + ")";
    return out;
  }
  /// {%4, %5}
  std::string places(int first) const {
    std::string out;
    for (int i = 0; i < count; i++) out += (i ? ", %" : "%") + std::to_string(first + i);
    return "{" + out + "}";
  }
};

std::string helper_of(const MmaShape& s, const Fragment& a, const Fragment& b, const Fragment& c) {
  const std::string sums = c.places(0), result = c.c_type();
  const std::string ptx = "mma.sync.aligned.m" + std::to_string(s.m) + "n8k" + std::to_string(s.k) +
                          ".row.col." + (s.saturate ? "satfinite." : "") + ptx_type(s.sum) + "." +
                          ptx_type(s.a) + "." + ptx_type(s.b) + "." + ptx_type(s.sum);
  return "__device__ __forceinline__ " + result + " hidet_" + s.name + "(" + a.c_type() + " a, " +
         b.c_type() + " b, " + result + " c) {\n  asm volatile(\"" + ptx + " " + sums + ", " +
         a.places(c.count) + ", " + b.places(c.count + a.count) + ", " + sums +
         ";\"\n               : " + c.operands("c", "+") + " : " + a.operands("a", "") + ", " +
         b.operands("b", "") + ");\n  return c;\n}\n";
}

std::string doc_of(const MmaShape& s) {
  const std::string types = s.a.name() + (s.a == s.b ? "" : std::string(" by ") + s.b.name()) +
                            " with " +
                            (s.sum != i32 ? ""
                             : s.saturate ? "saturating "
                                          : "wrapping ") +
                            s.sum.name() + " sums";
  return "c + a b, " + std::to_string(s.m) + " x 8 x " + std::to_string(s.k) + ", " + types +
         (s.sum == f16 ? ", two in a register" : "");
}

/// A text that lives as long as the table. Called while the table is made, by one thread.
const char* kept(const std::string& text) {
  static auto* const all = new std::deque<std::string>;
  return all->emplace_back(text).c_str();
}

Primitive row_of(const MmaShape& s) {
  const DType word = s.a == f64 ? f64 : u32;
  const Fragment a{s.registers_a(), word}, b{s.registers_b(), word},
      c{s.registers_sum(), s.sum == f16 ? u32 : s.sum};
  return {.name = s.name.c_str(),
          .arity = 3,
          .target = PrimTarget::cuda,
          .result = PrimResult::custom,
          .c = nullptr,
          .cuda = kept("hidet_" + s.name + "($0, $1, $2)"),
          .min_arch = s.least_arch,
          .pure = false,
          .elementwise = false,
          .convergent = true,
          .doc = kept(doc_of(s)),
          .signature = kept(a.type() + ", " + b.type() + ", " + c.type() + " -> " + c.type()),
          .helper = kept(helper_of(s, a, b, c))};
}

}  // namespace

const std::vector<MmaShape>& mma_shapes() {
  static const auto* const shapes = [] {
    auto* out = new std::vector<MmaShape>;
    for (const Family& f : families())
      for (int k : f.ks) {
        out->push_back({name_of(f, k), f.m, k, f.a, f.b, f.sum, false, f.least_arch});
        if (f.sum != i32) continue;
        out->push_back({name_of(f, k) + "_sat", f.m, k, f.a, f.b, f.sum, true, f.least_arch});
      }
    return out;
  }();
  return *shapes;
}

const std::vector<Primitive>& mma_primitives() {
  static const auto* const rows = [] {
    auto* out = new std::vector<Primitive>;
    for (const MmaShape& s : mma_shapes()) out->push_back(row_of(s));
    return out;
  }();
  return *rows;
}

}  // namespace hidet::ir
