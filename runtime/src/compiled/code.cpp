// code.cpp - opens code objects from memory (memfd, else a temporary file) and sets them up.
// Threading: thread-safe.
#include "src/compiled/code.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "hidet/runtime/error.h"

namespace hidet::runtime {
namespace {

/// A path of the descriptor that no earlier load had: the loader takes equal names for the same object, also after
/// the number was used for another file. "/" and "./" mean the same to the system, so they spell a counter.
std::string fresh_path(int fd) {
  static std::atomic<uint32_t> counter{0};
  const uint32_t number = counter++;
  std::string path = "/proc/self/fd/";
  for (int bit = 31; bit >= 0; --bit) path += (number >> bit) & 1 ? "./" : "/";
  return path + std::to_string(fd);
}

struct File {
  int fd = -1;
  std::string remove;  // a temporary file that goes when it is open
  ~File() {
    if (fd >= 0) close(fd);
    if (!remove.empty()) unlink(remove.c_str());
  }
};

void write_all(int fd, std::span<const std::byte> bytes, const std::string& name) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    HIDET_REQUIRE(n > 0, ErrorCode::io, "", "cannot put the code of '", name,
                  "' into memory: ", std::strerror(errno));
    done += static_cast<size_t>(n);
  }
}

std::string temporary_pattern() {
  const char* folder = std::getenv("TMPDIR");
  return std::string(folder && *folder ? folder : "/tmp") + "/hidet-code-XXXXXX";
}

}  // namespace

SharedObject::SharedObject(std::span<const std::byte> bytes, const std::string& name)
    : name_(name) {
  HIDET_REQUIRE(bytes.size() > 64 && std::memcmp(bytes.data(), "\177ELF", 4) == 0,
                ErrorCode::bad_file, "", "the code of '", name, "' is not a shared object");
  File file;
  file.fd = memfd_create("hidet", MFD_CLOEXEC);
  std::string path;
  if (file.fd < 0) {  // refused by some sandboxes
    std::string pattern = temporary_pattern();
    file.fd = mkostemp(pattern.data(), O_CLOEXEC);
    HIDET_REQUIRE(file.fd >= 0, ErrorCode::io, "", "cannot create '", pattern,
                  "' for the code of '", name, "': ", std::strerror(errno));
    file.remove = path = pattern;
  } else {
    path = fresh_path(file.fd);
  }
  write_all(file.fd, bytes, name);
  handle_ = dlopen(path.c_str(), RTLD_LOCAL | RTLD_NOW);
  if (!handle_) {
    const char* reason = dlerror();
    throw Error(ErrorCode::bad_file, detail::concat("cannot load the code of '", name,
                                                    "': ", reason ? reason : "unknown reason"));
  }
}

SharedObject::~SharedObject() {
  if (handle_) dlclose(handle_);
}

void* SharedObject::find(const std::string& symbol) const { return dlsym(handle_, symbol.c_str()); }

void* SharedObject::need(const std::string& symbol) const {
  void* address = find(symbol);
  HIDET_REQUIRE(address, ErrorCode::bad_file, "", "the code of '", name_, "' lacks the function ",
                symbol);
  return address;
}

CpuTarget effective_cpu_target() {
  CpuTarget host = host_cpu_target();
  const char* cap = std::getenv("HIDET_CPU_LEVEL");
  if (!cap || !*cap) return host;
  const CpuTarget limit = CpuTarget::parse(cap);
  if (limit.level < host.level) host.level = limit.level, host.features = 0;
  host.features &= limit.level <= host.level && limit.features ? limit.features : ~0u;
  return host;
}

namespace {

ModuleData checked(ModuleData data) {
  const CpuTarget target = CpuTarget::parse(data.target), host = effective_cpu_target();
  HIDET_REQUIRE(target.runs_on(host), ErrorCode::device, "", "cannot load '", data.name,
                "': ", target.why_not(host));
  return data;
}

std::atomic<uint64_t> next_id{1};

}  // namespace

LoadedCode::LoadedCode(ModuleData given, bool alone)
    : data(checked(std::move(given))),
      object(data.code.span(), data.name),
      table(make_abi_table(*this)),
      id(next_id++),
      pool(*this) {
  const auto size = reinterpret_cast<uint64_t (*)()>(object.need("hidet_abi_size"))();
  HIDET_REQUIRE(size <= sizeof(hidet_abi), ErrorCode::unsupported, "", "the code of '", data.name,
                "' was made for a later version of this library: its function table has ", size,
                " bytes, ours ", sizeof(hidet_abi));
  reinterpret_cast<void (*)(const hidet_abi*)>(object.need("hidet_module_init"))(&table);
  for (const FunctionInfo& info : data.functions) {
    LoadedFunction f{info, reinterpret_cast<Thunk>(object.need("hidet_call_" + info.name))};
    if (info.name == "launch") main_function = static_cast<int>(functions.size());
    functions.push_back(std::move(f));
  }
  if (functions.size() == 1) main_function = 0;
  if (!data.candidate.empty() && !alone) space = std::make_unique<Candidates>(*this);
}

LoadedCode::~LoadedCode() = default;

CudaModule& LoadedCode::cuda() const {
  if (cuda_loaded()) return *cuda_module;
  const std::lock_guard lock(mutex);
  if (!cuda_module) {
    std::vector<CudaImage> images;
    for (const ModuleImage& image : data.images)
      images.push_back({image.target, image.bytes.span()});
    HIDET_REQUIRE(!images.empty(), ErrorCode::device, "", "'", data.name, "' has no GPU code");
    cuda_module = CudaModule::load(images, data.cuda_kernels, data.device.index());
    cuda_done.store(true, std::memory_order_release);
  }
  return *cuda_module;
}

void LoadedCode::check_kernels() const {
  if (!cuda_loaded()) return;
  const int32_t number = cuda().take_error();
  if (number == 0) return;
  const size_t i = static_cast<size_t>(number) - 1;
  const std::string& text = i < data.cuda_asserts.size() ? data.cuda_asserts[i] : "";
  throw Error(ErrorCode::usage,
              detail::concat(text.empty() ? detail::concat("assertion number ", number) : text,
                             " (in a GPU kernel of '", data.name, "')"));
}

hidet_ctx* LoadedCode::default_context() const {
  thread_local std::map<uint64_t, hidet_ctx*>
      mine;  // by id: an id of code that is gone is never asked for again
  hidet_ctx*& ctx = mine[id];
  if (!ctx) {
    auto made = std::make_unique<hidet_ctx>(*this);
    made->is_default = true;
    ctx = made.get();
    const std::lock_guard lock(mutex);
    defaults.push_back(std::move(made));
  }
  ctx->begin();
  return ctx;
}

}  // namespace hidet::runtime
