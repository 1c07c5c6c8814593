// verify_memory.cpp - the verifier's rules about memory and launches: layouts, scopes, constant sizes, limits of the device.
// Needs: nothing of other rules. Threading: pure.
#include "core/verify_parts.h"

#include <hidet/ir/limits.h>
#include <hidet/runtime/error.h>

#include <algorithm>

namespace hidet::ir {
namespace {

class MemoryRules {
 public:
  explicit MemoryRules(const Function& f) : f_(f) {}

  void run() {
    for (const VarRef& p : f_.params)
      if (p->type.is_tensor()) {
        need(p->type.tensor_info().scope == Scope::global, p->loc, "the parameter '", p->name,
             "' is a tensor in ", words(p->type.tensor_info().scope),
             "; a parameter is behind a pointer");
        tensor(*p, p->loc);
      }
    if (f_.body) statements(f_.body);
  }

 private:
  template <class... Args>
  void need(bool fine, SourceLoc at, const Args&... what) const {
    HIDET_REQUIRE(fine, ErrorCode::usage, at.line ? at.text() : f_.loc.text(), what..., " (in '",
                  f_.name, "')");
  }
  static const char* words(Scope s) {
    static const char* const names[] = {"global memory", "shared memory", "dynamic shared memory",
                                        "registers"};
    return names[static_cast<int>(s)];
  }

  void statements(const Stmt& s) {
    if (const DeclTensor* d = as<DeclTensor>(s)) return declared(*d);
    for_each_child(
        *s, [](const Expr&) {},
        [&](const Stmt& child) {
          if (child) statements(child);
        });
  }
  void declared(const DeclTensor& d) {
    if (!d.var->type.is_tensor()) return;  // a rule of types
    const TensorInfo& info = d.var->type.tensor_info();
    tensor(*d.var, d.loc);
    if (d.data || info.scope == Scope::global) return;
    const bool shared = info.scope != Scope::registers;
    need(!shared || is_cuda(f_.kind), d.loc, "the tensor '", d.var->name,
         "' in shared memory of a ", name(f_.kind), " function; CUDA functions have it");
    int64_t elements = 0;
    need(is_const_int(info.layout.span(info.shape), &elements), d.loc, "the tensor '", d.var->name,
         "' in ", words(info.scope), " has a size that is not constant");
    if (info.scope != Scope::shared) return;
    shared_bytes_ += info.dtype.bytes_of(elements);
    need(shared_bytes_ <= kMostStaticShared, d.loc, "with '", d.var->name, "' ", shared_bytes_,
         " bytes of shared memory are declared; ", kMostStaticShared, " are possible");
  }

  void tensor(const Var& v, SourceLoc at) const {
    const TensorInfo& info = v.type.tensor_info();
    for (const Expr& e : info.shape) {
      need(e->type.is_scalar() && e->type.dtype().is_integer(), at, "an extent of '", v.name,
           "' is a scalar integer, not ", e->type.text());
      int64_t n;
      if (is_const_int(e, &n)) need(n >= 0, at, "an extent of '", v.name, "' is ", n);
    }
    layout(info.layout, info.shape.size(), v, at);
    const bool swizzled = info.layout.tag == Layout::Tag::swizzled && info.scope == Scope::global;
    int64_t span = 0, inner = 0;
    if (swizzled && is_const_int(info.layout.span(info.shape), &span) &&
        is_const_int(info.layout.inner->span(info.shape), &inner))
      need(span == inner, at, "the swizzle of '", v.name, "' permutes ", span,
           " elements, and the tensor has ", inner);
  }
  void layout(const Layout& l, size_t rank, const Var& v, SourceLoc at) const {
    using Tag = Layout::Tag;
    if (l.tag == Tag::strided) {
      need(l.strides.size() == rank, at, "the layout of '", v.name, "' has ", l.strides.size(),
           " strides for ", rank, " dimensions");
      for (const Expr& e : l.strides)
        need(e->type.is_scalar() && e->type.dtype().is_integer(), at, "a stride of '", v.name,
             "' is a scalar integer, not ", e->type.text());
    }
    if (l.tag == Tag::swizzled) {
      need(l.bits >= 0 && l.base >= 0 && l.shift >= l.bits && l.base + l.shift + l.bits < 32, at,
           "the swizzle of '", v.name, "' has bits ", l.bits, ", base ", l.base, " and shift ",
           l.shift, "; bits <= shift and a sum below 32 are possible");
      layout(*l.inner, rank, v, at);
    }
    if (l.tag != Tag::composed) return;
    need(l.tile.size() == rank, at, "the layout of '", v.name, "' has a tile of rank ",
         l.tile.size(), " for ", rank, " dimensions");
    for (const int64_t n : l.tile)
      need(n >= 1, at, "the tile of '", v.name, "' has the extent ", n);
    layout(*l.outer, rank, v, at);
    layout(*l.inner, rank, v, at);
  }

