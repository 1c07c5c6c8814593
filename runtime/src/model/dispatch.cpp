// dispatch.cpp - reads dispatch_table.txt strictly; nearest row for unseen dims, so that nothing is measured in a run.
// Threading: thread-safe.
#include "src/model/dispatch.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "hidet/runtime/error.h"
#include "hidet/runtime/model_data.h"

namespace hidet::runtime {
namespace {

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(by, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// More than any two sizes differ by.
constexpr double kOtherDevice = 1e6;

template <class T>
bool number(std::string_view text, T* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && *value >= 0;
}

}  // namespace

DispatchTable DispatchTable::parse(const ModelData& data, const ProgramData& p,
                                   const std::string& text, const std::string& where) {
  DispatchTable table;
  if (text.empty()) return table;
  const std::string entry = "programs/" + p.target + "/dispatch_table.txt";
  const size_t columns = 1 + data.symbols.size() + p.kernels.size();
  std::vector<std::string_view> lines = split(text, '\n');
  if (lines.back().empty()) lines.pop_back();
  for (size_t n = 0; n < lines.size(); ++n) {
    const std::vector<std::string_view> cells = split(lines[n], '\t');
    HIDET_REQUIRE(cells.size() == columns, ErrorCode::bad_file, where, "entry '", entry, "': line ",
                  n + 1, " has ", cells.size(), " columns, not ", columns);
    if (n == 0) continue;
    Row row{std::string(cells[0]), std::vector<int64_t>(data.symbols.size()),
            std::vector<int>(p.kernels.size())};
    size_t c = 1;
    bool good = true;
    for (int64_t& dim : row.dims) good = number(cells[c++], &dim) && good;
    for (size_t k = 0; k < p.kernels.size(); ++k) {
      int& chosen = row.candidates[k];
      good = number(cells[c++], &chosen) &&
             static_cast<size_t>(chosen) < p.kernels[k].candidates.size() && good;
    }
    HIDET_REQUIRE(good, ErrorCode::bad_file, where, "entry '", entry, "': line ", n + 1,
                  " has a dim or candidate that cannot be");
    table.rows.push_back(std::move(row));
  }
  return table;
}

const DispatchTable::Row* DispatchTable::nearest(const int64_t* dims) const {
  for (const Row& row : rows)
    if (row.device == device && std::equal(row.dims.begin(), row.dims.end(), dims)) return &row;
  const Row* best = nullptr;
  double least = 0;
  for (const Row& row : rows) {
    double distance = row.device == device ? 0 : kOtherDevice;
    for (size_t i = 0; i < row.dims.size(); ++i)
      distance += std::fabs(std::log1p(static_cast<double>(row.dims[i])) -
                            std::log1p(static_cast<double>(dims[i])));
    if (!best || distance < least) best = &row, least = distance;
  }
  return best;
}

void DispatchTable::put(const std::vector<int64_t>& dims, std::vector<int> candidates) {
  std::erase_if(rows, [&](const Row& r) { return r.device == device && r.dims == dims; });
  rows.push_back({device, dims, std::move(candidates)});
}

std::string DispatchTable::text(const ModelData& data, const ProgramData& p) const {
  if (rows.empty()) return "";
  std::string out = "device";
  for (const SymbolRange& s : data.symbols) out += "\t" + s.name;
  for (const KernelData& k : p.kernels) out += "\t" + k.name;
  for (const Row& row : rows) {
    out += "\n" + row.device;
    for (const int64_t dim : row.dims) out += "\t" + std::to_string(dim);
    for (const int candidate : row.candidates) out += "\t" + std::to_string(candidate);
  }
  return out + "\n";
}

}  // namespace hidet::runtime
