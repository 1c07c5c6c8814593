// compiled_module.h - CompiledModule: loaded code whose public functions are called from C++.
// Needs: a code object as abi.h describes. GPU code is loaded at the first call that needs it.
// Threading: thread-safe; every call uses a context of its own. tune publishes its choice at once for all copies.
#pragma once
#include <hidet/runtime/abi.h>
#include <hidet/runtime/bytes.h>
#include <hidet/runtime/device.h>
#include <hidet/runtime/dtype.h>
#include <hidet/runtime/profile.h>
#include <hidet/runtime/tensor.h>
#include <hidet/runtime/tune.h>

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
  std::vector<std::string> cuda_asserts =
      {};                      ///< messages, by the number that a kernel reports less 1
  std::string candidate = {};  ///< "tile=32": what it is of a parameter space; empty: no space
  std::vector<ModuleData> candidates =
      {};  ///< the space's others: the same functions, made otherwise
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

namespace detail {
/// f(std::span<const CallArg>) with the arguments.
template <class F, class... A>
auto with_args(const F& f, const A&... args) {
  const CallArg list[sizeof...(A) + 1] = {CallArg(args)..., CallArg(0)};
  return f(std::span<const CallArg>(list, sizeof...(A)));
}
}  // namespace detail

class CompiledModule;

/// One public function of a module; keeps the module alive.
class CompiledFunction {
 public:
  template <class... A>
  CallResult operator()(const A&... args) const {
    return detail::with_args([&](auto list) { return call(list); }, args...);
  }
  CallResult call(std::span<const CallArg> args) const;

  /// Measures every candidate of the module's parameter space on copies of the arguments, and keeps the best for these
  /// dims: the integers among the arguments and the sizes of the tensors. Later calls with these dims take it, calls
  /// with others that of the nearest. Pointers cannot be copied: Error(usage). Throws where no candidate ran.
  template <class... A>
  TuneReport tune(const TuneOptions& options, const A&... args) const {
    return detail::with_args([&](auto list) { return tune_call(options, list); }, args...);
  }
  TuneReport tune_call(const TuneOptions& options, std::span<const CallArg> args) const;
  /// Times the kernels of a call on copies of the arguments: each launch on a GPU; on the CPU the call as a whole.
  template <class... A>
  Profile profile(const A&... args) const {
    return detail::with_args([&](auto list) { return profile_call(list); }, args...);
  }
  Profile profile_call(std::span<const CallArg> args) const;
  /// The candidate that a call with these arguments takes; "" without a parameter space.
  template <class... A>
  std::string candidate(const A&... args) const {
    return detail::with_args([&](auto list) { return candidate_of(list); }, args...);
  }
  std::string candidate_of(std::span<const CallArg> args) const;
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
    return detail::with_args([&](auto list) { return call(list); }, args...);
  }
  CallResult call(std::span<const CallArg> args) const;
  /// The function called `name`; throws Error(usage) that lists them.
  CompiledFunction operator[](const std::string& name) const;
  /// Waits for what calls have queued on the GPU. Throws Error(usage) with the message of an assertion that failed in a
  /// kernel; else the next call would. Nothing to do on the CPU.
  void synchronize() const;
  /// CompiledFunction::tune, profile, candidate of the function that operator() calls.
  template <class... A>
  TuneReport tune(const TuneOptions& options, const A&... args) const {
    return main().tune(options, args...);
  }
  template <class... A>
  Profile profile(const A&... args) const {
    return main().profile(args...);
  }
  template <class... A>
  std::string candidate(const A&... args) const {
    return main().candidate(args...);
  }
  /// Names of the parameter space's candidates, the default first; empty without one.
  std::vector<std::string> candidates() const;
  /// What tune kept, as text: a header, then rows of device, function, dims, candidate; tab separated.
  std::string dispatch_table() const;
  /// Takes such a text instead of what is known; rows of other devices are kept and not used. Throws Error(bad_file)
  /// that names the line.
  void use_dispatch_table(const std::string& text) const;

  const std::string& name() const;
  const std::string& source() const;
  const std::vector<FunctionInfo>& functions() const;
  const ModuleData& data() const;
  const std::shared_ptr<const runtime::LoadedCode>& code() const { return code_; }

 private:
  CompiledFunction main() const;
  std::shared_ptr<const runtime::LoadedCode> code_;
};

}  // namespace hidet
