// evaluate.h - evaluation of operators in a graph whose symbols have values.
// Threading: thread-safe.
#pragma once
#include <hidet/graph/op.h>

namespace hidet::graph {

/// Gives the symbols of `shape` the sizes in `actual`, where a dimension is just a symbol. False where
/// one has another value already.
bool bind_symbols(const std::vector<DimExpr>& shape, const Shape& actual, SymbolMap& symbols);

/// As evaluate(); `symbols` gives values to symbols that the inputs' shapes do not bind.
/// `in_place`: inputs whose storage an output may take where the operator declares that.
std::vector<Tensor> evaluate_with(const Operator& op, const std::vector<Tensor>& inputs,
                                  SymbolMap symbols, const std::vector<bool>& in_place = {});

/// Runs a task of script functions (Task::opaque) on concrete CPU tensors.
std::vector<Tensor> run_script(const ir::Task& task, const std::vector<Tensor>& inputs,
                               const SymbolMap& symbols, const std::vector<bool>& in_place);

}  // namespace hidet::graph
