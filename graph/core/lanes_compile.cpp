// lanes_compile.cpp - from the value of a Compute to a flat program: nodes in post order, shared nodes once.
// Threading: pure functions; thread-safe.
#include <hidet/ir/dim.h>
#include <hidet/runtime/error.h>

#include <algorithm>

#include "core/lanes.h"

namespace hidet::graph {
namespace {
using ir::as;
using Kind = LaneStep::Kind;

constexpr int kMaxLanes = 512;
constexpr size_t kMaxMemory = size_t{4} << 20;  // of one machine's registers

class LaneCompiler {
 public:
  LaneCompiler(const std::string& where, const std::vector<ir::VarRef>& axes,
               const LaneTensors& tensors, const SymbolMap& symbols)
      : tensors_(tensors), symbols_(symbols), axes_(axes) {
    out_.where = where;
    out_.axes = static_cast<int>(axes.size());
    for (size_t i = 0; i < axes.size(); i++) axis_of_[axes[i].get()] = static_cast<int>(i);
  }

  LaneProgram run(const ir::Expr& value) {
    std::vector<std::pair<const ir::ExprNode*, bool>> stack{{value.get(), false}};
    while (!stack.empty()) {
      auto [node, ready] = stack.back();
      stack.pop_back();
      if (done_.count(node)) continue;
      if (ready) {
        done_[node] = emit(*node);
        continue;
      }
      stack.push_back({node, true});
      for (const ir::ExprNode* child : operands(*node))
        if (!done_.count(child)) stack.push_back({child, false});
    }
    const int result = done_.at(value.get());
    HIDET_CHECK(result + 1 == static_cast<int>(out_.steps.size()),
                "the last step is not the result");
    const size_t room = kMaxMemory / (out_.steps.size() * sizeof(int64_t));
    out_.lanes = static_cast<int>(std::clamp<size_t>(room, 16, kMaxLanes));
    return std::move(out_);
  }

 private:
  static std::vector<const ir::ExprNode*> operands(const ir::ExprNode& node) {
    std::vector<const ir::ExprNode*> out;
    if (node.kind == ir::Kind::Reduce || node.kind == ir::Kind::ArgReduce) return out;
    if (const auto* e = as<ir::Element>(&node)) {
      for (const ir::Expr& i : e->indices) out.push_back(i.get());
      return out;
    }
    ir::for_each_child(
        node, [&](const ir::Expr& e) { out.push_back(e.get()); }, [](const ir::Stmt&) {});
    return out;
  }

  int emit(const ir::ExprNode& node) {
    LaneStep s;
    s.dtype = s.from = node.type.dtype();
    HIDET_CHECK(node.type.is_scalar(), out_.where, ": a ", kind_name(node.kind), " of type ",
                node.type.text(), " in a compute definition");
    switch (node.kind) {
      case ir::Kind::IntImm: constant(s, static_cast<const ir::IntImm&>(node).value); break;
      case ir::Kind::FloatImm:
        s.kind = Kind::constant;
        s.number = static_cast<const ir::FloatImm&>(node).value;
        break;
      case ir::Kind::DimSymbol:
        constant(s, DimExpr(static_cast<const ir::DimSymbol&>(node).name).eval(symbols_));
        break;
      case ir::Kind::Var: axis(s, static_cast<const ir::Var&>(node)); break;
      case ir::Kind::Unary: unary(s, static_cast<const ir::Unary&>(node)); break;
      case ir::Kind::Binary: binary(s, static_cast<const ir::Binary&>(node)); break;
      case ir::Kind::Select: select(s, static_cast<const ir::Select&>(node)); break;
      case ir::Kind::Cast: cast(s, static_cast<const ir::Cast&>(node)); break;
      case ir::Kind::Prim: prim(s, static_cast<const ir::Prim&>(node)); break;
      case ir::Kind::Element: load(s, static_cast<const ir::Element&>(node)); break;
      case ir::Kind::Reduce: reduce(s, static_cast<const ir::Reduce&>(node)); break;
      case ir::Kind::ArgReduce: arg_reduce(s, static_cast<const ir::ArgReduce&>(node)); break;
      default:
        HIDET_CHECK(false, out_.where, ": a ", kind_name(node.kind), " in a compute definition");
    }
    out_.steps.push_back(std::move(s));
    return static_cast<int>(out_.steps.size()) - 1;
  }

