// statements.cpp - variables, branches, assertions, output, assembly.
#include <hidet/lang/statements.h>
#include <hidet/runtime/error.h>

#include "recorder.h"

namespace hidet::lang {
using namespace detail;

Handle let(const std::string& name, const Located& value) {
  FunctionRecorder& r = recording(value.loc, "let");
  check_name(name, "a variable", value.loc);
  return Handle(Value(Expr(r.bind(name, value.value, value.loc))));
}

Handle let(const std::string& name, const Type& type, const Located& value) {
  FunctionRecorder& r = recording(value.loc, "let");
  check_name(name, "a variable", value.loc);
  const Value typed(ir::coerce(value.value, type, "the variable '" + name + "'", value.loc),
                    value.value.reads());
  return Handle(Value(Expr(r.bind(name, typed, value.loc))));
}

namespace {
VarRef declare_var(const std::string& name, const Type& type, const Value* init, SourceLoc at) {
  FunctionRecorder& r = recording(at, "var");
  check_name(name, "a variable", at);
  HIDET_REQUIRE(type.is_arithmetic() || type.is_pointer(), ErrorCode::usage, at.text(),
                "the variable '", name, "' cannot be of type ", type.text(),
                type.is_tensor() ? "; use registers() or shared()" : "");
  VarRef var = ir::make_var(name, type, true, at);
  const Expr value = init ? ir::coerce(*init, type, "the variable '" + name + "'", at) : Expr();
  std::vector<const Value*> uses;
  if (init) uses.push_back(init);
  r.emit(ir::make_stmt<ir::DeclVar>(at, var, value), uses, nullptr);
  return var;
}
}  // namespace

Var var(const std::string& name, const Type& type, const Located& init) {
  return Var(declare_var(name, type, &init.value, init.loc));
}
Var var(const std::string& name, const Type& type, Here at) {
  return Var(declare_var(name, type, nullptr, at));
}

// --- branches

namespace detail {
Branch::Branch(Form form, const Value& cond, SourceLoc loc)
    : recorder_(&recording(loc, "a branch")), exceptions_(std::uncaught_exceptions()) {
  static_cast<FunctionRecorder*>(recorder_)->open_branch(form != Form::when, cond,
                                                         form != Form::otherwise, loc);
}
Branch::~Branch() {
  auto* r = static_cast<FunctionRecorder*>(recorder_);
  if (std::uncaught_exceptions() > exceptions_) (void)r->close();
  else r->close_branch();
}
}  // namespace detail

void assert_(const Located& cond, const std::string& message) {
  FunctionRecorder& r = recording(cond.loc, "assert_");
  const Value& c = cond.value;
  HIDET_REQUIRE(c.expr() && c.type().is_scalar() && c.dtype().is_boolean(), ErrorCode::usage,
                cond.loc.text(), "assert_ takes a boolean, not ",
                c.expr() ? c.type().text() : "nothing");
  r.emit(ir::make_stmt<ir::Assert>(cond.loc, c.expr(), message), {&c}, nullptr);
}

void comment(const std::string& text, Here at) {
  HIDET_REQUIRE(text.find('\n') == std::string::npos, ErrorCode::usage, SourceLoc(at).text(),
                "a comment is one line");
  recording(at, "comment()").emit(ir::make_stmt<ir::Comment>(at, text), {}, nullptr);
}

void asm_(const std::string& text, std::initializer_list<AsmOut> outputs,
          std::initializer_list<AsmIn> inputs, std::vector<std::string> clobbers, Here at) {
  FunctionRecorder& r = recording(at, "asm_");
  std::vector<std::string> out_constraints, in_constraints;
  std::vector<Expr> outs, ins;
  std::vector<Value> read_and_written;
  std::vector<const Value*> uses;
  for (const AsmOut& o : outputs) {
    HIDET_REQUIRE(!o.constraint.empty() && (o.constraint[0] == '=' || o.constraint[0] == '+'),
                  ErrorCode::usage, SourceLoc(at).text(), "the constraint '", o.constraint,
                  "' of an output begins with = or +");
    out_constraints.push_back(o.constraint);
    outs.emplace_back(o.var.node());
    if (o.constraint[0] == '+') read_and_written.push_back(o.var);
  }
  for (const AsmIn& i : inputs) {
    require_values("asm_", {i.value});
    in_constraints.push_back(i.constraint);
    ins.push_back(i.value.value.expr());
    uses.push_back(&i.value.value);
  }
  for (const Value& v : read_and_written) uses.push_back(&v);
  r.emit(ir::make_stmt<ir::Asm>(at, text, out_constraints, outs, in_constraints, ins,
                                std::move(clobbers), true),
         uses, nullptr);
  for (const AsmOut& o : outputs) r.mark_store(o.var.node().get(), at);
}

}  // namespace hidet::lang
