// compiled_module.cpp - calls of public functions: argument checks and conversions.
// Threading: thread-safe. A call allocates nothing unless it fails.
#include "hidet/runtime/compiled_module.h"

#include <chrono>
#include <cstring>
#include <limits>

#include "hidet/runtime/error.h"
#include "src/compiled/code.h"
#include "src/compiled/launch_times.h"

namespace hidet {
namespace {

constexpr size_t kMaxArgs = 64;  // more go to the heap

std::string param_type(const ParamInfo& p) {
  if (p.any_pointer) return "void*";
  return detail::concat(p.dtype.is_boolean() ? "bool" : p.dtype.c_name(), p.is_pointer ? "*" : "");
}

[[noreturn]] void refuse(const FunctionInfo& f, const ParamInfo& p, const CallArg& arg,
                         const std::string& reason) {
  throw Error(ErrorCode::usage, detail::concat("argument '", p.name, "' of ", f.signature(), ": ",
                                               arg.text(), " ", reason));
}

hidet_value float_bits(DType dtype, double value) {
  hidet_value v{};
  switch (dtype.code()) {
    case DTypeCode::f64: v.d = value; break;
    case DTypeCode::f16: v.i = f64_to_f16(value); break;
    case DTypeCode::bf16: v.i = f64_to_bf16(value); break;
    default: v.f = static_cast<float>(value);
  }
  return v;
}

bool fits(DType dtype, const CallArg& arg) {
  const int64_t i = arg.value().i;
  if (arg.kind() == CallArg::Kind::unsigned_integer || i >= 0)
    return static_cast<uint64_t>(i) <= dtype.max_int();
  return dtype.is_signed() && i >= dtype.min_int();
}

hidet_value convert_pointer(const FunctionInfo& f, const ParamInfo& p, const CallArg& arg) {
  hidet_value v{};
  if (arg.kind() == CallArg::Kind::pointer) {
    v.p = arg.value().p;
  } else if (arg.kind() == CallArg::Kind::tensor) {
    const Tensor& t = arg.tensor();
    if (!t.defined()) refuse(f, p, arg, "has no elements");
    if (!p.any_pointer && t.dtype() != p.dtype)
      refuse(f, p, arg, detail::concat("is not a tensor of ", p.dtype.name()));
    if (t.device().kind() != p.device.kind())
      refuse(f, p, arg, detail::concat("is not on ", p.device.is_cpu() ? "the CPU" : "a GPU"));
    v.p = t.data();
  } else {
    refuse(f, p, arg, "is no tensor or pointer");
  }
  return v;
}

hidet_value convert(const FunctionInfo& f, const ParamInfo& p, const CallArg& arg) {
  if (p.is_pointer) return convert_pointer(f, p, arg);
  using Kind = CallArg::Kind;
  const Kind kind = arg.kind();
  if (kind == Kind::tensor || kind == Kind::pointer)
    refuse(f, p, arg, detail::concat("is not a value of ", p.dtype.name()));
  if (p.dtype.is_boolean()) {
    if (kind != Kind::boolean) refuse(f, p, arg, "is not a bool");
    return arg.value();
  }
  if (kind == Kind::boolean)
    refuse(f, p, arg, detail::concat("is a bool, not a value of ", p.dtype.name()));
  if (p.dtype.is_integer()) {
    if (kind == Kind::floating)
      refuse(f, p, arg, detail::concat("is not an integer, as ", p.dtype.name(), " wants"));
    if (!fits(p.dtype, arg)) refuse(f, p, arg, detail::concat("does not fit in ", p.dtype.name()));
    return arg.value();
  }
  if (kind == Kind::floating) return float_bits(p.dtype, arg.value().d);
  if (kind == Kind::unsigned_integer)
    return float_bits(p.dtype, static_cast<double>(static_cast<uint64_t>(arg.value().i)));
  return float_bits(p.dtype, static_cast<double>(arg.value().i));
}

CallResult call_function(const runtime::LoadedCode& code, int index,
                         std::span<const CallArg> args) {
  const size_t i = static_cast<size_t>(index);
  if (!code.space) [[likely]]
    return runtime::call_loaded(code, i, args);
  const FunctionInfo& info = code.functions[i].info;
  return runtime::call_loaded(code.space->choose(info.name, runtime::dims_of(info, args)), i, args);
}

/// One row for the call where nothing was launched; the time of all.
void finish_profile(const runtime::LoadedCode& code, const runtime::LoadedFunction& f,
                    const runtime::LaunchTimes* times, std::chrono::steady_clock::time_point start,
                    Profile& profile) {
  if (times) {
    times->add_to(profile, code.data.candidate);
    cuda_synchronize(code.data.device.index());
  }
  profile.total_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (!profile.operators.empty()) return;
  OperatorTime whole;
  whole.name = whole.kernel = f.info.name;
  whole.candidate = code.data.candidate;
  whole.milliseconds = profile.total_ms;
  profile.operators.push_back(std::move(whole));
}

const runtime::LoadedCode& loaded(const std::shared_ptr<const runtime::LoadedCode>& code) {
  HIDET_REQUIRE(code, ErrorCode::usage, "", "this CompiledModule is empty");
  return *code;
}

std::string function_list(const runtime::LoadedCode& code) {
  std::string text;
  for (const auto& f : code.functions) text += (text.empty() ? "" : ", ") + f.info.name;
  return text.empty() ? "none" : text;
}

int main_index(const runtime::LoadedCode& code) {
  HIDET_REQUIRE(code.main_function >= 0, ErrorCode::usage, "", "module '", code.data.name,
                "' has no function called launch and not exactly one; call one by its name: ",
                function_list(code));
  return code.main_function;
}

}  // namespace

namespace runtime {
CallResult call_loaded(const LoadedCode& code, size_t index, std::span<const CallArg> args,
                       Profile* profile) {
  const LoadedFunction& f = code.functions[index];
  const size_t n = f.info.params.size();
  HIDET_REQUIRE(args.size() == n, ErrorCode::usage, "", f.info.signature(), " takes ", n,
                " arguments, got ", args.size());
  hidet_value few[kMaxArgs + 1];
  std::vector<hidet_value> many;
  hidet_value* values = few;
  if (n > kMaxArgs) {
    many.resize(n + 1);
    values = many.data();
  }
  for (size_t i = 0; i < n; ++i) values[i] = convert(f.info, f.info.params[i], args[i]);
  values[n].i = 0;
  code.check_kernels();
  const ContextPool::Use context(code.pool);
  const ScratchScope scope;
  std::unique_ptr<LaunchTimes> times;
  if (profile && !code.data.images.empty())
    times = std::make_unique<LaunchTimes>(code.data.device.index());
  context->times = times.get();
  const auto start =
      profile ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
  const int32_t status = f.thunk(context.get(), values);
  context->times = nullptr;
  if (status) [[unlikely]]
    context->fail(status, ("hidet_" + f.info.name).c_str());
  if (profile) finish_profile(code, f, times.get(), start, *profile);
  return f.info.returns ? CallResult(f.info.return_dtype, values[n]) : CallResult();
}
}  // namespace runtime

std::string FunctionInfo::signature() const {
  std::string text =
      returns ? (return_dtype.is_boolean() ? "bool" : return_dtype.c_name()) : "void";
  text += " hidet_" + name + "(";
  for (size_t i = 0; i < params.size(); ++i)
    text += (i ? ", " : "") + param_type(params[i]) + " " + params[i].name;
  return text + ")";
}

std::string CallArg::text() const {
  switch (kind_) {
    case Kind::integer: return std::to_string(value_.i);
    case Kind::unsigned_integer: return std::to_string(static_cast<uint64_t>(value_.i));
    case Kind::floating: return detail::concat(value_.d);
    case Kind::boolean: return value_.i ? "true" : "false";
    case Kind::tensor: return tensor().defined() ? tensor().describe() : "an empty Tensor";
    case Kind::pointer: return value_.p ? "a pointer" : "a null pointer";
  }
  return "";
}

int64_t CallResult::integer() const {
  HIDET_REQUIRE(has_value_ && !dtype_.is_float(), ErrorCode::usage, "", "the function returned ",
                has_value_ ? dtype_.name() : "nothing", ", not an integer");
  return value_.i;
}

double CallResult::number() const {
  HIDET_REQUIRE(has_value_, ErrorCode::usage, "", "the function returned nothing, not a number");
  switch (dtype_.code()) {
    case DTypeCode::f32:
    case DTypeCode::tf32: return value_.f;
    case DTypeCode::f64: return value_.d;
    case DTypeCode::f16: return f16_to_f32(static_cast<uint16_t>(value_.i));
    case DTypeCode::bf16: return bf16_to_f32(static_cast<uint16_t>(value_.i));
    case DTypeCode::u64: return static_cast<double>(static_cast<uint64_t>(value_.i));
    default: return static_cast<double>(value_.i);
  }
}

CompiledModule::CompiledModule(ModuleData data)
    : code_(std::make_shared<const runtime::LoadedCode>(std::move(data))) {}

CompiledFunction CompiledModule::main() const {
  return CompiledFunction(code_, main_index(loaded(code_)));
}
CallResult CompiledModule::call(std::span<const CallArg> args) const {
  const runtime::LoadedCode& code = loaded(code_);
  return call_function(code, main_index(code), args);
}

void CompiledModule::synchronize() const {
  const runtime::LoadedCode& first = loaded(code_);
  for (size_t i = 0; i < (first.space ? first.space->size() : 1); ++i) {
    const runtime::LoadedCode& code = i ? first.space->at(i) : first;
    if (!code.cuda_loaded()) continue;
    cuda_synchronize(code.data.device.index());
    code.check_kernels();
  }
}

std::vector<std::string> CompiledModule::candidates() const {
  std::vector<std::string> names;
  if (const auto& space = loaded(code_).space)
    for (size_t i = 0; i < space->size(); ++i) names.push_back(space->at(i).data.candidate);
  return names;
}
std::string CompiledModule::dispatch_table() const {
  const auto& space = loaded(code_).space;
  return space ? space->text() : "";
}
void CompiledModule::use_dispatch_table(const std::string& text) const {
  const runtime::LoadedCode& code = loaded(code_);
  HIDET_REQUIRE(code.space, ErrorCode::usage, "", "module '", code.data.name,
                "' has no parameter space, and takes no dispatch table");
  code.space->read(text);
}

CompiledFunction CompiledModule::operator[](const std::string& name) const {
  const runtime::LoadedCode& code = loaded(code_);
  for (size_t i = 0; i < code.functions.size(); ++i)
    if (code.functions[i].info.name == name) return CompiledFunction(code_, static_cast<int>(i));
  throw Error(ErrorCode::usage,
              detail::concat("module '", code.data.name, "' has no public function '", name,
                             "'; it has ", function_list(code)));
}

CallResult CompiledFunction::call(std::span<const CallArg> args) const {
  return call_function(*code_, index_, args);
}
std::string CompiledFunction::candidate_of(std::span<const CallArg> args) const {
  return code_->space
             ? code_->space->choose(info().name, runtime::dims_of(info(), args)).data.candidate
             : "";
}
const FunctionInfo& CompiledFunction::info() const { return code_->functions[index_].info; }

const std::string& CompiledModule::name() const { return loaded(code_).data.name; }
const std::string& CompiledModule::source() const { return loaded(code_).data.source; }
const std::vector<FunctionInfo>& CompiledModule::functions() const {
  return loaded(code_).data.functions;
}
const ModuleData& CompiledModule::data() const { return loaded(code_).data; }

}  // namespace hidet
