// module.cpp - script modules: definitions, and their assembly into one IR module.
#include <hidet/ir/call_rules.h>
#include <hidet/ir/passes.h>
#include <hidet/ir/primitives.h>
#include <hidet/ir/rewriter.h>
#include <hidet/lang/script_module.h>
#include <hidet/runtime/error.h>

#include <algorithm>
#include <map>

#include "recorder.h"
#include "space.h"

namespace hidet::lang {
using namespace detail;

ScriptModule::ScriptModule(const std::string& name, Here at)
    : state_(std::make_shared<ModuleState>()), space_(std::make_shared<Space>()) {
  check_name(name, "a module", at);
  state_->name = name;
  state_->loc = at;
}
const std::string& ScriptModule::name() const { return state_->name; }

// --- definitions

namespace {
void check_new(const ModuleState& state, const std::string& name, SourceLoc at) {
  check_name(name, "a function", at);
  for (const auto& f : state.functions)
    HIDET_REQUIRE(f->function.name != name, ErrorCode::usage, at.text(), "the module '", state.name,
                  "' already has a function '", name, "' (", f->loc.text(), ")");
}

/// Makes a recorder current while it lives.
struct Recording {
  explicit Recording(FunctionRecorder& r) : former(ir::set_current_recorder(&r)) {}
  ~Recording() { ir::set_current_recorder(former); }
  ir::Recorder* former;
};
}  // namespace

FuncHandle ScriptModule::func(ir::FuncKind kind, const std::string& name, const Define& define,
                              Here at) {
  check_new(*state_, name, at);
  FunctionRecorder recorder(state_, name, kind, at);
  std::shared_ptr<FunctionEntry> entry;
  {
    Recording current(recorder);
    Function f(recorder);
    try {
      define(f);
    } catch (const Error& e) {
      // What a destructor noticed came first, and is often the cause.
      if (recorder.pending()) std::rethrow_exception(recorder.pending());
      if (!e.where().empty()) throw;
      throw Error(e.code(), std::string(e.what()) + " (in '" + name + "')", SourceLoc(at).text());
    } catch (...) {
      if (recorder.pending()) std::rethrow_exception(recorder.pending());
      throw;
    }
    entry = recorder.finish();
  }
  check_new(*state_, name, at);
  state_->functions.push_back(std::move(entry));
  return FuncHandle(state_, state_->functions.size() - 1);
}
FuncHandle ScriptModule::public_func(const std::string& name, const Define& define, Here at) {
  return func(ir::FuncKind::public_, name, define, at);
}
FuncHandle ScriptModule::cuda_kernel(const std::string& name, const Define& define, Here at) {
  return func(ir::FuncKind::cuda_kernel, name, define, at);
}
FuncHandle ScriptModule::cuda_internal(const std::string& name, const Define& define, Here at) {
  return func(ir::FuncKind::cuda_internal, name, define, at);
}
FuncHandle ScriptModule::cpu_kernel(const std::string& name, const Define& define, Here at) {
  return func(ir::FuncKind::cpu_kernel, name, define, at);
}
FuncHandle ScriptModule::cpu_internal(const std::string& name, const Define& define, Here at) {
  return func(ir::FuncKind::cpu_internal, name, define, at);
}

Global ScriptModule::global_var(const std::string& name, const Type& type, std::vector<double> init,
                                Here at) {
  const SourceLoc loc(at);
  check_name(name, "a global variable", loc);
  HIDET_REQUIRE(type.is_scalar() || type.is_tensor(), ErrorCode::usage, loc.text(),
                "the global variable '", name, "' is a scalar or a tensor, not ", type.text());
  int64_t elements = 1;
  if (type.is_tensor())
    HIDET_REQUIRE(
        ir::is_const_int(type.tensor_info().layout.span(type.tensor_info().shape), &elements),
        ErrorCode::usage, loc.text(), "the global variable '", name, "' needs constant extents");
  HIDET_REQUIRE(init.empty() || static_cast<int64_t>(init.size()) == elements, ErrorCode::usage,
                loc.text(), "the global variable '", name, "' has ", elements, " elements and ",
                init.size(), " initial values");
  // A scalar lies in memory as everything else that functions may write: a tensor of one element.
  const Type kept =
      type.is_tensor()
          ? type
          : Type::tensor({type.dtype(), {ir::make_int(1, Type(i32))}, {}, ir::Scope::global});
  const VarRef var = ir::make_var(name, kept, false, loc);
  state_->globals.push_back({{var, std::move(init), false}});
  return Global(var, type);
}

FuncHandle ScriptModule::extern_func(const std::string& name, const std::vector<Type>& params,
                                     const Type& returns, void* address, Here at) {
  check_new(*state_, name, at);
  HIDET_REQUIRE(address, ErrorCode::usage, SourceLoc(at).text(), "the extern function '", name,
                "' has no address");
  auto entry = std::make_shared<FunctionEntry>();
  entry->is_extern = entry->effects = true;
  entry->loc = at;
  entry->function.name = name;
  entry->function.returns = returns;
  for (const Type& t : params) {
    entry->function.params.push_back(
        ir::make_var("a" + std::to_string(entry->writes.size()), t, false, at));
    entry->writes.push_back(t.is_pointer() || t.is_tensor());
  }
  state_->functions.push_back(std::move(entry));
  state_->externs.push_back({name, params, returns, address});
  return FuncHandle(state_, state_->functions.size() - 1);
}

// --- assembly

namespace {

/// Collects a module's functions and those that they call in other modules.
class Assembly {
 public:
  /// `joined`: a module whose functions are added, too, or null.
  explicit Assembly(const ModuleState& top, const ModuleState* joined = nullptr) {
    out_.name = top.name;
    for (const ModuleState* m : {joined, &top})
      if (m) add_own(*m);
    for (const ModuleState* m : {joined, &top})
      if (m)
        for (const auto& f : m->functions) add_function(*m, *f);
    add_launch();
  }
  ir::Module take_module() { return std::move(out_); }

