// run_script.cpp - runs the script functions of an opaque task for the reference: a small interpreter of scalar
// IR statements. Loops run in order; every access is checked against the buffer that its pointer came from.
// Vectors, barriers and launches are refused by name.
// Threading: thread-safe; one interpreter a call.
#include <hidet/ir/dim.h>
#include <hidet/ir/fold.h>
#include <hidet/ir/passes.h>
#include <hidet/runtime/error.h>

#include <cmath>
#include <cstring>
#include <unordered_map>

#include "core/evaluate.h"
#include "core/lanes.h"

namespace hidet::graph {
namespace {
using namespace ir;

struct Buffer {
  std::string name;
  char* data;
  int64_t bytes;
};
/// A scalar, or a pointer into a buffer (offset in bytes).
struct Cell {
  int64_t i = 0;
  double f = 0;
  const Buffer* buffer = nullptr;
};

enum class Flow { next, break_, continue_, return_ };

double read_float(DType t, const char* p) {
  uint16_t half;
  switch (t.code()) {
    case DTypeCode::f64: {
      double v;
      std::memcpy(&v, p, 8);
      return v;
    }
    case DTypeCode::f16: std::memcpy(&half, p, 2); return f16_to_f32(half);
    case DTypeCode::bf16: std::memcpy(&half, p, 2); return bf16_to_f32(half);
    default: {
      float v;
      std::memcpy(&v, p, 4);
      return v;
    }
  }
}
void write_float(DType t, char* p, double v) {
  const float f = static_cast<float>(v);
  const uint16_t half = t == f16 ? f64_to_f16(v) : t == bf16 ? f64_to_bf16(v) : 0;
  if (t == f64) std::memcpy(p, &v, 8);
  else if ((t == f16 || t == bf16)) std::memcpy(p, &half, 2);
  else std::memcpy(p, &f, 4);
}

class ScriptRunner {
 public:
  ScriptRunner(const std::string& op, const Module& module, const SymbolMap& symbols)
      : op_(op), module_(module), symbols_(symbols) {
    for (const GlobalVar& g : module.globals) global(g);
  }

  Cell call(const Function& f, const std::vector<Cell>& args) {
    HIDET_CHECK(args.size() == f.params.size(), op_, ": ", f.name, " takes ", f.params.size(),
                " arguments, not ", args.size());
    HIDET_REQUIRE(!is_cuda(f.kind), ErrorCode::unsupported, f.loc.text(), op_,
                  ": the reference does not run the CUDA function '", f.name, "'");
    HIDET_REQUIRE(++depth_ < 200, ErrorCode::usage, f.loc.text(), op_, ": calls of '", f.name,
                  "' are nested too deep");
    auto outer = vars_;
    for (size_t i = 0; i < args.size(); i++) vars_[f.params[i].get()] = args[i];
    result_ = {};
    run(f.body);
    vars_ = std::move(outer);
    depth_--;
    return result_;
  }

  Buffer* buffer(const std::string& name, char* data, int64_t bytes) {
    buffers_.push_back(std::make_unique<Buffer>(Buffer{name, data, bytes}));
    return buffers_.back().get();
  }

 private:
  Buffer* own(const std::string& name, int64_t bytes) {
    memory_.push_back(std::make_unique<char[]>(static_cast<size_t>(bytes) + 8));
    return buffer(name, memory_.back().get(), bytes);
  }

  void global(const GlobalVar& g) {
    const DType t = g.var->type.dtype();
    const int64_t count = g.var->type.is_tensor()
                              ? integer(g.var->type.tensor_info().layout.span(shape_of(g.var)))
                              : 1;
    Buffer* b = own(g.var->name, count * static_cast<int64_t>(t.bytes()));
    for (size_t i = 0; i < g.init.size(); i++)
      write(t, b->data + i * t.bytes(), constant_cell(g.init[i], t));
    Cell c{0, 0, b};
    if (!g.var->type.is_tensor()) c = read(t, b->data);
    vars_[g.var.get()] = c;
  }
  static Cell constant_cell(double v, DType t) {
    return t.is_float() ? Cell{0, v, nullptr} : Cell{saturate(v, t), 0, nullptr};
  }

