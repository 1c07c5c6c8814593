// recorder.cpp - statements into scopes: visibility, staleness, stores.
#include "recorder.h"

#include <hidet/ir/primitives.h>
#include <hidet/ir/rewriter.h>
#include <hidet/runtime/error.h>

#include <algorithm>
#include <cctype>

namespace hidet::lang::detail {
using namespace ir;

namespace {
bool is_loop(FrameKind k) { return k != FrameKind::function && k != FrameKind::branch; }

std::string quoted(const Node* place) {
  const Var* v = as<Var>(place);
  return v ? "'" + v->name + "'" : "memory";
}
std::string at_text(SourceLoc loc) { return loc.line ? " (" + loc.text() + ")" : ""; }
}  // namespace

FunctionRecorder& recording(SourceLoc at, const char* what) {
  auto* r = static_cast<FunctionRecorder*>(current_recorder());
  HIDET_REQUIRE(r, ErrorCode::usage, at.text(), what, " outside a script function");
  return *r;
}

std::vector<Read> reads_of(const std::vector<Located>& list) {
  std::vector<Read> reads;
  for (const Located& l : list) {
    const Value sum(Expr(), std::move(reads));
    reads = join_reads({&sum, &l.value});
  }
  return reads;
}

void check_name(const std::string& name, const char* what, SourceLoc at) {
  bool fine = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0]));
  for (unsigned char c : name) fine = fine && (std::isalnum(c) || c == '_') && c < 128;
  HIDET_REQUIRE(fine, ErrorCode::usage, at.text(), "the name '", name, "' of ", what,
                " is no identifier: letters, digits and _, no digit first");
}

FunctionRecorder::FunctionRecorder(std::shared_ptr<ModuleState> module, std::string name,
                                   FuncKind kind, SourceLoc loc)
    : module_(std::move(module)) {
  function_.name = std::move(name);
  function_.kind = kind;
  function_.loc = loc;
  frames_.push_back({FrameKind::function, loc, clock_});
}
FunctionRecorder::~FunctionRecorder() = default;

// --- places

const Node* FunctionRecorder::root(const Node* place) const {
  for (;;) {
    auto it = known_.find(place);
    if (it == known_.end() || !it->second.root) return place;
    place = it->second.root;
  }
}

void FunctionRecorder::use(const Value& v, SourceLoc at) {
  for (const Read& r : v.reads()) {
    const Node* place = root(r.place);
    HIDET_REQUIRE(!r.clash, ErrorCode::usage, at.text(), "one expression touches ", quoted(place),
                  " twice and stores to it; bind one part with let");
    auto stored = stores_.find(place);
    HIDET_REQUIRE(stored == stores_.end() || stored->second.clock <= r.stamp, ErrorCode::usage,
                  at.text(), "this value read ", quoted(place), at_text(r.loc),
                  " before the store to it", at_text(stored->second.loc),
                  "; bind the value with let before the store");
    for (Frame& f : frames_)
      if (is_loop(f.kind) && r.stamp < f.opened) f.outer_uses.emplace(place, at);
  }
}

void FunctionRecorder::mark_store(const Node* raw, SourceLoc at) {
  const Node* place = root(raw);
  if (!is_cuda())
    for (const ModuleState::Global& g : module_->globals)
      HIDET_REQUIRE(g.var.var.get() != place, ErrorCode::usage, at.text(), "the ",
                    ir::name(function_.kind), " function '", function_.name,
                    "' stores to the global variable '", g.var.var->name,
                    "', which is constant on the CPU; pass memory as an argument");
  for (const Frame& f : frames_) {
    auto used = f.outer_uses.find(place);
    HIDET_REQUIRE(used == f.outer_uses.end(), ErrorCode::usage, used->second.text(),
                  "this value read ", quoted(place), " before the loop", at_text(f.loc),
                  ", which stores to it", at_text(at),
                  "; bind the value with let before the loop, or read inside it");
  }
  auto known = known_.find(place);
  if (known != known_.end() && known->second.is_local)
    for (size_t i = known->second.depth; i < frames_.size(); i++)
      HIDET_REQUIRE(frames_[i].kind != FrameKind::parallel, ErrorCode::usage, at.text(),
                    quoted(place), " is declared outside the parallel loop",
                    at_text(frames_[i].loc), " and stored to inside it: iterations would race");
  stores_[place] = {++clock_, at};
  written_.insert(place);
}

// --- visibility

void FunctionRecorder::check_var(const Var& var, SourceLoc at) {
  auto it = known_.find(&var);
  if (it != known_.end()) {
    HIDET_REQUIRE(it->second.open, ErrorCode::usage, at.text(), "'", var.name, "'",
                  at_text(var.loc), " is used after its scope closed");
    return;
  }
  for (ModuleState::Global& g : module_->globals)
    if (g.var.var.get() == &var) {
      (is_cuda() ? g.cuda : g.cpu) = true;
      HIDET_REQUIRE(!(g.cuda && g.cpu), ErrorCode::usage, at.text(), "the global variable '",
                    var.name,
                    "' is used by a CUDA function and by a CPU function; make one for each");
      return;
    }
  throw Error(ErrorCode::usage,
              "'" + var.name + "'" + at_text(var.loc) + " belongs to another function than '" +
                  function_.name + "'",
              at.text());
}

