// prelude.h - helper types and functions of the emitted C, added on demand and in dependency order.
// Needs: nothing.  Threading: one thread at a time per Prelude.
#pragma once
#include <hidet/ir/expr.h>

#include <string>
#include <unordered_set>

namespace hidet::codegen {

/// Collects the helpers that a text uses. Each method returns the helper's name and adds its text once.
class Prelude {
 public:
  std::string type(const ir::Type& t);  ///< C name of a scalar or vector type
  std::string unaligned(
      const ir::Type& vector);          ///< the vector type for loads and stores at any address
  std::string mask(const ir::Type& t);  ///< boolean vector with t's lanes
  std::string int_binary(ir::BinaryOp op,
                         DType t);  ///< division, shifts ... with the meaning of the IR
  std::string min_max(ir::BinaryOp op, const ir::Type& t);
  std::string select(const ir::Type& vector);
  std::string convert(const ir::Type& from, const ir::Type& to);  ///< saturating, NaN to 0, halves
  std::string math(const std::string& name,
                   const ir::Type& t);  ///< a primitive whose C text is "@"
  std::string float_binary(ir::BinaryOp op, const ir::Type& t);  ///< pow, fmod, floordiv, floormod
  std::string atomic(const std::string& name, DType t);          ///< atomic_add ... of t
  /// masked_load or masked_store of a vector type.
  std::string masked(const std::string& name, const ir::Type& vector);
  std::string store_cs(const ir::Type& value);  ///< store_cs of a type
  std::string store_fence();  ///< what makes the stores of store_cs seen by other threads
  std::string lanewise(ir::BinaryOp op, const ir::Type& t);  ///< integer helper lane by lane
  const std::string& text() const { return text_; }

 private:
  /// The vector algorithm for `name` at `lanes` lanes; its name.
  std::string algorithm(const std::string& name, int lanes);
  bool once(const std::string& name) { return have_.insert(name).second; }
  void add(const std::string& definition) { text_ += definition; }
  void widen_half(const std::string& name, const ir::Type& from,
                  const ir::Type& to);  ///< vectors of f16 to f32
  std::string per_lane(const std::string& name, const ir::Type& result, const ir::Type& arg,
                       int arity, const std::string& scalar);
  std::unordered_set<std::string> have_;
  std::string text_;
};

/// The body of the f32 vector algorithm for `name` over vector types $V (float) and $I (int32) of $L
/// lanes, or null where lanes go through the C library. (c_math.cpp)
const char* vector_math(const std::string& name);

/// `text` with every `from` replaced by `to`.
std::string replace_all(std::string text, const std::string& from, const std::string& to);

}  // namespace hidet::codegen
