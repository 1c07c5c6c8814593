// task.h - a task: what an operator computes, independent of how.
// Threading: immutable once built; thread-safe.
#pragma once
#include <hidet/ir/stmt.h>

#include <optional>

namespace hidet::ir {

/// tensor[axes] = value, for every index of the tensor's shape. `value` reads other tensors of the
/// task through Element (never guarded) and may hold one Reduce or ArgReduce at its root or below.
/// Reads under the not-taken side of a Select may lie outside the tensor.
struct Compute {
  VarRef tensor;             ///< tensor type; shape of integers and dim symbols
  std::vector<VarRef> axes;  ///< i64, one a dimension
  Expr value;                ///< of the tensor's dtype
};

/// For an input that is read exactly once per output element: given the input's indices, the output's
/// indices, so that a schedule which produces the input can store straight to the output.
struct InverseMap {
  std::vector<VarRef> axes;   ///< i64, one a dimension of the input
  std::vector<Expr> indices;  ///< one a dimension of output 0
};

/// An operator's compute definition. Shapes are integers and DimSymbols only.
struct Task {
  std::string name;                      ///< operator name, an identifier
  std::vector<VarRef> inputs;            ///< tensor type, global scope, row major
  std::vector<Compute> computes;         ///< in order; intermediates and outputs
  std::vector<VarRef> outputs;           ///< each is the tensor of one compute
  std::map<std::string, int64_t> attrs;  ///< what templates specialise on ("stride_h" ...)
  std::vector<std::optional<InverseMap>> inverse_maps;  ///< one an input, or empty
  std::map<int, int> share_map;                         ///< output -> input whose storage it takes
  std::shared_ptr<const Module> opaque;  ///< script functions instead of computes ("launch")
  const Compute* compute_of(const VarRef& tensor) const;  ///< null for an input
};

/// Shape and dtype of a tensor variable.
const std::vector<Expr>& shape_of(const VarRef& tensor);
DType dtype_of(const VarRef& tensor);
/// A global, row-major tensor variable.
VarRef tensor_var(std::string name, DType dtype, std::vector<Expr> shape);

}  // namespace hidet::ir
