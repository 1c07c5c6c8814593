// loops.cpp - opening and closing recorded loops.
#include <hidet/ir/call_rules.h>
#include <hidet/ir/fold.h>
#include <hidet/lang/loops.h>
#include <hidet/runtime/error.h>

#include "recorder.h"

namespace hidet::lang {
namespace detail {
namespace {

const char* form_name(const LoopSpec& s) {
  if (s.form == LoopSpec::Form::mapped) return "a task mapping";
  if (s.form == LoopSpec::Form::conditional) return "loop_while";
  static const char* const names[] = {"a loop", "parallel", "unroll", "vectorize"};
  return names[static_cast<int>(s.how)];
}

FrameKind frame_of(const LoopSpec& s) {
  if (s.form == LoopSpec::Form::mapped) return FrameKind::mapped;
  if (s.form == LoopSpec::Form::conditional) return FrameKind::loop_while;
  if (s.how == ir::LoopKind::parallel) return FrameKind::parallel;
  if (s.how != ir::LoopKind::serial) return FrameKind::unrolled;
  return s.end.size() > 1 ? FrameKind::loop_nest : FrameKind::loop;
}

/// A bound whose value the loop's body cannot change.
Value frozen(FunctionRecorder& r, const Value& v, SourceLoc at) {
  if (v.reads().empty()) {
    r.check_visible(v.expr(), at);
    return v;
  }
  return Value(Expr(r.bind("bound", v, at)));
}

void check_integer(const Value& v, const char* what, SourceLoc at) {
  HIDET_REQUIRE(v.expr() && v.type().is_scalar() && v.dtype().is_integer(), ErrorCode::usage,
                at.text(), what, " takes integers, not ", v.expr() ? v.type().text() : "nothing");
}

/// Brings begin, end and step of one dimension to one dtype, and freezes them.
void prepare(FunctionRecorder& r, LoopSpec& s, size_t i) {
  const char* what = form_name(s);
  for (const Value* v : {&s.begin[i], &s.end[i], &s.step[i]}) check_integer(*v, what, s.loc);
  int64_t step = 1;
  const DType of_step = s.step[i].dtype();
  if (ir::is_const_int(s.step[i].expr(), &step))
    HIDET_REQUIRE(step >= 1 || (of_step == u64 && step != 0), ErrorCode::usage, s.loc.text(), what,
                  " has the step ", step, "; it must be at least 1");
  const bool fixed = s.how == ir::LoopKind::unroll || s.how == ir::LoopKind::vectorize;
  HIDET_REQUIRE(
      !fixed || (ir::is_const_int(s.begin[i].expr()) && ir::is_const_int(s.end[i].expr())),
      ErrorCode::usage, s.loc.text(), what, " takes constant bounds");
  // The select has the common dtype of both.
  const Type type = ir::make_select(ir::Expr(ir::make_var("c", Type(boolean))), s.begin[i].expr(),
                                    s.end[i].expr(), s.loc)
                        ->type;
  const Type step_type = s.step[i].type();
  HIDET_REQUIRE(
      ir::is_const_int(s.step[i].expr()) ? ir::fits(step, of_step, type.dtype())
                                         : step_type.dtype().bits() <= type.dtype().bits(),
      ErrorCode::usage, s.loc.text(), what, " over ", type.text(), " has a step ",
      ir::is_const_int(s.step[i].expr()) ? ir::int_text(step, of_step) : "of " + step_type.text(),
      ", which may not fit; cast the end or the step");
  for (Value* v : {&s.begin[i], &s.end[i], &s.step[i]}) {
    *v = frozen(r, *v, s.loc);
    *v = Value(ir::make_cast(v->expr(), type, s.loc));
  }
}

std::vector<VarRef> counted_vars(FunctionRecorder& r, LoopSpec& s) {
  std::vector<VarRef> vars;
  for (size_t i = 0; i < s.end.size(); i++) {
    prepare(r, s, i);
    vars.push_back(ir::make_var(r.loop_name(i), s.end[i].type(), false, s.loc));
  }
  return vars;
}

std::vector<VarRef> mapped_vars(FunctionRecorder& r, LoopSpec& s) {
  check_integer(s.worker, "on()", s.loc);
  const int rank = s.mapping.rank();
  for (const auto& item : s.mapping.items) {
    HIDET_REQUIRE(static_cast<int>(item.shape.size()) == rank, ErrorCode::usage, s.loc.text(),
                  "the task mapping ", s.mapping.text(), " has factors of different ranks");
    for (int64_t n : item.shape)
      HIDET_REQUIRE(n >= 1, ErrorCode::usage, s.loc.text(), "the task mapping ", s.mapping.text(),
                    " has the extent ", n);
  }
  // Tasks are counted in the worker's type.
  const Type type(s.worker.dtype().bits() < 32 ? i32 : s.worker.dtype());
  s.worker = frozen(r, Value(ir::make_cast(s.worker.expr(), type, s.loc), s.worker.reads()), s.loc);
  std::vector<VarRef> vars;
  for (int i = 0; i < rank; i++)
    vars.push_back(
        ir::make_var(r.loop_name(static_cast<size_t>(i)), s.worker.type(), false, s.loc));
  return vars;
}

void open_while(FunctionRecorder& r, const LoopSpec& s) {
  HIDET_REQUIRE(s.cond.expr() && s.cond.type().is_scalar() && s.cond.dtype().is_boolean(),
                ErrorCode::usage, s.loc.text(), "loop_while takes a boolean, not ",
                s.cond.expr() ? s.cond.type().text() : "nothing");
  r.use(s.cond, s.loc);
  r.check_visible(s.cond.expr(), s.loc);
  r.open(FrameKind::loop_while, s.loc);
  for (const ir::Read& read : s.cond.reads())
    if (read.writes) r.mark_store(read.place, s.loc);
}

Stmt closed(const LoopSpec& s, const std::vector<VarRef>& vars, Stmt body) {
  if (s.form == LoopSpec::Form::conditional)
    return ir::make_stmt<ir::While>(s.loc, s.cond.expr(), body);
  if (s.form == LoopSpec::Form::mapped)
    return ir::make_stmt<ir::MappingFor>(s.loc, vars, s.mapping, s.worker.expr(), body);
  for (size_t i = vars.size(); i-- > 0;)
    body = ir::make_stmt<ir::For>(s.loc, vars[i], s.begin[i].expr(), s.end[i].expr(),
                                  s.step[i].expr(), s.how, s.grain, body);
  return body;
}

}  // namespace

LoopSpec counted(ir::LoopKind how, std::vector<Located> end, std::vector<Located> begin,
                 std::vector<Located> step, int64_t grain) {
  LoopSpec s;
  s.how = how;
  s.loc = end.front().loc;
  s.grain = grain;
  for (size_t i = 0; i < end.size(); i++) {
    s.end.push_back(end[i].value);
    s.begin.push_back(i < begin.size() ? begin[i].value : Value(0));
    s.step.push_back(i < step.size() ? step[i].value : Value(1));
  }
  return s;
}

std::vector<Handle> Loop::open() {
  FunctionRecorder& r = recording(spec_.loc, form_name(spec_));
  HIDET_REQUIRE(!recorder_, ErrorCode::usage, spec_.loc.text(), form_name(spec_),
                " is already open");
  if (spec_.form == LoopSpec::Form::conditional) {
    open_while(r, spec_);
  } else {
    if (spec_.how == ir::LoopKind::parallel) {
      const ir::Function& f = r.function();
      HIDET_REQUIRE(ir::may_be_parallel(f.kind), ErrorCode::usage, spec_.loc.text(),
                    "a parallel loop in the ", ir::name(f.kind), " function '", f.name,
                    "'; only public and cpu_kernel functions may have one");
      r.check_no_parallel("a parallel loop", spec_.loc);
      HIDET_REQUIRE(spec_.grain >= 1, ErrorCode::usage, spec_.loc.text(), "the grain is ",
                    spec_.grain, "; it must be at least 1");
    }
    vars_ = spec_.form == LoopSpec::Form::mapped ? mapped_vars(r, spec_) : counted_vars(r, spec_);
    r.open(frame_of(spec_), spec_.loc, vars_);
  }
  recorder_ = &r;
  exceptions_ = std::uncaught_exceptions();
  std::vector<Handle> handles;
  for (const VarRef& v : vars_) handles.emplace_back(Value(Expr(v)));
  return handles;
}

void Loop::close() {
  auto& r = *static_cast<FunctionRecorder*>(std::exchange(recorder_, nullptr));
  r.append(closed(spec_, vars_, r.close()));
}

Loop::~Loop() {
  if (!recorder_) return;
  auto& r = *static_cast<FunctionRecorder*>(recorder_);
  if (std::uncaught_exceptions() > exceptions_) {
    (void)r.close();
    return;
  }
  r.keep_error(spec_.loc,
               "C++ 'break' or 'return' left a recorded loop; use break_loop() or f.returns()");
  close();
}

}  // namespace detail

Range<1> range(const Located& end) {
  return Range<1>(detail::counted(ir::LoopKind::serial, {end}));
}
Range<1> range(const Located& begin, const Located& end) {
  return Range<1>(detail::counted(ir::LoopKind::serial, {end}, {begin}));
}
Range<1> range(const Located& begin, const Located& end, const Located& step) {
  return Range<1>(detail::counted(ir::LoopKind::serial, {end}, {begin}, {step}));
}
Range<-1> grid(const std::vector<Value>& extents, Here at) {
  std::vector<Located> ends;
  for (const Value& v : extents) ends.emplace_back(v, SourceLoc(at));
  HIDET_REQUIRE(!ends.empty(), ErrorCode::usage, SourceLoc(at).text(), "grid() of no extents");
  return Range<-1>(detail::counted(ir::LoopKind::serial, std::move(ends)));
}
Range<1> parallel(const Located& n, int64_t grain) {
  return Range<1>(detail::counted(ir::LoopKind::parallel, {n}, {}, {}, grain));
}
Range<1> unroll(const Located& n) { return Range<1>(detail::counted(ir::LoopKind::unroll, {n})); }
Range<1> unroll(const Located& begin, const Located& end) {
  return Range<1>(detail::counted(ir::LoopKind::unroll, {end}, {begin}));
}
Range<1> vectorize(const Located& n) {
  return Range<1>(detail::counted(ir::LoopKind::vectorize, {n}));
}

Range<0> loop_while(const Located& cond) {
  detail::LoopSpec s;
  s.form = detail::LoopSpec::Form::conditional;
  s.cond = cond.value;
  s.loc = cond.loc;
  return Range<0>(std::move(s));
}

void break_loop(Here at) {
  auto& r = detail::recording(at, "break_loop()");
  r.check_jump(true, at);
  r.emit(ir::make_stmt<ir::Break>(at), {}, nullptr);
}
void continue_loop(Here at) {
  auto& r = detail::recording(at, "continue_loop()");
  r.check_jump(false, at);
  r.emit(ir::make_stmt<ir::Continue>(at), {}, nullptr);
}

}  // namespace hidet::lang