  [[noreturn]] void refuse(const Node& n) {
    throw Error(ErrorCode::unsupported,
                op_ + ": the reference evaluator does not run " + kind_name(n.kind), n.loc.text());
  }

  // --- statements

  Flow run(const Stmt& s) {
    if (!s) return Flow::next;
    if (const Seq* seq = as<Seq>(s)) {
      for (const Stmt& x : seq->body)
        if (const Flow f = run(x); f != Flow::next) return f;
      return Flow::next;
    }
    if (const DeclVar* d = as<DeclVar>(s))
      return vars_[d->var.get()] = d->init ? eval(d->init) : Cell{}, Flow::next;
    if (const Assign* a = as<Assign>(s)) return vars_[a->var.get()] = eval(a->value), Flow::next;
    if (const Store* st = as<Store>(s))
      return store(address(st->base, integer(st->index), *s), st->value), Flow::next;
    if (const ElementStore* e = as<ElementStore>(s)) {
      if (!e->guarded || within(e->tensor, e->indices))
        store(element_address(*e, e->tensor, e->indices), e->value);
      return Flow::next;
    }
    if (const For* f = as<For>(s)) return loop(*f);
    if (const While* w = as<While>(s)) {
      while (eval(w->cond).i)
        if (const Flow f = run(w->body); f == Flow::break_) break;
        else if (f == Flow::return_) return f;
      return Flow::next;
    }
    if (const If* i = as<If>(s)) return run(eval(i->cond).i ? i->then : i->otherwise);
    if (as<Break>(s)) return Flow::break_;
    if (as<Continue>(s)) return Flow::continue_;
    if (const Return* r = as<Return>(s))
      return result_ = r->value ? eval(r->value) : Cell{}, Flow::return_;
    if (const Evaluate* e = as<Evaluate>(s)) return eval(e->value), Flow::next;
    if (const Assert* a = as<Assert>(s)) {
      HIDET_REQUIRE(eval(a->cond).i, ErrorCode::usage, a->loc.text(), a->message);
      return Flow::next;
    }
    if (as<Comment>(s)) return Flow::next;
    if (const DeclTensor* d = as<DeclTensor>(s)) return declare(*d), Flow::next;
    refuse(*s);
  }

  Flow loop(const For& f) {
    const int64_t end = integer(f.end), step = integer(f.step);
    for (int64_t i = integer(f.begin); step > 0 && i < end; i += step) {
      vars_[f.var.get()] = {i, 0, nullptr};
      if (const Flow flow = run(f.body); flow == Flow::break_) break;
      else if (flow == Flow::return_) return flow;
    }
    return Flow::next;
  }

  void declare(const DeclTensor& d) {
    if (d.data) {
      vars_[d.var.get()] = eval(d.data);
      return;
    }
    const int64_t bytes = integer(d.var->type.tensor_info().layout.span(shape_of(d.var))) *
                          static_cast<int64_t>(dtype_of(d.var).bytes());
    vars_[d.var.get()] = {0, 0, own(d.var->name, bytes)};
  }

  // --- memory

  struct Place {
    char* at;
    DType dtype;
  };
  Place place(const Cell& base, int64_t index, DType t, const Node& n) {
    const int64_t size = static_cast<int64_t>(t.bytes());
    const int64_t at = base.i + index * size;
    HIDET_REQUIRE(base.buffer && at >= 0 && at + size <= base.buffer->bytes, ErrorCode::usage,
                  n.loc.text(), op_, ": element ", index, " is outside the memory of '",
                  base.buffer ? base.buffer->name : "nothing", "'");
    return {base.buffer->data + at, t};
  }
  Place address(const Expr& base, int64_t index, const Node& n) {
    if (!base->type.is_pointer() || !base->type.pointee().is_scalar()) refuse(n);
    return place(eval(base), index, base->type.pointee().dtype(), n);
  }
  /// Element offset of tensor[indices]; the formula is made once a node.
  int64_t offset(const Node& n, const Expr& tensor, const std::vector<Expr>& indices) {
    Expr& formula = offsets_[&n];
    if (!formula)
      formula = tensor->type.tensor_info().layout.offset(tensor->type.tensor_info().shape, indices);
    return integer(formula);
  }
  Place element_address(const Node& n, const Expr& tensor, const std::vector<Expr>& indices) {
    return place(eval(tensor), offset(n, tensor, indices), tensor->type.dtype(), n);
  }
  bool within(const Expr& tensor, const std::vector<Expr>& indices) {
    for (size_t d = 0; d < indices.size(); d++)
      if (const int64_t i = integer(indices[d]);
          i < 0 || i >= integer(tensor->type.tensor_info().shape[d]))
        return false;
    return true;
  }
  static Cell read(DType t, const char* p) {
    if (t.is_float()) return {0, read_float(t, p), nullptr};
    int64_t v = 0;
    std::memcpy(&v, p, t.bytes());
    return {wrap_int(v, t), 0, nullptr};
  }
  static void write(DType t, char* p, const Cell& c) {
    if (t.is_float()) write_float(t, p, c.f);
    else std::memcpy(p, &c.i, t.bytes());
  }
  void store(const Place& p, const Expr& value) {
    if (!value->type.is_scalar()) refuse(*value);
    write(p.dtype, p.at, eval(value));
  }