  const Function& f_;
  int64_t shared_bytes_ = 0;
};

int64_t product(const std::vector<Expr>& extents) {
  int64_t out = 1, n;
  for (const Expr& e : extents)
    if (is_const_int(e, &n)) out *= n;
  return out;
}

/// Each constant extent in its range, and the products.
struct LaunchRules {
  const std::string& kernel;
  std::string where;

  template <class... Args>
  void need(bool fine, const Args&... what) const {
    HIDET_REQUIRE(fine, ErrorCode::usage, where, "the kernel '", kernel, "' ", what...);
  }
  /// A grid without blocks is no work: what a size of zero makes of it.
  void extents(const std::vector<Expr>& list, const char* what, int64_t least,
               const int64_t (&most)[3]) const {
    need(list.size() <= 3, "has ", list.size(), " extents of its ", what, "; up to 3 are possible");
    int64_t n;
    for (size_t i = 0; i < list.size(); i++)
      if (is_const_int(list[i], &n))
        need(n >= least && n <= most[i], "has ", what, " ", "xyz"[i], " of ", n, "; ", least,
             " to ", most[i], " are possible");
  }
  void all(const std::vector<Expr>& grid, const std::vector<Expr>& block,
           const std::vector<Expr>& cluster, const Expr& shared_bytes) const {
    need(!grid.empty() && !block.empty(), "has no launch dimensions: call grid_dim and block_dim");
    constexpr int64_t kCluster[] = {kMostClusterBlocks, kMostClusterBlocks, kMostClusterBlocks};
    extents(grid, "grid", 0, kMostGrid);
    const int64_t threads = product(block);
    need(threads >= 1 && threads <= kMostThreads, "has blocks of ", threads, " threads; 1 to ",
         kMostThreads, " are possible");
    extents(block, "block", 1, kMostBlock);
    extents(cluster, "cluster", 1, kCluster);
    need(product(cluster) <= kMostClusterBlocks, "has clusters of ", product(cluster),
         " blocks; 1 to ", kMostClusterBlocks, " are possible");
    int64_t bytes;
    if (shared_bytes && is_const_int(shared_bytes, &bytes))
      need(bytes >= 0 && bytes <= kMostDynamicShared, "asks for ", bytes,
           " bytes of dynamic shared memory; 0 to ", kMostDynamicShared, " are possible");
  }
};

}  // namespace

void check_memory(const Function& function) { MemoryRules(function).run(); }

void check_globals(const Module& module) {
  for (const GlobalVar& g : module.globals) {
    const Type& t = g.var->type;
    const std::string where = g.var->loc.text();
    HIDET_REQUIRE(t.is_scalar() || t.is_tensor(), ErrorCode::usage, where, "the global variable '",
                  g.var->name, "' is a scalar or a tensor, not ", t.text());
    int64_t elements = 1;
    HIDET_REQUIRE(t.is_scalar() ||
                      is_const_int(t.tensor_info().layout.span(t.tensor_info().shape), &elements),
                  ErrorCode::usage, where, "the global variable '", g.var->name,
                  "' has a size that is not constant");
    HIDET_REQUIRE(g.init.empty() || static_cast<int64_t>(g.init.size()) == elements,
                  ErrorCode::usage, where, "the global variable '", g.var->name, "' has ", elements,
                  " elements and ", g.init.size(), " initial values");
  }
}

namespace {
/// Each at a multiple of its size; tensors and pointers are addresses.
int64_t parameter_bytes(const Function& f) {
  int64_t bytes = 0;
  for (const VarRef& p : f.params) {
    const Type& t = p->type;
    const int64_t size =
        t.is_arithmetic() ? std::max<int64_t>(t.dtype().bytes_of(t.lanes()), 1) : int64_t{8};
    bytes = (bytes + size - 1) / size * size + size;
  }
  return bytes;
}
}  // namespace

void check_launch_bounds(const Function& kernel) {
  const LaunchInfo& l = kernel.launch;
  const LaunchRules rules{kernel.name, kernel.loc.text()};
  rules.all(l.grid, l.block, l.cluster, l.shared_bytes);
  rules.need(l.min_blocks >= 0 && l.min_blocks <= kMostMinBlocks, "has min_blocks of ",
             l.min_blocks, "; 0 to ", kMostMinBlocks, " are possible");
  const int64_t bytes = parameter_bytes(kernel);
  rules.need(bytes <= kMostParameterBytes, "takes ", bytes, " bytes of parameters; ",
             kMostParameterBytes, " are possible");
  rules.need(kernel.returns.is_void(), "returns ", kernel.returns.text(),
             "; a kernel returns nothing");
}

void check_launch(const Launch& launch, const Function& function) {
  const SourceLoc at = launch.loc.line ? launch.loc : function.loc;
  LaunchRules{launch.callee, at.text()}.all(launch.grid, launch.block, launch.cluster,
                                            launch.shared_bytes);
}

}  // namespace hidet::ir
