// recorder.h - records one function: scopes, what is visible, which places were stored to and when.
// Every refusal of the script language that depends on order or scope is decided here.
// Threading: one thread at a time.
#pragma once
#include <hidet/ir/stmt.h>
#include <hidet/ir/value.h>
#include <hidet/lang/space.h>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace hidet::lang::detail {

using ir::Expr;
using ir::Node;
using ir::SourceLoc;
using ir::Stmt;
using ir::Value;
using ir::VarRef;

/// A recorded function and what a caller must know about it.
struct FunctionEntry {
  ir::Function function;
  std::vector<bool> writes;  ///< by parameter: it stores through it
  bool effects = false;      ///< it prints, asserts, uses assembly or barriers, or stores
  bool is_extern = false;
  SourceLoc loc;
};

/// What a ScriptModule's copies share.
struct ModuleState {
  struct Import {
    std::shared_ptr<ModuleState> module;
    size_t index;
  };
  struct Global {
    ir::GlobalVar var;
    bool cuda = false, cpu = false;  ///< used on that side
  };
  std::string name;
  SourceLoc loc;
  std::vector<std::shared_ptr<FunctionEntry>> functions;
  std::vector<Global> globals;
  std::vector<ir::ExternFunc> externs;
  std::vector<Import> imports;  ///< functions of other modules; calls name them "@<number>"
};

/// A module's parameter space; without dims: none. It is no part of ModuleState, which the functions that `define` captures
/// keep alive.
struct Space {
  std::vector<SpaceDim> dims;
  std::function<void(ScriptModule&, const Params&)> define;
  SourceLoc loc;
};

/// What a module consists of.
struct Parts {
  static ModuleState& state(const ScriptModule& module);
  static Space& space(const ScriptModule& module);
};

/// What opened a scope.
enum class FrameKind : uint8_t {
  function,
  loop,
  parallel,
  loop_nest,
  unrolled,
  mapped,
  loop_while,
  branch
};

struct StoreMark {
  uint64_t clock;
  SourceLoc loc;
};
using Stores = std::unordered_map<const Node*, StoreMark>;

/// One arm of an if chain.
struct Arm {
  Expr cond;  ///< null: otherwise
  Stmt body;
  SourceLoc loc;
};

/// An open scope.
struct Frame {
  FrameKind kind;
  SourceLoc loc;
  uint64_t opened;
  std::vector<Stmt> body = {};
  std::vector<const Node*> declared = {};
  std::unordered_map<const Node*, SourceLoc> outer_uses =
      {};  ///< loops: places read by values older than the loop
  // The if chain at the end of `body`, which else_when and otherwise continue.
  std::vector<Arm> chain = {};
  size_t chain_at = 0;
  Stores before_chain = {}, after_chain = {};
};

class FunctionRecorder final : public ir::Recorder {
 public:
  FunctionRecorder(std::shared_ptr<ModuleState> module, std::string name, ir::FuncKind kind,
                   SourceLoc loc);
  ~FunctionRecorder() override;

  // Recorder
  void emit(Stmt stmt, const std::vector<const Value*>& uses, const Node* stored_place) override;
  uint64_t clock() const override { return clock_; }

  // Declarations
  VarRef add_param(const std::string& name, const ir::Type& type, SourceLoc loc);
  void declare(const VarRef& var, const Expr& init);
  /// Emits `let name = v` and gives the variable.
  VarRef bind(const std::string& name, const Value& v, SourceLoc loc);

  // Scopes
  /// Opens a scope in which `vars` are visible.
  void open(FrameKind kind, SourceLoc loc, const std::vector<VarRef>& vars = {});
  /// Closes the innermost scope and gives its body.
  Stmt close();
  /// Appends a statement made by a scope that was closed.
  void append(Stmt stmt) { frames_.back().body.push_back(std::move(stmt)); }
  void open_branch(bool chained, const Value& cond, bool has_cond, SourceLoc loc);
  void close_branch();

