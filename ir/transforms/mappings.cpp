// mappings.cpp - task mapping loops become loops (repeat) and index arithmetic of the worker (spatial).
// Needs: nothing.  Leaves: no MappingFor.
#include "transforms/util.h"

#include <hidet/runtime/error.h>

namespace hidet::ir {
namespace {

Expr op(BinaryOp o, const Expr& a, int64_t b) { return make_binary(o, a, make_int(b, a->type)); }

std::vector<int> order_of(const TaskMapping::Item& item) {
  if (!item.order.empty()) return item.order;
  std::vector<int> order(item.shape.size());
  for (size_t d = 0; d < order.size(); d++) order[d] = static_cast<int>(d);
  return order;
}

/// The index of `worker` in a spatial item, by dimension.
std::vector<Expr> spatial_index(const TaskMapping::Item& item, Expr worker) {
  std::vector<Expr> index(item.shape.size());
  const std::vector<int> order = order_of(item);
  for (size_t k = order.size(); k-- > 0;) {
    const int d = order[k];
    index[d] = k == 0 ? worker : op(BinaryOp::mod, worker, item.shape[d]);
    worker = op(BinaryOp::div, worker, item.shape[d]);
  }
  return index;
}

Stmt lower(const MappingFor& loop, const Stmt& body) {
  const auto& items = loop.mapping.items;
  const size_t rank = loop.vars.size();
  HIDET_CHECK(static_cast<int>(rank) == loop.mapping.rank(), "a mapping of rank ",
              loop.mapping.rank(), " with ", rank, " variables");
  // Workers: the innermost item is the fastest.
  std::vector<Expr> workers(items.size());
  Expr rest = loop.worker;
  int64_t left = loop.mapping.num_workers();
  for (size_t i = items.size(); i-- > 0;) {
    if (!items[i].is_spatial) continue;
    int64_t n = 1;
    for (int64_t e : items[i].shape) n *= e;
    left /= n;
    workers[i] = left == 1 ? rest : op(BinaryOp::mod, rest, n);
    rest = op(BinaryOp::div, rest, n);
  }
  const Type type = loop.worker->type;
  std::vector<Expr> task(rank, make_int(0, type));
  struct Loop {
    VarRef var;
    int64_t extent;
  };
  std::vector<Loop> loops;
  for (size_t i = 0; i < items.size(); i++) {
    std::vector<Expr> index(rank);
    if (items[i].is_spatial) {
      index = spatial_index(items[i], workers[i]);
    } else {
      for (int d : order_of(items[i])) {
        if (items[i].shape[d] == 1) {
          index[d] = make_int(0, type);
          continue;
        }
        loops.push_back({make_var("r", type), items[i].shape[d]});
        index[d] = loops.back().var;
      }
    }
    for (size_t d = 0; d < rank; d++)
      task[d] = make_binary(BinaryOp::add, op(BinaryOp::mul, task[d], items[i].shape[d]), index[d]);
  }
  std::vector<Stmt> inner;
  for (size_t d = 0; d < rank; d++)
    inner.push_back(make_stmt<DeclVar>(loop.loc, loop.vars[d], task[d]));
  inner.push_back(body);
  Stmt out = make_seq(std::move(inner));
  for (size_t k = loops.size(); k-- > 0;)
    out = make_stmt<For>(loop.loc, loops[k].var, make_int(0, type), make_int(loops[k].extent, type),
                         make_int(1, type), LoopKind::serial, int64_t{1}, out);
  return out;
}

}  // namespace

Pass lower_mappings() {
  Pass pass = stmt_pass("lower-mappings", [](const Stmt& body) {
    return rewrite(body, [](Rewriter& self, const MappingFor& loop) -> Stmt {
      const Stmt changed = self.children(loop);
      const MappingFor& n = *as<MappingFor>(changed);
      return lower(n, n.body);
    });
  });
  pass.gone = [](const Node& n) { return n.kind == Kind::MappingFor; };
  return pass;
}

}  // namespace hidet::ir
