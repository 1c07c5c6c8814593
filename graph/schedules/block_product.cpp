// block_product.cpp - tiles of a product on the GPU.
#include "schedules/block_product.h"

#include <hidet/ir/passes.h>
#include <hidet/ir/primitives.h>
#include <hidet/ir/rewriter.h>

#include <algorithm>

namespace hidet::graph {
using namespace ir;

namespace {

constexpr int64_t kThreads = 256;
/// Lanes of an f32 vector.
constexpr int kLanes = 4;
/// Blocks that fill a large GPU.
constexpr int64_t kFewBlocks = 120;

/// A block's tile: rows x columns with a step of depth; a thread has side x side results.
struct Tile {
  const char* name;
  int64_t size, depth;
  int64_t side() const { return size / 16; }
  /// Results of a thread that are neighbours, as many as one vector has.
  int64_t group() const { return std::min<int64_t>(side(), kLanes); }
};
constexpr Tile kTiles[] = {{"product_128", 128, 8}, {"product_64", 64, 16}, {"product_32", 32, 32}};
/// Shared memory that a kernel has without asking.
constexpr int64_t kSharedBytes = 48 << 10;

/// The tile with the depth that a candidate asks for, where each thread reads and the two buffers fit.
Tile chosen_depth(Tile tile, const FusedTask& fused) {
  const int64_t depth = fused.chosen("depth", tile.depth);
  const bool whole = tile.size * depth % (kThreads * kLanes) == 0;
  const int64_t bytes = 2 * depth * (2 * tile.size + kLanes) * 4;
  if (whole && bytes <= kSharedBytes) tile.depth = depth;
  return tile;
}

class Kernel {
 public:
  Kernel(const FusedTask& fused, const BlockProduct& p, const Tile& tile)
      : fused_(fused), p_(p), t_(tile) {
    if (!is_const_int(simplify(p.depth.expr()), &depth_)) depth_ = -1;
  }

  Function run() {
    std::vector<Stmt> body;
    tid_ = declare(body, "tid", thread_index());
    const Value column_tiles = declare(body, "column_tiles", ceil_div(p_.columns, t_.size)),
                row_tiles = declare(body, "row_tiles", ceil_div(p_.rows, t_.size));
    const Value block = declare(body, "block", block_index());
    first_column_ = declare(body, "first_column", block % column_tiles * number(t_.size));
    const Value rest = declare(body, "rest", block / column_tiles);
    first_row_ = declare(body, "first_row", rest % row_tiles * number(t_.size));
    if (!p_.batch.empty()) {
      const Value z = declare(body, "z", rest / row_tiles);
      Unflattened u = unflatten(z.expr(), p_.batch);
      body.insert(body.end(), u.declarations.begin(), u.declarations.end());
      z_ = u.indices;
    }
    tile_a_ = shared(body, "tile_a", t_.size + kLanes);
    tile_b_ = shared(body, "tile_b", t_.size);
    declare_results(body);
    prepare_reads(body);
    main_loop(body);
    store_results(body);
    return cuda_kernel(fused_, t_.name, blocks(), kThreads, std::move(body));
  }

  Value blocks() const {
    Value n = ceil_div(p_.columns, t_.size) * ceil_div(p_.rows, t_.size);
    return p_.batch.empty() ? n : n * Value(size_of(p_.batch));
  }

 private:
  /// Two tiles of [depth, width].
  VarRef shared(std::vector<Stmt>& body, const char* name, int64_t width) const {
    const VarRef v =
        make_var(name, Type::tensor({f32,
                                     {make_int(2, Type(i32)), make_int(t_.depth, Type(i32)),
                                      make_int(width, Type(i32))},
                                     {},
                                     Scope::shared}));
    body.push_back(make_stmt<DeclTensor>({}, v, Expr()));
    return v;
  }
  void declare_results(std::vector<Stmt>& body) {
    for (int64_t i = 0; i < t_.side() * t_.side(); i++) {
      results_.push_back(make_var("c", Type(f32), true));
      body.push_back(make_stmt<DeclVar>({}, results_.back(), make_const(0, f32)));
    }
  }

  // --- global memory to registers to shared memory

  /// One access of a thread: `lanes` values at (k, at) of a tile, from global memory into registers.
  struct Access {
    BlockProduct::Fetch fetch;
    Value k;                   ///< i32, within the tile
    Value at;                  ///< i32, row or column within the tile
    VarRef axis;               ///< of the fetch, where vectors run along columns
    Value base;                ///< its value there
    std::vector<VarRef> kept;  ///< registers
  };

  /// Positions within the tile of access number `n`: `wide` values of the fast axis, `lanes` at once.
  std::pair<Value, Value> place(int64_t n, int64_t fast, int lanes) const {
    const Value flat = tid_ + small(n * kThreads);
    return {flat / small(fast / lanes), flat % small(fast / lanes) * small(lanes)};
  }