  static void constant(LaneStep& s, int64_t value) {
    s.kind = Kind::constant;
    s.integer = value;
  }
  void axis(LaneStep& s, const ir::Var& v) {
    auto it = axis_of_.find(&v);
    HIDET_CHECK(it != axis_of_.end(), out_.where, ": the variable '", v.name, "' is no axis");
    s.kind = Kind::axis;
    s.op = it->second;
  }
  void unary(LaneStep& s, const ir::Unary& e) {
    s.kind = Kind::unary;
    s.op = static_cast<int>(e.op);
    s.args = {reg(e.a)};
  }
  void binary(LaneStep& s, const ir::Binary& e) {
    s.kind = Kind::binary;
    s.op = static_cast<int>(e.op);
    s.from = e.a->type.dtype();
    s.args = {reg(e.a), reg(e.b)};
  }
  void select(LaneStep& s, const ir::Select& e) {
    s.kind = Kind::select;
    s.args = {reg(e.cond), reg(e.a), reg(e.b)};
  }
  void cast(LaneStep& s, const ir::Cast& e) {
    HIDET_CHECK(e.how == ir::CastKind::value, out_.where,
                ": only numeric casts are part of a compute definition");
    s.kind = Kind::cast;
    s.from = e.a->type.dtype();
    s.args = {reg(e.a)};
  }
  void prim(LaneStep& s, const ir::Prim& e) {
    s.kind = Kind::prim;
    HIDET_CHECK(!e.args.empty(), out_.where, ": the primitive '", e.name,
                "' in a compute definition");
    s.from = e.args[0]->type.dtype();
    for (const ir::Expr& a : e.args) s.args.push_back(reg(a));
    s.math = find_math(e.name);
    HIDET_CHECK(s.math, out_.where, ": the primitive '", e.name, "' in a compute definition");
  }
  void load(LaneStep& s, const ir::Element& e) {
    s.kind = Kind::load;
    auto it = tensors_.find(e.tensor.get());
    HIDET_CHECK(it != tensors_.end(), out_.where,
                ": reads a tensor that is neither an input nor computed before");
    s.tensor = &it->second;
    for (const ir::Expr& i : e.indices) s.args.push_back(reg(i));
  }
  LaneProgram body(const ir::Expr& value, const std::vector<ir::VarRef>& axes) {
    std::vector<ir::VarRef> all = axes_;
    all.insert(all.end(), axes.begin(), axes.end());
    return LaneCompiler(out_.where, all, tensors_, symbols_).run(value);
  }
  void reduce(LaneStep& s, const ir::Reduce& e) {
    auto r = std::make_shared<LaneReduction>();
    r->body = body(e.value, e.axes);
    for (const ir::Expr& n : e.extents) r->extents.push_back(extent(n));
    r->op = e.op;
    finish(s, std::move(r), e.value);
  }
  void arg_reduce(LaneStep& s, const ir::ArgReduce& e) {
    auto r = std::make_shared<LaneReduction>();
    r->body = body(e.value, {e.axis});
    r->extents = {extent(e.extent)};
    r->is_arg = true;
    r->is_max = e.is_max;
    r->last = e.last;
    finish(s, std::move(r), e.value);
  }
  void finish(LaneStep& s, std::shared_ptr<LaneReduction> r, const ir::Expr& value) {
    r->outer_axes = static_cast<int>(axes_.size());
    r->dtype = value->type.dtype();
    s.kind = Kind::reduce;
    s.reduction = std::move(r);
  }
  int64_t extent(const ir::Expr& e) const { return ir::to_dim(e).eval(symbols_); }
  int reg(const ir::Expr& e) const { return done_.at(e.get()); }

  const LaneTensors& tensors_;
  const SymbolMap& symbols_;
  std::vector<ir::VarRef> axes_;
  std::unordered_map<const ir::Node*, int> axis_of_, done_;
  LaneProgram out_;
};
}  // namespace

LaneProgram compile_lanes(const std::string& where, const ir::Expr& value,
                          const std::vector<ir::VarRef>& axes, const LaneTensors& tensors,
                          const SymbolMap& symbols) {
  return LaneCompiler(where, axes, tensors, symbols).run(value);
}

}  // namespace hidet::graph
