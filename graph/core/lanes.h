// lanes.h - the value of a Compute as a flat program that works on many output elements at once: each
// instruction fills one register, an array with one double (floats) or int64_t (integers, booleans) a lane.
// Both sides of a select are computed; a lane that reads outside a tensor is marked, marks spread through
// the operators, and only a marked lane that reaches the result is an error.
// Needs: constant shapes (symbols have values).  Threading: a LaneProgram is immutable, a LaneMachine is
// for one thread.
#pragma once
#include <hidet/ir/task.h>
#include <hidet/runtime/tensor.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace hidet::graph {

/// A tensor that programs read.
struct LaneTensor {
  std::string name;
  DType dtype;
  Shape shape;
  const void* data = nullptr;
};
using LaneTensors = std::unordered_map<const ir::Node*, LaneTensor>;

struct MathFunction;
struct LaneReduction;

struct LaneStep {
  enum class Kind : uint8_t { constant, axis, unary, binary, select, cast, prim, load, reduce };
  Kind kind;
  DType dtype;            ///< of the result
  DType from;             ///< of operand a
  int op = 0;             ///< UnaryOp or BinaryOp; axis: its number
  std::vector<int> args;  ///< registers
  double number = 0;      ///< constant
  int64_t integer = 0;    ///< constant
  const MathFunction* math = nullptr;
  const LaneTensor* tensor = nullptr;
  std::shared_ptr<const LaneReduction> reduction;
};

struct LaneProgram {
  std::string where;            ///< the operator, for messages
  std::vector<LaneStep> steps;  ///< operands first; the last one is the result
  int axes = 0;
  int lanes = 0;  ///< how many at most at once
};

/// A Reduce or ArgReduce: its value as a program over the outer axes and then its own.
struct LaneReduction {
  LaneProgram body;
  int outer_axes = 0;
  Shape extents;
  ir::ReduceOp op = ir::ReduceOp::sum;
  bool is_arg = false, is_max = false, last = false;
  DType dtype;  ///< of the value
};

/// The program of `value` as a function of `axes`. `tensors` must outlive it.
LaneProgram compile_lanes(const std::string& where, const ir::Expr& value,
                          const std::vector<ir::VarRef>& axes, const LaneTensors& tensors,
                          const SymbolMap& symbols);

/// A primitive by name, for floats and doubles; null where it is no mathematical function.
struct MathFunction {
  const char* name;
  float (*f)(float);
  double (*d)(double);
};
const MathFunction* find_math(const std::string& name);

/// The registers of a program.
class LaneMachine {
 public:
  explicit LaneMachine(const LaneProgram& program);
  /// Runs lanes with these axis values (one array an axis). The result stays until the next run.
  void run(int lanes, const std::vector<const int64_t*>& axes);
  const double* numbers() const { return static_cast<const double*>(registers_.back()); }
  const int64_t* integers() const { return static_cast<const int64_t*>(registers_.back()); }
  /// Per lane whether the result used a read outside a tensor; empty: none did.
  const std::vector<uint8_t>& marks() const { return marks_.back(); }
  const std::string& fault() const { return fault_; }

 private:
  struct Reducer;
  void step(size_t index, int lanes);
  void spread_marks(size_t index, int lanes);
  void prim(size_t index, int lanes);
  void load(size_t index, int lanes);
  void reduce(size_t index, int lanes);
  int64_t* ints(int reg) { return static_cast<int64_t*>(registers_[reg]); }
  double* nums(int reg) { return static_cast<double*>(registers_[reg]); }

  const LaneProgram& program_;
  std::unique_ptr<char[]> memory_;
  std::vector<void*> registers_;
  std::vector<std::vector<uint8_t>> marks_;
  bool marked_ = false;
  std::string fault_;
  const std::vector<const int64_t*>* axes_ = nullptr;
  std::vector<int64_t> linear_;
  std::vector<uint8_t> outside_;
  std::vector<std::shared_ptr<Reducer>> reducers_;  ///< one a step that reduces
};

}  // namespace hidet::graph