void FunctionRecorder::check_primitive(const Prim& prim, SourceLoc at) const {
  const Primitive* row = find_primitive(prim.name);
  HIDET_REQUIRE(row, ErrorCode::usage, at.text(), "there is no primitive '", prim.name, "'");
  const bool cuda = is_cuda();
  HIDET_REQUIRE(row->target == PrimTarget::any || (row->target == PrimTarget::cuda) == cuda,
                ErrorCode::usage, at.text(), "'", prim.name, "' is for ", cuda ? "CPU" : "CUDA",
                " functions; '", function_.name, "' is a ", ir::name(function_.kind), " function");
}

void FunctionRecorder::check_node(const Node& node, SourceLoc at) {
  if (const Var* v = as<Var>(&node)) return check_var(*v, at);
  if (const Prim* p = as<Prim>(&node)) {
    check_primitive(*p, at);
    unused_.erase(&node);
  }
  if (node.kind == Kind::Call) unused_.erase(&node);
}

void FunctionRecorder::check_visible(const Expr& e, SourceLoc at) {
  visit_all(e, [&](const Node& node) { check_node(node, at); });
}

// --- statements

void FunctionRecorder::note_effects(const Stmt& stmt) {
  const Kind k = stmt->kind;
  if (k == Kind::Assert || k == Kind::Asm || k == Kind::Evaluate) effects_ = true;
}

void FunctionRecorder::emit(Stmt stmt, const std::vector<const Value*>& uses,
                            const Node* stored_place) {
  const SourceLoc at = stmt->loc.line ? stmt->loc : function_.loc;
  std::vector<Read> all;
  for (const Value* v : uses) {
    const Value sum(Expr(), std::move(all));
    all = join_reads({&sum, v});
  }
  const Value joined(Expr(), std::move(all));
  use(joined, at);
  for_each_child(
      *stmt,
      [&](const Expr& e) {
        if (e->kind != Kind::Var || (stmt->kind != Kind::DeclVar && stmt->kind != Kind::DeclTensor))
          check_visible(e, at);
      },
      [](const Stmt&) {});
  if (const DeclVar* d = as<DeclVar>(stmt)) {
    if (d->init) check_visible(d->init, at);
    declare(d->var, d->init);
  }
  if (const DeclTensor* d = as<DeclTensor>(stmt)) {
    if (d->data) check_visible(d->data, at);
    for (const Expr& extent : d->var->type.tensor_info().shape) check_visible(extent, at);
    declare(d->var, d->data);
  }
  note_effects(stmt);
  frames_.back().body.push_back(std::move(stmt));
  for (const Read& r : joined.reads())
    if (r.writes) mark_store(r.place, at);
  if (stored_place) mark_store(stored_place, at);
}

void FunctionRecorder::declare(const VarRef& var, const Expr& init) {
  Known known{var, true, frames_.size(), nullptr, false};
  known.is_local = var->is_mutable ||
                   (var->type.is_tensor() && var->type.tensor_info().scope == Scope::registers);
  if (init && (init->type.is_pointer() || init->type.is_tensor()) && !var->is_mutable) {
    const Node* place = place_of(init);
    if (place && place->kind == Kind::Var) known.root = place;
  }
  known_.emplace(var.get(), std::move(known));
  frames_.back().declared.push_back(var.get());
}

VarRef FunctionRecorder::bind(const std::string& name, const Value& v, SourceLoc loc) {
  HIDET_REQUIRE(v.expr() && !v.type().is_void(), ErrorCode::usage, loc.text(), "'", name,
                "' is bound to no value");
  VarRef var = make_var(name, v.type(), false, loc);
  emit(make_stmt<DeclVar>(loc, var, v.expr()), {&v}, nullptr);
  return var;
}

VarRef FunctionRecorder::add_param(const std::string& name, const Type& type, SourceLoc loc) {
  check_name(name, "an argument", loc);
  HIDET_REQUIRE(frames_.size() == 1, ErrorCode::usage, loc.text(), "the argument '", name,
                "' is declared inside a scope; declare arguments first");
  for (const VarRef& p : function_.params)
    HIDET_REQUIRE(p->name != name, ErrorCode::usage, loc.text(), "the function '", function_.name,
                  "' has two arguments called '", name, "'");
  HIDET_REQUIRE(type.is_arithmetic() || type.is_pointer() || type.is_tensor(), ErrorCode::usage,
                loc.text(), "the argument '", name, "' cannot be of type ", type.text());
  if (type.is_tensor())
    for (const Expr& extent : type.tensor_info().shape) check_visible(extent, loc);
  VarRef var = make_var(name, type, false, loc);
  declare(var, nullptr);
  function_.params.push_back(var);
  return var;
}

// --- scopes

void FunctionRecorder::open(FrameKind kind, SourceLoc loc, const std::vector<VarRef>& vars) {
  frames_.push_back({kind, loc, ++clock_});
  for (const VarRef& v : vars) declare(v, nullptr);
}

