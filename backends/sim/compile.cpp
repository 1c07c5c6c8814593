// compile.cpp - functions and statements of the IR (after the passes of Target::sim) to register instructions.
// Needs: no recursion among functions.  Leaves: one Program with all callees inside.
#include <hidet/ir/primitives.h>
#include <hidet/ir/rewriter.h>

#include "sim/compiler.h"

namespace hidet::backends::sim {

void Compiler::run(const ir::Function& f) {
  out_.name = f.name;
  out_.on_gpu = is_cuda(f.kind);
  function(f);
  out_.registers = entry_registers(f.launch);
  const int32_t constants = most_;
  const auto patch = [&](int32_t& cell) {
    if (cell < 0) cell = constants - cell - 1;
  };
  for (Inst& in : out_.code) {
    patch(in.dst), patch(in.a), patch(in.b), patch(in.c);
    in.fn = lane_function(in);
  }
  for (Access& x : out_.accesses) {
    for (int32_t& cell : x.index) patch(cell);
    for (int32_t& cell : x.extent) patch(cell);
  }
  for (ForTable& t : out_.fors) patch(t.step.b), patch(t.test.b);
  for (LaunchTable& l : out_.launches) {
    for (auto* list : {&l.grid, &l.block, &l.cluster, &l.args})
      for (int32_t& cell : *list) patch(cell);
    patch(l.shared_bytes);
  }
  for (HopperCall& call : out_.hopper_calls)
    for (int32_t& cell : call.args) patch(cell);
  for (auto& list : out_.prints)
    for (auto& arg : list) patch(arg.first);
  if (swizzled_tiles_)
    out_.shared_bytes = (out_.shared_bytes + kSwizzledTile - 1) / kSwizzledTile * kSwizzledTile;
  out_.cells.resize(constants);
  out_.cells.insert(out_.cells.end(), constants_.begin(), constants_.end());
}

void Compiler::function(const ir::Function& f) {
  HIDET_REQUIRE(open_.insert({&f, true}).second, ErrorCode::unsupported, f.loc.text(),
                "the simulator does not run the recursive function '", f.name, "'");
  for (const ir::Function* callee : callees_of(f))
    if (!done_.count(callee)) {
      const size_t skip = emit({Op::jump});
      function(*callee);
      land(skip);
    }
  function_ = f.name;
  Compiled& c = done_[&f];
  for (const VarRef& p : f.params)
    c.params.push_back(slot_[p.get()] = alloc(p->type.is_vector() ? p->type.lanes() : 1));
  c.back = alloc();
  c.result = f.returns.is_arithmetic() ? alloc(f.returns.lanes()) : alloc();
  current_ = &c;
  returns_ = f.returns;
  top_level_ = f.name == out_.name && open_.size() == 1;
  c.entry = here();
  if (top_level_) out_.params = c.params;
  loc_ = f.loc;
  if (f.body) stmt(f.body);
  loc_ = f.loc;
  emit({top_level_ ? Op::exit : Op::ret, 0, {}, {}, 1, 0, c.back});
  open_.erase(&f);
  // Cells of a function are its own: a caller's live on while it runs.
  top_ = most_;
}

std::vector<const ir::Function*> Compiler::callees_of(const ir::Function& f) const {
  std::vector<const ir::Function*> out;
  if (f.body)
    visit_all(f.body, [&](const Node& n) {
      const Call* c = as<Call>(&n);
      if (const ir::Function* callee = c ? env_.module.find(c->callee) : nullptr)
        out.push_back(callee);
    });
  return out;
}

void Compiler::loop_for(const For& f) {
  const int32_t mark = top_, var = slot_[f.var.get()] = alloc();
  require(f.var->type.dtype());
  into(make_cast(f.begin, f.var->type), var);
  const int32_t head = here(), end = cell(make_cast(f.end, f.var->type)),
                step = cell(make_cast(f.step, f.var->type));
  const bool fixed = here() == head;
  const int32_t test = alloc();
  const DType t = f.var->type.dtype();
  emit({Op::binary, static_cast<uint8_t>(BinaryOp::lt), t.code(), {}, 1, test, var, end});
  const size_t leave = emit({Op::jump_unless, 0, {}, {}, 1, 0, test});
  const int32_t body = here();
  loops_.emplace_back();
  seq(f.body);
  const LoopLabels labels = std::move(loops_.back());
  loops_.pop_back();
  land(labels.continues);
  loc_ = f.loc;
  if (fixed) {
    const auto inst = [&](BinaryOp op, int32_t dst, int32_t b) {
      Inst in{Op::binary, static_cast<uint8_t>(op), t.code(), {}, 1, dst, var, b};
      in.fn = lane_function(in);
      return in;
    };
    out_.fors.push_back({var, body, inst(BinaryOp::add, var, step), inst(BinaryOp::lt, test, end)});
    emit({Op::next, 0, {}, {}, 1, 0, 0, 0, static_cast<int32_t>(out_.fors.size() - 1)});
  } else {
    emit({Op::binary, static_cast<uint8_t>(BinaryOp::add), t.code(), {}, 1, var, var, step});
    emit({Op::loop, 0, {}, {}, 1, head});
  }
  land(leave);
  land(labels.breaks);
  top_ = mark;
}

void Compiler::loop_while(const While& w) {
  const int32_t mark = top_, head = here();
  const int32_t test = cell(w.cond);
  const size_t out = emit({Op::jump_unless, 0, {}, {}, 1, 0, test});
  loops_.emplace_back();
  seq(w.body);
  const LoopLabels labels = std::move(loops_.back());
  loops_.pop_back();
  land(labels.continues);
  loc_ = w.loc;
  emit({Op::loop, 0, {}, {}, 1, head});
  land(out);
  land(labels.breaks);
  top_ = mark;
}

void Compiler::declare(const DeclTensor& d) {
  const int32_t slot = slot_[d.var.get()] = alloc();
  if (d.data) return into(d.data, slot);
  const TensorInfo& info = d.var->type.tensor_info();
  require(info.dtype);
  int64_t elements = 0;
  HIDET_REQUIRE(is_const_int(info.layout.span(info.shape), &elements), ErrorCode::usage,
                loc_.text(), "the tensor '", d.var->name, "' in ", scope_name(info.scope),
                " memory needs a constant shape");
  const int64_t bytes = info.dtype.bytes_of(elements), rounded = (bytes + 127) / 128 * 128;
  int64_t& used = info.scope == Scope::shared           ? out_.shared_bytes
                  : info.scope == Scope::dynamic_shared ? out_.dynamic_bytes
                                                        : out_.register_bytes;
  // Where addresses are permuted, whole tiles begin at multiples of one.
  if (swizzled_tiles_ && info.scope == Scope::shared && bytes % kSwizzledTile == 0)
    used = (used + kSwizzledTile - 1) / kSwizzledTile * kSwizzledTile;
  const int64_t number = env_.first_local + static_cast<int64_t>(out_.locals.size());
  out_.locals.push_back({d.var->name, info.dtype, info.scope, used, bytes});
  used += rounded;
  emit({Op::move, 0, {}, {}, 1, slot, integer(pointer::make(number, 0))});
  if (info.scope == Scope::registers)
    emit({Op::declare, 0, {}, {}, 1, 0, 0, 0, static_cast<int32_t>(out_.locals.size() - 1)});
}

void Compiler::launch(const Launch& l) {
  LaunchTable table{&l, {}, {}, {}, {}, l.shared_bytes ? widened(l.shared_bytes) : integer(0)};
  for (int i = 0; i < 3; i++) {
    table.grid.push_back(i < static_cast<int>(l.grid.size()) ? widened(l.grid[i]) : integer(1));
    table.block.push_back(i < static_cast<int>(l.block.size()) ? widened(l.block[i]) : integer(1));
    table.cluster.push_back(i < static_cast<int>(l.cluster.size()) ? widened(l.cluster[i])
                                                                   : integer(1));
  }
  for (const Expr& e : l.args) table.args.push_back(cell(e));
  out_.launches.push_back(std::move(table));
  emit({Op::launch, 0, {}, {}, 1, 0, 0, 0, static_cast<int32_t>(out_.launches.size() - 1)});
}

void Compiler::stmt(const Stmt& s) {
  if (s->loc.line) loc_ = s->loc;
  const int32_t mark = top_;
  switch (s->kind) {
    case Kind::Seq:
      for (const Stmt& child : as<Seq>(s)->body) stmt(child);
      return;
    case Kind::DeclVar: {
      const DeclVar& d = *as<DeclVar>(s);
      const int32_t slot = alloc(d.var->type.is_vector() ? d.var->type.lanes() : 1);
      const int32_t temps = top_;
      if (d.init) into(d.var->type.is_arithmetic() ? make_cast(d.init, d.var->type) : d.init, slot);
      else
        for (int i = 0; i < d.var->type.lanes(); i++)
          emit({Op::move, 0, {}, {}, 1, slot + i, integer(0)});
      slot_[d.var.get()] = slot;
      top_ = temps;
      if (!d.init) emit({Op::move, 0, {}, {}, 1, given_[d.var.get()] = alloc(), integer(0)});
      return;
    }
    case Kind::DeclTensor: return declare(*as<DeclTensor>(s));
    case Kind::Assign: {
      const Assign& a = *as<Assign>(s);
      const int32_t value = cell(a.value);
      emit({Op::move,
            0,
            {},
            {},
            static_cast<uint16_t>(a.value->type.lanes()),
            slot_.at(a.var.get()),
            value});
      if (const auto given = given_.find(a.var.get()); given != given_.end())
        emit({Op::move, 0, {}, {}, 1, given->second, integer(1)});
      break;
    }
    case Kind::Store: {
      const Store& st = *as<Store>(s);
      const int32_t base = cell(st.base), index = index_behind(st.base, st.index),
                    value = cell(st.value);
      require(st.value->type.dtype());
      emit({Op::store,
            0,
            st.value->type.dtype().code(),
            {},
            static_cast<uint16_t>(st.value->type.lanes()),
            value,
            base,
            index,
            pointer_access(st.base)});
      break;
    }
    case Kind::ElementStore: {
      const ElementStore& e = *as<ElementStore>(s);
      const int lanes = e.value->type.lanes();
      size_t outside = 0;
      require(e.value->type.dtype());
      // A dropped store does not evaluate its value.
      const int32_t x = access(e.tensor, e.indices),
                    at = offset(e.tensor, e.indices, e.guarded, lanes, x, &outside),
                    value = cell(e.value);
      emit({Op::store,
            0,
            e.value->type.dtype().code(),
            {},
            static_cast<uint16_t>(lanes),
            value,
            cell(e.tensor),
            at,
            x});
      if (e.guarded) out_.code[outside].c = here();
      break;
    }
    case Kind::For: return loop_for(*as<For>(s));
    case Kind::While: return loop_while(*as<While>(s));
    case Kind::Break: loops_.back().breaks.push_back(emit({Op::jump})); return;
    case Kind::Continue: loops_.back().continues.push_back(emit({Op::jump})); return;
    case Kind::If: {
      const If& i = *as<If>(s);
      const int32_t test = cell(i.cond);
      const size_t skip = emit({Op::jump_unless, 0, {}, {}, 1, 0, test});
      if (i.then) seq(i.then);
      if (i.otherwise) {
        const size_t over = emit({Op::jump});
        land(skip);
        seq(i.otherwise);
        land(over);
      } else {
        land(skip);
      }
      break;
    }
    case Kind::Return: {
      const Return& r = *as<Return>(s);
      if (r.value) into(make_cast(r.value, returns_), current_->result);
      emit({top_level_ ? Op::exit : Op::ret, 0, {}, {}, 1, 0, current_->back});
      break;
    }
    case Kind::Evaluate: (void)cell(as<Evaluate>(s)->value); break;
    case Kind::Assert: {
      const int32_t test = cell(as<Assert>(s)->cond);
      out_.texts.push_back(as<Assert>(s)->message);
      emit({Op::check, 0, {}, {}, 1, 0, test, 0, static_cast<int32_t>(out_.texts.size() - 1)});
      break;
    }
    case Kind::Launch: launch(*as<Launch>(s)); break;
    case Kind::Comment: return;
    case Kind::Asm: refuse("inline assembly");
    default: refuse(std::string("a '") + kind_name(s->kind) + "' statement");
  }
  top_ = mark;
}

Program compile(const ir::Function& f, const Environment& env) {
  Program out;
  Compiler(env, out).run(f);
  return out;
}

}  // namespace hidet::backends::sim
