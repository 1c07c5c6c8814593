// harness.h - compiles a module's host code with a small ABI table of its own, so that the emitters are tested without
// the runtime's module loader.
#pragma once
#include <dlfcn.h>
#include <hidet/backends/cpu.h>
#include <hidet/codegen/codegen.h>
#include <hidet/ir/passes.h>
#include <hidet/runtime/abi.h>
#include <hidet/runtime/error.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

struct hidet_ctx {
  std::string message;
  int code = 0;
  std::vector<char> scratch[4];
};

namespace hidet::testing {

/// Host code of a module, loaded; calls go through the thunks.
class Loaded {
 public:
  explicit Loaded(const ir::Module& module, const std::string& target = "native") {
    text = codegen::emit_c(ir::run_passes(module, ir::lowering(ir::Target::cpu)));
    const backends::Unit unit{module.name, text};
    const std::vector<uint8_t> code =
        backends::build_shared_object(std::span(&unit, 1), {.target = target});
    fd_ = memfd_create("test", MFD_CLOEXEC);
    if (write(fd_, code.data(), code.size()) != static_cast<ssize_t>(code.size())) std::abort();
    handle_ = dlopen(("/proc/self/fd/" + std::to_string(fd_)).c_str(), RTLD_NOW | RTLD_LOCAL);
    HIDET_CHECK(handle_, dlerror());
    table_.size = sizeof table_;
    table_.raise = [](hidet_ctx* c, int32_t code, const char* m) {
      c->message = m, c->code = code;
      return code;
    };
    table_.parallel_for = [](hidet_ctx* c, int64_t n, int64_t, hidet_parallel_body body,
                             void* closure) -> int32_t {
      // Two chunks, so that a body that assumes to start at 0 is found.
      if (n <= 0) return 0;
      const int32_t status = body(c, closure, 0, n / 2);
      return status ? status : body(c, closure, n / 2, n);
    };
    table_.threads = [] { return int64_t{2}; };
    table_.scratch = [](hidet_ctx* c, int32_t slot, int64_t bytes) -> void* {
      c->scratch[slot].resize(static_cast<size_t>(bytes) + 64);
      return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(c->scratch[slot].data()) + 63) /
                                     64 * 64);
    };
    reinterpret_cast<void (*)(const hidet_abi*)>(dlsym(handle_, "hidet_module_init"))(&table_);
  }
  ~Loaded() {
    dlclose(handle_);
    close(fd_);
  }
  Loaded(const Loaded&) = delete;

  int call(const std::string& name, std::vector<hidet_value> args) {
    auto* f = reinterpret_cast<int32_t (*)(hidet_ctx*, hidet_value*)>(
        dlsym(handle_, ("hidet_call_" + name).c_str()));
    HIDET_CHECK(f, "no function ", name);
    args.push_back({});
    const int status = f(&context, args.data());
    result = args.back();
    return status;
  }

  std::string text;
  hidet_ctx context;
  hidet_value result{};

 private:
  int fd_;
  void* handle_;
  hidet_abi table_{};
};

inline hidet_value value(int64_t i) {
  hidet_value v;
  v.i = i;
  return v;
}
inline hidet_value value(const void* p) {
  hidet_value v;
  v.p = const_cast<void*>(p);
  return v;
}
inline hidet_value value(float f) {
  hidet_value v;
  v.i = 0;
  v.f = f;
  return v;
}
inline hidet_value value(double d) {
  hidet_value v;
  v.d = d;
  return v;
}

}  // namespace hidet::testing
