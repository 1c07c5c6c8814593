// stmt.h - statements, functions, modules.
// Threading: immutable; thread-safe.
#pragma once
#include <hidet/ir/expr.h>
#include <hidet/ir/mapping.h>

#include <map>

namespace hidet::ir {

struct StmtNode : Node {
 protected:
  explicit StmtNode(Kind k) : Node(k) {}
};

/// Statements in order. A declaration is visible in the rest of its Seq.
struct Seq final : NodeOf<Kind::Seq, StmtNode> {
  std::vector<Stmt> body;
  explicit Seq(std::vector<Stmt> b) : body(std::move(b)) {}
  static constexpr auto fields() { return std::tuple{&Seq::body}; }
};

/// Declares a scalar, vector or pointer variable; `init` may be null (value undefined until assigned).
struct DeclVar final : NodeOf<Kind::DeclVar, StmtNode> {
  VarRef var;
  Expr init;
  DeclVar(VarRef v, Expr i) : var(std::move(v)), init(std::move(i)) {}
  static constexpr auto fields() { return std::tuple{&DeclVar::var, &DeclVar::init}; }
};

/// Declares a tensor in shared memory or registers, or a view of `data` (a pointer) where that is not null.
struct DeclTensor final : NodeOf<Kind::DeclTensor, StmtNode> {
  VarRef var;
  Expr data;
  DeclTensor(VarRef v, Expr d) : var(std::move(v)), data(std::move(d)) {}
  static constexpr auto fields() { return std::tuple{&DeclTensor::var, &DeclTensor::data}; }
};

struct Assign final : NodeOf<Kind::Assign, StmtNode> {
  Expr var;  ///< a mutable Var
  Expr value;
  Assign(Expr v, Expr e) : var(std::move(v)), value(std::move(e)) {}
  static constexpr auto fields() { return std::tuple{&Assign::var, &Assign::value}; }
};

/// base[index] = value; a vector value writes consecutive scalars.
struct Store final : NodeOf<Kind::Store, StmtNode> {
  Expr base, index, value;
  Store(Expr p, Expr i, Expr v) : base(std::move(p)), index(std::move(i)), value(std::move(v)) {}
  static constexpr auto fields() { return std::tuple{&Store::base, &Store::index, &Store::value}; }
};

/// tensor[indices] = value; guarded: dropped where an index is outside the shape.
struct ElementStore final : NodeOf<Kind::ElementStore, StmtNode> {
  Expr tensor;
  std::vector<Expr> indices;
  Expr value;
  bool guarded;
  ElementStore(Expr t, std::vector<Expr> i, Expr v, bool g)
      : tensor(std::move(t)), indices(std::move(i)), value(std::move(v)), guarded(g) {}
  static constexpr auto fields() {
    return std::tuple{&ElementStore::tensor, &ElementStore::indices, &ElementStore::value,
                      &ElementStore::guarded};
  }
};

/// parallel: iterations are independent and share the CPU's pool (`grain` = least iterations a chunk).
/// unroll: replaced by copies (constant extent). vectorize: replaced by vector code (constant extent).
enum class LoopKind : uint8_t { serial, parallel, unroll, vectorize };
const char* name(LoopKind kind);

/// for (var = begin; var < end; var += step). The variable has the dtype of `end`.
struct For final : NodeOf<Kind::For, StmtNode> {
  VarRef var;
  Expr begin, end, step;
  LoopKind how;
  int64_t grain;
  Stmt body;
  For(VarRef v, Expr b, Expr e, Expr s, LoopKind h, int64_t g, Stmt d)
      : var(std::move(v)),
        begin(std::move(b)),
        end(std::move(e)),
        step(std::move(s)),
        how(h),
        grain(g),
        body(std::move(d)) {}
  static constexpr auto fields() {
    return std::tuple{&For::var, &For::begin, &For::end, &For::step,
                      &For::how, &For::grain, &For::body};
  }
};

/// for (vars in mapping.on(worker)).
struct MappingFor final : NodeOf<Kind::MappingFor, StmtNode> {
  std::vector<VarRef> vars;
  TaskMapping mapping;
  Expr worker;
  Stmt body;
  MappingFor(std::vector<VarRef> v, TaskMapping m, Expr w, Stmt b)
      : vars(std::move(v)), mapping(std::move(m)), worker(std::move(w)), body(std::move(b)) {}
  static constexpr auto fields() {
    return std::tuple{&MappingFor::vars, &MappingFor::mapping, &MappingFor::worker,
                      &MappingFor::body};
  }
};

struct While final : NodeOf<Kind::While, StmtNode> {
  Expr cond;
  Stmt body;
  While(Expr c, Stmt b) : cond(std::move(c)), body(std::move(b)) {}
  static constexpr auto fields() { return std::tuple{&While::cond, &While::body}; }
};

struct Break final : NodeOf<Kind::Break, StmtNode> {
  Break() = default;
  static constexpr auto fields() { return std::tuple{}; }
};

struct Continue final : NodeOf<Kind::Continue, StmtNode> {
  Continue() = default;
  static constexpr auto fields() { return std::tuple{}; }
};

struct If final : NodeOf<Kind::If, StmtNode> {
  Expr cond;
  Stmt then, otherwise;  ///< otherwise may be null
  If(Expr c, Stmt t, Stmt e) : cond(std::move(c)), then(std::move(t)), otherwise(std::move(e)) {}
  static constexpr auto fields() { return std::tuple{&If::cond, &If::then, &If::otherwise}; }
};

struct Return final : NodeOf<Kind::Return, StmtNode> {
  Expr value;  ///< null in a function that returns nothing
  explicit Return(Expr v) : value(std::move(v)) {}
  static constexpr auto fields() { return std::tuple{&Return::value}; }
};

/// Evaluates an expression for its effect (a call).
struct Evaluate final : NodeOf<Kind::Evaluate, StmtNode> {
  Expr value;
  explicit Evaluate(Expr v) : value(std::move(v)) {}
  static constexpr auto fields() { return std::tuple{&Evaluate::value}; }
};

/// Raises Error(usage, message) to the caller where cond is false.
struct Assert final : NodeOf<Kind::Assert, StmtNode> {
  Expr cond;
  std::string message;
  Assert(Expr c, std::string m) : cond(std::move(c)), message(std::move(m)) {}
  static constexpr auto fields() { return std::tuple{&Assert::cond, &Assert::message}; }
};

/// Launches a cuda_kernel (made from a call of it by lower-launches). Three extents each; cluster may be empty.
struct Launch final : NodeOf<Kind::Launch, StmtNode> {
  std::string callee;
  std::vector<Expr> grid, block, cluster;
  Expr shared_bytes;  ///< dynamic shared memory; null: none
  std::vector<Expr> args;
  Launch(std::string f, std::vector<Expr> g, std::vector<Expr> b, std::vector<Expr> c, Expr s,
         std::vector<Expr> a)
      : callee(std::move(f)),
        grid(std::move(g)),
        block(std::move(b)),
        cluster(std::move(c)),
        shared_bytes(std::move(s)),
        args(std::move(a)) {}
  static constexpr auto fields() {
    return std::tuple{&Launch::callee,  &Launch::grid,         &Launch::block,
                      &Launch::cluster, &Launch::shared_bytes, &Launch::args};
  }
};

struct Comment final : NodeOf<Kind::Comment, StmtNode> {
  std::string text;
  explicit Comment(std::string t) : text(std::move(t)) {}
  static constexpr auto fields() { return std::tuple{&Comment::text}; }
};

/// Inline assembly; constraints as GNU C's. Outputs are mutable variables.
struct Asm final : NodeOf<Kind::Asm, StmtNode> {
  std::string text;
  std::vector<std::string> output_constraints, input_constraints, clobbers;
  std::vector<Expr> outputs, inputs;
  bool is_volatile;
  Asm(std::string t, std::vector<std::string> oc, std::vector<Expr> o, std::vector<std::string> ic,
      std::vector<Expr> i, std::vector<std::string> c, bool v)
      : text(std::move(t)),
        output_constraints(std::move(oc)),
        input_constraints(std::move(ic)),
        clobbers(std::move(c)),
        outputs(std::move(o)),
        inputs(std::move(i)),
        is_volatile(v) {}
  static constexpr auto fields() {
    return std::tuple{&Asm::text,
                      &Asm::output_constraints,
                      &Asm::input_constraints,
                      &Asm::clobbers,
                      &Asm::outputs,
                      &Asm::inputs,
                      &Asm::is_volatile};
  }
};

/// Makes a statement node with its place. `make_stmt<Store>(loc, base, index, value)`.
template <class T, class... Args>
Ref<T> make_stmt(SourceLoc loc, Args&&... args) {
  T* node = new T(std::forward<Args>(args)...);
  node->loc = loc;
  return Ref<T>(node);
}
/// A Seq, flattened; one statement stays itself.
Stmt make_seq(std::vector<Stmt> body);

}  // namespace hidet::ir

#include <hidet/ir/module.h>
