// compiled_module.h - CompiledModule: loaded code whose public functions are called from C++.
// Needs: a code object as abi.h describes. GPU code is loaded at the first call that needs it.
// Threading: thread-safe; every call uses a context of its own.
#pragma once
#include <hidet/runtime/abi.h>
#include <hidet/runtime/bytes.h>
#include <hidet/runtime/device.h>
#include <hidet/runtime/dtype.h>
#include <hidet/runtime/tensor.h>

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

struct CUstream_st;

namespace hidet {

/// One C parameter of a public function.
struct ParamInfo {
  std::string name;
  DType dtype;  ///< of the value, or of what the pointer points to
  bool is_pointer = false;
  bool any_pointer = false;  ///< void pointer: any dtype passes
  Device device = {};        ///< of a pointer: where its memory must be; the kind counts
  std::string type = {};     ///< text, "f32", "ptr(f32)"; empty: made from the others
};

/// A public function: void hidet_<name>(params...).
struct FunctionInfo {
  std::string name;
  std::vector<ParamInfo> params;
  bool returns = false;  ///< a value of return_dtype; without: void
  DType return_dtype = {};
  /// "void hidet_launch(int32_t n, float* x)".
  std::string signature() const;
};

/// GPU code of a module for one target.
struct ModuleImage {
  std::string target;  ///< "sm_90a", "ptx"
  Bytes bytes;
};

/// What a CompiledModule is made of.
struct ModuleData {
  std::string name = "module";
  Bytes code;                     ///< shared object
  std::string target = "x86-64";  ///< CPU level of the code; checked before it is loaded
  std::vector<FunctionInfo> functions;
  std::vector<ModuleImage> images = {};
  std::vector<std::string> cuda_kernels = {};  ///< names in the order of hidet_cuda_launch::index
  std::vector<void*> extern_functions = {};    ///< by number; a module that has one cannot be saved
  std::string source = {};                     ///< host C, then the CUDA text
  Device device = {};                          ///< which GPU
};

/// One argument of a call: converts from numbers, bool, Tensor and pointers.
class CallArg {
 public:
  enum class Kind : uint8_t { integer, unsigned_integer, floating, boolean, tensor, pointer };
  template <class T>
    requires std::is_arithmetic_v<T>
  CallArg(T value) {
    if constexpr (std::is_same_v<T, bool>) kind_ = Kind::boolean, value_.i = value;
    else if constexpr (std::is_floating_point_v<T>)
      kind_ = Kind::floating, value_.d = static_cast<double>(value);
    else if constexpr (std::is_unsigned_v<T>)
      kind_ = Kind::unsigned_integer, value_.i = static_cast<int64_t>(value);
    else kind_ = Kind::integer, value_.i = value;
  }
  /// The tensor must outlive the call (a temporary in the call's own expression does).
  CallArg(const Tensor& tensor) : kind_(Kind::tensor) { value_.p = const_cast<Tensor*>(&tensor); }
  template <class T>
  CallArg(T* pointer) : kind_(Kind::pointer) {
    value_.p = const_cast<void*>(static_cast<const volatile void*>(pointer));
  }
  CallArg(std::nullptr_t) : kind_(Kind::pointer) { value_.p = nullptr; }

  Kind kind() const { return kind_; }
  hidet_value value() const { return value_; }
  const Tensor& tensor() const { return *static_cast<const Tensor*>(value_.p); }
  /// "300", "1.5", "true", "f32[2, 3] cpu", "a pointer".
  std::string text() const;

 private:
  Kind kind_;
  hidet_value value_;
};

/// What a call returned: nothing, or one number.
class CallResult {
 public:
  CallResult() = default;
  CallResult(DType dtype, hidet_value value) : has_value_(true), dtype_(dtype), value_(value) {}
  bool has_value() const { return has_value_; }
  int64_t integer() const;  ///< throws Error(usage) where the function returns void or a float
  double number() const;    ///< of any dtype; throws Error(usage) where the function returns void
 private:
  bool has_value_ = false;
  DType dtype_ = {};
  hidet_value value_ = {};
};

namespace runtime {
struct LoadedCode;
}

class CompiledModule;

/// One public function of a module; keeps the module alive.
class CompiledFunction {
 public:
  template <class... A>
  CallResult operator()(const A&... args) const {
    const CallArg list[sizeof...(A) + 1] = {CallArg(args)..., CallArg(0)};
    return call(std::span<const CallArg>(list, sizeof...(A)));
  }
  CallResult call(std::span<const CallArg> args) const;
  const FunctionInfo& info() const;

 private:
  friend class CompiledModule;
  CompiledFunction(std::shared_ptr<const runtime::LoadedCode> code, int index)
      : code_(std::move(code)), index_(index) {}
  std::shared_ptr<const runtime::LoadedCode> code_;
  int index_;
};

/// Immutable loaded code; copies share it.
class CompiledModule {
 public:
  CompiledModule() = default;
  /// Loads the host code. Throws Error(device) where this CPU does not run it, Error(bad_file) where it is no such code.
  explicit CompiledModule(ModuleData data);
  bool defined() const { return code_ != nullptr; }

  /// Calls the only public function, or the one named "launch".
  template <class... A>
  CallResult operator()(const A&... args) const {
    const CallArg list[sizeof...(A) + 1] = {CallArg(args)..., CallArg(0)};
    return call(std::span<const CallArg>(list, sizeof...(A)));
  }
  CallResult call(std::span<const CallArg> args) const;
  /// The function called `name`; throws Error(usage) that lists them.
  CompiledFunction operator[](const std::string& name) const;

  const std::string& name() const;
  const std::string& source() const;
  const std::vector<FunctionInfo>& functions() const;
  const ModuleData& data() const;
  const std::shared_ptr<const runtime::LoadedCode>& code() const { return code_; }

 private:
  std::shared_ptr<const runtime::LoadedCode> code_;
};

}  // namespace hidet