Stmt FunctionRecorder::close() {
  HIDET_CHECK(frames_.size() > 1, "no scope is open");
  Frame frame = std::move(frames_.back());
  frames_.pop_back();
  for (const Node* v : frame.declared) known_.at(v).open = false;
  return make_seq(std::move(frame.body));
}

void FunctionRecorder::open_branch(bool chained, const Value& cond, bool has_cond, SourceLoc loc) {
  Frame& outer = frames_.back();
  HIDET_REQUIRE(!chained || (!outer.chain.empty() && outer.chain_at + 1 == outer.body.size()),
                ErrorCode::usage, loc.text(), has_cond ? "else_when" : "otherwise",
                " does not follow a when or else_when");
  HIDET_REQUIRE(!chained || outer.chain.back().cond, ErrorCode::usage, loc.text(),
                has_cond ? "else_when" : "otherwise", " follows an otherwise",
                at_text(outer.chain.back().loc));
  if (chained) {
    // This arm runs where the former ones did not: what they stored has not happened.
    for (const auto& [place, mark] : stores_) outer.after_chain.insert_or_assign(place, mark);
    stores_ = outer.before_chain;
  } else {
    outer.chain.clear();
    outer.before_chain = stores_;
    outer.after_chain.clear();
  }
  if (has_cond) {
    HIDET_REQUIRE(cond.expr() && cond.type().is_scalar() && cond.dtype().is_boolean(),
                  ErrorCode::usage, loc.text(), "a condition is a boolean, not ",
                  cond.expr() ? cond.type().text() : "nothing");
    use(cond, loc);
    check_visible(cond.expr(), loc);
    for (const Read& r : cond.reads())
      if (r.writes) mark_store(r.place, loc);
  }
  frames_.back().chain.push_back({has_cond ? cond.expr() : Expr(), Stmt(), loc});
  open(FrameKind::branch, loc);
}

void FunctionRecorder::rebuild_chain(Frame& frame) {
  Stmt last;
  for (auto arm = frame.chain.rbegin(); arm != frame.chain.rend(); ++arm)
    last = arm->cond ? Stmt(make_stmt<If>(arm->loc, arm->cond, arm->body, last)) : arm->body;
  if (frame.chain.size() == 1) {
    frame.chain_at = frame.body.size();
    frame.body.push_back(last);
  } else {
    frame.body[frame.chain_at] = last;
  }
}

void FunctionRecorder::close_branch() {
  const SourceLoc loc = frames_.back().loc;
  const bool empty = frames_.back().body.empty();
  Stmt body = close();
  Frame& outer = frames_.back();
  if (empty)
    keep_error(loc, "a branch that records nothing; remove it, or write a comment() into it");
  outer.chain.back().body = std::move(body);
  rebuild_chain(outer);
  for (const auto& [place, mark] : outer.after_chain) {
    auto [it, added] = stores_.emplace(place, mark);
    if (!added && it->second.clock < mark.clock) it->second = mark;
  }
}

void FunctionRecorder::check_no_parallel(const char* what, SourceLoc at) {
  for (const Frame& f : frames_)
    HIDET_REQUIRE(f.kind != FrameKind::parallel, ErrorCode::usage, at.text(), what,
                  " inside a parallel loop", at_text(f.loc));
}

void FunctionRecorder::check_jump(bool is_break, SourceLoc at) {
  const char* what = is_break ? "break_loop()" : "continue_loop()";
  auto frame = std::find_if(frames_.rbegin(), frames_.rend(),
                            [](const Frame& f) { return is_loop(f.kind); });
  HIDET_REQUIRE(frame != frames_.rend(), ErrorCode::usage, at.text(), what, " outside a loop");
  const FrameKind k = frame->kind;
  const char* loop = k == FrameKind::parallel    ? "a parallel loop"
                     : k == FrameKind::loop_nest ? "a loop nest of several variables"
                     : k == FrameKind::unrolled  ? "an unrolled or vectorized loop"
                     : k == FrameKind::mapped    ? "a task mapping"
                                                 : nullptr;
  const bool fine = !loop || (!is_break && (k == FrameKind::parallel || k == FrameKind::loop_nest));
  HIDET_REQUIRE(fine, ErrorCode::usage, at.text(), what, " cannot be used in ", loop,
                at_text(frame->loc));
}

std::string FunctionRecorder::loop_name(size_t more) const {
  static const char* const names[] = {"i", "j", "k", "l", "m", "n"};
  size_t loops = more;
  for (const Frame& f : frames_) loops += is_loop(f.kind) ? 1 : 0;
  return names[std::min<size_t>(loops, 5)];
}

void FunctionRecorder::keep_error(SourceLoc at, const std::string& message) {
  keep(std::make_exception_ptr(Error(ErrorCode::usage, message, at.text())));
}

bool FunctionRecorder::is_param(const Node* node) const {
  return std::any_of(function_.params.begin(), function_.params.end(),
                     [&](const VarRef& p) { return p.get() == node; });
}

}  // namespace hidet::lang::detail
