// program.h - what the simulator executes: a function and its callees as register instructions. Every variable,
// temporary and constant has a fixed row in a warp's register file, with a cell for each of its 32 lanes (there is no
// recursion), so that lanes can stop at any instruction and go on later.
#pragma once
#include <hidet/ir/stmt.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace hidet::backends::sim {

/// A register: integers wrapped to their dtype; f16, bf16, tf32 and f32 as f; pointers packed (Pointer).
union Cell {
  int64_t i;
  double d;
  float f;
};

/// A pointer: object number and byte offset, so that no access can leave its object unseen.
namespace pointer {
inline constexpr int64_t kBias = int64_t{1} << 43, kMask = (int64_t{1} << 44) - 1;
inline int64_t make(int64_t object, int64_t offset) { return (object << 44) + kBias + offset; }
inline int64_t object(int64_t p) { return static_cast<int64_t>(static_cast<uint64_t>(p) >> 44); }
inline int64_t offset(int64_t p) { return (p & kMask) - kBias; }
}  // namespace pointer

enum class Op : uint8_t {
  move,
  binary,
  unary,
  cast,
  bits,
  math,
  abs,
  select,  ///< up to here: Inst::fn, for all lanes at once
  jump,
  jump_if,
  jump_unless,
  loop,  ///< loop: back edge, counted
  next,  ///< c: table of a For
  lane,
  pointer_add,
  check_index,
  offset,
  load,
  store,
  declare,
  call,
  ret,
  exit,
  builtin,
  barrier,        ///< sub 1, 2, 3: tells whether a holds on all, on any, on how many threads
  named_barrier,  ///< a: number, b: threads; sub 1: arrives only
  sync_warp,
  exchange,
  vote,
  load_matrix,  ///< sub: transposed; lanes: matrices
  store_matrix,
  move_matrix,
  reduce_warp,  ///< sub: ir::Combine
  mma,          ///< sub: number of its shape in ir::mma_shapes()
  fence,
  atomic,
  copy,
  commit,
  wait,
  print,
  scratch,
  check,
  aligned,  ///< a: pointer, c: what its address is a multiple of, as was promised (sub 0) or an atomic needs
  sane,  ///< b: right operand of the division (sub 0) or shift (sub 1) that follows
  launch,
  call_extern,  ///< c: number of its ExternCall
  hopper,       ///< sub: Hopper; c: number of its HopperCall
  amx,  ///< sub: Amx; dst: tile register; a, b: pointer and distance of rows, or the numbers of two registers
};

/// Operations of x86's tile registers.
enum class Amx : uint8_t { config, release, zero, load, store, dot_bf16 };

constexpr int kWarp = 32;
/// How far a fence reaches: Inst::sub of fences.
constexpr uint8_t kDevice = 0, kCluster = 1, kBlock = 2, kScopes = 3;

/// The lanes that an instruction is for. full: the cells of the others hold nothing, so that all may be computed.
struct Lanes {
  uint32_t mask = 0;
  bool full = false;
};
struct Inst;
/// Computes rows of registers from rows: dst, then the operands a, b, c.
using LaneFn = void (*)(const Inst&, Cell*, const Cell*, const Cell*, const Cell*, Lanes);

/// One instruction. What a, b, c, d mean depends on the operation; cells unless said otherwise.
struct Inst {
  Op op;
  uint8_t sub = 0;  ///< operator, primitive or flag
  DTypeCode type = DTypeCode::i32, from = DTypeCode::i32;
  uint16_t lanes = 1;
  int32_t dst = 0, a = 0, b = 0, c = 0;
  LaneFn fn = nullptr;
};
/// The function of a move ... select.
LaneFn lane_function(const Inst& in);

/// An access to a tensor's element.
struct Access {
  const ir::Var* tensor = nullptr;  ///< null: through a pointer
  std::vector<int32_t> index, extent;
};
/// An object of a program: a shared, dynamic shared or register tensor.
struct Local {
  std::string name;
  DType dtype;
  ir::Scope scope;
  int64_t offset, bytes;  ///< in the block's or the thread's memory
};
/// The end of a loop: var = var + step, and on with body while var < end.
struct ForTable {
  int32_t var, body;
  Inst step, test;
};
struct LaunchTable {
  const ir::Launch* stmt;
  std::vector<int32_t> grid, block, cluster, args;
  int32_t shared_bytes;
};

/// A call of an operation of sm_90.
struct HopperCall {
  const char* name;
  std::vector<int32_t> args;  ///< cells
  std::vector<int64_t> attrs;
};

/// A call of a function of the host program.
struct ExternCall {
  const ir::ExternFunc* function;  ///< of the machine's module
  std::vector<int32_t> args;       ///< cells
};

struct Program {
  std::string name;
  bool on_gpu = false;
  bool fences = false;    ///< has a fence, so that atomics may order
  bool partial = false;   ///< has what orders some threads of a block and not others, besides warps
  bool in_order = false;  ///< blocks may exchange values or print: they run one after the other
  bool hopper = false;    ///< has operations of sm_90
  int64_t registers =
      0;  ///< of a thread at the start, where the assembler knows: by the size of blocks and min_blocks
  std::vector<Inst> code;
  std::vector<ir::SourceLoc> locs;  ///< one an instruction
  std::vector<Cell> cells;          ///< the rows of registers at the start: constants set
  std::vector<int32_t> params;
  std::vector<Access> accesses;
  std::vector<Local> locals;
  std::vector<ForTable> fors;
  std::vector<LaunchTable> launches;
  std::vector<HopperCall> hopper_calls;
  std::vector<ExternCall> extern_calls;
  std::vector<std::string> texts;                                 ///< messages and formats
  std::vector<std::vector<std::pair<int32_t, ir::Type>>> prints;  ///< arguments of printf
  int64_t shared_bytes = 0, dynamic_bytes = 0, register_bytes = 0;
};

/// What a compiler needs from outside.
struct Environment {
  const ir::Module& module;
  const std::unordered_map<const ir::Node*, int64_t>& globals;  ///< pointers to module variables
  const std::map<std::string, int64_t>& symbols;
  bool arithmetic;      ///< with Op::sane
  int64_t first_local;  ///< number of the first object of a program
};
Program compile(const ir::Function& f, const Environment& env);

using MathFn = double (*)(double);
using MathFnF = float (*)(float);
struct MathRow {
  const char* name;
  MathFnF f;
  MathFn d;
};
extern const MathRow kMath[];
extern const int kMathRows;

}  // namespace hidet::backends::sim
