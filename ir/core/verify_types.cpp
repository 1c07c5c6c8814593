// verify_types.cpp - type rules, one function a family of nodes.
// Needs: nodes as makers, passes or the parser left them. Threading: pure.
#include "core/verify_parts.h"

#include "core/text.h"

#include <hidet/ir/fold.h>
#include <hidet/ir/primitives.h>
#include <hidet/runtime/error.h>

namespace hidet::ir {
namespace {

class TypeRules {
 public:
  TypeRules(const Node& n, const Function& f, const Module& m) : node_(n), f_(f), module_(m) {}

  void run() const {
    switch (node_.kind) {
      case Kind::Unary: return unary(*as<Unary>(&node_));
      case Kind::Binary: return binary(*as<Binary>(&node_));
      case Kind::Select: return select(*as<Select>(&node_));
      case Kind::Cast: return cast(*as<Cast>(&node_));
      case Kind::Call: return call(*as<Call>(&node_));
      case Kind::Prim: return prim(*as<Prim>(&node_));
      case Kind::Load: return pointer(as<Load>(&node_)->base, as<Load>(&node_)->index), natural();
      case Kind::Element: {
        const Element& e = *as<Element>(&node_);
        tensor(e.tensor, e.indices);
        guarded(e.guarded, e.type);
        return natural();
      }
      case Kind::AddressOf:
        return tensor(as<AddressOf>(&node_)->tensor, as<AddressOf>(&node_)->indices), natural();
      case Kind::MakeVector: return make_vector(*as<MakeVector>(&node_));
      case Kind::Broadcast:
        need(as<Broadcast>(&node_)->a->type.is_scalar(), "broadcast takes a scalar, not ",
             as<Broadcast>(&node_)->a->type.text());
        return natural();
      case Kind::Lane: return lane(*as<Lane>(&node_));
      case Kind::IntImm: {
        const IntImm& i = *as<IntImm>(&node_);
        const bool integer = i.type.is_scalar() && !i.type.dtype().is_float();
        return need(
            integer && (i.type.dtype() == u64 || wrap_int(i.value, i.type.dtype()) == i.value),
            i.value, " is no value of ", i.type.text());
      }
      case Kind::FloatImm:
        return need(
            as<FloatImm>(&node_)->type.is_scalar() && as<FloatImm>(&node_)->type.dtype().is_float(),
            "a number with a point is no ", as<FloatImm>(&node_)->type.text());
      case Kind::Reduce: return reduce(*as<Reduce>(&node_));
      case Kind::ArgReduce: {
        const ArgReduce& a = *as<ArgReduce>(&node_);
        integer(a.extent, "the extent of a reduction");
        need(a.value->type.is_scalar(), "a reduction is of numbers, not ", a.value->type.text());
        return natural();
      }
      default: return stmt();
    }
  }

 private:
  template <class... Args>
  void need(bool fine, const Args&... what) const {
    HIDET_REQUIRE(fine, ErrorCode::usage, node_.loc.line ? node_.loc.text() : f_.loc.text(),
                  what..., " (in '", f_.name, "')");
  }
  void natural() const {
    const auto& e = static_cast<const ExprNode&>(node_);
    const Type t = natural_type(e);
    need(e.type == t, "a ", kind_name(e.kind), " of type ", e.type.text(),
         ", whose operands make it ", t.text());
  }
  void boolean_scalar(const Expr& e, const char* what) const {
    need(e->type == Type(boolean), what, " is a boolean, not ", e->type.text());
  }
  void integer(const Expr& e, const char* what) const {
    need(e->type.is_scalar() && e->type.dtype().is_integer(), what, " is a scalar integer, not ",
         e->type.text());
  }
  void same_types(const Expr& a, const Expr& b, const char* what) const {
    need(a->type == b->type, "'", what, "' of ", a->type.text(), " and ", b->type.text(),
         ", which must be one type");
  }

  /// f8 and values of 4 bits have no arithmetic: generated code would compute with their bytes.
  void computes(const Type& t) const {
    if (!t.is_arithmetic()) return;
    const DType d = t.dtype();
    need(d != f8e4m3 && d != f8e5m2 && d.bits() >= 8, "values of type ", d.name(),
         " are loaded, stored and reinterpreted alone; this is a ", kind_name(node_.kind));
  }
  void whole_bytes(DType t) const {
    need(t.bits() >= 8, "an element of type ", t.name(), " is less than a byte; use u8");
  }

