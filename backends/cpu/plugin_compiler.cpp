// plugin_compiler.cpp - Clang and LLD in process: finds libhidet_clang.so and opens it when first needed.
// Opening costs about 20 ms, so the compiler's identity is kept in the build cache with the sizes and
// times of the files that make the compiler: a run that finds everything in the cache never opens it.
// Needs: libhidet_clang.so beside libhidet.so, or HIDET_CLANG_PLUGIN (a path; "none": do not look).
// Threading: thread-safe.
#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

#include <cstdlib>
#include <mutex>
#include <sstream>

#include "cpu/compiler.h"
#include "cpu/plugin/plugin.h"
#include "hidet/backends/cache.h"
#include "hidet/runtime/error.h"

namespace hidet::backends::cpu {
namespace {

/// "path size time" of a file; empty when it is not there.
std::string file_stamp(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return "";
  return detail::concat(path, " ", info.st_size, " ", info.st_mtim.tv_sec, ".",
                        info.st_mtim.tv_nsec);
}

/// Stamps of the LLVM libraries that this process has loaded, one a line.
std::string llvm_stamps() {
  std::string stamps;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* user) {
        const std::string path = info->dlpi_name;
        const std::string name = path.substr(path.rfind('/') + 1);
        if (name.rfind("libclang-cpp", 0) == 0 || name.rfind("libLLVM", 0) == 0)
          *static_cast<std::string*>(user) += file_stamp(path) + "\n";
        return 0;
      },
      &stamps);
  return stamps;
}

std::string default_path() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&make_plugin_compiler), &info) == 0 ||
      info.dli_fname == nullptr)
    return "";
  const std::string self = info.dli_fname;
  const size_t slash = self.rfind('/');
  return (slash == self.npos ? "." : self.substr(0, slash)) + "/libhidet_clang.so";
}

struct Sink {
  Bytes output;
  std::string words;
  static void receive(void* user, int is_message, const void* data, size_t size) {
    auto& sink = *static_cast<Sink*>(user);
    const auto* bytes = static_cast<const uint8_t*>(data);
    if (is_message) sink.words.assign(bytes, bytes + size);
    else sink.output.assign(bytes, bytes + size);
  }
};

std::vector<const char*> pointers(const Arguments& arguments) {
  std::vector<const char*> all;
  for (const std::string& argument : arguments) all.push_back(argument.c_str());
  return all;
}

class PluginCompiler final : public Compiler {
 public:
  explicit PluginCompiler(std::string path) : path_(std::move(path)) {}

  CpuCompiler kind() const override { return CpuCompiler::plugin; }
  int max_level() const override { return 4; }
  std::string identity() const override { return identity_; }

  std::string options_text(const CpuTarget& target, bool fast_math) const override {
    return joined(cc1_arguments(target, fast_math, Output::object)) + " | " +
           joined(lld_arguments());
  }

  /// False, and `why`, when it cannot be opened.
  bool prepare(std::string& why) {
    const CacheKey key = CacheKey("compiler", "libhidet_clang.so").add("plugin", file_stamp(path_));
    BuildCache& cache = BuildCache::process();
    if (const auto kept = cache.get(key); kept && read_record({kept->begin(), kept->end()}))
      return true;
    if (!open(why)) return false;
    const std::string stamps = llvm_stamps();
    identity_ = detail::concat(api_->version, " [", stamps_digest(file_stamp(path_) + stamps), "]");
    const std::string record = identity_ + "\n" + stamps;
    cache.put(key, {reinterpret_cast<const uint8_t*>(record.data()), record.size()});
    return true;
  }

  Bytes compile(const Unit& unit, const CpuTarget& target, bool fast_math, Output output) override {
    require_open();
    const Arguments arguments = cc1_arguments(target, fast_math, output);
    const auto raw = pointers(arguments);
    Sink sink;
    const int status =
        api_->compile(raw.data(), static_cast<int>(raw.size()),
                      {unit.c_source.data(), unit.c_source.size()}, &Sink::receive, &sink);
    return finish(status, std::move(sink), "'" + unit.name + "'");
  }

