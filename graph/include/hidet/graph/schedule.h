// schedule.h - from operators to IR: fused tasks, and schedules that make a kernel of one.
// A group has one anchor; injective operators before it fold into its loads, operators with an inverse
// map after it fold into its stores. A schedule declares what it accepts; the auto-scheduler takes the rest.
// Threading: values; schedules are pure functions; thread-safe.
#pragma once
#include <hidet/graph/op.h>
#include <hidet/ir/stmt.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hidet::graph {

/// One operator folded into the anchor's store: the value so far is element `from` of `task`'s input.
struct EpilogueStep {
  ir::Task task;  ///< one compute, injective; task.inverse_maps[from] is set
  int from = 0;
};

/// What one kernel computes. All tensors are kernel parameters but the anchor's folded ones.
struct FusedTask {
  std::string name;  ///< "conv2d_add_relu"
  ir::Task anchor;   ///< without an anchor operator: the elementwise chain as one compute
  std::vector<ir::VarRef> inputs;  ///< kernel inputs, in parameter order
  ir::VarRef output;  ///< the tensor that the kernel writes (outputs[0] of a multi-output anchor)
  std::vector<ir::VarRef>
      outputs;  ///< all tensors that the kernel writes; more than one only without epilogue
  std::vector<ir::VarRef>
      temporaries;  ///< workspace tensors: intermediates of the anchor, where its schedule wants them
  /// Per anchor input: the value that replaces reads of it (axes are that input's indices); none: a kernel input.
  std::vector<std::optional<ir::Compute>> prologues;
  std::vector<EpilogueStep> epilogue;
  /// What this candidate of the template departs from the cost rule in; the default: nothing.
  std::vector<std::pair<std::string, int64_t>> choices = {};
  /// Where given: an anchor with its epilogue that computes the anchor's input 0, which is then no kernel input. What it
  /// reads are kernel inputs.
  std::shared_ptr<const FusedTask> before;

  /// The candidate's value of the template's parameter `name`, else what the cost rule says.
  int64_t chosen(const std::string& name, int64_t by_rule) const;
  /// Anchor input `k` at `indices`, prologue folded in.
  ir::Value load(int k, const std::vector<ir::Value>& indices) const;
  /// Where and what is stored when the anchor's output at `indices` has `value`: the final indices and value.
  struct Stored {
    std::vector<ir::Value> indices;
    ir::Value value;
  };
  /// `value` is rounded to the dtype of the anchor's output. With `lets`: values that a step reads several times are declared there once.
  Stored finish(std::vector<ir::Value> indices, ir::Value value,
                std::vector<ir::Stmt>* lets = nullptr) const;
  /// The statement output(indices') = value' for the anchor's output at `indices`.
  ir::Stmt store(const std::vector<ir::Value>& indices, const ir::Value& value) const;
  /// True for the anchor's first output: the tensor whose values go through the epilogue.
  bool is_output(const ir::VarRef& tensor) const;
  /// Compute `c` of the anchor with the prologues folded into its reads.
  ir::Compute with_prologues(ir::Compute c) const;
  /// The statement that stores `value` of compute `c` at `indices`: through the epilogue where c makes the output.
  ir::Stmt store_of(const ir::Compute& c, const std::vector<ir::Value>& indices,
                    const ir::Value& value) const;
  /// Kernel parameters: inputs, outputs, temporaries (pointers behind tensor types).
  std::vector<ir::VarRef> parameters() const;
  /// The public function "launch" of a CPU schedule's module, with these parameters.
  ir::Function launch(ir::Stmt body) const;
};

/// What a schedule may know of its target.
struct CpuTargetInfo {
  std::string target = "x86-64-v3";  ///< as CpuTarget::parse
  int vector_bytes = 32;             ///< 64 at v4
  bool fewer_products = true;  ///< Winograd and Strassen, at a larger rounding error; parts of bf16
  bool has_tiles = false;      ///< feature "amx"
  int lanes(DType t) const {
    return std::max(1, vector_bytes / static_cast<int>(std::max<size_t>(t.bytes(), 1)));
  }
};

/// A number that a template's text depends on, and the values that are worth a measurement beside what the cost rule says.
struct ScheduleParameter {
  std::string name;
  std::vector<int64_t> values;
};

/// Which anchors a template takes, and what may be fused with them.
struct ScheduleRules {
  std::string name;
  std::function<bool(const ir::Task& anchor)> accepts;
  bool prologue_first_input = false;  ///< accepts a prologue on anchor input 0
  bool epilogue = false;              ///< accepts epilogue steps
  bool moves = false;  ///< also those that compute indices, such as a reshape and a transpose
};
/// A way to make a kernel for some anchors. The function is called "launch", kind public, its parameters
/// are fused.parameters(); DimSymbols may be used freely.
struct CpuSchedule : ScheduleRules {
  std::function<ir::Module(const FusedTask&, const CpuTargetInfo&)> make;
  std::vector<ScheduleParameter> space = {};  ///< read with FusedTask::chosen
  /// Where given: true where the kernel of `anchor` may compute its input 0 by `before` itself (FusedTask::before).
  std::function<bool(const ir::Task& anchor, const FusedTask& before)> takes_before = {};
  bool intermediates = true;  ///< the anchor's have memory (FusedTask::temporaries)
};
struct CudaSchedule : ScheduleRules {
  std::function<ir::Module(const FusedTask&)> make;
  std::vector<ScheduleParameter> space = {};
};
/// A file schedules/cpu_<x>.cpp defines `CpuSchedule cpu_<x>_schedule()`, cuda_<x>.cpp `CudaSchedule
/// cuda_<x>_schedule()`; CMake lists all of them here.
const std::vector<CpuSchedule>& cpu_schedules();
const std::vector<CudaSchedule>& cuda_schedules();
/// The first schedule that accepts, or null (auto-scheduler).
const CpuSchedule* find_cpu_schedule(const ir::Task& anchor);
const CudaSchedule* find_cuda_schedule(const ir::Task& anchor);

/// A correct, vectorised, parallel kernel for any compute definition.
ir::Module auto_schedule_cpu(const FusedTask& fused, const CpuTargetInfo& target);
ir::Module auto_schedule_cuda(const FusedTask& fused);

/// The value of compute `c` at `indices`.
ir::Value value_at(const ir::Compute& c, const std::vector<ir::Value>& indices);
/// `e` with every read of `tensor` replaced by `read(indices)`.
ir::Expr replace_reads(const ir::Expr& e, const ir::VarRef& tensor,
                       const std::function<ir::Expr(const std::vector<ir::Expr>&)>& read);

}  // namespace hidet::graph