  void unary(const Unary& u) const {
    const Type& t = u.a->type;
    computes(t);
    const bool fine = t.is_arithmetic() && (u.op == UnaryOp::neg       ? !t.dtype().is_boolean()
                                            : u.op == UnaryOp::bit_not ? t.dtype().is_integer()
                                                                       : t.dtype().is_boolean());
    need(fine, "'", name(u.op), "' does not take ", t.text());
    natural();
  }
  void binary(const Binary& b) const {
    const BinaryOpInfo& row = info(b.op);
    const Type &x = b.a->type, &y = b.b->type;
    if (x.is_pointer()) {
      const bool moves = b.op == BinaryOp::add || b.op == BinaryOp::sub;
      if (moves) integer(b.b, "what is added to a pointer");
      else need(row.comparison && x == y, "'", row.name, "' of ", x.text(), " and ", y.text());
      return natural();
    }
    need(x.is_arithmetic() && y.is_arithmetic(), "'", row.name, "' takes numbers, not ", x.text(),
         " and ", y.text());
    computes(x);
    same_types(b.a, b.b, row.name);
    const bool bits =
        b.op == BinaryOp::bit_and || b.op == BinaryOp::bit_or || b.op == BinaryOp::bit_xor;
    const bool shift = b.op == BinaryOp::shl || b.op == BinaryOp::shr;
    const DType t = x.dtype();
    const bool fine = row.logical      ? t.is_boolean()
                      : row.comparison ? true
                      : bits           ? !t.is_float()
                      : shift          ? t.is_integer()
                                       : !t.is_boolean();
    need(fine, "'", row.name, "' does not take ", x.text());
    natural();
  }
  void select(const Select& s) const {
    const Type& c = s.cond->type;
    need(c == Type(boolean) || c == Type::vector(boolean, s.a->type.lanes()),
         "the condition of a select is boolean, not ", c.text());
    same_types(s.a, s.b, "select");
    natural();
  }
  void cast(const Cast& c) const {
    const Type &from = c.a->type, &to = c.type;
    const bool numbers = from.is_arithmetic() && to.is_arithmetic();
    bool fine = from.is_pointer() && to.is_pointer();
    if (c.how == CastKind::value) fine = numbers && from.lanes() == to.lanes();
    if (c.how == CastKind::value) computes(from), computes(to);
    if (c.how == CastKind::bits)
      fine = numbers && from.dtype().bits() * from.lanes() == to.dtype().bits() * to.lanes();
    static const char* const words[] = {"cast", "reinterpret", "cast the pointer"};
    need(fine, "cannot ", words[static_cast<int>(c.how)], " ", from.text(), " to ", to.text());
  }
  /// Integers convert; a pointer may stand for a tensor, and a tensor for its pointer.
  static bool passes(const Type& arg, const Type& param) {
    if (arg == param) return true;
    if (arg.is_scalar() && param.is_scalar())
      return arg.dtype().is_integer() && param.dtype().is_integer();
    const auto is_memory = [](const Type& t) { return t.is_pointer() || t.is_tensor(); };
    return is_memory(arg) && is_memory(param);
  }
  void args(const std::string& callee, const std::vector<Expr>& args,
            const std::vector<Type>& params) const {
    need(args.size() == params.size(), "'", callee, "' takes ", params.size(), " arguments, not ",
         args.size());
    for (size_t i = 0; i < args.size(); i++) {
      const Type& a = args[i]->type;
      need(passes(a, params[i]), "argument ", i + 1, " of '", callee, "' is ", params[i].text(),
           ", not ", a.text());
    }
  }
  static std::vector<Type> param_types(const Function& f) {
    std::vector<Type> out;
    for (const VarRef& p : f.params) out.push_back(p->type);
    return out;
  }
  void call(const Call& c) const {
    if (const Function* callee = module_.find(c.callee)) {
      args(c.callee, c.args, param_types(*callee));
      return need(c.type == callee->returns, "the call of '", c.callee, "' has type ",
                  c.type.text(), "; it returns ", callee->returns.text());
    }
    for (const ExternFunc& e : module_.externs)
      if (e.name == c.callee) {
        args(c.callee, c.args, e.params);
        need(c.type == e.returns, "the call of '", c.callee, "' has type ", c.type.text(),
             "; it returns ", e.returns.text());
      }
  }
  void prim(const Prim& p) const {
    const Primitive* row = find_primitive(p.name);
    need(row != nullptr, "there is no primitive '", p.name, "'");
    const auto arity = static_cast<size_t>(std::max(row->arity, 0));
    need(row->arity < 0 || p.args.size() == arity, "the primitive '", p.name, "' takes ", arity,
         " arguments, not ", p.args.size());
    const std::string problem = signature_problem(*row, p.args, p.type);
    need(problem.empty(), "the primitive '", p.name, "' ", problem);
    if (row->result != PrimResult::custom) natural();
    if (!row->elementwise) return;
    for (const Expr& a : p.args) same_types(p.args[0], a, p.name.c_str());
    const Type& t = p.args[0]->type;
    need(t.is_arithmetic() && (t.dtype().is_float() || (p.name == "abs" && t.dtype().is_integer())),
         "the primitive '", p.name, "' takes floating-point numbers, not ", t.text());
  }
  void pointer(const Expr& base, const Expr& index) const {
    need(base->type.is_pointer() && !base->type.pointee().is_void(), "[] takes a pointer, not ",
         base->type.text());
    if (base->type.pointee().is_arithmetic()) whole_bytes(base->type.pointee().dtype());
    integer(index, "an index");
  }
  void tensor(const Expr& tensor, const std::vector<Expr>& indices) const {
    need(tensor->type.is_tensor(), "() takes a tensor, not ", tensor->type.text());
    whole_bytes(tensor->type.dtype());
    const size_t rank = tensor->type.tensor_info().shape.size();
    need(indices.size() == rank, "a tensor of rank ", rank, " takes ", rank, " indices, not ",
         indices.size());
    for (const Expr& i : indices) integer(i, "an index");
  }
  /// The condition is about one place.
  void guarded(bool is_guarded, const Type& t) const {
    need(!is_guarded || t.is_scalar(), "a guarded access takes one element, not ", t.text());
  }
  void make_vector(const MakeVector& v) const {
    for (const Expr& e : v.lanes) {
      need(e->type.is_scalar(), "a vector is made of scalars, not ", e->type.text());
      same_types(v.lanes[0], e, "vector");
    }
    natural();
  }
  void lane(const Lane& l) const {
    need(l.vector->type.is_vector(), "a lane of ", l.vector->type.text(), ", which is no vector");
    integer(l.index, "a lane");
    int64_t i;
    if (is_const_int(l.index, &i))
      need(i >= 0 && i < l.vector->type.lanes(), "lane ", i, " of ", l.vector->type.text());
    natural();
  }

