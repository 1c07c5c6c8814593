// memory.h - tensors in shared memory and registers, views, pointers, vector loads and stores.
// Threading: one thread at a time, the one that records.
#pragma once
#include <hidet/lang/types.h>

#include <string>

namespace hidet::lang {

/// Tensors of the recorded function. Extents are constants.
Handle shared(const std::string& name, DType dtype, const std::vector<Value>& shape,
              const Layout& layout = {}, Here at = Here::current());
Handle registers(const std::string& name, DType dtype, const std::vector<Value>& shape,
                 const Layout& layout = {}, Here at = Here::current());
/// In dynamic shared memory, one behind the other in the order of declaration; the function's
/// dynamic_shared_bytes is at least their sum.
Handle dynamic_shared(const std::string& name, DType dtype, const std::vector<Value>& shape,
                      const Layout& layout = {}, Here at = Here::current());
/// A tensor over memory behind a pointer.
Handle global(const std::string& name, const Located& pointer, const std::vector<Value>& shape,
              const Layout& layout = {});
/// A tensor of type `tensor_type` over memory behind a pointer to the same dtype.
Handle view(const std::string& name, const Located& pointer, const Type& tensor_type);
inline Handle view(const Located& pointer, const Type& tensor_type) {
  return view("view", pointer, tensor_type);
}

/// *p
inline ElementProxy deref(const Located& pointer) {
  return pointer.value[Located(Value(0), pointer.loc)];
}
/// &p[i], &t(i, j)
inline Value address(const ElementProxy& element) { return element.address(); }
/// The same bits as another type of the same size; pointers: as a pointer to another type.
Value reinterpret(const Located& v, const Type& to);

/// `width` values from `pointer` on, as a vector (any alignment that fits the dtype).
Value load(const Located& pointer, int width);
/// Writes a scalar or every lane of a vector from `pointer` on.
void store(const Located& pointer, const Located& value);

/// One lane of a vector; a vector of equal lanes; a vector from its lanes.
Value lane(const Located& vector, const Located& index);
Value broadcast(const Located& scalar, int lanes);
Value make_vec(const std::vector<Located>& lanes);

}  // namespace hidet::lang
