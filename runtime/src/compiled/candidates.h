// candidates.h - the candidates of a module with a parameter space, and which of them runs at which dims.
// Threading: made once; the table is replaced as a whole, under a lock.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hidet/runtime/compiled_module.h"

namespace hidet::runtime {

struct LoadedCode;

class Candidates {
 public:
  /// The candidates of `first`, itself number 0. Throws Error(usage) where one has other functions.
  explicit Candidates(const LoadedCode& first);
  ~Candidates();

  size_t size() const { return others_.size() + 1; }
  const LoadedCode& at(size_t i) const;
  /// The candidate for a call of `function` with these dims: the nearest that tune kept, else the first.
  const LoadedCode& choose(const std::string& function, const std::vector<int64_t>& dims) const;
  void keep(const std::string& function, const std::vector<int64_t>& dims, size_t candidate);
  std::string text() const;
  void read(const std::string& text);
  /// What the rows of this machine begin with: the GPU's name, or the CPU level of the code.
  const std::string& device() const;

 private:
  struct Row {
    std::string device, function;
    std::vector<int64_t> dims;
    size_t candidate;
  };
  using Table = std::vector<Row>;
  std::shared_ptr<const Table> table() const;
  void publish(Table table);

  const LoadedCode& first_;
  std::vector<std::unique_ptr<LoadedCode>> others_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Table> table_ = std::make_shared<Table>();
  mutable std::once_flag named_;
  mutable std::string device_;
};

/// What a call's dispatch goes by: the integers among the arguments and the sizes of the tensors, in order.
std::vector<int64_t> dims_of(const FunctionInfo& f, std::span<const CallArg> args);
/// Calls function number `index` of `code` itself, whatever its candidates are.
CallResult call_loaded(const LoadedCode& code, size_t index, std::span<const CallArg> args,
                       Profile* profile = nullptr);

}  // namespace hidet::runtime