 private:
  using Key = std::pair<const ModuleState*, const FunctionEntry*>;

  std::string take(const std::string& wanted) {
    std::string name = wanted;
    for (int i = 1; !taken_.insert(name).second; i++) name = wanted + "_" + std::to_string(i);
    return name;
  }

  /// Globals and the names of the functions, which must be new.
  void add_own(const ModuleState& m) {
    modules_.insert(&m);
    add_module(m);
    for (const auto& f : m.functions) {
      HIDET_REQUIRE(!taken_.count(f->function.name), ErrorCode::usage, f->loc.text(),
                    "the module '", m.name, "' already has a function '", f->function.name, "'");
      names_[{&m, f.get()}] = take(f->function.name);
    }
  }

  void add_module(const ModuleState& m) {
    for (const ModuleState::Global& g : m.globals) {
      // A candidate of a parameter space has its module's variables, too.
      auto it = std::find_if(
          out_.globals.begin(), out_.globals.end(),
          [&](const ir::GlobalVar& known) { return known.var.get() == g.var.var.get(); });
      if (it == out_.globals.end()) it = out_.globals.insert(it, g.var);
      it->on_cuda = it->on_cuda || g.cuda;
    }
  }

  /// The name of an imported function, which is added where it is new.
  std::string imported(const ModuleState& m, const FunctionEntry& f) {
    auto it = names_.find({&m, &f});
    if (it != names_.end()) return it->second;
    const std::string name = take(f.function.name);
    names_[{&m, &f}] = name;
    if (modules_.insert(&m).second) add_module(m);
    add_function(m, f);
    return name;
  }

  std::string callee(const ModuleState& m, const std::string& recorded) {
    if (recorded[0] == '@') {
      const ModuleState::Import& i = m.imports[std::stoul(recorded.substr(1))];
      return imported(*i.module, *i.module->functions[i.index]);
    }
    for (const auto& f : m.functions)
      if (f->function.name == recorded) return imported(m, *f);
    return recorded;
  }

