// type.cpp - types, layouts and task mappings as values: construction, equality, text.
#include <hidet/ir/mapping.h>
#include <hidet/ir/passes.h>
#include <hidet/runtime/error.h>

#include <algorithm>

namespace hidet::ir {

const char* scope_name(Scope scope) {
  static const char* const names[] = {"global", "shared", "dynamic_shared", "registers"};
  return names[static_cast<int>(scope)];
}

Type Type::vector(DType dtype, int lanes) {
  HIDET_CHECK(lanes >= 1, "a vector of ", lanes, " lanes");
  Type t(dtype);
  if (lanes > 1) {
    t.tag_ = Tag::vector;
    t.lanes_ = lanes;
  }
  return t;
}
Type Type::pointer(const Type& pointee) {
  Type t;
  t.tag_ = Tag::pointer;
  t.dtype_ = pointee.dtype_;
  t.pointee_ = std::make_shared<const Type>(pointee);
  return t;
}
Type Type::tensor(TensorInfo info) {
  Type t(info.dtype);
  t.tag_ = Tag::tensor;
  t.tensor_ = std::make_shared<const TensorInfo>(std::move(info));
  return t;
}
Type Type::string() {
  Type t;
  t.tag_ = Tag::string;
  return t;
}

DType Type::dtype() const { return dtype_; }
const Type& Type::pointee() const {
  HIDET_CHECK(is_pointer(), "pointee of ", text());
  return *pointee_;
}
const TensorInfo& Type::tensor_info() const {
  HIDET_CHECK(is_tensor(), "tensor_info of ", text());
  return *tensor_;
}
Type Type::with_lanes(int lanes) const { return vector(dtype_, lanes); }
Type Type::with_dtype(DType dtype) const { return vector(dtype, lanes_); }

std::string Type::text() const {
  switch (tag_) {
    case Tag::none: return "void";
    case Tag::scalar: return dtype_.name();
    case Tag::vector: return std::string(dtype_.name()) + "x" + std::to_string(lanes_);
    case Tag::pointer: return "ptr(" + pointee_->text() + ")";
    case Tag::string: return "string";
    case Tag::tensor: break;
  }
  return print(*this);
}

// --- layouts

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

namespace {
Expr add(Expr a, Expr b) { return make_binary(BinaryOp::add, std::move(a), std::move(b)); }
Expr mul(Expr a, Expr b) { return make_binary(BinaryOp::mul, std::move(a), std::move(b)); }
Expr constant(int64_t v, const Expr& like) { return make_int(v, like->type); }

/// Indices in order, the last fastest: ((i0 * n1 + i1) * n2 + i2) ...
Expr horner(const std::vector<Expr>& shape, const std::vector<Expr>& indices) {
  if (indices.empty()) return make_int(0, Type(i32));
  Expr offset = indices[0];
  for (size_t d = 1; d < indices.size(); d++) offset = add(mul(offset, shape[d]), indices[d]);
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
    case Tag::composed: break;
  }
  HIDET_REQUIRE(tile.size() == shape.size(), ErrorCode::usage, "", "a tensor of rank ",
                shape.size(), " needs a tile of rank ", shape.size(), ", not ", tile.size());
  const Tiled t = split_tiles(*this, shape, indices);
  return add(mul(outer->offset(t.outer_shape, t.outer_index), inner->span(t.inner_shape)),
             inner->offset(t.inner_shape, t.inner_index));
}

Expr Layout::span(const std::vector<Expr>& shape) const {
  if (tag == Tag::composed) {
    const Tiled t = split_tiles(*this, shape, {});
    return mul(outer->span(t.outer_shape), inner->span(t.inner_shape));
  }
  if (tag == Tag::swizzled) {
    // Whole blocks: an element may move anywhere in its own.
    const Expr n = inner->span(shape);
    const int64_t block = int64_t{1} << (base + bits);
    return mul(make_binary(BinaryOp::div, add(n, constant(block - 1, n)), constant(block, n)),
               constant(block, n));
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

// --- task mappings

std::vector<int64_t> TaskMapping::task_shape() const {
  std::vector<int64_t> shape(rank(), 1);
  for (const Item& item : items)
    for (size_t d = 0; d < shape.size(); d++) shape[d] *= item.shape[d];
  return shape;
}
int64_t TaskMapping::num_workers() const {
  int64_t n = 1;
  for (const Item& item : items)
    if (item.is_spatial)
      for (int64_t e : item.shape) n *= e;
  return n;
}
std::string TaskMapping::text() const {
  std::string out;
  const auto list = [](const auto& values) {
    std::string text;
    for (size_t i = 0; i < values.size(); i++) text += (i ? ", " : "") + std::to_string(values[i]);
    return text;
  };
  for (const Item& item : items) {
    out += out.empty() ? "" : ".";
    out += (item.is_spatial ? "spatial(" : "repeat(") + list(item.shape);
    if (!item.order.empty()) out += "; order " + list(item.order);
    out += ")";
  }
  return out;
}

const char* name(LoopKind kind) {
  static const char* const names[] = {"serial", "parallel", "unroll", "vectorize"};
  return names[static_cast<int>(kind)];
}
const char* name(FuncKind kind) {
  static const char* const names[] = {"public", "cuda_kernel", "cuda_internal", "cpu_kernel",
                                      "cpu_internal"};
  return names[static_cast<int>(kind)];
}
const char* name(ReduceOp op) {
  static const char* const names[] = {"sum", "prod", "max", "min", "all", "any"};
  return names[static_cast<int>(op)];
}
const char* name(UnaryOp op) {
  static const char* const names[] = {"neg", "logical_not", "bit_not"};
  return names[static_cast<int>(op)];
}

}  // namespace hidet::ir
