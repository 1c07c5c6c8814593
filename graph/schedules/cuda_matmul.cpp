// cuda_matmul.cpp - f32 products of matrices, any batch dims, by tiles in shared memory (block_product.h).
#include "schedules/block_product.h"

#include <hidet/ir/rewriter.h>

namespace hidet::graph {
using namespace ir;

namespace {

bool accepts(const Task& t) {
  return t.name == "matmul" && dtype_of(t.inputs[0]) == f32 && shape_of(t.inputs[0]).size() >= 2 &&
         shape_of(t.inputs[1]).size() >= 2;
}

Module make(const FusedTask& fused) {
  const Task& t = fused.anchor;
  const Compute c = fused.with_prologues(t.computes[0]);
  const Reduce& sum = *as<Reduce>(c.value);
  const Binary& product = *as<Binary>(sum.value);
  const std::vector<Expr>& shape = shape_of(c.tensor);
  const size_t rank = shape.size();
  BlockProduct p;
  p.batch.assign(shape.begin(), shape.end() - 2);
  p.rows = Value(shape[rank - 2]);
  p.columns = Value(shape[rank - 1]);
  p.depth = Value(make_cast(sum.extents[0], Type(i64)));
  const auto side = [&](const Expr& value, size_t own) {
    return [&, value, own](std::vector<Stmt>&, const std::vector<Value>& z, const Value& at) {
      return [&, value, own, z, at](const Value& k) {
        Substitution map;
        for (size_t d = 0; d + 2 < rank; d++) map.emplace(c.axes[d].get(), z[d].expr());
        map.emplace(c.axes[own].get(), at.expr());
        map.emplace(sum.axes[0].get(), make_cast(k.expr(), sum.axes[0]->type));
        return substitute(value, map);
      };
    };
  };
  p.a = side(product.a, rank - 2);
  p.b = side(product.b, rank - 1);
  const int64_t depth = known_extent(t.inputs[0], shape_of(t.inputs[0]).size() - 1);
  const int64_t columns = known_extent(t.inputs[1], shape_of(t.inputs[1]).size() - 1);
  p.a_vectors = depth > 0 && depth % 4 == 0;
  p.b_vectors = p.store_vectors = columns > 0 && columns % 4 == 0;
  const VarRef axis = make_var("j", Type(i64));
  p.store = [&](std::vector<Stmt>& body, const std::vector<Value>& z, const Value& i,
                const Value& base, const std::vector<Expr>& values) {
    std::vector<Value> at = z;
    at.push_back(i);
    at.emplace_back(Expr(axis));
    store_lanes(fused, c, at, axis, base.expr(), values, body);
  };
  return block_product(fused, p);
}

}  // namespace

CudaSchedule cuda_matmul_schedule() {
  return {{"matmul", accepts, true, true, false}, make, block_product_space()};
}

}  // namespace hidet::graph
