// repro.h - the smallest part of an ONNX model that still gives a wrong result, as a model with its data.
// Threading: one thread.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <hidet/hidet.h>

namespace hidet::tools {

/// Writes `folder`/model.onnx and `folder`/test_data_set_0 with inputs and the reference's outputs: the node called `node` and as
/// few of the nodes before it as it takes until `is_wrong` (a model file and its inputs) says so; the whole model in the
/// end. Returns the number of nodes written.
int write_repro(
    const std::string& model, const std::string& folder, const std::string& node,
    const std::vector<TensorSignature>& signatures, const std::vector<Tensor>& inputs,
    const std::function<bool(const std::string&, const std::vector<Tensor>&)>& is_wrong);

}  // namespace hidet::tools