  Bytes link(std::span<const Bytes> objects) override {
    require_open();
    const Arguments arguments = lld_arguments();
    const auto raw = pointers(arguments);
    std::vector<hidet_clang_bytes> inputs;
    for (const Bytes& object : objects) inputs.push_back({object.data(), object.size()});
    Sink sink;
    const int status = api_->link(
        raw.data(), static_cast<int>(raw.size()), inputs.data(), static_cast<int>(inputs.size()),
        {kVersionScript, std::char_traits<char>::length(kVersionScript)}, kNeededLibraries,
        std::size(kNeededLibraries), &Sink::receive, &sink);
    return finish(status, std::move(sink), "the linked library");
  }

 private:
  static std::string stamps_digest(const std::string& stamps) {
    uint64_t hash = 1469598103934665603u;  // FNV-1a
    for (const unsigned char c : stamps) hash = (hash ^ c) * 1099511628211u;
    std::ostringstream text;
    text << std::hex << hash;
    return text.str();
  }

  /// Takes the identity from a record when its files are still the same.
  bool read_record(const std::string& record) {
    std::istringstream lines(record);
    std::string identity, stamp;
    if (!std::getline(lines, identity)) return false;
    int files = 0;
    for (; std::getline(lines, stamp); ++files) {
      const size_t end = stamp.rfind(' ', stamp.rfind(' ') - 1);
      if (end == stamp.npos || file_stamp(stamp.substr(0, end)) != stamp) return false;
    }
    if (files == 0) return false;
    identity_ = identity;
    return true;
  }

  bool open(std::string& why) {
    std::lock_guard lock(mutex_);
    if (api_ != nullptr) return true;
    void* library = dlopen(path_.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr) {
      why = dlerror();
      return false;
    }
    const auto entry =
        reinterpret_cast<const hidet_clang_api* (*)()>(dlsym(library, "hidet_clang_entry"));
    const hidet_clang_api* api = entry == nullptr ? nullptr : entry();
    if (api == nullptr || api->size < sizeof(hidet_clang_api)) {
      why = "'" + path_ + "' is not this version's plugin";
      return false;
    }
    api_ = api;
    return true;
  }

  void require_open() {
    std::string why;
    HIDET_REQUIRE(open(why), ErrorCode::device, "",
                  "the in-process compiler cannot be opened: ", why);
  }

  static Bytes finish(int status, Sink sink, const std::string& what) {
    if (status == HIDET_CLANG_CRASHED)
      throw CompilerCrashed("the in-process compiler crashed on " + what);
    HIDET_REQUIRE(status == HIDET_CLANG_OK, ErrorCode::internal, "",
                  "the in-process compiler refused ", what, ": ", sink.words.substr(0, 4000));
    return std::move(sink.output);
  }

  std::string path_, identity_;
  std::mutex mutex_;
  const hidet_clang_api* api_ = nullptr;
};

}  // namespace

std::unique_ptr<Compiler> make_plugin_compiler(std::string& why) {
  const char* chosen = std::getenv("HIDET_CLANG_PLUGIN");
  const std::string wanted = chosen == nullptr ? "" : chosen;
  if (wanted == "none") {
    why = "HIDET_CLANG_PLUGIN is none";
    return nullptr;
  }
  const std::string path = wanted.empty() ? default_path() : wanted;
  if (file_stamp(path).empty()) {
    why = "there is no '" + path + "'";
  } else {
    auto compiler = std::make_unique<PluginCompiler>(path);
    if (compiler->prepare(why)) return compiler;
  }
  HIDET_REQUIRE(wanted.empty(), ErrorCode::device, "", "HIDET_CLANG_PLUGIN names '", wanted,
                "', which cannot be used: ", why);
  return nullptr;
}

}  // namespace hidet::backends::cpu
