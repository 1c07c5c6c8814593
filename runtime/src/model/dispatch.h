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

  /// Throws Error(bad_file) at `where` that names the table and the line: wrong length, no number, no such candidate.
  static DispatchTable parse(const ModelData& data, const ProgramData& p, const std::string& where);
  /// The row nearest to these dims (by ratio), or null for an empty table.
  const Row* nearest(const int64_t* dims) const;
};

}  // namespace hidet::runtime
