// finish.cpp - results, launch bounds and the checks when a function's lambda has ended.
#include "recorder.h"

#include <hidet/ir/fold.h>
#include <hidet/ir/limits.h>
#include <hidet/ir/primitives.h>
#include <hidet/ir/rewriter.h>
#include <hidet/runtime/error.h>

namespace hidet::lang::detail {
using namespace ir;

namespace {
constexpr int64_t kSharedAlignment = 128;

/// True where control cannot reach the end of `s`.
bool always_returns(const Stmt& s) {
  if (!s) return false;
  if (s->kind == Kind::Return) return true;
  if (const Seq* seq = as<Seq>(s)) return !seq->body.empty() && always_returns(seq->body.back());
  if (const If* branch = as<If>(s))
    return always_returns(branch->then) && always_returns(branch->otherwise);
  return false;
}

bool has_effects(const Stmt& body) {
  bool found = false;
  visit_all(body, [&](const Node& n) {
    const Prim* p = as<Prim>(&n);
    const Primitive* row = p ? find_primitive(p->name) : nullptr;
    found = found || (row && !row->pure);
  });
  return found;
}

int64_t product(const std::vector<Expr>& extents) {
  int64_t out = 1, v;
  for (const Expr& e : extents) out *= is_const_int(e, &v) ? v : 1;
  return out;
}
}  // namespace

void FunctionRecorder::returns(const Value* v, SourceLoc at) {
  HIDET_REQUIRE(function_.kind != FuncKind::cuda_kernel || !v, ErrorCode::usage, at.text(),
                "the cuda_kernel '", function_.name, "' cannot return a value");
  check_no_parallel("f.returns()", at);
  const Type type = v ? v->type() : Type();
  HIDET_REQUIRE(!v || v->expr(), ErrorCode::usage, at.text(), "f.returns() in '", function_.name,
                "' is given no value");
  HIDET_REQUIRE(!v || type.is_arithmetic() || type.is_pointer(), ErrorCode::usage, at.text(), "'",
                function_.name, "' cannot return a value of type ", type.text());
  if (!has_result_) function_.returns = type;
  has_result_ = true;
  HIDET_REQUIRE(function_.returns.is_void() == !v, ErrorCode::usage, at.text(), "'", function_.name,
                "' returns a value in one place and none in another");
  if (!v) return emit(make_stmt<Return>(at, Expr()), {}, nullptr);
  emit(make_stmt<Return>(
           at, coerce(*v, function_.returns, "the result of '" + function_.name + "'", at)),
       {v}, nullptr);
}

void FunctionRecorder::require_kernel(const char* what, SourceLoc at) const {
  HIDET_REQUIRE(function_.kind == FuncKind::cuda_kernel, ErrorCode::usage, at.text(), what,
                " is for a cuda_kernel; '", function_.name, "' is a ", ir::name(function_.kind),
                " function");
}

void FunctionRecorder::set_extents(std::vector<Expr>& to, const char* what,
                                   const std::vector<Located>& extents,
                                   const int64_t (&limits)[3]) {
  static const char* const axes[] = {"x", "y", "z"};
  const SourceLoc loc = extents[0].loc;
  require_kernel(what, loc);
  std::vector<Expr> out;
  for (size_t i = 0; i < extents.size(); i++) {
    const Value& v = extents[i].value;
    HIDET_REQUIRE(v.expr() && v.type().is_scalar() && v.dtype().is_integer(), ErrorCode::usage,
                  loc.text(), what, " ", axes[i], " of '", function_.name, "' is an integer, not ",
                  v.expr() ? v.type().text() : "nothing");
    int64_t n;
    if (is_const_int(v.expr(), &n))
      HIDET_REQUIRE(n >= 1 && n <= limits[i], ErrorCode::usage, loc.text(), what, " ", axes[i],
                    " of '", function_.name, "' is ", int_text(n, v.dtype()),
                    "; it must be from 1 to ", limits[i]);
    visit_all(v.expr(), [&](const Node& node) {
      const bool fine = node.kind != Kind::Prim && node.kind != Kind::Load &&
                        node.kind != Kind::Element && node.kind != Kind::Call &&
                        (node.kind != Kind::Var || is_param(&node));
      HIDET_REQUIRE(fine, ErrorCode::usage, loc.text(), what, " of '", function_.name,
                    "' must be an expression of its arguments");
    });
    out.push_back(v.expr());
  }
  to = std::move(out);
}

void FunctionRecorder::add_shared(const VarRef& tensor, SourceLoc at) {
  const TensorInfo& info = tensor->type.tensor_info();
  HIDET_REQUIRE(is_cuda() || info.scope == Scope::registers, ErrorCode::usage, at.text(), "the ",
                scope_name(info.scope), " tensor '", tensor->name, "' in the ",
                ir::name(function_.kind), " function '", function_.name,
                "'; shared memory is for CUDA functions");
  if (info.scope == Scope::registers) return;
  int64_t elements = 0;
  HIDET_REQUIRE(is_const_int(info.layout.span(info.shape), &elements), ErrorCode::usage, at.text(),
                "the shape of '", tensor->name, "' is not constant");
  const int64_t bytes = info.dtype.bytes_of(elements);
  if (info.scope == Scope::shared) {
    static_shared_ += bytes;
    HIDET_REQUIRE(static_shared_ <= kMostStaticShared, ErrorCode::usage, at.text(), "'",
                  function_.name, "' declares ", static_shared_, " bytes of shared memory with '",
                  tensor->name, "'; the limit is ", kMostStaticShared,
                  ", use dynamic_shared for more");
    return;
  }
  require_kernel("dynamic_shared()", at);
  const Expr rounded =
      make_int((bytes + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment, Type(i32));
  dynamic_shared_ =
      dynamic_shared_ ? make_binary(BinaryOp::add, dynamic_shared_, rounded) : rounded;
}

void FunctionRecorder::check_launch() const {
  if (function_.kind != FuncKind::cuda_kernel) return;
  const LaunchInfo& l = function_.launch;
  const std::string where = function_.loc.text();
  HIDET_REQUIRE(!l.grid.empty() && !l.block.empty(), ErrorCode::usage, where, "the cuda_kernel '",
                function_.name, "' has no ", l.grid.empty() ? "grid_dim" : "block_dim",
                "; set f.grid_dim(...) and f.block_dim(...)");
  HIDET_REQUIRE(product(l.block) <= kMostThreads, ErrorCode::usage, where, "the blocks of '",
                function_.name, "' have ", product(l.block), " threads; the limit is ",
                kMostThreads);
  HIDET_REQUIRE(product(l.cluster) <= kMostClusterBlocks, ErrorCode::usage, where,
                "the clusters of '", function_.name, "' have ", product(l.cluster),
                " blocks; the limit is ", kMostClusterBlocks);
  int64_t bytes = 0;
  if (l.shared_bytes && is_const_int(l.shared_bytes, &bytes))
    HIDET_REQUIRE(bytes >= 0 && bytes <= kMostDynamicShared, ErrorCode::usage, where, "'",
                  function_.name, "' asks for ", bytes,
                  " bytes of dynamic shared memory; the limit is ", kMostDynamicShared);
  int64_t least = 0;
  if (l.shared_bytes && dynamic_shared_ && is_const_int(l.shared_bytes, &bytes) &&
      is_const_int(dynamic_shared_, &least))
    HIDET_REQUIRE(bytes >= least, ErrorCode::usage, where, "'", function_.name,
                  "' sets dynamic_shared_bytes to ", bytes, "; its dynamic_shared tensors take ",
                  least);
}

std::shared_ptr<FunctionEntry> FunctionRecorder::finish() {
  if (pending_) std::rethrow_exception(pending_);
  HIDET_CHECK(frames_.size() == 1, "a scope of '", function_.name, "' is still open");
  for (const auto& [node, call] : unused_) {
    const Call* c = as<Call>(node);
    throw Error(
        ErrorCode::usage,
        "the result of '" + (c ? c->callee : std::string("a primitive")) +
            "' is kept but never used, so that the call would be lost; call it as a statement",
        call.second.text());
  }
  function_.body = make_seq(std::move(frames_[0].body));
  HIDET_REQUIRE(function_.returns.is_void() || always_returns(function_.body), ErrorCode::usage,
                function_.loc.text(), "'", function_.name, "' returns ", function_.returns.text(),
                " on some paths only");
  if (function_.kind == FuncKind::cuda_kernel && !function_.launch.shared_bytes)
    function_.launch.shared_bytes = dynamic_shared_;
  check_launch();
  auto entry = std::make_shared<FunctionEntry>();
  for (const VarRef& p : function_.params) {
    entry->writes.push_back(written_.count(p.get()) > 0);
    effects_ = effects_ || entry->writes.back();
  }
  entry->effects = effects_ || has_effects(function_.body);
  entry->loc = function_.loc;
  entry->function = std::move(function_);
  return entry;
}

}  // namespace hidet::lang::detail
