// tensor_values.h - the values of a TensorProto as bytes in the dtype's own layout.
// Values that are stored that way already are used in place; others are unpacked into new memory.
// Threading: as ModelFile.
#pragma once
#include <hidet/runtime/dtype.h>
#include <memory>
#include <vector>

#include "onnx/model_file.h"
#include "onnx/proto.h"

namespace hidet::graph::onnx {

/// The DType of an ONNX element type; throws Error(unsupported, where) that names what is not
/// supported ("string", "complex64"), Error(bad_file, where) for a number ONNX does not have.
/// `what` says whose type it is.
DType dtype_of_onnx(int32_t elem_type, const std::string& where, const std::string& what);
/// The inverse; throws Error(unsupported) for a dtype that ONNX has not.
int32_t onnx_type_of(DType dtype);

/// Values with what keeps them alive; aligned for the dtype.
struct TensorValues {
  DType dtype;
  std::vector<int64_t> dims;
  int64_t count = 0;
  const void* data = nullptr;
  std::shared_ptr<const void> owner;
};

/// `what` says whose values they are ("initializer 'w'"). A count or size that does not fit the
/// dims is Error(bad_file).
TensorValues load_values(const TensorProto& tensor, ModelFile& file, const std::string& what);

/// The values as integers; only for integers and booleans.
std::vector<int64_t> to_int64s(const TensorValues& values);

}  // namespace hidet::graph::onnx
