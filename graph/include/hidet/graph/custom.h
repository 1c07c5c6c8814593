// custom.h - operators of the user's own: by a compute definition (define) or by script functions (custom).
// Both trace, evaluate, build, save and load like built-in ones.
// Threading: making operators is thread-safe; one Define is for one thread.
#pragma once
#include <hidet/graph/op.h>
#include <hidet/lang/script_module.h>

#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace hidet::ops {

using graph::TensorSpec;

namespace detail {
/// Calls f with N arguments from `axes`.
template <size_t N, class F, size_t... I>
ir::Value call_with(const F& f, const std::vector<ir::Value>& axes, std::index_sequence<I...>) {
  return ir::Value(f(axes[I]...));
}
/// Whether f takes as many arguments as there are numbers.
template <class F, size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  return std::is_invocable_v<const F&, decltype((void)I, std::declval<const ir::Value&>())...>;
}
[[noreturn]] void refuse_rank(size_t rank);

/// f(i, j ...) as a function of a list; `rank` is how many it must take.
template <class F>
graph::ComputeBody body_of(F f, size_t rank) {
  return [f, rank](const std::vector<ir::Value>& axes) -> ir::Value {
  // clang-format off
#define HIDET_ARITY(n)                                   \
  if constexpr (takes<F>(std::make_index_sequence<n>())) \
    if (rank == n) return call_with<n>(f, axes, std::make_index_sequence<n>());
    HIDET_ARITY(0) HIDET_ARITY(1) HIDET_ARITY(2) HIDET_ARITY(3) HIDET_ARITY(4) HIDET_ARITY(5) HIDET_ARITY(6)
#undef HIDET_ARITY
        // clang-format on
        refuse_rank(rank);
  };
}
}  // namespace detail

/// A tensor inside a compute definition: x(i, k) is an element.
class DefineTensor {
 public:
  DefineTensor(ir::VarRef tensor, TensorSpec spec)
      : tensor_(std::move(tensor)), spec_(std::move(spec)) {}
  template <class... I>
  ir::Value operator()(const I&... indices) const {
    return graph::element(tensor_, {ir::Value(indices)...});
  }
  DType dtype() const { return spec_.dtype; }
  /// Size of one axis; a negative one counts from the end.
  DimExpr shape(int axis) const;
  int rank() const { return static_cast<int>(spec_.shape.size()); }

 private:
  ir::VarRef tensor_;
  TensorSpec spec_;
};

/// The definition of an operator while it is written.
class Define {
 public:
  DefineTensor input(int index) const;
  /// A tensor inside the operator, f32 or of the value's own dtype.
  template <class F>
  DefineTensor compute(const std::string& name, const std::vector<DimExpr>& shape, F value) {
    return add(name, nullptr, shape, detail::body_of(std::move(value), shape.size()), false);
  }
  template <class F>
  DefineTensor output(const std::string& name, DType dtype, const std::vector<DimExpr>& shape,
                      F value) {
    return add(name, &dtype, shape, detail::body_of(std::move(value), shape.size()), true);
  }

 private:
  friend std::vector<Tensor> define_all(const std::string&, const std::vector<Tensor>&,
                                        const std::function<void(Define&)>&);
  DefineTensor add(const std::string& name, const DType* dtype, const std::vector<DimExpr>& shape,
                   const graph::ComputeBody& body, bool is_output);
  ir::Task task_;
  std::vector<TensorSpec> inputs_, outputs_;
};

/// Applies an operator given by its compute definition; `define` is for one output.
std::vector<Tensor> define_all(const std::string& name, const std::vector<Tensor>& inputs,
                               const std::function<void(Define&)>& definition);
Tensor define(const std::string& name, const std::vector<Tensor>& inputs,
              const std::function<void(Define&)>& definition);

/// Reductions inside a compute definition: reduce_sum({n, m}, [&](auto i, auto j) { return x(i, j); }).
#define HIDET_DEFINE_REDUCE(name, op)                                        \
  template <class F>                                                         \
    requires(!std::is_convertible_v<F, std::vector<int64_t>>)                \
  ir::Value name(const std::vector<DimExpr>& extents, F value) {             \
    return graph::reduce(ir::ReduceOp::op, extents,                          \
                         detail::body_of(std::move(value), extents.size())); \
  }
HIDET_DEFINE_REDUCE(reduce_sum, sum)
HIDET_DEFINE_REDUCE(reduce_prod, prod)
HIDET_DEFINE_REDUCE(reduce_max, max)
HIDET_DEFINE_REDUCE(reduce_min, min)
#undef HIDET_DEFINE_REDUCE

/// What a script operator's functions are written for. Sizes may be symbols of the graph.
struct CustomTypes {
  std::vector<TensorSpec> inputs, outputs;
};

/// An operator by script functions: a public function `launch` takes a pointer for each input, then for each output.
struct CustomOp {
  using Script = std::function<void(lang::ScriptModule&, const CustomTypes&)>;
  std::string name;  ///< an identifier
  std::vector<TensorSpec> outputs;
  std::map<int, int> share_map;  ///< output -> input whose storage it takes
  Script cpu = nullptr;
  Script cuda = nullptr;
};
std::vector<Tensor> custom(const CustomOp& op, const std::vector<Tensor>& inputs);

}  // namespace hidet::ops