  // Checks
  void use(const Value& v, SourceLoc at);
  void check_visible(const Expr& e, SourceLoc at);
  void mark_store(const Node* place, SourceLoc at);
  void must_be_used(const Expr& call, SourceLoc at) {
    unused_.emplace(call.get(), std::pair{call, at});
  }
  void check_jump(bool is_break, SourceLoc at);
  void check_no_parallel(const char* what, SourceLoc at);

  // Result and launch bounds
  void returns(const Value* v, SourceLoc at);
  void set_extents(std::vector<Expr>& to, const char* what, const std::vector<ir::Located>& extents,
                   const int64_t (&limits)[3]);
  void add_shared(const VarRef& tensor, SourceLoc at);
  /// Keeps the first error found where nothing may be thrown.
  void keep(std::exception_ptr error) {
    if (!pending_) pending_ = std::move(error);
  }
  void keep_error(SourceLoc at, const std::string& message);
  std::exception_ptr pending() const { return pending_; }
  /// Checks the whole and gives the function.
  std::shared_ptr<FunctionEntry> finish();

  ir::Function& function() { return function_; }
  ModuleState& module() { return *module_; }
  const std::shared_ptr<ModuleState>& module_ref() const { return module_; }
  /// "i", "j" ... by depth; `more` for further variables of one nest.
  std::string loop_name(size_t more) const;
  bool is_cuda() const { return ir::is_cuda(function_.kind); }
  void note_effect() { effects_ = true; }
  bool is_param(const Node* node) const;
  void require_kernel(const char* what, SourceLoc at) const;

 private:
  struct Known {
    VarRef var;
    bool open = true;
    size_t depth = 0;            ///< number of frames where it was declared
    const Node* root = nullptr;  ///< the variable whose memory a pointer or view stands for
    bool is_local = false;       ///< a mutable variable or a register tensor
  };
  const Node* root(const Node* place) const;
  void check_node(const Node& node, SourceLoc at);
  void check_var(const ir::Var& var, SourceLoc at);
  void check_primitive(const ir::Prim& prim, SourceLoc at) const;
  void note_effects(const Stmt& stmt);
  void rebuild_chain(Frame& frame);
  void check_launch() const;

  std::shared_ptr<ModuleState> module_;
  ir::Function function_;
  std::vector<Frame> frames_;
  std::unordered_map<const Node*, Known> known_;
  Stores stores_;
  uint64_t clock_ = 1;
  std::unordered_map<const Node*, std::pair<Expr, SourceLoc>>
      unused_;  ///< calls that must reach a statement
  std::exception_ptr pending_;
  bool effects_ = false, has_result_ = false;
  int64_t static_shared_ = 0;
  Expr dynamic_shared_;                      ///< sum of the dynamic shared tensors
  std::unordered_set<const Node*> written_;  ///< roots that were stored to
};

/// The recorder of the function being recorded on this thread; Error(usage) where there is none.
FunctionRecorder& recording(SourceLoc at, const char* what);

/// What all of `list` read.
std::vector<ir::Read> reads_of(const std::vector<ir::Located>& list);

/// Throws Error(usage) where an argument of `name` is a Value() that was never given one.
void require_values(const char* name, const std::vector<ir::Located>& args);
/// `v` as a value of `type` where C would convert it; `what` is for the error. Without a value: `v`, for require_values.
ir::Located coerced(const ir::Located& v, const ir::Type& type, const char* what);
/// Throws Error(usage) where the row `name` of the table of primitives does not take these operands or give this type.
void require_signature(const char* name, const std::vector<ir::Located>& args, const ir::Type& type,
                       SourceLoc at);
/// A warp's exchange, bound where it is written.
ir::Value exchange(const char* name, const std::vector<ir::Located>& args);
/// A row with a result, bound where it is written.
ir::Value bound(const char* name, const std::vector<ir::Located>& args, const ir::Type& type,
                std::vector<int64_t> attrs, SourceLoc at);

/// A tensor's shape; Error(usage) where an extent is no integer, negative or may change.
std::vector<Expr> extents(const std::vector<Value>& shape, SourceLoc at);

/// An identifier that C takes; Error(usage) else.
void check_name(const std::string& name, const char* what, SourceLoc at);

}  // namespace hidet::lang::detail
