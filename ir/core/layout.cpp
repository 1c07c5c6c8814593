// layout.cpp - layouts: how the indices of a tensor become an offset.
#include "core/layout_parts.h"

#include <hidet/ir/make.h>
#include <hidet/runtime/error.h>

#include <algorithm>

namespace hidet::ir {

Layout Layout::col_major() {
  Layout l;
  l.tag = Tag::col_major;
  return l;
}
Layout Layout::strided(std::vector<Expr> strides) {
  Layout l;
  l.tag = Tag::strided;
  l.strides = std::move(strides);
  return l;
}
Layout Layout::swizzled(Layout inner, int64_t bits, int64_t base, int64_t shift) {
  HIDET_REQUIRE(
      bits >= 0 && base >= 0 && shift >= bits && base + shift + bits < 32, ErrorCode::usage, "",
      "a swizzle needs 0 <= bits <= shift and base + shift + bits < 32, not bits = ", bits,
      ", base = ", base, ", shift = ", shift);
  Layout l;
  l.tag = Tag::swizzled;
  l.inner = std::make_shared<const Layout>(std::move(inner));
  l.bits = bits;
  l.base = base;
  l.shift = shift;
  return l;
}
Layout Layout::composed(Layout outer, Layout inner, std::vector<int64_t> tile) {
  Layout l;
  l.tag = Tag::composed;
  l.outer = std::make_shared<const Layout>(std::move(outer));
  l.inner = std::make_shared<const Layout>(std::move(inner));
  l.tile = std::move(tile);
  return l;
}

Layout Layout::permuted(std::vector<int64_t> order, Layout inner) {
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (size_t d = 0; d < sorted.size(); d++)
    HIDET_REQUIRE(sorted[d] == static_cast<int64_t>(d), ErrorCode::usage, "",
                  "permute() takes each dimension once, from 0 on");
  Layout l;
  l.tag = Tag::permuted;
  l.inner = std::make_shared<const Layout>(std::move(inner));
  l.tile = std::move(order);
  return l;
}
Layout Layout::reshaped(std::vector<int64_t> shape, Layout inner) {
  HIDET_REQUIRE(!shape.empty() && *std::min_element(shape.begin(), shape.end()) > 0,
                ErrorCode::usage, "", "reshape() takes extents above 0");
  Layout l;
  l.tag = Tag::reshaped;
  l.inner = std::make_shared<const Layout>(std::move(inner));
  l.tile = std::move(shape);
  return l;
}
Layout Layout::concat(Layout outer, int64_t rank, Layout inner) {
  HIDET_REQUIRE(rank > 0, ErrorCode::usage, "", "concat() takes a number of dimensions above 0");
  Layout l;
  l.tag = Tag::concat;
  l.outer = std::make_shared<const Layout>(std::move(outer));
  l.inner = std::make_shared<const Layout>(std::move(inner));
  l.tile = {rank};
  return l;
}

namespace {
Expr add(Expr a, Expr b) { return make_binary(BinaryOp::add, std::move(a), std::move(b)); }
Expr mul(Expr a, Expr b) { return make_binary(BinaryOp::mul, std::move(a), std::move(b)); }
Expr constant(int64_t v, const Expr& like) { return make_int(v, like->type); }

/// e where the indices are e / n and e % n with the extent n, a constant; else null.
Expr taken_apart(const Expr& quotient, const Expr& rest, const Expr& extent) {
  const Binary *q = as<Binary>(quotient), *r = as<Binary>(rest);
  int64_t n = 0, by_q = 0, by_r = 0;
  if (!q || !r || q->op != BinaryOp::div || r->op != BinaryOp::mod) return {};
  if (!is_const_int(extent, &n) || !is_const_int(q->b, &by_q) || !is_const_int(r->b, &by_r))
    return {};
  return n > 0 && by_q == n && by_r == n && equal(q->a, r->a) ? q->a : Expr();
}
/// Indices in order, the last fastest: ((i0 * n1 + i1) * n2 + i2) ... Two that one number was taken apart into are that number.
Expr horner(const std::vector<Expr>& shape, const std::vector<Expr>& indices) {
  if (indices.empty()) return make_int(0, Type(i32));
  Expr above, last = indices[0], offset = last;
  for (size_t d = 1; d < indices.size(); d++) {
    const Expr whole = taken_apart(last, indices[d], shape[d]);
    if (!whole) above = mul(offset, shape[d]);
    else if (above) above = mul(above, shape[d]);
    last = whole ? whole : indices[d];
    offset = above ? add(above, last) : last;
  }
  return offset;
}
/// Tiles and places in a tile of a composed layout.
struct Tiled {
  std::vector<Expr> outer_shape, outer_index, inner_shape, inner_index;
};
Tiled split_tiles(const Layout& l, const std::vector<Expr>& shape,
                  const std::vector<Expr>& indices) {
  Tiled t;
  for (size_t d = 0; d < shape.size(); d++) {
    const Expr n = make_int(l.tile[d], shape[d]->type);
    t.outer_shape.push_back(
        make_binary(BinaryOp::div, add(shape[d], constant(l.tile[d] - 1, shape[d])), n));
    t.inner_shape.push_back(n);
    if (indices.empty()) continue;
    const Expr m = constant(l.tile[d], indices[d]);
    t.outer_index.push_back(make_binary(BinaryOp::div, indices[d], m));
    t.inner_index.push_back(make_binary(BinaryOp::mod, indices[d], m));
  }
  return t;
}
/// What a permuted, reshaped or concat layout makes of the list: entry order[k] as entry k; those from `begin` to `end`.
std::vector<Expr> in_order(const std::vector<int64_t>& order, const std::vector<Expr>& list) {
  HIDET_REQUIRE(order.size() == list.size(), ErrorCode::usage, "", "permute() of ", order.size(),
                " dimensions of a tensor of rank ", list.size());
  std::vector<Expr> out;
  for (const int64_t d : order) out.push_back(list[static_cast<size_t>(d)]);
  return out;
}
/// The shape of a reshaped layout's inner tensor.
std::vector<Expr> inner_shape(const Layout& l, const std::vector<Expr>& shape) {
  int64_t wanted = 1, given = 1, n = 0;
  bool known = true;
  for (const int64_t extent : l.tile) wanted *= extent;
  for (const Expr& extent : shape) {
    known = known && is_const_int(extent, &n);
    given *= n;
  }
  HIDET_REQUIRE(!known || wanted == given, ErrorCode::usage, "", "reshape() to ", wanted,
                " elements of a tensor of ", given);
  std::vector<Expr> out;
  for (const int64_t extent : l.tile) out.push_back(make_int(extent, shape.at(0)->type));
  return out;
}
/// The indices in a tensor of shape `tile` of its element number `linear`, the last index fastest.
std::vector<Expr> indices_of(const Expr& linear, const std::vector<int64_t>& tile) {
  std::vector<Expr> out(tile.size());
  Expr rest = linear;
  for (size_t d = tile.size(); d-- > 0;) {
    const Expr n = constant(tile[d], linear);
    out[d] = d == 0 ? rest : make_binary(BinaryOp::mod, rest, n);
    if (d > 0) rest = make_binary(BinaryOp::div, rest, n);
  }
  return out;
}
struct Halves {
  std::vector<Expr> first, last;
};
Halves cut(const Layout& l, const std::vector<Expr>& list) {
  const auto rank = static_cast<size_t>(l.tile[0]);
  HIDET_REQUIRE(rank < list.size(), ErrorCode::usage, "", "concat() after ", rank,
                " dimensions of a tensor of rank ", list.size());
  const auto at = list.begin() + static_cast<std::ptrdiff_t>(rank);
  return {{list.begin(), at}, {at, list.end()}};
}
}  // namespace

Expr Layout::offset(const std::vector<Expr>& shape, const std::vector<Expr>& indices) const {
  HIDET_REQUIRE(indices.size() == shape.size(), ErrorCode::usage, "", "a tensor of rank ",
                shape.size(), " takes ", shape.size(), " indices, not ", indices.size());
  switch (tag) {
    case Tag::row_major: return horner(shape, indices);
    case Tag::col_major:
      return horner({shape.rbegin(), shape.rend()}, {indices.rbegin(), indices.rend()});
    case Tag::strided: {
      HIDET_REQUIRE(strides.size() == shape.size(), ErrorCode::usage, "", "a tensor of rank ",
                    shape.size(), " needs ", shape.size(), " strides, not ", strides.size());
      Expr sum = make_int(0, Type(i32));
      for (size_t d = 0; d < shape.size(); d++) sum = add(sum, mul(indices[d], strides[d]));
      return sum;
    }
    case Tag::swizzled: {
      const Expr o = inner->offset(shape, indices);
      const Expr row =
          make_binary(BinaryOp::bit_and, make_binary(BinaryOp::shr, o, constant(shift + base, o)),
                      constant((int64_t{1} << bits) - 1, o));
      return make_binary(BinaryOp::bit_xor, o, make_binary(BinaryOp::shl, row, constant(base, o)));
    }
    case Tag::permuted: return inner->offset(in_order(tile, shape), in_order(tile, indices));
    case Tag::reshaped:
      return inner->offset(inner_shape(*this, shape), indices_of(horner(shape, indices), tile));
    case Tag::concat: {
      const Halves n = cut(*this, shape), i = cut(*this, indices);
      return add(mul(outer->offset(n.first, i.first), inner->span(n.last)),
                 inner->offset(n.last, i.last));
    }
    case Tag::composed: break;
  }
  HIDET_REQUIRE(tile.size() == shape.size(), ErrorCode::usage, "", "a tensor of rank ",
                shape.size(), " needs a tile of rank ", shape.size(), ", not ", tile.size());
  const Tiled t = split_tiles(*this, shape, indices);
  return add(mul(outer->offset(t.outer_shape, t.outer_index), inner->span(t.inner_shape)),
             inner->offset(t.inner_shape, t.inner_index));
}

Expr Layout::span(const std::vector<Expr>& shape) const {
  switch (tag) {
    case Tag::composed: {
      const Tiled t = split_tiles(*this, shape, {});
      return mul(outer->span(t.outer_shape), inner->span(t.inner_shape));
    }
    case Tag::concat: {
      const Halves n = cut(*this, shape);
      return mul(outer->span(n.first), inner->span(n.last));
    }
    case Tag::swizzled: {
      // Whole blocks: an element may move anywhere in its own.
      const Expr n = inner->span(shape);
      const int64_t block = int64_t{1} << (base + bits);
      return mul(make_binary(BinaryOp::div, add(n, constant(block - 1, n)), constant(block, n)),
                 constant(block, n));
    }
    case Tag::permuted: return inner->span(in_order(tile, shape));
    case Tag::reshaped: return inner->span(inner_shape(*this, shape));
    default: break;
  }
  Expr span = make_int(1, Type(i32));
  if (tag == Tag::strided) {
    for (size_t d = 0; d < shape.size(); d++)
      span = add(span, mul(add(shape[d], constant(-1, shape[d])), strides[d]));
    return span;
  }
  for (const Expr& n : shape) span = mul(span, n);
  return span;
}

bool consecutive(const Layout& l, const std::vector<Expr>& shape, const std::vector<Expr>& indices,
                 int64_t lanes, const std::function<int64_t(const Expr&)>& divisor) {
  using Tag = Layout::Tag;
  const auto whole = [&](int64_t block, const Expr& first) {
    return block % lanes == 0 && divisor(first) % lanes == 0;
  };
  const auto is_one = [](const Expr& e) {
    int64_t n = 0;
    return is_const_int(e, &n) && n == 1;
  };
  const auto inside = [&](const std::vector<Expr>& inner, const std::vector<Expr>& at) {
    return consecutive(*l.inner, inner, at, lanes, divisor);
  };
  switch (l.tag) {
    case Tag::row_major: return true;
    case Tag::col_major: return std::all_of(shape.begin(), shape.end() - 1, is_one);
    case Tag::strided: return is_one(l.strides.back());
    case Tag::permuted:
      return l.tile.back() + 1 == static_cast<int64_t>(l.tile.size()) &&
             inside(in_order(l.tile, shape), in_order(l.tile, indices));
    case Tag::reshaped: {
      if (l.inner->tag == Tag::row_major) return true;
      const Expr linear = horner(shape, indices);
      return whole(l.tile.back(), linear) &&
             inside(inner_shape(l, shape), indices_of(linear, l.tile));
    }
    case Tag::concat: return inside(cut(l, shape).last, cut(l, indices).last);
    case Tag::composed: {
      const Tiled t = split_tiles(l, shape, indices);
      return whole(l.tile.back(), indices.back()) && inside(t.inner_shape, t.inner_index);
    }
    case Tag::swizzled:
      return whole(int64_t{1} << l.base, l.inner->offset(shape, indices)) && inside(shape, indices);
  }
  return false;
}

}  // namespace hidet::ir