  void add_function(const ModuleState& m, const FunctionEntry& entry) {
    const std::string name = names_.at({&m, &entry});
    if (entry.is_extern) {
      for (const ir::ExternFunc& e : m.externs)
        if (e.name == entry.function.name) {
          out_.externs.push_back(e);
          out_.externs.back().name = name;
        }
      return;
    }
    ir::Function f = entry.function;
    f.name = name;
    f.body = ir::rewrite(f.body, [&](ir::Rewriter& self, const ir::Call& call) -> Expr {
      const std::string to = callee(m, call.callee);
      const Expr walked = self.children(call);
      if (to == call.callee) return walked;
      return ir::make_call(to, ir::as<ir::Call>(walked)->args, call.type, call.loc);
    });
    out_.functions.push_back(std::move(f));
  }

  /// A module without a public function but with one kernel gets `launch` with the kernel's arguments.
  void add_launch() {
    const ir::Function* kernel = nullptr;
    int kernels = 0;
    for (const ir::Function& f : out_.functions) {
      if (f.kind == ir::FuncKind::public_) return;
      if (f.kind != ir::FuncKind::cuda_kernel && f.kind != ir::FuncKind::cpu_kernel) continue;
      kernel = &f;
      kernels++;
    }
    if (kernels != 1 || !kernel->returns.is_void()) return;
    std::string callee = kernel->name;
    if (callee == "launch") {
      callee = take("launch_kernel");
      for (ir::Function& f : out_.functions)
        if (&f == kernel) f.name = callee;
    } else if (!taken_.insert("launch").second) {
      return;
    }
    ir::Function launch;
    launch.name = "launch";
    launch.kind = ir::FuncKind::public_;
    launch.loc = kernel->loc;
    std::vector<Expr> args;
    for (const VarRef& p : kernel->params) {
      HIDET_REQUIRE(p->type != ir::tensor_map_type(), ErrorCode::usage, kernel->loc.text(),
                    "the kernel '", kernel->name, "' takes the tensor map '", p->name,
                    "': write a public function that makes it with tensor_map() and launches it");
      const Type type = p->type.is_tensor() ? Type::pointer(Type(p->type.dtype())) : p->type;
      launch.params.push_back(ir::make_var(p->name, type, false, p->loc));
      args.emplace_back(launch.params.back());
    }
    launch.body = ir::make_stmt<ir::Evaluate>(
        kernel->loc, ir::make_call(callee, std::move(args), Type(), kernel->loc));
    out_.functions.push_back(std::move(launch));
  }

  ir::Module out_;
  std::map<Key, std::string> names_;
  std::unordered_set<const ModuleState*> modules_;
  std::unordered_set<std::string> taken_;
};

}  // namespace

ir::Module detail::assemble(const ModuleState& state, const ModuleState* joined) {
  HIDET_REQUIRE(!state.functions.empty(), ErrorCode::usage, state.loc.text(), "the module '",
                state.name, "' has no function");
  ir::Module module;
  ir::with_large_stack([&] {
    module = Assembly(state, joined).take_module();
    ir::check_calls(module);
  });
  return module;
}

ir::Module ScriptModule::module() const {
  if (space_->dims.empty()) return assemble(*state_);
  LeftOut left_out(*state_, *space_);
  return record_candidates(*state_, *space_, left_out, 1)[0].module;
}

std::string ScriptModule::ir() const { return ir::print(module()); }

CompiledModule ScriptModule::build(const BuildOptions& options) const {
  if (space_->dims.empty()) return build_module(module(), options);
  LeftOut left_out(*state_, *space_);
  std::vector<Candidate> candidates = record_candidates(*state_, *space_, left_out);
  return CompiledModule(compile_candidates(std::move(candidates), options, left_out));
}

std::string ScriptModule::lowered(const std::string& target) const {
  struct Row {
    const char* name;
    ir::Target target;
  };
  static constexpr Row rows[] = {
      {"cpu", ir::Target::cpu}, {"cuda", ir::Target::cuda}, {"sim", ir::Target::sim}};
  for (const Row& r : rows)
    if (target == r.name) return ir::print(ir::run_passes(module(), ir::lowering(r.target)));
  throw Error(ErrorCode::usage, "there is no target '" + target + "'; use cpu, cuda or sim");
}

}  // namespace hidet::lang