  void prepare_reads(std::vector<Stmt>& body) {
    const int la = p_.a_vectors ? kLanes : 1, lb = p_.b_vectors ? kLanes : 1;
    for (int64_t n = 0; n < t_.size * t_.depth / (kThreads * la); n++) {
      Access a;
      const auto [row, k] = place(n, t_.depth, la);
      a.at = declare(body, "row", row);
      a.k = declare(body, "k", k);
      // Rows past the end are read as the last one, and not stored.
      const Value i =
          declare(body, "i", ir::min(first_row_ + cast(a.at, Type(i64)), p_.rows - number(1)));
      a.fetch = p_.a(body, z_, i);
      keep(body, a, la);
      reads_a_.push_back(a);
    }
    for (int64_t n = 0; n < t_.size * t_.depth / (kThreads * lb); n++) {
      Access b;
      const auto [k, column] = place(n, t_.size, lb);
      b.at = declare(body, "column", column);
      b.k = declare(body, "k", k);
      b.base = declare(body, "j",
                       ir::min(first_column_ + cast(b.at, Type(i64)), p_.columns - number(lb)));
      if (lb > 1) b.axis = make_var("j", Type(i64));
      b.fetch = p_.b(body, z_, lb > 1 ? Value(Expr(b.axis)) : b.base);
      keep(body, b, lb);
      reads_b_.push_back(b);
    }
  }
  static void keep(std::vector<Stmt>& body, Access& a, int lanes) {
    for (int l = 0; l < lanes; l++) {
      a.kept.push_back(make_var("next", Type(f32), true));
      body.push_back(make_stmt<DeclVar>({}, a.kept.back(), make_const(0, f32)));
    }
  }

  /// The tile that begins at depth k0, into registers; zeros past the end.
  void read(std::vector<Stmt>& body, const Value& k0) const {
    for (const auto* reads : {&reads_a_, &reads_b_})
      for (const Access& r : *reads) {
        std::vector<Stmt> in;
        const int lanes = static_cast<int>(r.kept.size());
        const Value k = declare(in, "k", k0 + cast(r.k, Type(i64)));
        std::vector<Expr> values;
        if (r.axis) {
          values = lane_values(r.fetch(k), r.axis, r.base.expr(), lanes, in);
        } else {
          const VarRef axis = make_var("k", Type(i64));
          values = lane_values(r.fetch(Value(Expr(axis))), axis, k.expr(), lanes, in);
        }
        for (int l = 0; l < lanes; l++)
          in.push_back(make_stmt<Assign>({}, r.kept[static_cast<size_t>(l)],
                                         values[static_cast<size_t>(l)]));
        if (depth_ > 0 && depth_ % t_.depth == 0) {
          body.insert(body.end(), in.begin(), in.end());
          continue;
        }
        std::vector<Stmt> none;
        for (const VarRef& v : r.kept) none.push_back(make_stmt<Assign>({}, v, make_const(0, f32)));
        body.push_back(make_stmt<If>({}, (k0 + cast(r.k, Type(i64)) < p_.depth).expr(),
                                     make_seq(std::move(in)), make_seq(std::move(none))));
      }
  }

  /// The registers into buffer `buffer` of shared memory; a's tile is transposed.
  void write(std::vector<Stmt>& body, const Value& buffer) const {
    const auto put = [&](const VarRef& tile, const Value& k, const Value& at, const Expr& v) {
      body.push_back(make_stmt<ElementStore>(
          {}, tile, std::vector<Expr>{buffer.expr(), k.expr(), at.expr()}, v, false));
    };
    for (const Access& r : reads_a_)
      for (size_t l = 0; l < r.kept.size(); l++)
        put(tile_a_, r.k + small(static_cast<int64_t>(l)), r.at, r.kept[l]);
    for (const Access& r : reads_b_) {
      std::vector<Expr> all(r.kept.begin(), r.kept.end());
      put(tile_b_, r.k, r.at, all.size() > 1 ? make_vector(all) : all[0]);
    }
  }

  // --- products

  void main_loop(std::vector<Stmt>& body) {
    const int64_t across = t_.size / t_.side();
    thread_row_ = declare(body, "thread_row", tid_ / small(across) * small(t_.group()));
    thread_column_ = declare(body, "thread_column", tid_ % small(across) * small(t_.group()));
    const Value tiles = declare(body, "tiles", ceil_div(p_.depth, t_.depth));
    std::vector<Stmt> first;
    read(first, number(0));
    body.insert(body.end(), first.begin(), first.end());
    write(body, small(0));
    body.push_back(barrier());
    body.push_back(loop("tile", tiles.expr(), LoopKind::serial, [&](const Value& tile) {
      std::vector<Stmt> in;
      const Value buffer = declare(in, "buffer", cast(tile % number(2), Type(i32)));
      const Value more = declare(in, "more", tile + number(1) < tiles);
      std::vector<Stmt> next, into;
      read(next, (tile + number(1)) * number(t_.depth));
      in.push_back(only_if(more, std::move(next)));
      for (int64_t k = 0; k < t_.depth; k++) multiply(in, buffer, k);
      write(into, small(1) - buffer);
      in.push_back(only_if(more, std::move(into)));
      in.push_back(barrier());
      return make_seq(std::move(in));
    }));
  }

