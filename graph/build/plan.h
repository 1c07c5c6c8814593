// plan.h - the plan of one program: values, kernels, steps and where every value's memory is.
// Needs: groups.  Threading: pure.  Private to graph/.
#pragma once
#include <hidet/graph/build.h>
#include <hidet/runtime/model_data.h>

#include "build/groups.h"

#include <map>
#include <unordered_map>

namespace hidet::graph {

/// Where a value's memory is.
struct Place {
  enum class Kind { input, weight, output, workspace, source, none } kind = Kind::none;
  int index = 0;  ///< of the input, stored weight, output, workspace slot, or source weight
};

struct PlanValue {
  Tensor tensor;
  Place place;
  int alias = -1;  ///< >= 0: shares the memory of that value
};

struct PlanStep {
  int kernel = 0;  ///< index into Plan::kernels
  std::vector<int> inputs, outputs;
  int workspace_slot = -1;  ///< of the kernel's temporaries
  std::string name;
};

/// One distinct kernel.
struct PlanKernel {
  std::string function;   ///< name in the text
  std::string text;       ///< C unit
  std::string cuda_text;  ///< device code; empty for a CPU kernel
  std::vector<std::string> cuda_kernels;
  std::vector<std::string> symbols;  ///< i64 parameters
  DimExpr workspace = 0;
  KernelData data;
  ir::Module module;    ///< lowered (host part)
  ir::Module recorded;  ///< as scheduled: what the simulator runs
  std::string made_by;  ///< the schedule, for people
  const std::vector<ScheduleParameter>* parameters = nullptr;  ///< of its template
  std::vector<PlanKernel> others = {};  ///< candidates 1, 2, ...; they take the same arguments
};

/// A program: steps in order, slots of workspace.
struct Plan {
  std::vector<PlanValue> values;
  std::unordered_map<ValueId, int> ids;
  std::vector<PlanStep> steps;
  std::vector<DimExpr> slots;  ///< bytes of each workspace slot, multiples of 64
  DimExpr workspace() const;
  int root(int value) const;
};

/// The kernels of a build: groups of one form share one, so that equal layers are compiled once.
class KernelStore {
 public:
  /// Kernels for a CPU target, or for CUDA (with host code for that CPU target).
  explicit KernelStore(CpuTargetInfo target, bool cuda = false)
      : target_(std::move(target)), cuda_(cuda) {}
  bool cuda() const { return cuda_; }
  /// Which candidates the kernels added from now on get: those of the space (0: the default alone) that `wanted` takes.
  using Wanted = std::function<bool(const std::string& function, const std::string& candidate)>;
  void set_space(int space, Wanted wanted = {}) {
    space_ = space;
    wanted_ = std::move(wanted);
  }
  /// The kernel of a group; returns its index. finish() makes it.
  int add(const Group& group);
  /// Schedules and lowers what was added, several kernels at a time on the process's threads.
  void finish();
  const std::vector<PlanKernel>& kernels() const { return kernels_; }
  std::vector<PlanKernel>& kernels() { return kernels_; }

 private:
  struct Pending {
    Group group;
    std::string name;
    int index, space;
  };
  PlanKernel make(const Pending& pending) const;
  /// The kernel as its template makes it with the group's choices; lower() adds the lowered module and the texts.
  PlanKernel scheduled(const Group& group) const;
  void lower(PlanKernel& kernel, const Group& group, const std::string& name) const;
  void add_candidates(PlanKernel& kernel, const Pending& pending) const;
  CpuTargetInfo target_;
  bool cuda_;
  int space_ = 0;
  Wanted wanted_;
  std::vector<PlanKernel> kernels_;
  std::vector<Pending> pending_;
  std::vector<ir::Stmt> forms_;                      ///< one a kernel
  std::map<std::string, std::vector<int>> by_form_;  ///< hash of the form's text -> kernels
};

/// What a plan starts from and must leave.
struct PlanRequest {
  std::vector<const FlowGraph::Node*> nodes;
  std::vector<std::pair<Tensor, Place>> given;  ///< inputs and weights
  std::vector<std::pair<Tensor, Place>>
      results;                    ///< outputs (or stored weights of an init program)
  std::map<int, int> share = {};  ///< filled: result -> input in whose memory it is
};
Plan make_plan(PlanRequest& request, KernelStore& kernels);

/// Whether a build makes this candidate of the kernel whose default is called `function`; empty: all of the space.
using CandidateFilter = std::function<bool(const std::string& target, const std::string& function,
                                           const std::string& candidate)>;
/// build_model_data with the default and these candidates.
ModelData build_filtered(const std::vector<FlowGraph>& graphs, const BuildModelOptions& options,
                         BuildReport* report, const CandidateFilter& filter);

/// What a candidate departs from the cost rule in.
using Choices = std::vector<std::pair<std::string, int64_t>>;
/// The candidates of a space, the default (no choices) first: in space 1 one parameter departs, in space 2 one or two.
std::vector<Choices> candidates_of(const std::vector<ScheduleParameter>& parameters, int space);

/// 64 bits of a text, in hexadecimal digits.
std::string hash_text(const std::string& text);

/// C text of a formula, symbols as variables of their emitted names.
std::string c_formula(const DimExpr& dim, const std::map<std::string, std::string>& names);

}  // namespace hidet::graph
