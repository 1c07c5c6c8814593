// dispatch.h - dispatch_table.txt: which candidate of each kernel was measured best at which dims.
// Text: a header "device", symbol names, kernel names; then rows of device name, dims, candidate numbers; tab separated.
// Threading: values; thread-safe.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace hidet {
struct ModelData;
struct ProgramData;
}  // namespace hidet

namespace hidet::runtime {

struct DispatchTable {
  struct Row {
    std::string device;
    std::vector<int64_t> dims;
    std::vector<int> candidates;  // one for each kernel
  };
  std::vector<Row> rows;
  std::string device;  ///< this machine's: its rows go first

  /// Throws Error(bad_file) at `where` that names the table and the line: wrong length, no number, no such candidate.
  static DispatchTable parse(const ModelData& data, const ProgramData& p, const std::string& text,
                             const std::string& where);
  /// The row of this device, else of any, that is nearest to these dims (by ratio); null for an empty table.
  const Row* nearest(const int64_t* dims) const;
  /// Replaces this device's row for these dims.
  void put(const std::vector<int64_t>& dims, std::vector<int> candidates);
  /// What parse reads; empty without rows.
  std::string text(const ModelData& data, const ProgramData& p) const;
};

}  // namespace hidet::runtime
