// nest.h - small pieces for writing loop nests as IR. Private to graph/schedules.
#pragma once
#include <hidet/graph/schedule.h>

#include <functional>

namespace hidet::graph {

/// An i64 constant.
ir::Expr index(int64_t v);
inline ir::Value number(int64_t v) { return ir::Value(index(v)); }
/// Products and quotients of sizes, folded where constant.
ir::Expr size_of(const std::vector<ir::Expr>& shape);

/// Declares an immutable variable in `body` and returns it.
ir::Value declare(std::vector<ir::Stmt>& body, const std::string& name, const ir::Value& value);

/// for (var < end) { body(var) } of i64.
ir::Stmt loop(const std::string& name, const ir::Expr& end, ir::LoopKind how,
              const std::function<ir::Stmt(const ir::Value&)>& body, int64_t grain = 1);
/// for (var from begin while < end, by step).
ir::Stmt loop_from(const std::string& name, const ir::Expr& begin, const ir::Expr& end,
                   int64_t step, const std::function<ir::Stmt(const ir::Value&)>& body);

/// body(j) for j in [0, extent): whole vectors of `lanes`, then the rest one by one. ahead(j): what each vector begins with.
ir::Stmt vector_row(const ir::Expr& extent, int64_t lanes,
                    const std::function<ir::Stmt(const ir::Value&)>& body,
                    const std::function<std::vector<ir::Stmt>(const ir::Value&)>& ahead = nullptr);
/// Prefetches the lines of what `value` reads of tensors with `size` elements, at places that no data decide: they may lie behind the
/// tensor's end.
std::vector<ir::Stmt> prefetch_reads(const ir::Expr& value, const ir::Expr& size);

/// Indices of flat position `flat` in `shape` (row major), of its type: declarations to emit first, and the indices.
struct Unflattened {
  std::vector<ir::Stmt> declarations;
  std::vector<ir::Value> indices;
};
Unflattened unflatten(const ir::Expr& flat, const std::vector<ir::Expr>& shape);
/// The same with the declarations in `body`.
std::vector<ir::Value> declare_indices(std::vector<ir::Stmt>& body, const ir::Value& flat,
                                       const std::vector<ir::Expr>& shape);

/// Coefficient of `axis` in `e` where e is linear in it; nullopt otherwise.
std::optional<int64_t> stride_in(const ir::Expr& e, const ir::Var& axis);

/// Appends a serial search for the first (or last) largest or least value to `body`; the index found, in r's type.
ir::Expr arg_search(const ir::ArgReduce& r, std::vector<ir::Stmt>& body);

}  // namespace hidet::graph