  /// The results of a thread are groups of neighbours, half a tile apart.
  int64_t offset(int64_t i) const {
    return i / t_.group() * (t_.size / (t_.side() / t_.group())) + i % t_.group();
  }
  /// The side's values at depth k of the tile: one read a group.
  std::vector<Expr> side(std::vector<Stmt>& body, const VarRef& tile, const Value& buffer,
                         int64_t k, const Value& thread) const {
    std::vector<Expr> out;
    const int lanes = static_cast<int>(t_.group());
    for (int64_t i = 0; i < t_.side(); i += lanes) {
      const VarRef v = make_var("v", Type::vector(f32, lanes));
      const Expr at = (thread + small(offset(i))).expr();
      body.push_back(make_stmt<DeclVar>(
          {}, v, make_element(tile, {buffer.expr(), small(k).expr(), at}, false, lanes)));
      for (int l = 0; l < lanes; l++) out.push_back(make_lane(v, make_int(l, Type(i32))));
    }
    return out;
  }
  void multiply(std::vector<Stmt>& body, const Value& buffer, int64_t k) const {
    const std::vector<Expr> a = side(body, tile_a_, buffer, k, thread_row_),
                            b = side(body, tile_b_, buffer, k, thread_column_);
    for (size_t i = 0; i < a.size(); i++)
      for (size_t j = 0; j < b.size(); j++) {
        const VarRef& c = results_[i * b.size() + j];
        body.push_back(make_stmt<Assign>({}, c, call_math("fma", {a[i], b[j], c})));
      }
  }

  void store_results(std::vector<Stmt>& body) const {
    const auto side = static_cast<size_t>(t_.side());
    const int lanes = p_.store_vectors ? static_cast<int>(t_.group()) : 1;
    for (size_t i = 0; i < side; i++) {
      std::vector<Stmt> in;
      const Value row = declare(
          in, "i",
          first_row_ + cast(thread_row_ + small(offset(static_cast<int64_t>(i))), Type(i64)));
      std::vector<Stmt> stores;
      for (size_t j = 0; j < side; j += static_cast<size_t>(lanes)) {
        const Value column =
            first_column_ +
            cast(thread_column_ + small(offset(static_cast<int64_t>(j))), Type(i64));
        const std::vector<Expr> values(
            results_.begin() + static_cast<int64_t>(i * side + j),
            results_.begin() + static_cast<int64_t>(i * side + j) + lanes);
        std::vector<Stmt> one;
        const Value base = declare(one, "j", column);
        p_.store(one, z_, row, base, values);
        stores.push_back(only_if(column < p_.columns, std::move(one)));
      }
      in.push_back(only_if(row < p_.rows, std::move(stores)));
      body.insert(body.end(), in.begin(), in.end());
    }
  }

  const FusedTask& fused_;
  const BlockProduct& p_;
  const Tile t_;
  int64_t depth_ = -1;  ///< -1: known at run time
  Value tid_, first_row_, first_column_, thread_row_, thread_column_;
  std::vector<Value> z_;
  VarRef tile_a_, tile_b_;
  std::vector<VarRef> results_;
  std::vector<Access> reads_a_, reads_b_;
};

}  // namespace

Module block_product(const FusedTask& fused, const BlockProduct& product) {
  std::vector<Function> kernels;
  Stmt launch;
  const int64_t few = fused.chosen("few", kFewBlocks), only = fused.chosen("tile", 0);
  for (const Tile& tile : kTiles) {
    if (only && tile.size != only) continue;
    Kernel kernel(fused, product, chosen_depth(tile, fused));
    const bool last = only || &tile == std::end(kTiles) - 1;
    const Value blocks(simplify(kernel.blocks().expr()));
    int64_t n = 0;
    const bool known = is_const_int(blocks.expr(), &n);
    if (known && n < few && !last) continue;
    kernels.push_back(kernel.run());
    if (known || last) break;
  }
  // From the smallest tile to the largest: each larger one where it makes enough blocks.
  for (size_t i = kernels.size(); i-- > 0;) {
    const Stmt call = call_kernel(fused, kernels[i].name);
    launch = launch
                 ? Stmt(make_stmt<If>({}, (Value(kernels[i].launch.grid[0]) >= number(few)).expr(),
                                      call, launch))
                 : call;
  }
  return cuda_module(fused, std::move(kernels), launch);
}

std::vector<ScheduleParameter> block_product_space() {
  return {{"tile", {32, 64, 128}}, {"depth", {8, 16, 32}}, {"few", {60, 240}}};
}

}  // namespace hidet::graph