  // --- expressions

  int64_t integer(const Expr& e) { return eval(e).i; }

  Cell eval(const Expr& e) {
    if (const IntImm* i = as<IntImm>(e)) return {i->value, 0, nullptr};
    if (const FloatImm* f = as<FloatImm>(e)) return {0, f->value, nullptr};
    if (const DimSymbol* d = as<DimSymbol>(e)) return {DimExpr(d->name).eval(symbols_), 0, nullptr};
    if (as<Var>(e)) {
      auto it = vars_.find(e.get());
      HIDET_CHECK(it != vars_.end(), op_, ": a variable without a value");
      return it->second;
    }
    if (e->type.is_vector()) refuse(*e);
    switch (e->kind) {
      case Kind::Unary: return unary(static_cast<const Unary&>(*e));
      case Kind::Binary: return binary(static_cast<const Binary&>(*e));
      case Kind::Select: {
        const auto& s = static_cast<const Select&>(*e);
        return eval(eval(s.cond).i ? s.a : s.b);
      }
      case Kind::Cast: return cast(static_cast<const Cast&>(*e));
      case Kind::Load: {
        const auto& l = static_cast<const Load&>(*e);
        const Place p = address(l.base, integer(l.index), l);
        return read(p.dtype, p.at);
      }
      case Kind::Element: {
        const auto& x = static_cast<const Element&>(*e);
        if (x.guarded && !within(x.tensor, x.indices)) return {};
        const Place p = element_address(x, x.tensor, x.indices);
        return read(p.dtype, p.at);
      }
      case Kind::AddressOf: {
        const auto& a = static_cast<const AddressOf&>(*e);
        Cell c = eval(a.tensor);
        c.i +=
            offset(a, a.tensor, a.indices) * static_cast<int64_t>(a.tensor->type.dtype().bytes());
        return c;
      }
      case Kind::Call: {
        const auto& c = static_cast<const Call&>(*e);
        const Function* f = module_.find(c.callee);
        HIDET_REQUIRE(f, ErrorCode::unsupported, c.loc.text(), op_,
                      ": the reference does not call the host's function '", c.callee, "'");
        std::vector<Cell> args;
        for (const Expr& a : c.args) args.push_back(eval(a));
        return call(*f, args);
      }
      case Kind::Prim: return prim(static_cast<const Prim&>(*e));
      default: refuse(*e);
    }
  }

  Cell unary(const Unary& u) {
    const Cell a = eval(u.a);
    const DType t = u.type.dtype();
    if (t.is_float()) return {0, -a.f, nullptr};
    if (u.op == UnaryOp::logical_not) return {!a.i, 0, nullptr};
    return {u.op == UnaryOp::neg ? eval_int(BinaryOp::sub, 0, a.i, t) : wrap_int(~a.i, t), 0,
            nullptr};
  }

