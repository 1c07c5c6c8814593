// script_module.h - modules and functions of the script language.
//   ScriptModule m("name");
//   auto square = m.cpu_internal("square", [](Function& f) { auto x = f.arg("x", f32); f.returns(x * x); });
//   hidet::CompiledModule built = m.build();
// Threading: one thread at a time.
#pragma once
#include <hidet/lang/build.h>
#include <hidet/lang/global.h>
#include <hidet/lang/space.h>
#include <hidet/lang/types.h>

#include <functional>
#include <memory>
#include <string>

namespace hidet::lang {

namespace detail {
struct ModuleState;
struct Space;
struct Parts;
class FunctionRecorder;
}  // namespace detail

/// A function while it is recorded: its arguments, its result, its launch bounds.
class Function {
 public:
  /// Declares an argument. Names are C identifiers.
  Handle arg(const std::string& name, const Type& type, Here at = Here::current());
  /// Declares one argument a type: `name`, `name_1`, `name_2` ...
  std::vector<Handle> args(const std::string& name, const meta::Types& types,
                           Here at = Here::current());
  /// Returns a value, or from a function without a result.
  void returns(const Located& value);
  void returns(Here at = Here::current());

  /// cuda_kernel: blocks, threads, cluster; expressions of the arguments.
  void grid_dim(const Located& x, const Located& y = 1, const Located& z = 1);
  void block_dim(const Located& x, const Located& y = 1, const Located& z = 1);
  void cluster_dim(const Located& x, const Located& y = 1, const Located& z = 1);
  void dynamic_shared_bytes(const Located& bytes);
  void min_blocks(int64_t blocks, Here at = Here::current());
  /// Compiler-made code: pointer arguments never overlap.
  void no_alias();

  const std::string& name() const;
  ir::FuncKind kind() const;

 private:
  friend class ScriptModule;
  explicit Function(detail::FunctionRecorder& recorder) : recorder_(&recorder) {}
  detail::FunctionRecorder* recorder_;
};

/// A function that can be called while another one is recorded. Copyable; keeps its module alive.
class FuncHandle {
 public:
  CallResult operator()(Here at = Here::current()) const { return call({}, at); }
  template <class... Rest>
  CallResult operator()(const Located& first, const Rest&... rest) const {
    return call({first, Located(rest)...}, first.loc);
  }
  /// A call with a number of arguments known when recording.
  CallResult call(const std::vector<Located>& args, SourceLoc at) const;
  const std::string& name() const;

 private:
  friend class ScriptModule;
  FuncHandle(std::shared_ptr<detail::ModuleState> state, size_t index)
      : state_(std::move(state)), index_(index) {}
  std::shared_ptr<detail::ModuleState> state_;
  size_t index_;
};

/// A module of functions. A handle: copies share the module.
class ScriptModule {
 public:
  using Define = std::function<void(Function&)>;
  explicit ScriptModule(const std::string& name, Here at = Here::current());

  /// Each records one function at once; see docs/script.md for who may call whom.
  FuncHandle public_func(const std::string& name, const Define& define, Here at = Here::current());
  FuncHandle cuda_kernel(const std::string& name, const Define& define, Here at = Here::current());
  FuncHandle cuda_internal(const std::string& name, const Define& define,
                           Here at = Here::current());
  FuncHandle cpu_kernel(const std::string& name, const Define& define, Here at = Here::current());
  FuncHandle cpu_internal(const std::string& name, const Define& define, Here at = Here::current());
  FuncHandle func(ir::FuncKind kind, const std::string& name, const Define& define,
                  Here at = Here::current());

  /// A variable of the module: a scalar or a tensor. Constant on the CPU, mutable in CUDA functions; a
  /// module may use it on one side only. Without `init`: zeros.
  Global global_var(const std::string& name, const Type& type, std::vector<double> init = {},
                    Here at = Here::current());
  /// A function of the host program; public and cpu functions may call it.
  FuncHandle extern_func(const std::string& name, const std::vector<Type>& params,
                         const Type& returns, void* address, Here at = Here::current());

  /// Functions that depend on parameters: m.space({{"tile", {32, 64}}}, [](ScriptModule& s, const Params& p) {...}) is
  /// called at build once for each combination, the last parameter fastest, and records into `s`, which the module's
  /// own functions join. All candidates have the same public functions. A candidate whose recording or compilation
  /// throws Error(usage) or Error(unsupported) is left out with a note; none left is an error. Calls take the first
  /// candidate until CompiledModule::tune has measured. One space a module.
  void space(std::vector<SpaceDim> dims, std::function<void(ScriptModule&, const Params&)> define,
             Here at = Here::current());

  const std::string& name() const;
  /// The module as IR, checked: functions called in other modules are pulled in, and a module without a
  /// public function but with one kernel gets `launch`. With a space: the first candidate that can be recorded.
  ir::Module module() const;
  /// The text form of module().
  std::string ir() const;
  /// The text form after the passes of "cpu", "cuda" or "sim".
  std::string lowered(const std::string& target) const;
  /// Compiles and loads the module.
  CompiledModule build(const BuildOptions& options = {}) const;
  /// Runs a function without compiling it: CUDA kernels thread by thread on the CPU, with checks.
  template <class... A>
  void simulate(const std::string& function, const A&... args) const {
    simulate_module(module(), function, {sim_arg(args)...});
  }

 private:
  friend struct detail::Parts;
  std::shared_ptr<detail::ModuleState> state_;
  std::shared_ptr<detail::Space> space_;
};

}  // namespace hidet::lang