  void reduce(const Reduce& r) const {
    for (const Expr& e : r.extents) integer(e, "the extent of a reduction");
    const bool logical = r.op == ReduceOp::all || r.op == ReduceOp::any;
    const Type& t = r.value->type;
    need(t.is_scalar() && (!logical || t.dtype().is_boolean()), "reduce_", name(r.op),
         logical ? " takes booleans, not " : " takes numbers, not ", t.text());
    natural();
  }

  // --- statements
  void stmt() const {
    switch (node_.kind) {
      case Kind::DeclVar: {
        const DeclVar& d = *as<DeclVar>(&node_);
        need(!d.var->type.is_void() && !d.var->type.is_tensor(), "the variable '", d.var->name,
             "' of type ", d.var->type.text());
        return d.init ? stored("'" + d.var->name + "'", d.var->type, d.init) : void();
      }
      case Kind::DeclTensor: return declared_tensor(*as<DeclTensor>(&node_));
      case Kind::Assign: {
        const Assign& a = *as<Assign>(&node_);
        return stored("the variable", a.var->type, a.value);
      }
      case Kind::Store: {
        const Store& s = *as<Store>(&node_);
        pointer(s.base, s.index);
        return element_value(s.base->type.pointee(), s.value);
      }
      case Kind::ElementStore: {
        const ElementStore& s = *as<ElementStore>(&node_);
        tensor(s.tensor, s.indices);
        guarded(s.guarded, s.value->type);
        return element_value(Type(s.tensor->type.dtype()), s.value);
      }
      case Kind::For: return loop(*as<For>(&node_));
      case Kind::MappingFor: return mapped(*as<MappingFor>(&node_));
      case Kind::Asm: return assembly(*as<Asm>(&node_));
      case Kind::While: return boolean_scalar(as<While>(&node_)->cond, "the condition of a loop");
      case Kind::If: return boolean_scalar(as<If>(&node_)->cond, "the condition of a branch");
      case Kind::Assert: return boolean_scalar(as<Assert>(&node_)->cond, "what is asserted");
      case Kind::Return: return returned(*as<Return>(&node_));
      case Kind::Launch: return launch(*as<Launch>(&node_));
      default: return;
    }
  }
  void stored(const std::string& where, const Type& to, const Expr& value) const {
    need(value->type == to, where, " of type ", to.text(), " is given ", value->type.text());
  }
  void element_value(const Type& element, const Expr& value) const {
    const Type& t = value->type;
    const bool lanes = element.is_scalar() && t.is_vector() && t.dtype() == element.dtype();
    need(t == element || lanes, "an element of type ", element.text(), " is given ", t.text());
  }
  void declared_tensor(const DeclTensor& d) const {
    need(d.var->type.is_tensor(), "the tensor '", d.var->name, "' of type ", d.var->type.text());
    if (d.data)
      need(d.data->type.is_pointer(), "a view takes a pointer, not ", d.data->type.text());
    else
      need(d.var->type.tensor_info().scope != Scope::global, "the tensor '", d.var->name,
           "' in global memory has no data");
  }
  void loop(const For& l) const {
    for (const Expr& e : {l.begin, l.end, l.step}) {
      integer(e, "a bound of a loop");
      need(e->type == l.var->type, "the loop over '", l.var->name, "' of type ", l.var->type.text(),
           " has a bound of type ", e->type.text());
    }
    int64_t step;
    if (is_const_int(l.step, &step))
      need(step > 0 || (step != 0 && l.step->type == Type(u64)), "a loop has the step ", step,
           "; it must be at least 1");
    need(l.grain >= 1, "a loop has the grain ", l.grain, "; it must be at least 1");
  }
  void mapped(const MappingFor& m) const {
    integer(m.worker, "a worker");
    need(m.worker->type.dtype().bits() >= 32, "a worker has at least 32 bits, not ",
         m.worker->type.text());
    for (const TaskMapping::Item& item : m.mapping.items) {
      need(item.shape.size() == m.vars.size(), "the mapping ", m.mapping.text(), " has ",
           m.vars.size(), " variables");
      for (const int64_t n : item.shape)
        need(n >= 1, "the mapping ", m.mapping.text(), " has the extent ", n);
    }
    for (const VarRef& v : m.vars)
      need(v->type == m.worker->type, "'", v->name, "' of a mapping has the type ", v->type.text(),
           "; its worker has ", m.worker->type.text());
  }
  void assembly(const Asm& a) const {
    need(a.outputs.size() == a.output_constraints.size() &&
             a.inputs.size() == a.input_constraints.size(),
         "assembly has ", a.outputs.size(), " outputs and ", a.inputs.size(), " inputs with ",
         a.output_constraints.size(), " and ", a.input_constraints.size(), " constraints");
    for (const Expr& e : a.outputs) {
      const Var* v = as<Var>(e);
      need(v && v->is_mutable, "assembly writes to a variable that can be assigned, not to ",
           v ? "'" + v->name + "'" : std::string("an expression"));
    }
  }
  void returned(const Return& r) const {
    if (!r.value)
      return need(f_.returns.is_void(), "a return without a value; the function returns ",
                  f_.returns.text());
    need(r.value->type == f_.returns, "the function returns ", f_.returns.text(), ", not ",
         r.value->type.text());
  }
  void launch(const Launch& l) const {
    for (const auto* list : {&l.grid, &l.block, &l.cluster})
      for (const Expr& e : *list) integer(e, "an extent of a launch");
    if (l.shared_bytes) integer(l.shared_bytes, "the size of dynamic shared memory");
    if (const Function* callee = module_.find(l.callee))
      args(l.callee, l.args, param_types(*callee));
  }

  const Node& node_;
  const Function& f_;
  const Module& module_;
};

}  // namespace

void check_types(const Node& node, const Function& function, const Module& module) {
  TypeRules(node, function, module).run();
}

}  // namespace hidet::ir