  Cell binary(const Binary& b) {
    const Cell x = eval(b.a);
    if (b.op == BinaryOp::logical_and && !x.i) return {0, 0, nullptr};
    if (b.op == BinaryOp::logical_or && x.i) return {1, 0, nullptr};
    const Cell y = eval(b.b);
    if (b.a->type.is_pointer()) return pointer(b, x, y);
    const DType t = b.a->type.dtype();
    if (!t.is_float()) return {eval_int(b.op, x.i, y.i, t), 0, nullptr};
    if (info(b.op).comparison) return {eval_float_compare(b.op, x.f, y.f), 0, nullptr};
    return {0, eval_float(b.op, x.f, y.f, t), nullptr};
  }
  Cell pointer(const Binary& b, const Cell& x, const Cell& y) {
    if (info(b.op).comparison) return {eval_int(b.op, x.i, y.i, i64), 0, nullptr};
    const int64_t step = y.i * static_cast<int64_t>(b.a->type.pointee().dtype().bytes());
    return {b.op == BinaryOp::add ? x.i + step : x.i - step, 0, x.buffer};
  }

  Cell cast(const Cast& c) {
    const Cell a = eval(c.a);
    if (c.how == CastKind::pointer) return a;
    const DType from = c.a->type.dtype(), to = c.type.dtype();
    if (c.how == CastKind::bits) {
      char bytes[8] = {};
      write(from, bytes, a);
      return read(to, bytes);
    }
    const Expr imm = from.is_float() ? make_float(a.f, Type(from)) : make_int(a.i, Type(from));
    const Expr result = fold_cast(imm, to, {});
    if (const FloatImm* f = as<FloatImm>(result)) return {0, f->value, nullptr};
    return {as<IntImm>(result)->value, 0, nullptr};
  }

  Cell prim(const Prim& p) {
    const MathFunction* f = find_math(p.name);
    if (!f || p.args.empty()) refuse(p);
    const Cell a = eval(p.args[0]);
    const DType t = p.args[0]->type.dtype();
    if (!t.is_float())
      return {a.i < 0 && t.is_signed() ? eval_int(BinaryOp::sub, 0, a.i, t) : a.i, 0, nullptr};
    if (p.args.size() == 3) {
      const double b = eval(p.args[1]).f, c = eval(p.args[2]).f;
      const double v = t == f64 ? std::fma(a.f, b, c)
                                : std::fma(static_cast<float>(a.f), static_cast<float>(b),
                                           static_cast<float>(c));
      return {0, round_to(v, t), nullptr};
    }
    const double v = t == f64 ? f->d(a.f) : f->f(static_cast<float>(a.f));
    return p.type.dtype().is_boolean() ? Cell{v != 0, 0, nullptr}
                                       : Cell{0, round_to(v, t), nullptr};
  }

  const std::string& op_;
  const Module& module_;
  const SymbolMap& symbols_;
  std::unordered_map<const Node*, Cell> vars_;
  std::unordered_map<const Node*, Expr> offsets_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<std::unique_ptr<char[]>> memory_;
  Cell result_;
  int depth_ = 0;
};
}  // namespace

std::vector<Tensor> run_script(const Task& task, const std::vector<Tensor>& inputs,
                               const SymbolMap& symbols, const std::vector<bool>& in_place) {
  const Module module = run_passes(*task.opaque, {lower_mappings()});
  const Function* launch = module.find("launch");
  HIDET_REQUIRE(launch, ErrorCode::usage, "", task.name, ": its script has no function 'launch'");
  ScriptRunner runner(task.name, module, symbols);
  std::vector<Tensor> outputs;
  std::vector<Cell> args;
  const auto pass = [&](const Tensor& t, const std::string& name) {
    args.push_back({0, 0, runner.buffer(name, static_cast<char*>(t.data()), t.bytes())});
  };
  std::vector<Tensor> used = inputs;
  for (size_t i = 0; i < task.outputs.size(); i++) {
    const auto share = task.share_map.find(static_cast<int>(i));
    if (share == task.share_map.end()) {
      Shape shape;
      for (const Expr& e : shape_of(task.outputs[i])) shape.push_back(to_dim(e).eval(symbols));
      outputs.push_back(empty(shape, dtype_of(task.outputs[i])));
      continue;
    }
    const auto k = static_cast<size_t>(share->second);
    if (k >= in_place.size() || !in_place[k]) used[k] = used[k].clone();
    outputs.push_back(used[k]);
  }
  for (size_t i = 0; i < used.size(); i++) pass(used[i], "input " + std::to_string(i));
  for (size_t i = 0; i < outputs.size(); i++) pass(outputs[i], "output " + std::to_string(i));
  runner.call(*launch, args);
  return outputs;
}

}  // namespace hidet::graph
