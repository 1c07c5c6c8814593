// function.cpp - a function while it is recorded, and calls of recorded functions.
#include <hidet/ir/limits.h>
#include <hidet/lang/script_module.h>
#include <hidet/runtime/error.h>

#include "recorder.h"

namespace hidet::lang {
using namespace detail;

Handle Function::arg(const std::string& name, const Type& type, Here at) {
  return Handle(Value(Expr(recorder_->add_param(name, type, at))));
}
std::vector<Handle> Function::args(const std::string& name, const meta::Types& types, Here at) {
  std::vector<Handle> out;
  for (size_t i = 0; i < types.list.size(); i++)
    out.push_back(arg(i == 0 ? name : name + "_" + std::to_string(i), types.list[i], at));
  return out;
}
void Function::returns(const Located& value) { recorder_->returns(&value.value, value.loc); }
void Function::returns(Here at) { recorder_->returns(nullptr, at); }

void Function::grid_dim(const Located& x, const Located& y, const Located& z) {
  recorder_->set_extents(recorder_->function().launch.grid, "grid_dim", {x, y, z}, ir::kMostGrid);
}
void Function::block_dim(const Located& x, const Located& y, const Located& z) {
  recorder_->set_extents(recorder_->function().launch.block, "block_dim", {x, y, z},
                         ir::kMostBlock);
}
void Function::cluster_dim(const Located& x, const Located& y, const Located& z) {
  recorder_->set_extents(recorder_->function().launch.cluster, "cluster_dim", {x, y, z},
                         {ir::kMostClusterBlocks, ir::kMostClusterBlocks, ir::kMostClusterBlocks});
}
void Function::dynamic_shared_bytes(const Located& bytes) {
  std::vector<Expr> one;
  recorder_->set_extents(one, "dynamic_shared_bytes", {bytes}, {ir::kMostDynamicShared, 0, 0});
  recorder_->function().launch.shared_bytes = one[0];
}
void Function::min_blocks(int64_t blocks, Here at) {
  recorder_->require_kernel("min_blocks", at);
  HIDET_REQUIRE(blocks >= 1 && blocks <= ir::kMostMinBlocks, ErrorCode::usage, SourceLoc(at).text(),
                "min_blocks of '", name(), "' is ", blocks, "; it must be from 1 to ",
                ir::kMostMinBlocks);
  recorder_->function().launch.min_blocks = blocks;
}
void Function::no_alias() { recorder_->function().no_alias = true; }
const std::string& Function::name() const { return recorder_->function().name; }
ir::FuncKind Function::kind() const { return recorder_->function().kind; }

// --- calls

namespace {

/// "square(f32 x)", as messages show a function.
std::string signature(const ir::Function& f) {
  std::string out = f.name + "(";
  for (size_t i = 0; i < f.params.size(); i++)
    out += (i ? ", " : "") + f.params[i]->type.text() + " " + f.params[i]->name;
  return out + ")";
}

/// A pointer to the first element.
Expr first_element(const Expr& tensor, SourceLoc at) {
  std::vector<Expr> zeros(tensor->type.tensor_info().shape.size(), ir::make_int(0, Type(i32)));
  return ir::make_address(tensor, std::move(zeros), at);
}

/// The argument as the parameter takes it: numbers convert where they fit, a tensor passes as a pointer.
Expr passed(const Value& v, const ir::Var& param, const ir::Function& f, SourceLoc at) {
  const std::string what = "the argument '" + param.name + "' of " + signature(f);
  HIDET_REQUIRE(v.expr() && !v.type().is_void(), ErrorCode::usage, at.text(), what,
                " has no value");
  const Type& to = param.type;
  const Type& from = v.type();
  if (to.is_arithmetic()) return ir::coerce(v, to, what, at);
  const bool opaque = to.is_pointer() && to.pointee().is_void();
  const bool memory = from.is_pointer() || from.is_tensor();
  const Type element = to.is_tensor() ? Type(to.dtype()) : opaque ? Type() : to.pointee();
  const Type given = from.is_tensor()    ? Type(from.dtype())
                     : from.is_pointer() ? from.pointee()
                                         : from;
  HIDET_REQUIRE(memory && (opaque || given == element), ErrorCode::usage, at.text(), what,
                " is given ", from.text());
  HIDET_REQUIRE(!from.is_tensor() || from.tensor_info().scope != ir::Scope::registers,
                ErrorCode::usage, at.text(), what,
                " is given a tensor in registers, which has no address");
  Expr e = from.is_tensor() ? first_element(v.expr(), at) : v.expr();
  return opaque ? ir::make_pointer_cast(e, to, at) : e;
}

/// The name by which the module being recorded calls `index` of `state`.
std::string local_name(FunctionRecorder& r, const std::shared_ptr<ModuleState>& state,
                       size_t index) {
  ModuleState& here = r.module();
  if (&here == state.get()) return state->functions[index]->function.name;
  for (size_t i = 0; i < here.imports.size(); i++)
    if (here.imports[i].module == state && here.imports[i].index == index)
      return "@" + std::to_string(i);
  here.imports.push_back({state, index});
  return "@" + std::to_string(here.imports.size() - 1);
}
}  // namespace

CallResult FuncHandle::call(const std::vector<Located>& args, SourceLoc at) const {
  const FunctionEntry& entry = *state_->functions[index_];
  const ir::Function& f = entry.function;
  FunctionRecorder& r = recording(at, ("a call of '" + f.name + "'").c_str());
  HIDET_REQUIRE(args.size() == f.params.size(), ErrorCode::usage, at.text(), signature(f),
                " takes ", f.params.size(), " arguments, not ", args.size());
  std::vector<Expr> exprs;
  std::vector<ir::Read> reads = reads_of(args);
  for (size_t i = 0; i < args.size(); i++) {
    const Value& v = args[i].value;
    exprs.push_back(passed(v, *f.params[i], f, at));
    if (!v.type().is_pointer() && !v.type().is_tensor()) continue;
    const Node* place = ir::place_of(v.expr());
    auto it = reads.begin();
    while (it != reads.end() && it->place != place) ++it;
    if (it == reads.end()) reads.push_back({place, r.clock(), at, entry.writes[i]});
    else it->writes = it->writes || entry.writes[i];
  }
  if (entry.effects) r.note_effect();
  Value call(ir::make_call(local_name(r, state_, index_), std::move(exprs), f.returns, at),
             std::move(reads));
  if (!f.returns.is_void()) return CallResult(std::move(call), entry.effects, at);
  r.emit(ir::make_stmt<ir::Evaluate>(at, call.expr()), {&call}, nullptr);
  return CallResult(Value(), true, at);
}

const std::string& FuncHandle::name() const { return state_->functions[index_]->function.name; }

}  // namespace hidet::lang
